//! Transfers: who asks for them, on which connection, and what follows when one is over.

use std::sync::Arc;

use headstart_scenario::{HandshakeSpec, Traffic};

use super::Simulation;
use crate::connection::{Connection, NO_USER, Order, Pipe, Transfer, Waits};
use crate::observe::{Observer, TransferDone};
use crate::receiver::Receiver;
use crate::runner::Runner;
use crate::sender::{Context, Sender, StartupGlue};
use crate::traffic::Actor;

impl Simulation {
    pub(super) fn on_actor<O: Observer>(&mut self, observer: &mut O) {
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
    pub(super) fn ask_for_objects(&mut self, number: u32) {
        loop {
            let Actor::User(user) = &mut self.actors[number as usize] else {
                return;
            };
            let group = user.group;
            let spec = &self.spec.groups[group as usize];
            let Traffic::Users(users) = &spec.traffic else {
                return;
            };
            let Some(order) = user.next_object(users, spec.late_body.as_ref()) else {
                return;
            };
            let (idle, persistent) = (user.idle_conns.pop(), users.persistent);
            let conn = match idle {
                Some(conn) => conn,
                None => self.connect(group, number, !persistent),
            };
            self.ask(conn, self.now_ns, order);
            self.count_work(group, true);
        }
    }

    pub(super) fn on_arrival(&mut self, number: u32) {
        let Actor::Arriving(arriving) = &mut self.actors[number as usize] else {
            return;
        };
        let group = arriving.group;
        let spec = &self.spec.groups[group as usize];
        let Traffic::Arrivals(arrivals) = &spec.traffic else {
            return;
        };
        let Some((order, gap_ns)) = arriving.next(arrivals, spec.late_body.as_ref()) else {
            return;
        };
        let is_last = gap_ns == u64::MAX;
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
        self.ask(conn, self.now_ns, order);
        self.count_work(group, true);
        if is_last {
            self.count_work(group, false);
        }
        self.actor_table
            .set(number, self.now_ns.saturating_add(gap_ns));
    }

    /// A connection that is not open yet.
    pub(super) fn connect(&mut self, group_number: u32, user: u32, one_shot: bool) -> u32 {
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
            late_ns: u64::MAX,
            late_bytes: 0,
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
    pub(super) fn ask(&mut self, number: u32, start_ns: u64, order: Order) {
        let conn = &mut self.conns[number as usize];
        if conn.transfer.is_some() {
            conn.pending.push_back((start_ns, order));
            return;
        }
        conn.transfer = Some(Transfer {
            start_ns,
            connected_ns: None,
            from_byte: conn.receiver.next(),
            bytes: order.bytes,
            late: order.late,
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

    pub(super) fn transfer_done(&mut self, number: u32, finished: bool) -> TransferDone {
        let conn = &mut self.conns[number as usize];
        let transfer = conn.transfer.unwrap_or(Transfer {
            start_ns: self.now_ns,
            connected_ns: None,
            from_byte: 0,
            bytes: 0,
            late: None,
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

    pub(super) fn transfer_over<O: Observer>(&mut self, number: u32, observer: &mut O) {
        let done = self.transfer_done(number, true);
        self.outcome.transfers += 1;
        observer.transfer(&done);
        let conn = &mut self.conns[number as usize];
        conn.transfer = None;
        conn.turn += 1;
        let next = conn.pending.pop_front();
        let (user, group, one_shot) = (conn.user, conn.group, conn.one_shot);
        self.count_work(group, false);
        if let Some((start_ns, order)) = next {
            self.ask(number, start_ns, order);
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
        if actor.pages_left == Some(0) {
            self.count_work(group, false);
        } else {
            let think_ns = users.think.sample(&mut actor.draws).as_ns();
            self.actor_table
                .set(user, self.now_ns.saturating_add(think_ns));
        }
    }

    /// The connection has carried what it was opened for, and all of it is acknowledged.
    pub(super) fn release(&mut self, number: u32) {
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
}
