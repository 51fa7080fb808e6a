//! A packet is at the end of its way: data and acknowledgements.

use super::Simulation;
use crate::connection::Waits;
use crate::observe::{Observer, PacketFate, WindowSample};
use crate::packet::{CONGESTION, DUPLICATE_REPORT, NO_SACK, PUSH, PacketKind, REDUCED, SimPacket};
use crate::receiver::{Answer, Arrival};
use crate::sender::{Acknowledgement, Context};

impl Simulation {
    pub(super) fn receive<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
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
            PacketKind::HandshakeAck => self.on_answer(packet.conn),
            PacketKind::RequestAck => self.on_request_ack(packet.conn),
        }
    }

    pub(super) fn on_data<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
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
            echo_ms: packet.echo_ms,
            congestion: packet.flags & CONGESTION != 0,
            reduced: packet.flags & REDUCED != 0,
            pushes: packet.flags & PUSH != 0,
        };
        if conn.receiver.must_tell_first(&came) {
            self.acknowledge(packet.conn);
        }
        let conn = &mut self.conns[packet.conn as usize];
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
    pub(super) fn acknowledge(&mut self, number: u32) {
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
            stamp_ms: (self.now_ns / 1_000_000) as u32,
            echo_ms: conn.receiver.acknowledged(),
            payload_bytes: 0,
            wire_bytes: transport.ack_bytes + option_bytes,
            life: conn.life,
            kind: PacketKind::Ack,
            flags,
            hop: 0,
        };
        self.network.send(self.now_ns, packet);
    }

    pub(super) fn on_ack<O: Observer>(&mut self, packet: SimPacket, observer: &mut O) {
        let blocks = self.network.sacks.take(packet.sack);
        let conn = &mut self.conns[packet.conn as usize];
        let ack = Acknowledgement {
            seq: packet.seq,
            window_end: packet.seq + u64::from(packet.window_bytes),
            blocks,
            duplicate_report: packet.flags & DUPLICATE_REPORT != 0,
            stamp_ms: packet.stamp_ms,
            echo_ms: conn.sender.transport.timestamps.then_some(packet.echo_ms),
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
            if conn.transfer.is_none()
                && let Some(exit) = conn.sender.take_exit()
            {
                observer.late_exit(packet.conn, exit);
            }
            if conn.transfer.is_none() && conn.pending.is_empty() && conn.one_shot {
                return self.release(packet.conn);
            }
        }
        self.schedule(packet.conn);
    }
}
