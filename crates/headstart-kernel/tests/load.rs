//! The programs load, the names come and go.

use headstart_core::{Params, Startup};
use headstart_kernel::{Kernel, Options};

/// What the kernel offers.
fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
}

#[test]
fn start_ups_are_registered_while_the_kernel_value_lives_and_gone_after() {
    let options = Options {
        startups: Startup::all().map(Params::new).collect(),
        ..Options::default()
    };
    let kernel = match Kernel::load(&options) {
        Err(e) => panic!("{e}"),
        Ok(kernel) => kernel,
    };
    assert!(available().contains("su_fast_start"));
    drop(kernel);
    assert!(!available().contains("su_"));
}
