//! The send buffer: what the application has been able to write of what it wants to send.

use super::{Context, Sender};

/// Linux: a segment's share of the buffer is that of a packet whose memory is a power of two, with the
/// lower layers' headers and two control structures (tcp_sndbuf_expand; on 64-bit machines).
const LOWER_HEADERS_BYTES: u64 = 320;
const SHARED_INFO_BYTES: u64 = 320;
const PACKET_INFO_BYTES: u64 = 256;
/// Linux: room for two windows, of no less than the first one (`TCP_INIT_CWND`).
const WINDOWS: u64 = 2;
const FIRST_WINDOW_PKTS: u32 = 10;

/// The buffer for a window of `cwnd_pkts`, in bytes.
pub(super) fn linux_buffer_bytes(mss_bytes: u16, cwnd_pkts: u32) -> u64 {
    let packet_bytes = u64::from(mss_bytes) + LOWER_HEADERS_BYTES + SHARED_INFO_BYTES;
    let segment_bytes = packet_bytes.next_power_of_two() + PACKET_INFO_BYTES;
    WINDOWS * segment_bytes * u64::from(cwnd_pkts.max(FIRST_WINDOW_PKTS))
}

impl Sender {
    /// The application writes as much as there is room for.
    pub(super) fn fill(&mut self) {
        let end = self.una.saturating_add(self.buffer_bytes);
        self.write_end = self.write_end.max(end.min(self.app_end));
    }

    /// The application has more than the buffer takes.
    pub(super) fn is_starved(&self) -> bool {
        self.write_end < self.app_end
    }

    /// An acknowledgement has made room; Linux wakes the application when a third is free
    /// (sk_stream_is_writeable), and lets the buffer grow where the window is not full.
    pub(super) fn refill(&mut self, ctx: &mut Context<'_>) {
        if !self.is_starved() {
            return;
        }
        let fixed = self.transport.send_buffer_bytes.is_some();
        if !fixed && self.in_flight() < self.cwnd_pkts {
            let pkts = self.cwnd_pkts.max(self.reordering_pkts + 1);
            let bytes = linux_buffer_bytes(self.transport.mss_bytes, pkts);
            self.buffer_bytes = self.buffer_bytes.max(bytes);
        }
        let used_bytes = self.write_end - self.una;
        if self.is_linux() && used_bytes > self.buffer_bytes / 3 * 2 {
            return;
        }
        self.fill();
        self.push(ctx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_gives_a_first_window_of_ten_segments_85_kib() {
        // 1448 + 640 bytes: 4096, and 256 for the packet's structure.
        assert_eq!(linux_buffer_bytes(1448, 3), 10 * 2 * 4352);
        assert_eq!(linux_buffer_bytes(1448, 100), 100 * 2 * 4352);
    }
}
