//! The layouts of `bpf/transfers.h`.

use std::net::IpAddr;

pub(crate) const MAX_RULES: usize = 32;
pub(crate) const MAX_ARMS: usize = 4;
pub(crate) const CGROUP_LEVELS: usize = 16;
pub(crate) const PARAM_SETS: u32 = 1024;
pub(crate) const RULE_STATS: usize = 1024;

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawArm {
    pub(crate) upto: u32,
    pub(crate) cap_pkts: u32,
    pub(crate) param_set: u16,
    pub(crate) changes_control: u8,
    pub(crate) reserved: [u8; 5],
    pub(crate) control: [u8; 16],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawRule {
    pub(crate) cgroup_id: u64,
    pub(crate) cgroup_level: u32,
    pub(crate) ifindex: u32,
    pub(crate) rule_id: u32,
    pub(crate) port_from: u16,
    pub(crate) port_to: u16,
    pub(crate) family: u8,
    pub(crate) bits: u8,
    pub(crate) arms: u8,
    pub(crate) records: u8,
    pub(crate) by_connection: u8,
    pub(crate) reserved: u8,
    pub(crate) stats_place: u16,
    pub(crate) addr: [u8; 16],
    pub(crate) arm: [RawArm; MAX_ARMS],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawPolicy {
    pub(crate) salt: u64,
    pub(crate) rules: u32,
    pub(crate) sample: u32,
    pub(crate) arm_bits_v4: u8,
    pub(crate) arm_bits_v6: u8,
    pub(crate) names_cgroups: u8,
    pub(crate) names_devices: u8,
    pub(crate) reserved: [u8; 4],
    pub(crate) rule: [RawRule; MAX_RULES],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawFlowKey {
    pub(crate) cgroup_ids: [u64; CGROUP_LEVELS],
    pub(crate) ifindex: u32,
    pub(crate) local_port: u16,
    pub(crate) family: u8,
    pub(crate) reserved: u8,
    pub(crate) addr: [u8; 16],
    pub(crate) remote_port: u16,
    pub(crate) reserved_too: [u8; 6],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawMove {
    pub(crate) control: [u8; 16],
    pub(crate) rule_id: u32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawExplain {
    pub(crate) key: RawFlowKey,
    pub(crate) rule: u32,
    pub(crate) arm: u32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawRuleStats {
    pub(crate) matched: u64,
    pub(crate) chosen: u64,
    pub(crate) app_chose: u64,
    pub(crate) refused: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawTransfer {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) retrans_bytes: u64,
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) idle_ns: u64,
    pub(crate) retrans_pkts: u32,
    pub(crate) lost_pkts: u32,
    pub(crate) rto_count: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) start_rtt_us: u32,
    pub(crate) end_rtt_us: u32,
    pub(crate) initial_cwnd_pkts: u32,
    pub(crate) end_cwnd_pkts: u32,
    pub(crate) exit_cwnd_pkts: u32,
    pub(crate) why_cwnd_pkts: u32,
    pub(crate) peer_initial_window_bytes: u32,
    pub(crate) mss_bytes: u32,
    pub(crate) index: u32,
    pub(crate) rule_id: u32,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) family: u8,
    pub(crate) arm: u8,
    pub(crate) flags: u8,
    pub(crate) why: u8,
    pub(crate) control: [u8; 16],
    pub(crate) remote_addr: [u8; 16],
}

/// `enum hs_transfer_flag`.
pub(crate) mod flag {
    pub(crate) const COMPLETE: u8 = 1 << 0;
    pub(crate) const APP_LIMITED: u8 = 1 << 1;
    pub(crate) const PEER_LIMITED: u8 = 1 << 2;
    pub(crate) const PATH_HIT: u8 = 1 << 3;
    pub(crate) const RATE_APP_LIMITED: u8 = 1 << 4;
    pub(crate) const PASSIVE: u8 = 1 << 5;
    pub(crate) const WHY: u8 = 1 << 6;
}

/// `enum hs_flow_counter`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum FlowCounter {
    Recorded = 0,
    RecordsLost = 1,
    Opened = 2,
    Closed = 3,
    Moved = 4,
    Stayed = 5,
    Pending = 6,
}

// bpf/transfers.h asserts the same numbers.
const _: () = assert!(size_of::<RawArm>() == 32);
const _: () = assert!(size_of::<RawRule>() == 176);
const _: () = assert!(size_of::<RawPolicy>() == 24 + 32 * 176);
const _: () = assert!(size_of::<RawFlowKey>() == 160);
const _: () = assert!(size_of::<RawMove>() == 20);
const _: () = assert!(size_of::<RawExplain>() == 168);
const _: () = assert!(size_of::<RawRuleStats>() == 32);
const _: () = assert!(size_of::<RawTransfer>() == 144);

/// Family (4 or 6) and address, as the kernel's side writes them: an IPv4-mapped address is one of IPv4.
pub(crate) fn octets(addr: IpAddr) -> (u8, [u8; 16]) {
    match addr.to_canonical() {
        IpAddr::V4(v4) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&v4.octets());
            (4, octets)
        }
        IpAddr::V6(v6) => (6, v6.octets()),
    }
}
