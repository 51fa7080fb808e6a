//! What a policy says: its rules, what they see of a connection, and what is counted.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use headstart_core::Params;

use crate::cgroup;
use crate::policy_layout::{CGROUP_LEVELS, MAX_ARMS, MAX_RULES};

/// The most rules that a policy may have.
pub const MAX_POLICY_RULES: usize = MAX_RULES;
/// The most arms that a rule may have.
pub const MAX_RULE_ARMS: usize = MAX_ARMS;

/// A cgroup as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupId {
    /// Its number, which is its directory's inode number.
    pub id: u64,
    /// How deep it lies; 0 is the root.
    pub level: u32,
}

impl CgroupId {
    /// The cgroup and those above it, root first, as [`FlowKey`] wants them.
    pub fn with_ancestors(path: &Path) -> Vec<u64> {
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        let ids = above.into_iter().map(CgroupId::of);
        ids.map_while(|found| found.map(|cgroup| cgroup.id))
            .collect()
    }

    /// The cgroup whose directory is `path`, which may be relative to where cgroup v2 is mounted. `None` where there
    /// is none now.
    pub fn of(path: &Path) -> Option<CgroupId> {
        let root = cgroup::mount_point()?;
        let path = root.join(path);
        let below = path.strip_prefix(&root).ok()?;
        let level = u32::try_from(below.components().count()).ok()?;
        let metadata = std::fs::metadata(&path).ok()?;
        ((level as usize) < CGROUP_LEVELS && metadata.is_dir()).then_some(CgroupId {
            id: metadata.ino(),
            level,
        })
    }
}

/// What is done with a connection.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// Its share of the prefixes or connections, of [`SHARE_ONE`](crate::SHARE_ONE). Those of a rule sum to that; the
    /// last arm has what is left.
    pub share: u32,
    /// The congestion control; `None` leaves the connection what it has.
    pub control: Option<String>,
    /// The start-up's parameters, where they are not those that it was loaded with.
    pub params: Option<Params>,
    /// No congestion window above it.
    pub cap_pkts: Option<u32>,
}

/// A rule: what it matches, and what it does.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Not 0, and never used again for another rule while the policy lives.
    pub id: u32,
    /// The cgroup of whoever opened the socket, or one above it.
    pub cgroup: Option<CgroupId>,
    /// The device through which the connection leaves.
    pub ifindex: Option<u32>,
    /// Our port, first and last.
    pub ports: (u16, u16),
    /// The peer's prefix: an address in it, and its bits.
    pub destination: Option<(IpAddr, u8)>,
    /// Record the transfers.
    pub records: bool,
    /// Connections are assigned to the arms one by one; else the peers' prefixes are.
    pub by_connection: bool,
    /// At least one, at most [`MAX_RULE_ARMS`].
    pub arms: Vec<Arm>,
}

/// All rules, in order: the first that matches decides. A connection that none matches is left alone and not
/// recorded.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// Of the assignment of prefixes to arms.
    pub salt: u64,
    /// Share of the connections whose transfers are recorded, of [`SHARE_ONE`](crate::SHARE_ONE).
    pub sample: u32,
    /// The prefix that is assigned to an arm as a whole, IPv4.
    pub arm_bits_v4: u8,
    /// The prefix that is assigned to an arm as a whole, IPv6.
    pub arm_bits_v6: u8,
    /// At most [`MAX_POLICY_RULES`].
    pub rules: Vec<Rule>,
}

/// What a rule sees of a connection.
#[derive(Clone, Debug)]
pub struct FlowKey {
    /// The cgroup and those above it, root first.
    pub cgroups: Vec<u64>,
    /// The device through which it leaves; 0: not known.
    pub ifindex: u32,
    /// Our port.
    pub local_port: u16,
    /// The peer.
    pub remote_addr: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
}

/// What a rule has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleStats {
    /// Connections that it matched.
    pub matched: u64,
    /// Of them, those that got its congestion control.
    pub chosen: u64,
    /// Of them, those whose application had chosen by itself.
    pub app_chose: u64,
    /// Of them, those that the kernel refused it: their route has one that is locked.
    pub refused: u64,
}

/// What has happened to connections and records since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Transfers recorded.
    pub recorded: u64,
    /// Transfers whose record found the ring buffer full.
    pub records_lost: u64,
    /// Connections that were given a congestion control.
    pub opened: u64,
    /// Of them, those that have closed.
    pub closed: u64,
    /// Of them, those that were moved back.
    pub moved: u64,
    /// Of them, those that the kernel would not move back.
    pub stayed: u64,
    /// Transfers that have ended and are not recorded yet.
    pub pending: u64,
}

impl FlowCounts {
    /// Connections that are under a congestion control of ours now.
    pub fn live(&self) -> u64 {
        self.opened.saturating_sub(self.closed + self.moved)
    }
}
