//! A transfer, as the kernel recorded it.

use std::net::IpAddr;

use crate::contract;
use crate::policy_layout::{RawTransfer, flag};

/// The name of a congestion control, as the kernel has it: 15 bytes at most, then a 0 (`TCP_CA_NAME_MAX`). In place, so
/// that reading a record asks for no memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ControlName([u8; 16]);

impl ControlName {
    /// The name.
    pub fn as_str(&self) -> &str {
        let name = self.0.split(|byte| *byte == 0).next();
        // The kernel's own are ASCII.
        std::str::from_utf8(name.unwrap_or_default()).unwrap_or_default()
    }
}

impl From<&str> for ControlName {
    /// What is longer than the kernel's names is cut off.
    fn from(name: &str) -> ControlName {
        ControlName(control_bytes(name))
    }
}

impl std::ops::Deref for ControlName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<&str> for ControlName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl std::fmt::Debug for ControlName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), f)
    }
}

impl std::fmt::Display for ControlName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

/// A name as the kernel's structures have it.
pub(crate) fn control_bytes(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    bytes
}

/// From the first byte that was sent while nothing was outstanding until all that the application had written was
/// acknowledged; or until the connection ended, where that came first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When its first packet left, on `CLOCK_MONOTONIC`, in ns.
    pub start_ns: u64,
    /// When its last byte was acknowledged, or the connection ended, on `CLOCK_MONOTONIC`, in ns.
    pub end_ns: u64,
    /// Acknowledged bytes of it.
    pub bytes: u64,
    /// Bytes that were sent again.
    pub retransmitted_bytes: u64,
    /// Packets that were sent again.
    pub retransmitted_pkts: u32,
    /// Packets that the stack thought lost.
    pub lost_pkts: u32,
    /// How often the retransmission timer went off.
    pub rto_count: u32,
    /// The best delivery rate sample; `None` where there was none.
    pub rate_bytes_per_s: Option<u64>,
    /// The application had nothing to send when that sample was taken: the path may carry more.
    pub rate_app_limited: bool,
    /// The least RTT sample of the transfer; `None` where there was none.
    pub min_rtt_us: Option<u32>,
    /// Smoothed RTT when it began; `None` where none had been measured.
    pub start_rtt_us: Option<u32>,
    /// Smoothed RTT when it ended.
    pub end_rtt_us: Option<u32>,
    /// The congestion window with which it began.
    pub initial_cwnd_pkts: u32,
    /// The congestion window with which it ended.
    pub end_cwnd_pkts: u32,
    /// The congestion window when slow start was left; `None` where it was not, or had been before.
    pub exit_cwnd_pkts: Option<u32>,
    /// The last reason that a start-up gave, as its number, and the congestion window then.
    pub why: Option<(u8, u32)>,
    /// The window that the peer offered when the connection was established.
    pub peer_initial_window_bytes: u32,
    /// Maximum segment size.
    pub mss_bytes: u32,
    /// 0 for the first transfer of its connection.
    pub index: u32,
    /// Since the end of the transfer before; `None` for the first.
    pub idle_ns: Option<u64>,
    /// The number of the rule that the connection came under.
    pub rule_id: u32,
    /// The place of its arm in the rule.
    pub arm: u8,
    /// All of it was acknowledged.
    pub complete: bool,
    /// It had nothing left to send once, and went on: the application limited it.
    pub app_limited: bool,
    /// It had to wait for the peer's window.
    pub peer_limited: bool,
    /// The start-up knew the path.
    pub path_hit: bool,
    /// The peer opened the connection.
    pub passive: bool,
    /// The congestion control under which it ended.
    pub control: ControlName,
    /// Our port.
    pub local_port: u16,
    /// The peer.
    pub remote_addr: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
}

impl Transfer {
    pub(crate) fn read(bytes: &[u8]) -> Option<Transfer> {
        let raw: RawTransfer = contract::from_bytes(bytes)?;
        let has = |flag: u8| raw.flags & flag != 0;
        let some = |number: u32| (number != 0).then_some(number);
        Some(Transfer {
            start_ns: raw.start_ns,
            end_ns: raw.end_ns,
            bytes: raw.bytes,
            retransmitted_bytes: raw.retrans_bytes,
            retransmitted_pkts: raw.retrans_pkts,
            lost_pkts: raw.lost_pkts,
            rto_count: raw.rto_count,
            rate_bytes_per_s: (raw.rate_bytes_per_s != 0).then_some(raw.rate_bytes_per_s),
            rate_app_limited: has(flag::RATE_APP_LIMITED),
            min_rtt_us: some(raw.min_rtt_us),
            start_rtt_us: some(raw.start_rtt_us),
            end_rtt_us: some(raw.end_rtt_us),
            initial_cwnd_pkts: raw.initial_cwnd_pkts,
            end_cwnd_pkts: raw.end_cwnd_pkts,
            exit_cwnd_pkts: some(raw.exit_cwnd_pkts),
            why: has(flag::WHY).then_some((raw.why, raw.why_cwnd_pkts)),
            peer_initial_window_bytes: raw.peer_initial_window_bytes,
            mss_bytes: raw.mss_bytes,
            index: raw.index,
            idle_ns: (raw.index != 0).then_some(raw.idle_ns),
            rule_id: raw.rule_id,
            arm: raw.arm,
            complete: has(flag::COMPLETE),
            app_limited: has(flag::APP_LIMITED),
            peer_limited: has(flag::PEER_LIMITED),
            path_hit: has(flag::PATH_HIT),
            passive: has(flag::PASSIVE),
            control: ControlName(raw.control),
            local_port: raw.local_port,
            remote_addr: contract::address(raw.family, raw.remote_addr),
            remote_port: raw.remote_port,
        })
    }

    /// How long it took, in us.
    pub fn latency_us(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns) / 1000
    }
}
