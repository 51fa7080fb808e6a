//! A connection: its two ends, how it opens, and the transfers that it carries.

use std::collections::VecDeque;

use crate::packet::SimPacket;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Nothing,
    /// The answer to its SYN.
    SynAck,
    /// The first byte of what it asked for.
    Data,
}

/// The transfer that is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) start_ns: u64,
    pub(crate) connected_ns: Option<u64>,
    /// Of the stream.
    pub(crate) from_byte: u64,
    pub(crate) bytes: u64,
    /// What the application writes later.
    pub(crate) late: Option<Late>,
    pub(crate) resent_before: u64,
    pub(crate) drops_before: u64,
}

/// The rest of a transfer whose beginning is written at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) head_bytes: u64,
    pub(crate) after_ns: u64,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) bytes: u64,
    pub(crate) late: Option<Late>,
}

/// Packets that are past all links and have only a delay before them, in order.
pub(crate) type Pipe = VecDeque<(u64, SimPacket)>;

pub(crate) struct Connection {
    pub(crate) life: u16,
    pub(crate) group: u32,
    pub(crate) user: u32,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What the path adds in each direction.
    pub(crate) extra_ns: u64,
    pub(crate) pipe: Pipe,
    pub(crate) transfer: Option<Transfer>,
    /// What comes after it, and when each was asked for.
    pub(crate) pending: VecDeque<(u64, Order)>,
    /// When the application writes the rest of the transfer, and how much that is.
    pub(crate) late_ns: u64,
    pub(crate) late_bytes: u64,
    pub(crate) turn: u32,
    pub(crate) drops: u64,
    /// The server has the connection open.
    pub(crate) open: bool,
    /// The client has.
    pub(crate) client_open: bool,
    /// It carries one transfer and goes.
    pub(crate) one_shot: bool,
    pub(crate) waits: Waits,
    pub(crate) wait_ns: u64,
    pub(crate) tries: u32,
    pub(crate) syn_sent_ns: u64,
    pub(crate) syn_ack_sent_ns: u64,
    pub(crate) syn_ack_again: bool,
    pub(crate) next_sample_ns: u64,
}

/// No user: an arrival of an open loop.
pub(crate) const NO_USER: u32 = u32::MAX;

impl Connection {
    /// When it wants to be called again; `u64::MAX`: never.
    pub(crate) fn due_ns(&self) -> u64 {
        let pipe_ns = self.pipe.front().map_or(u64::MAX, |(due_ns, _)| *due_ns);
        let ends_ns = self.sender.due_ns().min(self.receiver.delayed_ns);
        let waits_ns = match self.waits {
            Waits::Nothing => u64::MAX,
            Waits::SynAck | Waits::Data => self.wait_ns,
        };
        pipe_ns.min(ends_ns).min(waits_ns).min(self.late_ns)
    }

    /// A packet is past all links, and has the delay of its own path before it.
    pub(crate) fn delay(&mut self, now_ns: u64, packet: SimPacket) {
        let due_ns = now_ns + self.extra_ns;
        // Of an earlier life of the slot, with a longer delay, something may still be on its way.
        let place = match self.pipe.back() {
            Some((last_ns, _)) if *last_ns > due_ns => self
                .pipe
                .partition_point(|(other_ns, _)| *other_ns <= due_ns),
            _ => self.pipe.len(),
        };
        self.pipe.insert(place, (due_ns, packet));
    }

    /// Sets the timer of the handshake or the request, with back-off.
    pub(crate) fn wait(&mut self, now_ns: u64, waits: Waits) {
        self.waits = waits;
        let first_ns = u64::from(self.sender.transport.rto.initial_us) * 1000;
        self.wait_ns = now_ns + (first_ns << self.tries.min(6));
    }
}
