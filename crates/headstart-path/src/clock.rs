//! The one clock of the router and its packet log.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Now on `CLOCK_MONOTONIC`, in nanoseconds: the clock of every time stamp of this crate, and of
/// BPF's `bpf_ktime_get_ns`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    // The call fails only for a clock that the kernel does not know; this one it always knows.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
    now.tv_sec().unsigned_abs() * 1_000_000_000 + now.tv_nsec().unsigned_abs()
}

/// Now on `CLOCK_REALTIME`, the wall clock, in nanoseconds since 1970.
pub(crate) fn realtime_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // Before 1970, or after 2554: such a clock tells nothing anyway.
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// A length of time for the kernel's waiting calls.
pub(crate) fn time_spec(ns: u64) -> TimeSpec {
    TimeSpec::from_duration(std::time::Duration::from_nanos(ns))
}
