//! The compiled BPF objects, and how they are opened.

use std::cell::RefCell;

use libbpf_rs::btf::Btf;
use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::error::KernelError;

/// ELF wants its headers aligned.
#[repr(C, align(16))]
struct Aligned<B: ?Sized>(B);

macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $name,
            ".bpf.o"
        )));
        &OBJECT.0
    }};
}

/// One of the objects of `bpf/`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BpfObject {
    Startup,
    Mark,
    Watch,
    Replay,
    Hint,
    Policy,
}

impl BpfObject {
    fn bytes(self) -> &'static [u8] {
        match self {
            BpfObject::Startup => object!("startup"),
            BpfObject::Mark => object!("mark"),
            BpfObject::Watch => object!("watch"),
            BpfObject::Replay => object!("replay"),
            BpfObject::Hint => object!("hint"),
            BpfObject::Policy => object!("policy"),
        }
    }

    /// The file in `bpf/` that it was compiled from.
    pub(crate) fn source(self) -> &'static str {
        match self {
            BpfObject::Startup => "startup.bpf.c",
            BpfObject::Mark => "mark.bpf.c",
            BpfObject::Watch => "watch.bpf.c",
            BpfObject::Replay => "replay.bpf.c",
            BpfObject::Hint => "hint.bpf.c",
            BpfObject::Policy => "policy.bpf.c",
        }
    }

    pub(crate) fn open(self) -> Result<OpenObject, KernelError> {
        redirect_libbpf();
        WARNINGS.take();
        ObjectBuilder::default()
            .open_memory(self.bytes())
            .map_err(|error| self.refused(&error))
    }

    /// The types that it was compiled with.
    pub(crate) fn btf(self) -> Result<Btf<'static>, KernelError> {
        let missing = || KernelError::no_part(self, "its types (BTF)");
        let btf =
            Btf::from_raw(self.source(), self.bytes()).map_err(|error| self.refused(&error))?;
        btf.ok_or_else(missing)
    }

    pub(crate) fn load(self, open: OpenObject) -> Result<Object, KernelError> {
        open.load().map_err(|error| self.refused(&error))
    }

    fn refused(self, error: &libbpf_rs::Error) -> KernelError {
        let warnings = WARNINGS.take();
        let cause = match verifier_reason(&warnings) {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_string(),
        };
        KernelError::Load {
            object: self.source(),
            cause,
        }
    }
}

thread_local! {
    /// libbpf's warnings on this thread since the last `open`: the verifier's log is among them.
    static WARNINGS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The line in which the verifier says why: the last one before its statistics.
fn verifier_reason(warnings: &str) -> Option<&str> {
    let lines: Vec<&str> = warnings.lines().collect();
    let end = lines
        .iter()
        .position(|line| line.starts_with("processed "))?;
    lines[..end].last().copied()
}

/// libbpf prints to standard error by itself; its words go to the log instead (`HEADSTART_LOG=libbpf=debug`).
fn redirect_libbpf() {
    // It has thousands of words for the debugger, and to put them together took a fifth of our part of a load.
    let least = match tracing::enabled!(target: "libbpf", tracing::Level::TRACE) {
        true => libbpf_rs::PrintLevel::Debug,
        false => libbpf_rs::PrintLevel::Info,
    };
    libbpf_rs::set_print(Some((least, |level, text| {
        let text = text.trim_end();
        match level {
            libbpf_rs::PrintLevel::Warn => {
                WARNINGS.with_borrow_mut(|warnings| {
                    warnings.push_str(text);
                    warnings.push('\n');
                });
                tracing::debug!(target: "libbpf", "{text}");
            }
            libbpf_rs::PrintLevel::Info => tracing::debug!(target: "libbpf", "{text}"),
            libbpf_rs::PrintLevel::Debug => tracing::trace!(target: "libbpf", "{text}"),
        }
    })));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_reason_is_the_line_before_its_statistics() {
        let log = "libbpf: prog 'x': BPF program load failed\n1: (bf) r1 = r6\naccess beyond struct\nprocessed 2 insns";
        assert_eq!(verifier_reason(log), Some("access beyond struct"));
        assert_eq!(verifier_reason("libbpf: nothing of the kind"), None);
    }
}
