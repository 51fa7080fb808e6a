//! The run: whatever is due first happens first.

use std::sync::Arc;

use headstart_link::Draws;

use crate::connection::{Connection, NO_USER, Pipe, Transfer, Waits};
use crate::memory::PathMemory;
use crate::network::Network;
use crate::observe::{Observer, Outcome, PacketFate, QueueSample, TransferDone, WindowSample};
use crate::packet::{CONGESTION, DUPLICATE_REPORT, NO_SACK, PacketKind, REDUCED, SimPacket};
use crate::receiver::{Answer, Arrival, Receiver};
use crate::runner::Runner;
use crate::sender::{Acknowledgement, Context, Sender, StartupGlue};
use crate::spec::{SimError, SimSpec};
use crate::timetable::Timetable;
use crate::traffic::{Actor, Purpose, actors, stream};
use headstart_scenario::Traffic;
use headstart_scenario::{HandshakeSpec, Transport};

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
        for (at_ns, actor) in actors(&spec.groups, seed) {
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
        let mut memory = PathMemory::default();
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
            if self.outcome.events.is_multiple_of(STEPS_A_LOOK) && !observer.goes_on() {
                self.outcome.stopped = true;
                break;
            }
        }
        self.finish(observer)
    }

    fn finish<O: Observer>(mut self, observer: &mut O) -> Outcome {
        let never = self.network.first_ns().min(self.conn_table.first_ns()) == u64::MAX;
        if !never && !self.outcome.stopped {
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

    // ---------------------------------------------------------------- packets

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

    fn receive<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
        self.outcome.received_pkts += 1;
        let conn = &mut self.conns[packet.conn as usize];
        if O::PACKETS {
            observer.packet(self.now_ns, conn.group, &packet, PacketFate::Came);
        }
        if conn.life != packet.life {
            // Of a connection that is over.
            self.network.sacks.take(packet.sack);
            return;
        }
        match packet.kind {
            PacketKind::Data => self.on_data(packet, observer),
            PacketKind::Ack => self.on_ack(packet, observer),
            PacketKind::Syn => self.on_syn(packet),
            PacketKind::SynAck => self.on_syn_ack(packet.conn),
            PacketKind::Request => self.on_request(packet),
        }
    }

    fn on_data<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
        let now_ns = self.now_ns;
        let conn = &mut self.conns[packet.conn as usize];
        // Late data of the transfer before is no answer to the request.
        let answers = conn
            .transfer
            .is_some_and(|transfer| packet.seq >= transfer.from_byte);
        if answers && conn.waits != Waits::Nothing {
            conn.waits = Waits::Nothing;
            conn.client_open = true;
        }
        let came = Arrival {
            seq: packet.seq,
            len_bytes: packet.payload_bytes,
            stamp_ms: packet.stamp_ms,
            congestion: packet.flags & CONGESTION != 0,
            reduced: packet.flags & REDUCED != 0,
        };
        let answer = conn.receiver.arrive(now_ns, &conn.sender.transport, &came);
        let over = conn
            .transfer
            .is_some_and(|transfer| conn.receiver.next() >= transfer.from_byte + transfer.bytes);
        if answer == Answer::Now || (over && conn.one_shot) {
            self.acknowledge(packet.conn);
        } else {
            self.schedule(packet.conn);
        }
        if over {
            self.transfer_over(packet.conn, observer);
        }
    }

    /// The receiver of `conn` acknowledges.
    fn acknowledge(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        let transport = &conn.sender.transport;
        let (blocks, duplicate) = conn.receiver.blocks(transport);
        let mut flags = if duplicate { DUPLICATE_REPORT } else { 0 };
        if conn.receiver.echoes_congestion() {
            flags |= CONGESTION;
        }
        let sack = match blocks.len {
            0 => NO_SACK,
            _ => self.network.sacks.keep(blocks),
        };
        // RFC 2018: 8 bytes a block, and 4 for the option with its padding.
        let option_bytes = match blocks.len {
            0 => 0,
            len => 4 + 8 * u16::from(len),
        };
        let packet = SimPacket {
            seq: conn.receiver.next(),
            conn: number,
            window_bytes: conn.receiver.window_bytes(),
            sack,
            stamp_ms: conn.receiver.acknowledged(),
            payload_bytes: 0,
            wire_bytes: transport.ack_bytes + option_bytes,
            life: conn.life,
            kind: PacketKind::Ack,
            flags,
            hop: 0,
        };
        self.network.send(self.now_ns, packet);
    }

    fn on_ack<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
        let blocks = self.network.sacks.take(packet.sack);
        let conn = &mut self.conns[packet.conn as usize];
        let ack = Acknowledgement {
            seq: packet.seq,
            window_end: packet.seq + u64::from(packet.window_bytes),
            blocks,
            duplicate_report: packet.flags & DUPLICATE_REPORT != 0,
            echo_ms: conn.sender.transport.timestamps.then_some(packet.stamp_ms),
            congestion: packet.flags & CONGESTION != 0,
        };
        let mut ctx = Context {
            now_ns: self.now_ns,
            network: &mut self.network,
            memory: &mut self.memory,
        };
        conn.sender.on_ack(&mut ctx, &ack);
        if O::WINDOWS && self.now_ns >= conn.next_sample_ns {
            conn.next_sample_ns = self.now_ns + self.spec.sample_every.as_ns();
            observer.window(&WindowSample {
                at_ns: self.now_ns,
                group: conn.group,
                conn: packet.conn,
                cwnd_pkts: conn.sender.cwnd_pkts(),
                ssthresh_pkts: conn.sender.ssthresh_pkts(),
                srtt_us: conn.sender.srtt_us(),
                inflight_pkts: conn.sender.in_flight(),
            });
        }
        if conn.sender.all_acknowledged() {
            conn.sender.rest();
            if conn.transfer.is_none() && conn.pending.is_empty() && conn.one_shot {
                return self.release(packet.conn);
            }
        }
        self.schedule(packet.conn);
    }

    // -------------------------------------------------------------- handshake

    fn control(&mut self, number: u32, kind: PacketKind, seq: u64, wire_bytes: u16) {
        let life = self.conns[number as usize].life;
        let packet = SimPacket {
            seq,
            conn: number,
            window_bytes: 0,
            sack: NO_SACK,
            stamp_ms: 0,
            payload_bytes: 0,
            wire_bytes,
            life,
            kind,
            flags: 0,
            hop: 0,
        };
        self.network.send(self.now_ns, packet);
    }

    fn send_syn(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        conn.wait(self.now_ns, Waits::SynAck);
        conn.syn_sent_ns = self.now_ns;
        let transport = &conn.sender.transport;
        // A SYN has 20 bytes of options where an ACK has the timestamps' 12.
        let mut bytes = transport.ack_bytes + 8;
        if transport.handshake == HandshakeSpec::FastOpen {
            bytes += transport.request_bytes.saturating_sub(transport.ack_bytes);
        }
        self.control(number, PacketKind::Syn, 0, bytes);
        self.schedule(number);
    }

    fn on_syn(&mut self, packet: SimPacket) {
        let conn = &mut self.conns[packet.conn as usize];
        if conn.open {
            // The answer was lost, or is late.
            if conn.sender.transport.handshake == HandshakeSpec::FastOpen && !conn.client_open {
                let bytes = conn.sender.transport.ack_bytes + 8;
                self.control(packet.conn, PacketKind::SynAck, 0, bytes);
            }
            return;
        }
        conn.syn_ack_again = conn.syn_ack_sent_ns != u64::MAX;
        conn.syn_ack_sent_ns = self.now_ns;
        if conn.syn_ack_again {
            conn.sender.handshake_lost();
        }
        let fast_open = conn.sender.transport.handshake == HandshakeSpec::FastOpen;
        let bytes = conn.sender.transport.ack_bytes + 8;
        self.control(packet.conn, PacketKind::SynAck, 0, bytes);
        if fast_open {
            self.open(packet.conn, None);
            self.serve(packet.conn);
        }
    }

    fn on_syn_ack(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        if conn.client_open {
            return;
        }
        conn.client_open = true;
        if let Some(transfer) = &mut conn.transfer {
            transfer.connected_ns = Some(self.now_ns);
        }
        conn.tries = 0;
        if conn.sender.transport.handshake == HandshakeSpec::FastOpen {
            conn.waits = Waits::Nothing;
        } else {
            self.send_request(number);
        }
    }

    fn send_request(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        conn.wait(self.now_ns, Waits::Data);
        let seq = conn.transfer.map_or(0, |transfer| transfer.from_byte);
        let bytes = conn.sender.transport.request_bytes;
        self.control(number, PacketKind::Request, seq, bytes);
        self.schedule(number);
    }

    fn on_request(&mut self, packet: SimPacket) {
        let conn = &mut self.conns[packet.conn as usize];
        if !conn.open {
            let rtt_us = (!conn.syn_ack_again).then(|| {
                u32::try_from((self.now_ns - conn.syn_ack_sent_ns) / 1000).unwrap_or(u32::MAX)
            });
            self.open(packet.conn, rtt_us);
        }
        let conn = &self.conns[packet.conn as usize];
        // A request that was sent twice is served once.
        if conn
            .transfer
            .is_some_and(|transfer| transfer.from_byte == packet.seq)
        {
            self.serve(packet.conn);
        }
    }

    /// The connection is open for its sender.
    fn open(&mut self, number: u32, rtt_us: Option<u32>) {
        let conn = &mut self.conns[number as usize];
        conn.open = true;
        let window_bytes = conn.receiver.window_bytes();
        let mut ctx = Context {
            now_ns: self.now_ns,
            network: &mut self.network,
            memory: &mut self.memory,
        };
        conn.sender.open(&mut ctx, rtt_us, window_bytes);
    }

    /// The sender's application writes the transfer.
    fn serve(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        let Some(transfer) = conn.transfer else {
            return;
        };
        if conn.sender.write_end() > transfer.from_byte {
            return;
        }
        let group = &self.spec.groups[conn.group as usize];
        if group.hints {
            conn.sender.hint(transfer.bytes);
        }
        conn.sender.set_head(group.head_bytes);
        let mut ctx = Context {
            now_ns: self.now_ns,
            network: &mut self.network,
            memory: &mut self.memory,
        };
        conn.sender.write(&mut ctx, transfer.bytes);
        self.schedule(number);
    }

    // ----------------------------------------------------------------- timers

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

    // ---------------------------------------------------------------- traffic

    fn on_actor<O: Observer>(&mut self, observer: &mut O) {
        let Some(number) = self.actor_table.first_owner() else {
            return;
        };
        self.actor_table.set(number, u64::MAX);
        match &mut self.actors[number as usize] {
            Actor::User(user) => {
                let group = user.group as usize;
                let Traffic::Users(users) = &self.spec.groups[group].traffic else {
                    return;
                };
                if user.begin_page(users) {
                    self.ask_for_objects(number);
                }
            }
            Actor::Arriving(_) => self.on_arrival(number),
        }
        let _ = observer;
    }

    /// Asks for as many objects of the page as may be asked for now.
    fn ask_for_objects(&mut self, number: u32) {
        loop {
            let Actor::User(user) = &mut self.actors[number as usize] else {
                return;
            };
            let group = user.group;
            let Traffic::Users(users) = &self.spec.groups[group as usize].traffic else {
                return;
            };
            let Some(bytes) = user.next_object(users) else {
                return;
            };
            let (idle, persistent) = (user.idle_conns.pop(), users.persistent);
            let conn = match idle {
                Some(conn) => conn,
                None => self.connect(group, number, !persistent),
            };
            self.ask(conn, self.now_ns, bytes);
        }
    }

    fn on_arrival(&mut self, number: u32) {
        let Actor::Arriving(arriving) = &mut self.actors[number as usize] else {
            return;
        };
        let group = arriving.group;
        let Traffic::Arrivals(arrivals) = &self.spec.groups[group as usize].traffic else {
            return;
        };
        let Some((bytes, gap_ns)) = arriving.next(arrivals) else {
            return;
        };
        let conn = match arrivals.connections {
            None => self.connect(group, NO_USER, true),
            Some(most) => {
                let index = arriving.next_conn;
                arriving.next_conn = (index + 1) % most;
                match arriving.conns.get(index as usize).copied() {
                    Some(conn) => conn,
                    None => {
                        let conn = self.connect(group, NO_USER, false);
                        if let Actor::Arriving(arriving) = &mut self.actors[number as usize] {
                            arriving.conns.push(conn);
                        }
                        conn
                    }
                }
            }
        };
        self.ask(conn, self.now_ns, bytes);
        self.actor_table
            .set(number, self.now_ns.saturating_add(gap_ns));
    }

    /// A connection that is not open yet.
    fn connect(&mut self, group_number: u32, user: u32, one_shot: bool) -> u32 {
        let index = group_number as usize;
        let group = &self.spec.groups[index];
        let transport = Arc::clone(&self.transports[index]);
        let extra_ns = match &group.extra_rtt {
            Some(extra_rtt) => extra_rtt.sample(&mut self.path_draws[index]).as_ns() / 2,
            None => 0,
        };
        let reused = self.free_conns.pop();
        let number = reused.unwrap_or(self.conns.len() as u32);
        let life = match reused {
            Some(number) => self.conns[number as usize].life,
            None => 0,
        };
        let startup = match group.runner {
            Runner::Native => None,
            Runner::Startup(params) => Some(Box::new(StartupGlue::new(params))),
        };
        let receiver = Receiver::new(&transport.receiver);
        let sender = Sender::new(
            transport,
            number,
            life,
            group.destination,
            startup,
            self.now_ns,
        );
        let pipe = match reused {
            Some(number) => std::mem::take(&mut self.conns[number as usize].pipe),
            None => Pipe::new(),
        };
        let conn = Connection {
            life,
            group: group_number,
            user,
            sender,
            receiver,
            extra_ns,
            pipe,
            transfer: None,
            pending: std::collections::VecDeque::new(),
            turn: 0,
            drops: 0,
            open: false,
            client_open: false,
            one_shot,
            waits: Waits::Nothing,
            wait_ns: u64::MAX,
            tries: 0,
            syn_sent_ns: 0,
            syn_ack_sent_ns: u64::MAX,
            syn_ack_again: false,
            next_sample_ns: 0,
        };
        self.network.set_route(number, group.route);
        match reused {
            Some(number) => self.conns[number as usize] = conn,
            None => self.conns.push(conn),
        }
        number
    }

    /// Asks for a transfer over `number`, after those that it has to carry already.
    fn ask(&mut self, number: u32, start_ns: u64, bytes: u64) {
        let conn = &mut self.conns[number as usize];
        if conn.transfer.is_some() {
            conn.pending.push_back((start_ns, bytes));
            return;
        }
        conn.transfer = Some(Transfer {
            start_ns,
            connected_ns: None,
            from_byte: conn.receiver.next(),
            bytes,
            resent_before: conn.sender.resent_total(),
            drops_before: conn.drops,
        });
        conn.tries = 0;
        match (conn.sender.transport.handshake, conn.open) {
            (HandshakeSpec::None, open) => {
                if !open {
                    self.open(number, None);
                }
                self.serve(number);
            }
            (_, true) => self.send_request(number),
            (_, false) => self.send_syn(number),
        }
    }

    fn transfer_done(&mut self, number: u32, finished: bool) -> TransferDone {
        let conn = &mut self.conns[number as usize];
        let transfer = conn.transfer.unwrap_or(Transfer {
            start_ns: self.now_ns,
            connected_ns: None,
            from_byte: 0,
            bytes: 0,
            resent_before: 0,
            drops_before: 0,
        });
        TransferDone {
            group: conn.group,
            user: (conn.user != NO_USER).then_some(conn.user),
            conn: number,
            turn: conn.turn,
            start_ns: transfer.start_ns,
            connected_ns: transfer.connected_ns,
            end_ns: self.now_ns,
            bytes: transfer.bytes,
            delivered_bytes: conn.receiver.next() - transfer.from_byte,
            finished,
            retransmitted_pkts: conn.sender.resent_total() - transfer.resent_before,
            dropped_pkts: conn.drops - transfer.drops_before,
            sack_walk_pkts: conn.sender.sack_walk_total(),
            timeouts: conn.sender.timeouts_total(),
            min_rtt_us: conn.sender.min_rtt_us(),
            exit: conn.sender.take_exit(),
            slow_start_end: conn.sender.slow_start_end,
        }
    }

    fn transfer_over<O: Observer>(&mut self, number: u32, observer: &mut O) {
        let done = self.transfer_done(number, true);
        self.outcome.transfers += 1;
        observer.transfer(&done);
        let conn = &mut self.conns[number as usize];
        conn.transfer = None;
        conn.turn += 1;
        let next = conn.pending.pop_front();
        let (user, group, one_shot) = (conn.user, conn.group, conn.one_shot);
        if let Some((start_ns, bytes)) = next {
            self.ask(number, start_ns, bytes);
        }
        if user == NO_USER {
            return;
        }
        let Actor::User(actor) = &mut self.actors[user as usize] else {
            return;
        };
        if !one_shot {
            actor.idle_conns.push(number);
        }
        if !actor.object_came() {
            return self.ask_for_objects(user);
        }
        let Traffic::Users(users) = &self.spec.groups[group as usize].traffic else {
            return;
        };
        if actor.pages_left != Some(0) {
            let think_ns = users.think.sample(&mut actor.draws).as_ns();
            self.actor_table
                .set(user, self.now_ns.saturating_add(think_ns));
        }
    }

    /// The connection has carried what it was opened for, and all of it is acknowledged.
    fn release(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        let mut ctx = Context {
            now_ns: self.now_ns,
            network: &mut self.network,
            memory: &mut self.memory,
        };
        conn.sender.close(&mut ctx);
        conn.life = conn.life.wrapping_add(1);
        conn.waits = Waits::Nothing;
        conn.sender.forget();
        conn.receiver.delayed_ns = u64::MAX;
        // What is still on its way to it keeps its slot: the next life begins when it has passed.
        let due_ns = conn.due_ns();
        self.conn_table.set(number, due_ns);
        self.free_conns.push(number);
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
