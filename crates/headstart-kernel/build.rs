//! Compiles `bpf/` with clang. The headers of libbpf come with libbpf-sys, the kernel's types with `bpf/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const OBJECTS: [&str; 6] = ["startup", "mark", "watch", "replay", "hint", "policy"];

fn main() {
    let (bpf, core) = ("../../bpf", "../../core");
    println!("cargo::rerun-if-changed={bpf}");
    println!("cargo::rerun-if-changed={core}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let libbpf = env::var("DEP_BPF_INCLUDE").unwrap_or_default();

    for name in OBJECTS {
        let source = format!("{bpf}/{name}.bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        let done = Command::new(&clang)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-ffreestanding"])
            // The kernel's callbacks have parameters that not every start-up reads.
            .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
            .args(["-I", bpf, "-I", core, "-I", &libbpf])
            .args(["-c", &source, "-o"])
            .arg(&object)
            .status();
        match done {
            Ok(status) if status.success() => strip_paths(&object),
            Ok(status) => fail(&format!("{clang} could not compile {source} ({status})")),
            Err(error) => fail(&format!("cannot run {clang}: {error}")),
        }
    }
}

/// Debug sections carry this machine's paths; CO-RE needs BTF only.
fn strip_paths(object: &Path) {
    let stripped = object.with_extension("stripped");
    let tool = env::var("LLVM_STRIP").unwrap_or_else(|_| "llvm-strip".to_owned());
    let done = Command::new(tool)
        .arg("-g")
        .arg("-o")
        .arg(&stripped)
        .arg(object)
        .status();
    if matches!(done, Ok(status) if status.success()) {
        let _ = fs::rename(&stripped, object);
    }
}

fn fail(why: &str) -> ! {
    println!("cargo::error=headstart-kernel: {why}");
    println!(
        "cargo::error=the kernel part needs clang 14 or later (Debian: apt-get install clang llvm); \
         without it, build the rest: cargo build -p headstart-cli --no-default-features"
    );
    std::process::exit(1);
}
