//! One direction of the router: its link, the packets in it, and what is measured of them.

use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use headstart_link::{Departed, Dropped, Fate, Link, LinkConfig, Packet, QueueSpecError, Waiting};

use crate::capture::Capture;
use crate::clock::monotonic_ns;
use crate::header;
use crate::hosts::{MAX_HOSTS, Routes};
use crate::namespace::MTU_BYTES;
use crate::packets::{Direction, PacketFate, PacketRecord, Passage};
use crate::report::{DirectionStats, Glance, time_histogram};
use crate::tun::Tun;

/// Room for a packet: more than the MTU, so that a device with a raised MTU is noticed.
const BUFFER_BYTES: usize = MTU_BYTES as usize + 548;

/// Packets read of one device before due packets are looked for again.
const READ_BURST_PKTS: usize = 32;

/// The log that the router fills and its owner takes from.
pub(crate) type PacketLog = Arc<Mutex<Vec<PacketRecord>>>;

/// A packet on its way through the router. Cloned only by a link that duplicates packets.
#[derive(Clone)]
pub(crate) struct Frame {
    bytes: Box<[u8]>,
    len: usize,
    number: u64,
    from_place: u8,
    to_place: u8,
    /// Its congestion bits when it came.
    ecn: u8,
    /// How long it may have waited in the device, at most, before it was read.
    unread_ns: u64,
}

impl Frame {
    fn packet(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Packet for Frame {
    fn wire_bytes(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX)
    }

    fn dscp(&self) -> u8 {
        header::dscp(self.packet())
    }

    fn flow_hash(&self) -> u64 {
        header::flow_hash(self.packet())
    }

    fn ecn_capable(&self) -> bool {
        header::ecn_capable(self.packet())
    }

    fn mark_congestion(&mut self) {
        header::mark_congestion(&mut self.bytes[..self.len]);
    }
}

/// Where frames come from and end: used again, and logged.
pub(crate) struct Frames {
    free: Vec<Box<[u8]>>,
    /// Packets that came so far, of both directions.
    numbered: u64,
    log: Option<PacketLog>,
    pub(crate) capture: Option<Capture>,
}

impl Frames {
    pub(crate) fn new(log: Option<PacketLog>, capture: Option<Capture>) -> Frames {
        Frames {
            free: Vec::new(),
            numbered: 0,
            log,
            capture,
        }
    }

    fn take(&mut self) -> Box<[u8]> {
        self.free
            .pop()
            .unwrap_or_else(|| Box::new([0; BUFFER_BYTES]))
    }

    /// A frame has met its fate.
    fn finish(&mut self, now_ns: u64, frame: Frame, passage: Passage) {
        if let Some(log) = &self.log {
            let record = PacketRecord::new(&passage, frame.packet(), frame.wire_bytes());
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(record);
        }
        if let Some(capture) = &mut self.capture {
            capture.keep(now_ns, passage, frame.packet());
        }
        if !passage.is_copy {
            // A copy's buffer was made by the link, and is one too many.
            self.free.push(frame.bytes);
        }
    }
}

/// The device of one host, as the router reads it.
pub(crate) struct Port {
    pub(crate) tun: Tun,
    /// Whether there may be something to read.
    pub(crate) ready: bool,
    /// Since when there has always been something to read, if there has.
    busy_since_ns: Option<u64>,
}

impl Port {
    pub(crate) fn new(tun: Tun) -> Port {
        Port {
            tun,
            ready: true,
            busy_since_ns: None,
        }
    }

    /// Whether there is something to read now.
    pub(crate) fn is_ready(&mut self, ready: bool) {
        self.ready = ready;
        if !ready {
            self.busy_since_ns = None;
        }
    }
}

/// One direction of the router: its link and what is measured of it.
pub(crate) struct Carrier {
    direction: Direction,
    config: LinkConfig,
    began_ns: u64,
    link: Link<Frame>,
    /// ns a byte takes at the nominal rate.
    byte_ns: f64,
    /// When the transmission before ended, at the nominal rate.
    sent_until_ns: u64,
    /// How long the transmitter stood still, at most, while the device of each place had packets that
    /// were not read: since that device was last empty.
    idle_ns_by_place: [u64; MAX_HOSTS as usize],
    stats: Measured,
}

/// What is measured.
#[derive(Debug, Clone)]
struct Measured {
    lateness_ns: Histogram<u64>,
    queue_delay_ns: Histogram<u64>,
    first_in_ns: Option<u64>,
    last_out_ns: Option<u64>,
    payload_bytes: u64,
    failed_writes: u64,
    unroutable_pkts: u64,
    held_up_ns: Histogram<u64>,
    /// Since the last glance.
    latest_ns: u64,
}

impl Carrier {
    pub(crate) fn new(direction: Direction, config: LinkConfig) -> Result<Carrier, QueueSpecError> {
        let began_ns = monotonic_ns();
        Ok(Carrier {
            direction,
            link: Link::starting_at(&config, began_ns)?,
            began_ns,
            byte_ns: 8e9 / config.rate.nominal().bits_per_s() as f64,
            sent_until_ns: began_ns,
            idle_ns_by_place: [0; MAX_HOSTS as usize],
            config,
            stats: Measured {
                lateness_ns: time_histogram(),
                queue_delay_ns: time_histogram(),
                first_in_ns: None,
                last_out_ns: None,
                payload_bytes: 0,
                failed_writes: 0,
                unroutable_pkts: 0,
                held_up_ns: time_histogram(),
                latest_ns: 0,
            },
        })
    }

    pub(crate) fn config(&self) -> &LinkConfig {
        &self.config
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.link.next_due_ns()
    }

    /// Takes in what a device has, up to a burst.
    pub(crate) fn receive(
        &mut self,
        place: u8,
        port: &mut Port,
        routes: Routes,
        frames: &mut Frames,
    ) {
        for _ in 0..READ_BURST_PKTS {
            let mut bytes = frames.take();
            let Some(len) = port.tun.read(&mut bytes) else {
                frames.free.push(bytes);
                return port.is_ready(false);
            };
            let now_ns = monotonic_ns();
            let busy_since_ns = *port.busy_since_ns.get_or_insert(now_ns);
            let Some(to_place) = routes.place(self.direction.to(), &bytes[..len]) else {
                self.stats.unroutable_pkts += 1;
                frames.free.push(bytes);
                continue;
            };
            self.stats.first_in_ns.get_or_insert(now_ns);
            let frame = Frame {
                number: frames.numbered,
                from_place: place,
                // Places are below MAX_HOSTS.
                to_place: to_place as u8,
                ecn: header::ecn(&bytes[..len]),
                unread_ns: now_ns - busy_since_ns,
                bytes,
                len,
            };
            frames.numbered += 1;
            if let Fate::Dropped(_) = self.link.arrive(now_ns, frame) {
                self.finish_dropped(now_ns, frames);
            }
        }
    }

    /// Hands over what is due.
    pub(crate) fn deliver(&mut self, to: &[Port], frames: &mut Frames) {
        // The clock is read once for each packet: after it has left.
        let mut now_ns = monotonic_ns();
        while let Some(departed) = self.link.pop_due(now_ns) {
            if to[usize::from(departed.packet.to_place)]
                .tun
                .write(departed.packet.packet())
                .is_err()
            {
                self.stats.failed_writes += 1;
            }
            now_ns = monotonic_ns();
            self.measure(now_ns, &departed);
            let passage = Passage {
                queue_len_pkts: departed.queue_len_pkts,
                started_ns: Some(departed.started_ns),
                due_ns: Some(departed.due_ns),
                left_ns: Some(now_ns),
                is_copy: departed.is_copy,
                ..self.passage(&departed.packet, departed.arrived_ns, PacketFate::Delivered)
            };
            frames.finish(now_ns, departed.packet, passage);
        }
        self.finish_dropped(now_ns, frames);
    }

    fn measure(&mut self, now_ns: u64, departed: &Departed<Frame>) {
        let stats = &mut self.stats;
        stats.last_out_ns = Some(now_ns);
        let late_ns = now_ns.saturating_sub(departed.due_ns);
        stats.latest_ns = stats.latest_ns.max(late_ns);
        stats.lateness_ns.saturating_record(late_ns);
        stats
            .queue_delay_ns
            .saturating_record(departed.started_ns - departed.arrived_ns);
        let frame = &departed.packet;
        stats.payload_bytes += u64::from(header::payload_bytes(frame.packet(), frame.wire_bytes()));
        if departed.is_copy {
            return;
        }
        let place = usize::from(frame.from_place);
        if frame.unread_ns == 0 {
            self.idle_ns_by_place[place] = 0;
        } else if departed.started_ns == departed.arrived_ns {
            // The transmitter stood still while this may have waited to be read.
            let idle_ns = departed.started_ns.saturating_sub(self.sent_until_ns);
            let idle_ns = idle_ns.min(frame.unread_ns);
            self.idle_ns_by_place
                .iter_mut()
                .for_each(|all| *all += idle_ns);
        }
        // What the transmitter has lost since is what this packet comes too late, and no more than it
        // has waited.
        let held_up_ns = self.idle_ns_by_place[place].min(frame.unread_ns);
        stats.held_up_ns.saturating_record(held_up_ns);
        let taken_ns = (f64::from(frame.wire_bytes()) * self.byte_ns) as u64;
        self.sent_until_ns = self.sent_until_ns.max(departed.started_ns + taken_ns);
    }

    fn passage(&self, frame: &Frame, at_ns: u64, fate: PacketFate) -> Passage {
        Passage {
            number: frame.number,
            direction: self.direction,
            from_place: frame.from_place,
            to_place: frame.to_place,
            at_ns,
            queue_len_pkts: 0,
            started_ns: None,
            due_ns: None,
            left_ns: None,
            dropped_ns: None,
            fate,
            is_copy: false,
            ecn: frame.ecn,
        }
    }

    fn finish_dropped(&mut self, now_ns: u64, frames: &mut Frames) {
        let dropped: Vec<Dropped<Frame>> = self.link.take_dropped().collect();
        for dropped in dropped {
            let Dropped {
                waiting,
                dropped_ns,
                reason,
            } = dropped;
            let fate = PacketFate::Dropped(reason);
            let passage = Passage {
                queue_len_pkts: waiting.queue_len_pkts,
                dropped_ns: Some(dropped_ns),
                ..self.passage(&waiting.packet, waiting.arrived_ns, fate)
            };
            frames.finish(now_ns, waiting.packet, passage);
        }
    }

    /// Logs what is still in the link at the end.
    pub(crate) fn finish_in_flight(&mut self, frames: &mut Frames) {
        let now_ns = monotonic_ns();
        let in_flight: Vec<Waiting<Frame>> = self.link.drain();
        for waiting in in_flight {
            let passage = Passage {
                queue_len_pkts: waiting.queue_len_pkts,
                ..self.passage(&waiting.packet, waiting.arrived_ns, PacketFate::InFlight)
            };
            frames.finish(now_ns, waiting.packet, passage);
        }
        self.finish_dropped(now_ns, frames);
    }

    pub(crate) fn stats(&self) -> DirectionStats {
        let Measured {
            lateness_ns,
            queue_delay_ns,
            first_in_ns,
            last_out_ns,
            payload_bytes,
            failed_writes,
            unroutable_pkts,
            held_up_ns,
            ..
        } = self.stats.clone();
        DirectionStats {
            config: self.config.clone(),
            began_ns: self.began_ns,
            counters: self.link.counters(),
            lateness_ns,
            queue_delay_ns,
            first_in_ns,
            last_out_ns,
            payload_bytes,
            failed_writes,
            unroutable_pkts,
            held_up_ns,
        }
    }

    /// A few numbers, at no cost; the lateness since the last one.
    pub(crate) fn glance(&mut self) -> Glance {
        let counters = self.link.counters();
        Glance {
            out_bytes: counters.out_bytes,
            dropped_pkts: counters.dropped_pkts.total(),
            queue_len_pkts: self.link.queue_len_pkts(),
            latest_us: std::mem::take(&mut self.stats.latest_ns) as f64 / 1e3,
        }
    }
}
