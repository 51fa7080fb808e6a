//! Links and routes: how packets get from one end to the other.

use headstart_link::{Counters, Dropped, Link, LinkConfig, QueueSpecError};

use crate::packet::{NO_SACK, SackTable, SimPacket};
use crate::timetable::Timetable;

/// The links that a connection's packets cross, by number, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The way of the data.
    pub forward: Vec<u32>,
    /// The way of the acknowledgements.
    pub reverse: Vec<u32>,
}

impl Route {
    fn links(&self, packet: &SimPacket) -> &[u32] {
        match packet.is_forward() {
            true => &self.forward,
            false => &self.reverse,
        }
    }
}

/// All links of a run.
pub(crate) struct Network {
    links: Vec<Link<SimPacket>>,
    routes: Vec<Route>,
    /// The route of each connection.
    of_conn: Vec<u32>,
    /// When each link has something due.
    table: Timetable,
    pub(crate) sacks: SackTable,
    /// Packets that have passed all links (or had none to pass): they are at the far end now, but
    /// for what delay their connection adds.
    pub(crate) arrived: Vec<SimPacket>,
    /// What was dropped since it was last asked.
    pub(crate) dropped: Vec<(u32, Dropped<SimPacket>)>,
    /// What left its sender since it was last asked, where that is wanted.
    pub(crate) sent: Vec<(u64, SimPacket)>,
    pub(crate) tells_sent: bool,
    pub(crate) sent_pkts: u64,
    pub(crate) dropped_pkts: u64,
}

impl Network {
    pub(crate) fn new(links: &[LinkConfig], routes: Vec<Route>) -> Result<Network, QueueSpecError> {
        Ok(Network {
            links: links.iter().map(Link::new).collect::<Result<_, _>>()?,
            routes,
            of_conn: Vec::new(),
            table: Timetable::default(),
            sacks: SackTable::default(),
            arrived: Vec::new(),
            dropped: Vec::new(),
            sent: Vec::new(),
            tells_sent: false,
            sent_pkts: 0,
            dropped_pkts: 0,
        })
    }

    pub(crate) fn set_route(&mut self, conn: u32, route: u32) {
        let index = conn as usize;
        if self.of_conn.len() <= index {
            self.of_conn.resize(index + 1, 0);
        }
        self.of_conn[index] = route;
    }

    /// When the first link has something due.
    pub(crate) fn first_ns(&self) -> u64 {
        self.table.first_ns()
    }

    /// A packet leaves its sender.
    #[inline]
    pub(crate) fn send(&mut self, now_ns: u64, packet: SimPacket) {
        self.sent_pkts += 1;
        if self.tells_sent {
            self.sent.push((now_ns, packet));
        }
        self.hop(now_ns, packet);
    }

    /// It goes to its next link, or it has arrived.
    fn hop(&mut self, now_ns: u64, packet: SimPacket) {
        let route = &self.routes[self.of_conn[packet.conn as usize] as usize];
        match route.links(&packet).get(usize::from(packet.hop)) {
            None => self.arrived.push(packet),
            Some(&number) => {
                let link = &mut self.links[number as usize];
                link.arrive(now_ns, packet);
                if link.has_dropped() {
                    self.take_dropped(number);
                }
                self.schedule(number);
            }
        }
    }

    #[inline]
    fn schedule(&mut self, number: u32) {
        let due_ns = self.links[number as usize]
            .next_due_ns()
            .unwrap_or(u64::MAX);
        self.table.set(number, due_ns);
    }

    /// Takes the packets that are due at the first link by `now_ns` on to their next link, or to
    /// `arrived`. One at a time: what it causes may be due before the next one.
    pub(crate) fn step(&mut self, now_ns: u64) {
        let Some(number) = self.table.first_owner() else {
            return;
        };
        let link = &mut self.links[number as usize];
        let departed = link.pop_due(now_ns);
        if link.has_dropped() {
            self.take_dropped(number);
        }
        self.schedule(number);
        if let Some(departed) = departed {
            let mut packet = departed.packet;
            if departed.is_copy {
                // The blocks are the original's, and tell nothing a second time.
                packet.sack = NO_SACK;
            }
            packet.hop += 1;
            self.hop(now_ns, packet);
        }
    }

    #[cold]
    fn take_dropped(&mut self, number: u32) {
        for dropped in self.links[number as usize].take_dropped() {
            self.dropped_pkts += 1;
            let mut dropped = dropped;
            let row = std::mem::replace(&mut dropped.waiting.packet.sack, NO_SACK);
            self.sacks.take(row);
            self.dropped.push((number, dropped));
        }
    }

    /// The drops that are not known yet, and the counters of each link.
    pub(crate) fn finish(&mut self) -> Vec<Counters> {
        for number in 0..self.links.len() as u32 {
            self.take_dropped(number);
        }
        self.links.iter().map(Link::counters).collect()
    }

    /// Everything still on the way, for the end of a run.
    pub(crate) fn left(&mut self) -> u64 {
        let left: usize = self.links.iter_mut().map(|link| link.drain().len()).sum();
        left as u64
    }

    pub(crate) fn queue_len_pkts(&self, link: u32) -> u32 {
        self.links[link as usize].queue_len_pkts()
    }

    pub(crate) fn counters(&self, link: u32) -> Counters {
        self.links[link as usize].counters()
    }

    pub(crate) fn links(&self) -> u32 {
        self.links.len() as u32
    }
}
