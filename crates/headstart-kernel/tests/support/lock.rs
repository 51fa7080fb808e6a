//! The lock of the tests.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of a private module"
)]

use std::fs::{File, OpenOptions};

use nix::fcntl::{Flock, FlockArg};

/// Names of congestion controls are the machine's: one test at a time may register them, whichever process it
/// is in.
pub fn one_at_a_time() -> Flock<File> {
    let file = std::env::temp_dir().join("headstart-tests.lock");
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    Flock::lock(file, FlockArg::LockExclusive).unwrap()
}
