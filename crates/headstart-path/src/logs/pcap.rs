//! The packets of both sides as pcapng: one interface a host, drops and what was in flight marked
//! in comments, in the order of time.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use super::Epoch;
use crate::capture::{Batch, Captured};
use crate::header;
use crate::hosts::{HostId, Side, all_hosts};
use crate::packets::PacketFate;

/// `if_tsresol` (pcapng draft, 4.2): time stamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// `epb_flags` (pcapng draft, 4.3.1), bits 0 and 1, as the host of the interface sees it.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

pub(crate) struct PcapLog {
    writer: PcapNgWriter<BufWriter<File>>,
    epoch: Epoch,
    pairs: u8,
    snap_bytes: usize,
    /// What cannot be written yet, because something earlier may still come.
    waiting: BinaryHeap<Reverse<Seen>>,
    order: Order,
}

/// A packet as one host sent or received it.
struct Seen {
    at_ns: u64,
    /// Tells apart what has the same time.
    count: u64,
    interface: u32,
    flags: u32,
    wire_bytes: u32,
    bytes: Vec<u8>,
    comment: Option<String>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Seen) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Seen {}
impl PartialOrd for Seen {
    fn partial_cmp(&self, other: &Seen) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Seen {
    fn cmp(&self, other: &Seen) -> Ordering {
        (self.at_ns, self.count).cmp(&(other.at_ns, other.count))
    }
}

/// Finds out up to when everything is known. A packet is known when its fate is, so it comes later
/// than others that came to the router after it.
#[derive(Default)]
struct Order {
    /// Every packet with a smaller number is known.
    next_number: u64,
    /// Known, with a larger number, and when they came.
    known: BTreeSet<(u64, u64)>,
    /// Nothing that is yet to be known has happened before this.
    settled_ns: u64,
}

impl Order {
    fn know(&mut self, number: u64, at_ns: u64) {
        if number < self.next_number {
            return;
        }
        self.known.insert((number, at_ns));
        while let Some(&(number, at_ns)) = self.known.first() {
            if number != self.next_number {
                break;
            }
            self.known.pop_first();
            self.next_number += 1;
            self.settled_ns = self.settled_ns.max(at_ns);
        }
    }
}

impl PcapLog {
    pub(crate) fn new(
        file: File,
        epoch: Epoch,
        pairs: u8,
        snap_bytes: u32,
    ) -> Result<PcapLog, PcapError> {
        let section = SectionHeaderBlock {
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
                concat!("headstart ", env!("CARGO_PKG_VERSION")),
            ))],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(BufWriter::new(file), section)?;
        for host in all_hosts(pairs) {
            writer.write_block(&Block::InterfaceDescription(InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: snap_bytes,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(host.to_string())),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            }))?;
        }
        Ok(PcapLog {
            writer,
            epoch,
            pairs,
            snap_bytes: snap_bytes as usize,
            waiting: BinaryHeap::new(),
            order: Order::default(),
        })
    }

    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), PcapError> {
        for &number in &batch.lost {
            self.order.know(number, 0);
        }
        for (captured, bytes) in batch.iter() {
            self.see(captured, &bytes[..bytes.len().min(self.snap_bytes)]);
            self.order
                .know(captured.passage.number, captured.passage.at_ns);
        }
        self.write_until(self.order.settled_ns)
    }

    pub(crate) fn close(mut self) -> Result<(), PcapError> {
        self.write_until(u64::MAX)?;
        self.writer.into_inner().flush().map_err(PcapError::IoError)
    }

    /// What the two hosts see of a packet.
    fn see(&mut self, captured: &Captured, bytes: &[u8]) {
        let passage = &captured.passage;
        // A copy was made on the wire: nobody sent it.
        if !passage.is_copy {
            let mut as_it_came = bytes.to_vec();
            header::set_ecn(&mut as_it_came, passage.ecn);
            let comment = match passage.fate {
                PacketFate::Delivered => None,
                PacketFate::Dropped(reason) => Some(format!(
                    "dropped: {reason}, {} packets waited",
                    passage.queue_len_pkts
                )),
                PacketFate::InFlight => Some("in flight when the path ended".to_owned()),
            };
            self.push(
                passage.at_ns,
                passage.from(),
                OUTBOUND,
                captured,
                as_it_came,
                comment,
            );
        }
        if let Some(left_ns) = passage.left_ns {
            let comment = passage
                .is_copy
                .then(|| "a copy made on the wire".to_owned());
            self.push(
                left_ns,
                passage.to(),
                INBOUND,
                captured,
                bytes.to_vec(),
                comment,
            );
        }
    }

    fn push(
        &mut self,
        at_ns: u64,
        host: HostId,
        flags: u32,
        captured: &Captured,
        bytes: Vec<u8>,
        comment: Option<String>,
    ) {
        let first = match host.side {
            Side::Server => 0,
            Side::Client => u32::from(self.pairs),
        };
        // A packet's copy comes behind it, and what left behind what came.
        let count = captured.passage.number * 4
            + u64::from(flags == INBOUND) * 2
            + u64::from(captured.passage.is_copy);
        self.waiting.push(Reverse(Seen {
            at_ns,
            count,
            interface: first + u32::from(host.number) - 1,
            flags,
            wire_bytes: captured.wire_bytes,
            bytes,
            comment,
        }));
    }

    fn write_until(&mut self, settled_ns: u64) -> Result<(), PcapError> {
        while let Some(Reverse(first)) = self.waiting.peek() {
            if first.at_ns > settled_ns {
                break;
            }
            if let Some(Reverse(seen)) = self.waiting.pop() {
                self.write(seen)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, seen: Seen) -> Result<(), PcapError> {
        let mut options = vec![EnhancedPacketOption::Flags(seen.flags)];
        options.extend(
            seen.comment
                .map(|comment| EnhancedPacketOption::Comment(Cow::Owned(comment))),
        );
        let block = EnhancedPacketBlock {
            interface_id: seen.interface,
            timestamp: Duration::from_nanos(self.epoch.realtime_of(seen.at_ns)),
            original_len: seen.wire_bytes,
            data: Cow::Owned(seen.bytes),
            options,
        };
        self.writer
            .write_block(&Block::EnhancedPacket(block))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_settled_before_every_earlier_packet_is_known() {
        let mut order = Order::default();
        order.know(1, 110);
        order.know(2, 120);
        assert_eq!(order.settled_ns, 0, "packet 0 is still in the link");
        order.know(0, 100);
        assert_eq!(order.settled_ns, 120);
        order.know(4, 140);
        // One that could not be kept: its time is not known, and not needed.
        order.know(3, 0);
        order.know(0, 100);
        assert_eq!((order.settled_ns, order.next_number), (140, 5));
    }
}
