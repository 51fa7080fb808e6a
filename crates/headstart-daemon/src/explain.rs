//! What a connection to an address would get now, and why.

use std::net::IpAddr;
use std::path::Path;

use headstart_core::{Connection, Event, EventKind, Path as KnownPath, why_help};
use headstart_kernel::{CgroupId, FlowKey, KernelError, Prefix};

use crate::config::{Action, RuleAction, Unit};
use crate::daemon::Daemon;
use crate::protocol::Explanation;
use crate::rules::ARM_BITS;

/// RFC 6928: what the stack would begin with.
const STACK_IW_PKTS: u32 = 10;
/// An Ethernet frame's payload without the headers of IPv4 and TCP with timestamps.
const MSS_BYTES: u32 = 1448;

/// Without `cgroup` each rule is asked as if the server ran in its cgroup, and the first that matches answers. A rule
/// that names a device does not answer: through which one the connection would leave is not looked up.
pub(crate) fn explain(
    daemon: &Daemon,
    addr: IpAddr,
    port: u16,
    cgroup: Option<&Path>,
) -> Result<Explanation, KernelError> {
    let mut candidates: Vec<Vec<u64>> = vec![Vec::new()];
    match cgroup {
        Some(path) => candidates = vec![CgroupId::with_ancestors(below_root(path))],
        None => {
            let rules = daemon.config.rules.iter();
            let cgroups = rules.filter_map(|rule| rule.cgroup.as_deref());
            candidates.extend(cgroups.map(CgroupId::with_ancestors));
        }
    }
    let mut first: Option<(usize, usize)> = None;
    for cgroups in candidates {
        let key = FlowKey {
            cgroups,
            ifindex: 0,
            local_port: port,
            remote_addr: addr,
            // Any: where each connection has an arm of its own, none is told.
            remote_port: 0,
        };
        let found = daemon.policy.explain(&key)?;
        first = match (first, found) {
            (Some(first), Some(found)) => Some(first.min(found)),
            (first, found) => first.or(found),
        };
    }
    let path = known_path(daemon, addr)?;
    let mut explanation = Explanation {
        path: path.map(|path| {
            format!(
                "window {} pkts, srtt {:.1} ms, learnt {} s ago",
                path.cwnd_pkts,
                f64::from(path.srtt_us) / 1000.0,
                path.age_us / 1_000_000
            )
        }),
        ..Explanation::default()
    };
    let Some((place, arm)) = first else {
        return Ok(explanation);
    };
    let standing = daemon.resolved.places.get(place);
    let Some(standing) = standing.and_then(|place| daemon.resolved.standing.get(*place)) else {
        return Ok(explanation);
    };
    explanation.rule = Some(standing.config.name.clone());
    explanation.off = standing.off.clone();
    let unit = daemon
        .config
        .experiment
        .as_ref()
        .map(|experiment| experiment.unit);
    if standing.config.action == RuleAction::Experiment && unit == Some(Unit::Connection) {
        let arms = standing.arms.iter().filter(|arm| arm.share_percent > 0);
        let (names, controls): (Vec<&str>, Vec<&str>) = arms
            .map(|arm| (arm.name.as_str(), arm.action.name()))
            .unzip();
        explanation.arm = Some(format!("{} by connection", names.join(" or ")));
        explanation.control = Some(controls.join(" or "));
        return Ok(explanation);
    }
    if let Some(arm) = standing.arms.get(arm) {
        explanation.arm = Some(arm.name.clone());
        explanation.control = Some(arm.action.name().to_owned());
        if let (Action::Startup(params), None) = (&arm.action, &standing.off) {
            let opening = Event {
                kind: EventKind::Open as u8,
                cwnd_pkts: STACK_IW_PKTS,
                ssthresh_pkts: headstart_core::INFINITE_SSTHRESH,
                mss_bytes: MSS_BYTES,
                sack_ok: 1,
                ..Event::default()
            };
            let verdict = Connection::new(*params).step(path.as_ref(), &opening);
            explanation.cwnd_pkts = (verdict.cwnd_pkts > 0).then_some(verdict.cwnd_pkts);
            explanation.why = Some(why_help(verdict.why).to_owned());
        }
    }
    Ok(explanation)
}

fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn known_path(daemon: &Daemon, addr: IpAddr) -> Result<Option<KnownPath>, KernelError> {
    let addr = addr.to_canonical();
    let bits = if addr.is_ipv4() {
        ARM_BITS.0
    } else {
        ARM_BITS.1
    };
    let wanted = Prefix::of(addr, bits).to_string();
    let paths = daemon.kernel.paths()?;
    let found = paths
        .into_iter()
        .find(|entry| entry.prefix.to_string() == wanted);
    Ok(found.map(|entry| entry.path))
}
