//! The callbacks of `tcp_congestion_ops` that are left out.
//!
//! `bpf/startup.bpf.c` fills in those of every interface that it is made for. A callback that the kernel does not know
//! has to be empty: then libbpf leaves the member out, and does not load the program that stood in it. One that a
//! start-up has no use for is left out too: the call would cost something each time that data is sent.

use std::ops::Range;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{self, StructMember};

/// What the structure is called, in the kernel and in `bpf/kernel_types.h`.
const OPS: &str = "tcp_congestion_ops";

/// Through which the kernel asks for the size of a burst, before each round of sending. A kernel has one of the two.
const SHAPING: [&str; 2] = ["min_tso_segs", "tso_segs"];

type Ops<'a> = types::Struct<'a>;

/// The members of `ours` that the kernel's structure lacks: where their bytes lie in the value of a struct_ops map.
/// Empty where one of the two has no such structure: then there is nothing to adapt.
pub(crate) fn unknown_to(kernel: &Btf<'_>, ours: &Btf<'_>) -> Vec<Range<usize>> {
    match (kernel.type_by_name::<Ops<'_>>(OPS), ours.type_by_name(OPS)) {
        (Some(theirs), Some(ours)) => places(&ours, |member| {
            !theirs.iter().any(|other| other.name == member.name)
        }),
        _ => Vec::new(),
    }
}

/// The members of `ours` for which only a start-up that shapes the sending has a use.
pub(crate) fn for_shaping(ours: &Btf<'_>) -> Vec<Range<usize>> {
    let ours: Option<Ops<'_>> = ours.type_by_name(OPS);
    let shapes = |member: &StructMember<'_>| {
        let name = member.name.unwrap_or_default().to_string_lossy();
        SHAPING.contains(&name.as_ref())
    };
    ours.map_or(Vec::new(), |ours| places(&ours, shapes))
}

/// Where the wanted members lie. All but the flags and the name, which every kernel has, are pointers.
fn places(ops: &Ops<'_>, wanted: impl Fn(&StructMember<'_>) -> bool) -> Vec<Range<usize>> {
    ops.iter()
        .filter(|member| wanted(member))
        .filter_map(|member| match member.attr {
            types::MemberAttr::Normal { offset } => usize::try_from(offset / 8).ok(),
            types::MemberAttr::BitField { .. } => None,
        })
        .map(|at| at..at + size_of::<u64>())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::objects::BpfObject;

    /// The kernel types of a kernel with these callbacks and functions: compiled, as a kernel's are.
    pub(crate) fn kernel_types<T>(
        callbacks: &[&str],
        functions: &[&str],
        look: impl FnOnce(&Btf<'_>) -> T,
    ) -> T {
        let directory = std::env::temp_dir().join(format!(
            "headstart-btf-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        fs::create_dir_all(&directory).unwrap();
        let (source, object) = (directory.join("kernel.c"), directory.join("kernel.o"));
        let mut text = format!("struct {OPS} {{");
        for callback in callbacks {
            text.push_str(&format!("void (*{callback})(void);"));
        }
        text.push_str("} ops;");
        for function in functions {
            text.push_str(&format!("void {function}(void) {{}}"));
        }
        fs::write(&source, text).unwrap();
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let done = Command::new(clang)
            .args(["-target", "bpf", "-g", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status()
            .unwrap();
        assert!(done.success());
        let found = look(&Btf::from_path(&object).unwrap());
        fs::remove_dir_all(&directory).unwrap();
        found
    }

    /// How many of our callbacks a kernel with these would not know.
    fn unknown(left_out: &[&str]) -> Vec<Range<usize>> {
        let ours = BpfObject::Startup.btf().unwrap();
        let ops = ours.type_by_name::<types::Struct<'_>>(OPS).unwrap();
        let names: Vec<String> = ops
            .iter()
            .map(|member| member.name.unwrap().to_string_lossy().into_owned())
            .collect();
        let there: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !left_out.contains(name))
            .collect();
        assert_eq!(there.len() + left_out.len(), names.len(), "{names:?}");
        kernel_types(&there, &[], |kernel| unknown_to(kernel, &ours))
    }

    #[test]
    fn the_two_ways_to_ask_for_a_burst_are_for_shaping() {
        let ours = BpfObject::Startup.btf().unwrap();
        let mut unknown = [unknown(&["min_tso_segs"]), unknown(&["tso_segs"])].concat();
        unknown.sort_by_key(|place| place.start);
        let mut shaping = for_shaping(&ours);
        shaping.sort_by_key(|place| place.start);
        assert_eq!(shaping, unknown);
    }

    #[test]
    fn only_what_the_kernel_does_not_know_is_emptied() {
        assert_eq!(unknown(&[]), []);
        let until_7_0 = unknown(&["cwnd_event_tx_start", "tso_segs"]);
        let from_7_1 = unknown(&["tso_segs"]);
        let with_bbr_v3 = unknown(&["cwnd_event_tx_start", "min_tso_segs"]);
        assert_eq!(
            (until_7_0.len(), from_7_1.len(), with_bbr_v3.len()),
            (2, 1, 2)
        );
        assert!(until_7_0.contains(&from_7_1[0]));
        assert_eq!(
            until_7_0
                .iter()
                .filter(|place| with_bbr_v3.contains(place))
                .count(),
            1
        );
    }
}
