//! A peer that is no TCP: it writes the packets that a test wants, over a TUN device in a namespace of its own.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
pub const PORT: u16 = 8080;
pub const MSS_BYTES: u16 = 1460;
const WINDOW_SHIFT: u8 = 10;

/// The far end of the wire: all of 10.0.0.0/8 but the server.
pub struct Wire {
    tun: File,
}

/// A segment from the server.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub to: Ipv4Addr,
    pub to_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub syn: bool,
    pub bytes: u32,
}

/// What the peer says.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub from: Ipv4Addr,
    pub port: u16,
    pub seq: u32,
    pub ack: Option<u32>,
    pub syn: bool,
    pub rst: bool,
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: an ifreq is made of integers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(name).unwrap();
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from.cast_signed();
    }
    request
}

fn address(addr: Ipv4Addr) -> libc::sockaddr {
    let addr = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(addr.octets()),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: both are 16 bytes, made of integers; this is how the interface wants it.
    unsafe { std::mem::transmute(addr) }
}

impl Wire {
    /// Call in a network namespace of one's own.
    pub fn new() -> Wire {
        let tun = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .unwrap();
        let control = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let name = "hs-peer";
        let set = |fd: i32, operation: libc::c_ulong, request: &mut libc::ifreq| {
            // SAFETY: the request is a live ifreq, which these operations read.
            let done = unsafe { libc::ioctl(fd, operation, std::ptr::from_mut(request)) };
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        };
        let mut made = request(name);
        made.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        set(tun.as_raw_fd(), libc::TUNSETIFF, &mut made);
        let mut own = request(name);
        own.ifr_ifru.ifru_addr = address(SERVER);
        set(control.as_raw_fd(), libc::SIOCSIFADDR, &mut own);
        own.ifr_ifru.ifru_addr = address(Ipv4Addr::new(255, 0, 0, 0));
        set(control.as_raw_fd(), libc::SIOCSIFNETMASK, &mut own);
        own.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        set(control.as_raw_fd(), libc::SIOCSIFFLAGS, &mut own);
        Wire { tun }
    }

    pub fn say(&mut self, said: Said) {
        let mut builder = PacketBuilder::ipv4(said.from.octets(), SERVER.octets(), 64).tcp(
            said.port,
            PORT,
            said.seq,
            u16::MAX,
        );
        if let Some(ack) = said.ack {
            builder = builder.ack(ack);
        }
        if said.rst {
            builder = builder.rst();
        }
        if said.syn {
            let options = [
                TcpOptionElement::MaximumSegmentSize(MSS_BYTES),
                TcpOptionElement::SelectiveAcknowledgementPermitted,
                TcpOptionElement::WindowScale(WINDOW_SHIFT),
            ];
            builder = builder.syn().options(&options).unwrap();
        }
        let mut packet = Vec::new();
        builder.write(&mut packet, &[]).unwrap();
        self.tun.write_all(&packet).unwrap();
    }

    /// The next segment from the server; `None` when none comes for so long.
    pub fn hear(&mut self, patience: Duration) -> Option<Segment> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = PollTimeout::try_from(left).unwrap();
            let mut polled = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            if poll(&mut polled, wait).unwrap() == 0 {
                return None;
            }
            let mut packet = [0; 2048];
            let length = self.tun.read(&mut packet).unwrap();
            let Ok(sliced) = SlicedPacket::from_ip(&packet[..length]) else {
                continue;
            };
            if let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
                (sliced.net, sliced.transport)
            {
                return Some(Segment {
                    to: ip.header().destination_addr(),
                    to_port: tcp.destination_port(),
                    seq: tcp.sequence_number(),
                    ack: tcp.acknowledgment_number(),
                    syn: tcp.syn(),
                    bytes: u32::try_from(tcp.payload().len()).unwrap(),
                });
            }
        }
    }

    /// A handshake; the number of the server's first byte.
    pub fn shake_hands(&mut self, from: Ipv4Addr, port: u16) -> u32 {
        let said = Said {
            from,
            port,
            seq: 1000,
            ack: None,
            syn: true,
            rst: false,
        };
        self.say(said);
        loop {
            let answer = self
                .hear(Duration::from_secs(5))
                .expect("the server answers");
            if answer.syn && answer.to == from && answer.to_port == port {
                let first = answer.seq.wrapping_add(1);
                self.acknowledge(from, port, first);
                return first;
            }
        }
    }

    pub fn acknowledge(&mut self, from: Ipv4Addr, port: u16, ack: u32) {
        self.say(Said {
            from,
            port,
            seq: 1001,
            ack: Some(ack),
            syn: false,
            rst: false,
        });
    }

    pub fn reset(&mut self, from: Ipv4Addr, port: u16, ack: u32) {
        self.say(Said {
            from,
            port,
            seq: 1001,
            ack: Some(ack),
            syn: false,
            rst: true,
        });
    }
}
