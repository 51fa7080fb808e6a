//! From the router thread to the files: packets are handed over in batches, by a channel, and
//! written by a thread of their own. The router never waits for a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::packets::Passage;

/// What is kept of each packet at least: an IPv6 header, or IPv4 with options, and TCP with all of
/// its options (60 bytes each), and one extension header.
pub(crate) const HEADER_BYTES: usize = 128;

/// A batch is handed over when it holds so many packets, or so many bytes, or is so old.
const BATCH_PKTS: usize = 512;
const BATCH_BYTES: usize = 128 * 1024;
const BATCH_AGE_NS: u64 = 50_000_000;

/// Bytes that may wait to be written: some seconds of a disk that has fallen behind. What comes
/// beyond that is counted instead of kept.
const MOST_WAITING_BYTES: usize = 256 * 1024 * 1024;

/// One packet of a batch.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) passage: Passage,
    /// Its whole size.
    pub(crate) wire_bytes: u32,
    /// Where its bytes begin in the batch's, and how many there are.
    at: usize,
    len: usize,
}

/// Packets in the order in which their fates were decided.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) packets: Vec<Captured>,
    bytes: Vec<u8>,
    /// Numbers of packets that could not be kept.
    pub(crate) lost: Vec<u64>,
}

impl Batch {
    /// The packets and their bytes, as they were at the end of their passage.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Captured, &[u8])> {
        let bytes = |packet: &Captured| &self.bytes[packet.at..packet.at + packet.len];
        self.packets
            .iter()
            .map(move |packet| (packet, bytes(packet)))
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.packets.len() * size_of::<Captured>()
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
        self.lost.clear();
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.lost.is_empty()
    }
}

/// The router's end.
#[derive(Debug)]
pub(crate) struct Capture {
    snap_bytes: usize,
    batch: Batch,
    began_ns: u64,
    to_writer: mpsc::Sender<Batch>,
    used: mpsc::Receiver<Batch>,
    waiting_bytes: Arc<AtomicUsize>,
    most_waiting_bytes: usize,
}

/// The writer's end.
#[derive(Debug)]
pub(crate) struct Captures {
    batches: mpsc::Receiver<Batch>,
    used: mpsc::Sender<Batch>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// A way from the router to the writer. Of each packet `snap_bytes` are kept, or its headers if
/// these are more.
pub(crate) fn channel(snap_bytes: usize) -> (Capture, Captures) {
    channel_holding(snap_bytes, MOST_WAITING_BYTES)
}

fn channel_holding(snap_bytes: usize, most_waiting_bytes: usize) -> (Capture, Captures) {
    let (to_writer, batches) = mpsc::channel();
    let (used_here, used) = mpsc::channel();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let capture = Capture {
        snap_bytes: snap_bytes.max(HEADER_BYTES),
        batch: Batch::default(),
        began_ns: 0,
        to_writer,
        used,
        waiting_bytes: Arc::clone(&waiting_bytes),
        most_waiting_bytes,
    };
    let captures = Captures {
        batches,
        used: used_here,
        waiting_bytes,
    };
    (capture, captures)
}

impl Capture {
    /// Keeps a packet whose fate is decided.
    pub(crate) fn keep(&mut self, now_ns: u64, passage: Passage, packet: &[u8]) {
        if self.batch.is_empty() {
            self.began_ns = now_ns;
        }
        if self.waiting_bytes.load(Ordering::Relaxed) > self.most_waiting_bytes {
            // A copy is no packet of its own.
            if !passage.is_copy {
                self.batch.lost.push(passage.number);
            }
        } else {
            let kept = &packet[..packet.len().min(self.snap_bytes)];
            self.batch.packets.push(Captured {
                passage,
                wire_bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
                at: self.batch.bytes.len(),
                len: kept.len(),
            });
            self.batch.bytes.extend_from_slice(kept);
        }
        let is_full = self.batch.packets.len() + self.batch.lost.len() >= BATCH_PKTS
            || self.batch.bytes.len() >= BATCH_BYTES;
        if is_full {
            self.hand_over();
        }
    }

    /// When the batch has to be handed over at the latest; `None` if it is empty.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        (!self.batch.is_empty()).then_some(self.began_ns + BATCH_AGE_NS)
    }

    /// Hands the batch over if it is old.
    pub(crate) fn hand_over_if_due(&mut self, now_ns: u64) {
        if self.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let mut next = self.used.try_recv().unwrap_or_default();
        next.clear();
        let full = std::mem::replace(&mut self.batch, next);
        self.waiting_bytes
            .fetch_add(full.size_bytes(), Ordering::Relaxed);
        // A writer that is gone has said why; its files are incomplete in any case.
        let _ = self.to_writer.send(full);
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl Captures {
    /// Gives every batch to `write`, until the router has ended.
    pub(crate) fn for_each(self, mut write: impl FnMut(&Batch)) {
        for batch in &self.batches {
            write(&batch);
            self.waiting_bytes
                .fetch_sub(batch.size_bytes(), Ordering::Relaxed);
            // The router may have ended.
            let _ = self.used.send(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Direction, PacketFate};

    pub(crate) fn passage(number: u64) -> Passage {
        Passage {
            number,
            direction: Direction::Forward,
            from_place: 0,
            to_place: 0,
            at_ns: number,
            queue_len_pkts: 0,
            started_ns: None,
            due_ns: None,
            left_ns: None,
            dropped_ns: None,
            fate: PacketFate::Delivered,
            is_copy: false,
            ecn: 0,
        }
    }

    #[test]
    fn packets_come_over_in_order_and_cut() {
        let (mut capture, captures) = channel(0);
        for number in 0..2000 {
            capture.keep(number, passage(number), &[number as u8; 1500]);
        }
        assert!(capture.due_ns().is_some());
        capture.hand_over_if_due(u64::MAX);
        assert_eq!(capture.due_ns(), None);
        drop(capture);
        let mut numbers = Vec::new();
        captures.for_each(|batch| {
            for (captured, bytes) in batch.iter() {
                let number = captured.passage.number;
                assert_eq!(bytes, [number as u8; HEADER_BYTES]);
                assert_eq!(captured.wire_bytes, 1500);
                numbers.push(number);
            }
        });
        assert_eq!(numbers, (0..2000).collect::<Vec<u64>>());
    }

    #[test]
    fn what_a_slow_writer_cannot_take_is_counted() {
        let (mut capture, captures) = channel_holding(1500, 300_000);
        for number in 0..2000 {
            capture.keep(number, passage(number), &[0; 1500]);
        }
        drop(capture);
        let (mut kept, mut lost) = (Vec::new(), Vec::<u64>::new());
        captures.for_each(|batch| {
            kept.extend(batch.packets.iter().map(|packet| packet.passage.number));
            lost.extend(&batch.lost);
        });
        assert!(
            kept.len() >= 200 && lost.len() >= 1000,
            "{} and {}",
            kept.len(),
            lost.len()
        );
        kept.extend(lost);
        assert_eq!(kept, (0..2000).collect::<Vec<u64>>());
    }
}
