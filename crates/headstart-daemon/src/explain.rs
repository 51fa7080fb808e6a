//! What a connection to an address would get now, and why.

use std::net::IpAddr;
use std::path::Path;

use headstart_core::{Connection, Event, EventKind, Path as KnownPath, why_help, why_name};
use headstart_kernel::{CgroupId, FlowKey, KernelError, LiveMemory, Prefix};

use crate::config::{Action, RuleAction, Unit};
use crate::daemon::Daemon;
use crate::memory::Memory;
use crate::protocol::Explanation;

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
    let opening = Event {
        kind: EventKind::Open as u8,
        cwnd_pkts: STACK_IW_PKTS,
        ssthresh_pkts: headstart_core::INFINITE_SSTHRESH,
        mss_bytes: MSS_BYTES,
        sack_ok: 1,
        ..Event::default()
    };
    let known = known_path(daemon, addr, &opening)?;
    let mut explanation = Explanation {
        path: known.as_ref().map(|known| {
            let path = &known.remembered;
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
            let told = known.as_ref().map(|known| &known.told);
            let verdict = Connection::new(*params).step(told, &opening);
            explanation.cwnd_pkts = (verdict.cwnd_pkts > 0).then_some(verdict.cwnd_pkts);
            explanation.why = Some(why_help(verdict.why).to_owned());
        }
    }
    Ok(explanation)
}

fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// What is remembered, and what of it a start-up would be told.
struct Known {
    remembered: KnownPath,
    told: KnownPath,
}

/// As the kernel asks: the longest prefix of which anything recent is known answers, also with a refusal.
fn known_path(
    daemon: &Daemon,
    addr: IpAddr,
    opening: &Event,
) -> Result<Option<Known>, KernelError> {
    let addr = addr.to_canonical();
    let options = Memory::options(&daemon.config.memory);
    let (lengths, most) = if addr.is_ipv4() {
        (options.lengths_v4, 32)
    } else {
        (options.lengths_v6, 128)
    };
    let memory = daemon.kernel.path_memory()?;
    let now_ns = LiveMemory::now_ns();
    let mut stale = None;
    for bits in (0..=most).rev().filter(|bits| lengths.has(*bits, most)) {
        let lesson = memory.get(Prefix::of(addr, bits))?;
        let Some(lesson) = lesson.filter(|lesson| !lesson.is_forgotten()) else {
            continue;
        };
        let remembered = lesson.entry(now_ns).path;
        let mut told = remembered;
        let why = options.params.recall(&mut told, opening);
        let known = Known { remembered, told };
        if why_name(why) != "path-stale" {
            return Ok(Some(known));
        }
        stale.get_or_insert(known);
    }
    Ok(stale)
}
