//! The marker as a clsact filter, the way before tcx links (Linux 6.6). A filter belongs to its device, not to the
//! process that attached it, so it has to be found and taken off.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::{Program, TC_EGRESS, TC_H_CLSACT, TC_H_MIN_EGRESS, TcHookBuilder};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// libbpf names a filter after its program; ours are those of mark.bpf.c.
const PROGRAM_PREFIX: &[u8] = b"hs_mark_";

/// `TCA_BPF_NAME`, `TCA_BPF_ID` of include/uapi/linux/pkt_cls.h.
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;

/// Sizes of `struct nlmsghdr`, `struct tcmsg`, `struct nlattr`; messages and attributes are padded to 4 bytes.
const NLMSGHDR_BYTES: usize = 16;
const TCMSG_BYTES: usize = 20;
const NLATTR_BYTES: usize = 4;
const PADDED_TO: usize = 4;

/// Which filter it is, in the network namespace of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) ifindex: u32,
    pub(crate) handle: u32,
    pub(crate) priority: u32,
    pub(crate) program_id: u32,
}

impl Filter {
    /// Takes a filter without an owner off a device of the calling thread's namespace.
    pub(crate) fn remove(&self) -> Result<(), libbpf_rs::Error> {
        self.detach(&Program::fd_from_id(self.program_id)?)
    }

    /// The qdisc is left in place, empty: another program may have come to use it.
    fn detach(&self, program: &OwnedFd) -> Result<(), libbpf_rs::Error> {
        let mut hook = TcHookBuilder::new(program.as_fd())
            .ifindex(self.ifindex.cast_signed())
            .handle(self.handle)
            .priority(self.priority)
            .hook(TC_EGRESS);
        hook.detach()
    }
}

/// A filter of this process. Dropping it takes it off: the namespace of its device may not be the dropper's.
#[derive(Debug)]
pub(crate) struct Attached {
    namespace: File,
    /// As long as a process has it open, `leftovers` takes the filter for owned.
    program: OwnedFd,
    filter: Filter,
}

/// Attaches to a device of the calling thread's namespace; the clsact qdisc is made where there is none.
pub(crate) fn attach(
    program: &OwnedFd,
    ifindex: u32,
) -> Result<Attached, Box<dyn std::error::Error>> {
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let program = program.try_clone()?;
    let program_id = Program::id_from_fd(program.as_fd())?;
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(ifindex.cast_signed())
        .hook(TC_EGRESS);
    hook.create().map_err(in_words)?;
    let hook = hook.attach().map_err(in_words)?;
    Ok(Attached {
        namespace,
        filter: Filter {
            ifindex,
            handle: hook.get_handle(),
            priority: hook.get_priority(),
            program_id,
        },
        program,
    })
}

/// Where a module is missing the kernel answers with a bare "no such file".
fn in_words(error: libbpf_rs::Error) -> Box<dyn std::error::Error> {
    if error.kind() == libbpf_rs::ErrorKind::NotFound {
        "this kernel has neither tcx nor clsact filters loaded (modprobe sch_ingress cls_bpf)"
            .into()
    } else {
        error.into()
    }
}

impl Attached {
    fn detach(&self) -> Result<(), String> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
        let done = self.filter.detach(&self.program);
        done.map_err(|error| error.to_string())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let done = std::thread::scope(|scope| scope.spawn(|| self.detach()).join());
        // The device may be gone, and the filter with it.
        if let Ok(Err(error)) = done {
            let ifindex = self.filter.ifindex;
            tracing::debug!("taking the marker off the device {ifindex}: {error}");
        }
    }
}

/// The markers, of whatever process, on a device of the calling thread's namespace: asked of rtnetlink.
pub(crate) fn markers_on(ifindex: u32) -> Result<Vec<Filter>, nix::Error> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    send(socket.as_raw_fd(), &request(ifindex), MsgFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        for (kind, body) in messages(buffer.get(..read).unwrap_or_default()) {
            match kind {
                libc::RTM_NEWTFILTER => found.extend(marker(body)),
                // Done, or an error: the kernel says no more.
                _ => return Ok(found),
            }
        }
    }
}

/// All egress filters of the device: `struct nlmsghdr`, then `struct tcmsg`.
fn request(ifindex: u32) -> Vec<u8> {
    let bytes = (NLMSGHDR_BYTES + TCMSG_BYTES) as u32;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let (sequence, port) = (1u32, 0u32);
    let (family, handle, info) = (0u32, 0u32, 0u32);
    let parent = TC_H_CLSACT & 0xffff_0000 | TC_H_MIN_EGRESS;
    let mut request = bytes.to_ne_bytes().to_vec();
    request.extend(libc::RTM_GETTFILTER.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    for word in [sequence, port, family, ifindex, handle, parent, info] {
        request.extend(word.to_ne_bytes());
    }
    request
}

/// One of our filters out of an `RTM_NEWTFILTER`, whose body is `struct tcmsg` and attributes.
fn marker(body: &[u8]) -> Option<Filter> {
    let (ifindex, handle, info) = (word(body, 4)?, word(body, 8)?, word(body, 16)?);
    let (_, options) =
        attributes(body.get(TCMSG_BYTES..)?).find(|(kind, _)| *kind == libc::TCA_OPTIONS)?;
    let of = |wanted| attributes(options).find(|(kind, _)| *kind == wanted);
    let (_, name) = of(TCA_BPF_NAME)?;
    let (_, program_id) = of(TCA_BPF_ID)?;
    name.starts_with(PROGRAM_PREFIX).then_some(Filter {
        ifindex,
        handle,
        // TC_H_MAJ: the lower half is the protocol.
        priority: info >> 16,
        program_id: word(program_id, 0)?,
    })
}

/// Type and body of each message.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let kind = half_word(bytes, 4)?;
        let body = bytes.get(NLMSGHDR_BYTES..length)?;
        bytes = bytes
            .get(length.next_multiple_of(PADDED_TO)..)
            .unwrap_or_default();
        Some((kind, body))
    })
}

/// Type and payload of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half_word(bytes, 0)?);
        let kind = half_word(bytes, 2)? & libc::NLA_TYPE_MASK as u16;
        let payload = bytes.get(NLATTR_BYTES..length)?;
        bytes = bytes
            .get(length.next_multiple_of(PADDED_TO)..)
            .unwrap_or_default();
        Some((kind, payload))
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

fn half_word(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((NLATTR_BYTES + payload.len()) as u16)
            .to_ne_bytes()
            .to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(PADDED_TO), 0);
        bytes
    }

    fn filter_message(name: &[u8]) -> Vec<u8> {
        let options = [
            attribute(TCA_BPF_NAME, name),
            attribute(TCA_BPF_ID, &14u32.to_ne_bytes()),
        ];
        let mut body = Vec::new();
        for word in [0, 7, 1, 0, 49152 << 16 | 3] {
            body.extend(u32::to_ne_bytes(word));
        }
        body.extend(attribute(libc::TCA_KIND, b"bpf\0"));
        body.extend(attribute(libc::TCA_OPTIONS, &options.concat()));
        body
    }

    #[test]
    fn a_filter_is_ours_by_the_name_of_its_program() {
        let ours = marker(&filter_message(b"hs_mark_ether:[14]\0"));
        assert_eq!(
            ours,
            Some(Filter {
                ifindex: 7,
                handle: 1,
                priority: 49152,
                program_id: 14
            })
        );
        assert_eq!(marker(&filter_message(b"cil_to_netdev:[14]\0")), None);
    }

    #[test]
    fn a_message_that_is_cut_off_is_no_filter() {
        let whole = filter_message(b"hs_mark_raw:[14]\0");
        for bytes in 0..whole.len() - PADDED_TO {
            assert_eq!(marker(&whole[..bytes]), None);
        }
    }
}
