//! What crosses the network: a small value that is copied, and beside it a table for SACK blocks.

use headstart_link::{DEFAULT_LOW_PRIORITY_DSCP, Packet};

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketKind {
    /// Data, from the sender of the transfer.
    Data = 0,
    /// An acknowledgement, from its receiver.
    Ack = 1,
    /// The client opens.
    Syn = 2,
    /// The server answers.
    SynAck = 3,
    /// The client asks for a transfer; it acknowledges, too.
    Request = 4,
    /// The third packet of a handshake: the client has the answer to its SYN.
    HandshakeAck = 5,
    /// The server has the request: Linux says so at once to the first of a connection.
    RequestAck = 6,
}

/// It may be dropped first (Fast Start 3.2).
pub(crate) const LOW_PRIORITY: u8 = 1;
/// Its first byte has been sent before.
pub(crate) const RETRANSMISSION: u8 = 2;
/// ECN: the sender understands marks (RFC 3168).
pub(crate) const ECN_CAPABLE: u8 = 4;
/// ECN: congestion experienced, on data; echoed, on an acknowledgement.
pub(crate) const CONGESTION: u8 = 8;
/// ECN: the window is reduced.
pub(crate) const REDUCED: u8 = 16;
/// The acknowledgement carries a report of a segment that came twice (RFC 2883), as its first block.
pub(crate) const DUPLICATE_REPORT: u8 = 32;
/// PSH: nothing is to be expected right behind it.
pub(crate) const PUSH: u8 = 64;

/// No SACK blocks.
pub(crate) const NO_SACK: u32 = u32::MAX;

/// A packet of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPacket {
    /// Data: the first byte; an acknowledgement: the next byte expected.
    pub seq: u64,
    /// Which connection.
    pub conn: u32,
    /// An acknowledgement: how far beyond `seq` the receiver has room, in bytes.
    pub(crate) window_bytes: u32,
    /// Where its SACK blocks are.
    pub(crate) sack: u32,
    /// The timestamps option, in ms: when it left, and when that left which it answers.
    pub(crate) stamp_ms: u32,
    pub(crate) echo_ms: u32,
    /// Bytes of data that it carries.
    pub payload_bytes: u16,
    /// Bytes on the wire.
    pub(crate) wire_bytes: u16,
    /// Which life of the connection's slot it belongs to.
    pub(crate) life: u16,
    /// What it is.
    pub kind: PacketKind,
    pub(crate) flags: u8,
    /// How many links of its route lie behind it.
    pub(crate) hop: u8,
}

impl SimPacket {
    /// Its connection: slots are used again, so the how manieth life of the slot it is, too.
    pub fn connection(&self) -> (u32, u16) {
        (self.conn, self.life)
    }

    /// Whether its first byte had been sent before.
    pub fn is_retransmission(&self) -> bool {
        self.flags & RETRANSMISSION != 0
    }

    /// Whether it is marked as the first to be dropped.
    pub fn is_low_priority(&self) -> bool {
        self.flags & LOW_PRIORITY != 0
    }

    /// Whether it goes the way of the data.
    pub fn is_forward(&self) -> bool {
        matches!(
            self.kind,
            PacketKind::Data | PacketKind::SynAck | PacketKind::RequestAck
        )
    }
}

impl Packet for SimPacket {
    fn wire_bytes(&self) -> u32 {
        u32::from(self.wire_bytes)
    }

    fn dscp(&self) -> u8 {
        match self.flags & LOW_PRIORITY {
            0 => 0,
            _ => DEFAULT_LOW_PRIORITY_DSCP,
        }
    }

    fn flow_hash(&self) -> u64 {
        // A constant of SplitMix64 spreads neighbouring numbers.
        u64::from(self.conn).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(self.life)
    }

    fn ecn_capable(&self) -> bool {
        self.flags & ECN_CAPABLE != 0
    }

    fn mark_congestion(&mut self) {
        self.flags |= CONGESTION;
    }
}

/// The most blocks that an acknowledgement can carry (RFC 2018, section 3).
pub(crate) const MOST_BLOCKS: usize = 4;

/// A run of bytes that has come: from its first, up to and without its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The blocks of one acknowledgement; unused ones are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) blocks: [Block; MOST_BLOCKS],
    pub(crate) len: u8,
}

impl Blocks {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter().copied().take(usize::from(self.len))
    }

    pub(crate) fn push(&mut self, block: Block) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.len)) {
            *place = block;
            self.len += 1;
        }
    }
}

/// The SACK blocks of the acknowledgements that are on their way. Few packets have any, so they are
/// kept aside and the packets stay small.
#[derive(Debug, Default)]
pub(crate) struct SackTable {
    rows: Vec<Blocks>,
    free: Vec<u32>,
}

impl SackTable {
    /// Keeps `blocks`, and says where.
    pub(crate) fn keep(&mut self, blocks: Blocks) -> u32 {
        if let Some(row) = self.free.pop() {
            self.rows[row as usize] = blocks;
            return row;
        }
        self.rows.push(blocks);
        u32::try_from(self.rows.len() - 1).unwrap_or(NO_SACK)
    }

    /// The blocks at `row`, whose place is free from now on.
    pub(crate) fn take(&mut self, row: u32) -> Blocks {
        if row == NO_SACK {
            return Blocks::default();
        }
        self.free.push(row);
        self.rows[row as usize]
    }
}

const _: () = assert!(size_of::<SimPacket>() <= 40, "copied at every hop");
