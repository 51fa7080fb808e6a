//! What this machine can do: asked of the machine, not concluded from its version.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::{Btf, types};
use nix::unistd::geteuid;
use serde::Serialize;

use crate::cgroup;
use crate::error::KernelError;

/// The kernel functions that the programs call, on every kernel.
const KFUNCS: [&str; 8] = [
    "cubictcp_init",
    "cubictcp_recalc_ssthresh",
    "cubictcp_cong_avoid",
    "cubictcp_state",
    "cubictcp_acked",
    "tcp_reno_ssthresh",
    "tcp_reno_cong_avoid",
    "tcp_reno_undo_cwnd",
];

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, with a limit that the check names.
    Limited,
    /// Missing: start-ups cannot run in this kernel.
    Missing,
    /// Missing: paths cannot be emulated here.
    MissingForPaths,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub verdict: Verdict,
    /// In words.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<&'static str>,
}

/// All checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Probe {
    /// Looks at the machine; changes nothing.
    pub fn run() -> Probe {
        let btf = Btf::from_vmlinux().ok();
        Probe {
            checks: vec![
                kernel_release(),
                root(),
                kernel_types(btf.as_ref()),
                start_up_interface(btf.as_ref()),
                jit(),
                struct_ops_links(btf.as_ref()),
                tcx(btf.as_ref()),
                cgroup_v2(),
                tun(),
                namespaces(),
                native_controls(),
            ],
        }
    }

    /// Whether start-ups can run in this kernel.
    ///
    /// # Errors
    /// [`KernelError::CannotHere`] with what is missing and how to get it.
    pub fn require(&self) -> Result<(), KernelError> {
        let missing: Vec<String> = self
            .checks
            .iter()
            .filter(|check| check.verdict == Verdict::Missing)
            .map(Check::sentence)
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(KernelError::CannotHere { missing })
        }
    }

    /// Whether the check of that name came out well.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.checks
            .iter()
            .any(|check| check.name == name && check.verdict == Verdict::Ok)
    }
}

impl Check {
    /// What was found and what to do about it, in one line.
    pub fn sentence(&self) -> String {
        match self.remedy {
            Some(remedy) => format!("{}: {} ({remedy})", self.name, self.found),
            None => format!("{}: {}", self.name, self.found),
        }
    }

    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check {
            name,
            verdict: Verdict::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn bad(
        name: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        remedy: &'static str,
    ) -> Check {
        Check {
            name,
            verdict,
            found: found.into(),
            remedy: Some(remedy),
        }
    }
}

fn kernel_release() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 1) {
        Check::ok("kernel", release)
    } else {
        Check::bad(
            "kernel",
            Verdict::Missing,
            format!("{release} is too old"),
            "Linux 6.1 or later is needed: Debian 12 has it",
        )
    }
}

fn root() -> Check {
    if geteuid().is_root() {
        Check::ok("privilege", "root")
    } else {
        Check::bad(
            "privilege",
            Verdict::Missing,
            "not root",
            "run it with sudo; loading BPF programs and making network namespaces need root",
        )
    }
}

fn kernel_types(btf: Option<&Btf<'_>>) -> Check {
    let name = "kernel types (BTF)";
    if btf.is_some() {
        return Check::ok(name, "/sys/kernel/btf/vmlinux");
    }
    let found = if Path::new("/sys/kernel/btf/vmlinux").exists() {
        "/sys/kernel/btf/vmlinux cannot be read"
    } else {
        "there is no /sys/kernel/btf/vmlinux"
    };
    Check::bad(
        name,
        Verdict::Missing,
        found,
        "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, as the kernels of Debian, Ubuntu and Fedora are",
    )
}

fn start_up_interface(btf: Option<&Btf<'_>>) -> Check {
    let name = "congestion control in BPF";
    let remedy = "run Linux 6.1 or later with CONFIG_BPF_SYSCALL=y and CONFIG_TCP_CONG_CUBIC=y";
    let Some(btf) = btf else {
        return Check::bad(
            name,
            Verdict::Missing,
            "not known without kernel types",
            remedy,
        );
    };
    match interface_of(btf) {
        Ok(found) => Check::ok(name, found),
        Err(found) => Check::bad(name, Verdict::Missing, found, remedy),
    }
}

/// Which of the interfaces that the programs are made for the kernel has, or what it lacks for any of them. libbpf then
/// takes the callbacks that fit (`bpf/kernel_types.h`, `tcp_congestion_ops`).
fn interface_of(btf: &Btf<'_>) -> Result<String, String> {
    let Some(ops) = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops") else {
        return Err("the kernel has no tcp_congestion_ops".to_owned());
    };
    let calls = |callback: &str| {
        ops.iter()
            .any(|member| member.name.is_some_and(|name| name == callback))
    };
    if !calls("cwnd_event") {
        return Err("tcp_congestion_ops has no cwnd_event".to_owned());
    }
    let mut found = "struct_ops over the kernel's CUBIC".to_owned();
    match (calls("min_tso_segs"), calls("tso_segs")) {
        (true, _) => {}
        (false, true) => found.push_str(", bursts by tso_segs (BBRv3)"),
        (false, false) => {
            return Err("tcp_congestion_ops has neither min_tso_segs nor tso_segs".to_owned());
        }
    }
    let native_event = if calls("cwnd_event_tx_start") {
        found.push_str(", the start of sending by cwnd_event_tx_start (Linux 7.1)");
        "cubictcp_cwnd_event_tx_start"
    } else {
        "cubictcp_cwnd_event"
    };
    let absent: Vec<&str> = KFUNCS
        .into_iter()
        .chain([native_event])
        .filter(|name| btf.type_by_name::<types::Func<'_>>(name).is_none())
        .collect();
    if absent.is_empty() {
        Ok(found)
    } else {
        Err(format!("the kernel does not offer {}", absent.join(", ")))
    }
}

fn jit() -> Check {
    let name = "BPF JIT";
    match fs::read_to_string("/proc/sys/net/core/bpf_jit_enable")
        .as_deref()
        .map(str::trim)
    {
        Ok("0") => Check::bad(
            name,
            Verdict::Missing,
            "off",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        Ok(_) => Check::ok(name, "on"),
        // Only root may read it; a kernel built with the JIT always on has no switch.
        Err(_) => Check::ok(name, "no switch to read"),
    }
}

/// The links of struct_ops came with Linux 6.4: `bpf_struct_ops_map_update_fd` is no name to rely on, the
/// constant in UAPI is.
fn struct_ops_links(btf: Option<&Btf<'_>>) -> Check {
    let name = STRUCT_OPS_LINKS;
    if btf.is_some_and(|btf| has_enum_value(btf, "BPF_F_LINK")) {
        Check::ok(name, "a killed process leaves nothing behind")
    } else {
        Check::bad(
            name,
            Verdict::Limited,
            "not in this kernel: after kill -9 the start-ups' names stay registered",
            "`headstart doctor --clean` removes them; Linux 6.4 or later does without",
        )
    }
}

pub(crate) const STRUCT_OPS_LINKS: &str = "struct_ops links";

fn tcx(btf: Option<&Btf<'_>>) -> Check {
    let name = "tc links (tcx)";
    if btf.is_some_and(|btf| has_enum_value(btf, "BPF_TCX_EGRESS")) {
        Check::ok(name, "markers go with the process")
    } else {
        Check::bad(
            name,
            Verdict::Limited,
            "not in this kernel: markers are clsact filters, which stay on the device after kill -9",
            "`headstart doctor --clean` removes them; Linux 6.6 or later does without",
        )
    }
}

fn has_enum_value(btf: &Btf<'_>, wanted: &str) -> bool {
    (1..u32::try_from(btf.len()).unwrap_or(u32::MAX)).any(|id| {
        btf.type_by_id::<types::Enum<'_>>(id.into())
            .is_some_and(|list| {
                list.iter()
                    .any(|value| value.name.is_some_and(|name| name == wanted))
            })
    })
}

fn cgroup_v2() -> Check {
    match cgroup::mount_point() {
        Some(path) => Check::ok("cgroup v2", path.display().to_string()),
        None => Check::bad(
            "cgroup v2",
            Verdict::Missing,
            "not mounted",
            "mount -t cgroup2 none /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1",
        ),
    }
}

fn tun() -> Check {
    if Path::new("/dev/net/tun").exists() {
        Check::ok("TUN", "/dev/net/tun")
    } else {
        Check::bad(
            "TUN",
            Verdict::MissingForPaths,
            "there is no /dev/net/tun",
            "modprobe tun",
        )
    }
}

fn namespaces() -> Check {
    if Path::new("/proc/self/ns/net").exists() {
        Check::ok("network namespaces", "/proc/self/ns/net")
    } else {
        Check::bad(
            "network namespaces",
            Verdict::MissingForPaths,
            "not in this kernel",
            "run a kernel built with CONFIG_NET_NS=y",
        )
    }
}

fn native_controls() -> Check {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    // Ours are listed there as well while a headstart runs.
    let native: Vec<&str> = there
        .split_whitespace()
        .filter(|name| !name.starts_with("su_"))
        .collect();
    let there = native.join(" ");
    if there.split_whitespace().any(|name| name == "bbr") {
        Check::ok("native congestion controls", there)
    } else {
        Check::bad(
            "native congestion controls",
            Verdict::Limited,
            format!("{there}; no bbr to compare with"),
            "modprobe tcp_bbr",
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;
    use crate::callbacks::tests::kernel_types;

    fn interface(callbacks: &[&str], functions: &[&str]) -> Result<String, String> {
        kernel_types(callbacks, functions, interface_of)
    }

    fn with<'a>(names: &[&'a str], other: &'a str) -> Vec<&'a str> {
        names.iter().copied().chain([other]).collect()
    }

    #[test]
    fn each_interface_is_known_by_the_kernels_own_types() {
        let until_7_0 = with(&KFUNCS, "cubictcp_cwnd_event");
        let from_7_1 = with(&KFUNCS, "cubictcp_cwnd_event_tx_start");
        let plain = interface(&["cwnd_event", "min_tso_segs"], &until_7_0).unwrap();
        assert_eq!(plain, "struct_ops over the kernel's CUBIC");
        let patched = interface(&["cwnd_event", "tso_segs"], &until_7_0).unwrap();
        assert!(patched.contains("tso_segs (BBRv3)"), "{patched}");
        let split = ["cwnd_event", "cwnd_event_tx_start", "min_tso_segs"];
        let newer = interface(&split, &from_7_1).unwrap();
        assert!(newer.contains("cwnd_event_tx_start (Linux 7.1)"), "{newer}");
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let until_7_0 = with(&KFUNCS, "cubictcp_cwnd_event");
        let lacks =
            |callbacks: &[&str], functions: &[&str]| interface(callbacks, functions).unwrap_err();
        // Linux 5.10 has the structure, and no function of CUBIC that a program may call.
        let old = lacks(&["cwnd_event", "min_tso_segs"], &["tcp_reno_undo_cwnd"]);
        assert!(
            old.contains("cubictcp_init") && !old.contains("tcp_reno_undo_cwnd"),
            "{old}"
        );
        assert!(lacks(&["cwnd_event"], &until_7_0).contains("neither min_tso_segs nor tso_segs"));
        assert!(lacks(&["min_tso_segs"], &until_7_0).contains("no cwnd_event"));
        let split = ["cwnd_event", "cwnd_event_tx_start", "min_tso_segs"];
        assert!(lacks(&split, &until_7_0).contains("cubictcp_cwnd_event_tx_start"));
    }
}
