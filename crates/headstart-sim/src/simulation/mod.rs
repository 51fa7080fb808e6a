//! The run: whatever is due first happens first.
//!
//! `packets.rs` takes what arrives, `handshake.rs` opens connections, `transfers.rs` begins and ends transfers.

mod handshake;
mod packets;
mod transfers;

use std::sync::Arc;

use headstart_link::Draws;

use crate::connection::{Connection, Waits};
use crate::memory::PathMemory;
use crate::network::Network;
use crate::observe::{Observer, Outcome, PacketFate, QueueSample};
use crate::sender::Context;
use crate::spec::{SimError, SimSpec};
use crate::timetable::Timetable;
use crate::traffic::{Actor, Purpose, actors, stream};
use headstart_scenario::Transport;

/// How often an observer is asked whether to go on, in steps.
const STEPS_A_LOOK: u64 = 1 << 16;

/// A simulation, ready to run. The same specification and seed give the same run, on any machine
/// and however many run beside it.
pub struct Simulation {
    spec: SimSpec,
    transports: Vec<Arc<Transport>>,
    network: Network,
    memory: PathMemory,
    conns: Vec<Connection>,
    free_conns: Vec<u32>,
    conn_table: Timetable,
    actors: Vec<Actor>,
    actor_table: Timetable,
    /// For the delays of paths, one stream a group.
    path_draws: Vec<Draws>,
    /// Of the groups with whose end the run ends: actors that go on, and transfers that are not over.
    open_work: u64,
    now_ns: u64,
    next_queue_sample_ns: u64,
    outcome: Outcome,
}

impl Simulation {
    /// Checks `spec` and makes it ready.
    ///
    /// # Errors
    /// [`SimError`]: what cannot be simulated, and what to change.
    pub fn new(spec: SimSpec, seed: u64) -> Result<Simulation, SimError> {
        spec.check()?;
        let links: Vec<_> = spec
            .links
            .iter()
            .enumerate()
            .map(|(number, link)| {
                let mut link = link.clone();
                // Each link draws for itself, from the run's seed and its own.
                link.seed ^= seed.wrapping_add(stream(Purpose::Links, number, 0));
                link
            })
            .collect();
        let network = Network::new(&links, spec.routes.clone())
            .map_err(|cause| SimError::Queue { link: 0, cause })?;
        let mut actor_table = Timetable::default();
        let mut all = Vec::new();
        let mut open_work = 0;
        for (at_ns, actor) in actors(&spec.groups, seed) {
            open_work += u64::from(spec.ends_with.contains(&actor.group()));
            actor_table.set(all.len() as u32, at_ns);
            all.push(actor);
        }
        let groups = spec.groups.iter();
        let transports = groups
            .clone()
            .map(|group| Arc::new(group.transport))
            .collect();
        let path_draws = (0..spec.groups.len())
            .map(|number| Draws::new(seed, stream(Purpose::Paths, number, 0)))
            .collect();
        let mut memory = PathMemory::new(spec.memory_params);
        for (destination, path) in &spec.memory {
            memory.put(*destination, *path);
        }
        Ok(Simulation {
            transports,
            network,
            memory,
            conns: Vec::new(),
            free_conns: Vec::new(),
            conn_table: Timetable::default(),
            actors: all,
            actor_table,
            path_draws,
            open_work,
            now_ns: 0,
            next_queue_sample_ns: 0,
            outcome: Outcome::default(),
            spec,
        })
    }

    /// Runs to the end.
    pub fn run<O: Observer>(mut self, observer: &mut O) -> Outcome {
        let until_ns = self.spec.until.as_ns();
        self.network.tells_sent = O::PACKETS;
        loop {
            let link_ns = self.network.first_ns();
            let conn_ns = self.conn_table.first_ns();
            let actor_ns = self.actor_table.first_ns();
            let now_ns = link_ns.min(conn_ns).min(actor_ns);
            if now_ns > until_ns {
                break;
            }
            debug_assert!(now_ns >= self.now_ns, "time runs back");
            self.now_ns = now_ns;
            if O::QUEUES && now_ns >= self.next_queue_sample_ns {
                self.sample_queues(observer);
            }
            if link_ns == now_ns {
                self.network.step(now_ns);
            } else if conn_ns == now_ns {
                self.on_conn_timer(observer);
            } else {
                self.on_actor(observer);
            }
            self.take_arrived(observer);
            self.outcome.events += 1;
            if self.open_work == 0 && !self.spec.ends_with.is_empty() {
                break;
            }
            if self.outcome.events.is_multiple_of(STEPS_A_LOOK) && !observer.goes_on() {
                self.outcome.stopped = true;
                break;
            }
        }
        self.finish(observer)
    }

    /// More, or less, is to be done before the run may end, if it ends with `group`.
    fn count_work(&mut self, group: u32, is_more: bool) {
        if self.spec.ends_with.contains(&group) {
            match is_more {
                true => self.open_work += 1,
                false => self.open_work = self.open_work.saturating_sub(1),
            }
        }
    }

    fn finish<O: Observer>(mut self, observer: &mut O) -> Outcome {
        let never = self.network.first_ns().min(self.conn_table.first_ns()) == u64::MAX;
        let ended = self.open_work == 0 && !self.spec.ends_with.is_empty();
        if !never && !ended && !self.outcome.stopped {
            self.now_ns = self.spec.until.as_ns();
        }
        for conn in 0..self.conns.len() as u32 {
            if self.conns[conn as usize].transfer.is_some() {
                self.outcome.unfinished += 1;
                let done = self.transfer_done(conn, false);
                observer.transfer(&done);
            }
        }
        self.outcome.links = self.network.finish();
        self.take_dropped(observer);
        let waiting: usize = self.conns.iter().map(|conn| conn.pipe.len()).sum();
        self.outcome.left_pkts = self.network.left() + waiting as u64;
        self.outcome.sent_pkts = self.network.sent_pkts;
        self.outcome.dropped_pkts = self.network.dropped_pkts;
        self.outcome.end_ns = self.now_ns;
        self.outcome
    }

    /// Packets that are past all links: at the other end, or on the last piece of their way.
    #[inline]
    fn take_arrived<O: Observer>(&mut self, observer: &mut O) {
        if O::PACKETS || !self.network.dropped.is_empty() {
            self.take_dropped(observer);
        }
        let mut next = 0;
        while let Some(&packet) = self.network.arrived.get(next) {
            next += 1;
            let conn = &mut self.conns[packet.conn as usize];
            if conn.extra_ns > 0 {
                conn.delay(self.now_ns, packet);
                self.schedule(packet.conn);
            } else {
                self.receive(packet, observer);
            }
        }
        self.network.arrived.clear();
    }

    /// Tells what left and what was dropped.
    fn take_dropped<O: Observer>(&mut self, observer: &mut O) {
        for (sent_ns, packet) in self.network.sent.drain(..) {
            let group = self.conns[packet.conn as usize].group;
            observer.packet(sent_ns, group, &packet, PacketFate::Sent);
        }
        for (_, dropped) in self.network.dropped.drain(..) {
            let packet = dropped.waiting.packet;
            let conn = &mut self.conns[packet.conn as usize];
            if conn.life == packet.life {
                conn.drops += 1;
            }
            if O::PACKETS {
                let fate = PacketFate::Dropped(dropped.reason);
                observer.packet(dropped.dropped_ns, conn.group, &packet, fate);
            }
        }
    }

    #[inline]
    fn schedule(&mut self, number: u32) {
        let due_ns = self.conns[number as usize].due_ns();
        // Later is found out when the time comes: most timers are moved before they expire.
        if due_ns < self.conn_table.due_ns(number) {
            self.conn_table.set(number, due_ns);
        }
    }

    fn on_conn_timer<O: Observer>(&mut self, observer: &mut O) {
        let Some(number) = self.conn_table.first_owner() else {
            return;
        };
        let now_ns = self.now_ns;
        let conn = &mut self.conns[number as usize];
        let arrived = match conn.pipe.front() {
            Some((due_ns, _)) if *due_ns <= now_ns => conn.pipe.pop_front(),
            _ => None,
        };
        if let Some((_, packet)) = arrived {
            self.receive(packet, observer);
        } else if conn.receiver.delayed_ns <= now_ns {
            self.acknowledge(number);
        } else if conn.waits != Waits::Nothing && conn.wait_ns <= now_ns {
            conn.tries += 1;
            match conn.waits {
                Waits::SynAck => self.send_syn(number),
                Waits::Data => self.send_request(number),
                Waits::Nothing => {}
            }
        } else if conn.late_ns <= now_ns {
            self.serve_late(number);
        } else if conn.sender.due_ns() <= now_ns {
            let mut ctx = Context {
                now_ns,
                network: &mut self.network,
                memory: &mut self.memory,
            };
            conn.sender.on_timer(&mut ctx);
        }
        let due_ns = self.conns[number as usize].due_ns();
        self.conn_table.set(number, due_ns);
    }

    fn sample_queues<O: Observer>(&mut self, observer: &mut O) {
        self.next_queue_sample_ns = self.now_ns + self.spec.sample_every.as_ns();
        for link in 0..self.network.links() {
            observer.queue(&QueueSample {
                at_ns: self.now_ns,
                link,
                len_pkts: self.network.queue_len_pkts(link),
                counters: self.network.counters(link),
            });
        }
    }
}
