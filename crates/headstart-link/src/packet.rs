//! What a link needs to know of the packets that it carries.

/// A full packet of the internet, from its IP header on. Where a mechanism counts in packets but
/// has to think in bytes (a bandwidth-delay product, a byte limit's least value), this is one.
pub const FULL_PACKET_BYTES: u32 = 1500;

/// What a link carries. Only its size is needed by every link; each other method serves the
/// mechanism that it names, and its default is right for packets that have no such thing.
///
/// `Clone` is for duplication alone: a link that does not duplicate never copies a packet.
pub trait Packet: Clone + Send + 'static {
    /// Bytes that occupy the wire, headers included.
    fn wire_bytes(&self) -> u32;

    /// Differentiated services code point, 0 to 63. Priority drop reads its one bit from it.
    fn dscp(&self) -> u8 {
        0
    }

    /// The same number for the packets of one flow, and as good as never the same for those of
    /// two. For FQ-CoDel and for the delay of a flow, which ask once a packet. Where both directions
    /// of a flow are to draw the same delay, it has to be the same in both.
    fn flow_hash(&self) -> u64 {
        0
    }

    /// Whether its sender understands a congestion mark: ECT(0), ECT(1) or already CE (RFC 3168).
    fn ecn_capable(&self) -> bool {
        false
    }

    /// Sets Congestion Experienced. Called only on a packet that is [`Packet::ecn_capable`].
    fn mark_congestion(&mut self) {}
}
