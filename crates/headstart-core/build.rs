//! Compiles the native build of `core/`.

fn main() {
    let core = "../../core";
    println!("cargo::rerun-if-changed={core}");
    println!("cargo::rerun-if-changed=native");
    cc::Build::new()
        .file("native/native.c")
        .include(core)
        .std("c11")
        .flag_if_supported("-ffreestanding")
        .flag_if_supported("-Wpedantic")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("headstart_core_native");
}
