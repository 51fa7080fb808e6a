//! How a connection opens, and how a transfer is asked for on it.

use headstart_scenario::{AckSpec, HandshakeSpec};

use super::Simulation;
use crate::connection::Waits;
use crate::packet::{NO_SACK, PacketKind, SimPacket};
use crate::sender::Context;

impl Simulation {
    pub(super) fn control(&mut self, number: u32, kind: PacketKind, seq: u64, wire_bytes: u16) {
        let life = self.conns[number as usize].life;
        let packet = SimPacket {
            seq,
            conn: number,
            window_bytes: 0,
            sack: NO_SACK,
            stamp_ms: (self.now_ns / 1_000_000) as u32,
            echo_ms: 0,
            payload_bytes: 0,
            wire_bytes,
            life,
            kind,
            flags: 0,
            hop: 0,
        };
        self.network.send(self.now_ns, packet);
    }

    pub(super) fn send_syn(&mut self, number: u32) {
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

    pub(super) fn on_syn(&mut self, packet: SimPacket) {
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

    pub(super) fn on_syn_ack(&mut self, number: u32) {
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
            let bytes = conn.sender.transport.ack_bytes;
            self.control(number, PacketKind::HandshakeAck, 0, bytes);
            self.send_request(number);
        }
    }

    pub(super) fn send_request(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        conn.wait(self.now_ns, Waits::Data);
        let seq = conn.transfer.map_or(0, |transfer| transfer.from_byte);
        let bytes = conn.sender.transport.request_bytes;
        self.control(number, PacketKind::Request, seq, bytes);
        self.schedule(number);
    }

    /// The client has answered: the connection is open for the server, if it was not yet.
    pub(super) fn on_answer(&mut self, number: u32) {
        let conn = &self.conns[number as usize];
        if !conn.open {
            let rtt_us = (!conn.syn_ack_again).then(|| {
                u32::try_from((self.now_ns - conn.syn_ack_sent_ns) / 1000).unwrap_or(u32::MAX)
            });
            self.open(number, rtt_us);
        }
    }

    pub(super) fn on_request(&mut self, packet: SimPacket) {
        self.on_answer(packet.conn);
        let conn = &mut self.conns[packet.conn as usize];
        conn.sender.heard(packet.stamp_ms);
        // A request that was sent twice is served once.
        let asked = conn
            .transfer
            .is_some_and(|transfer| transfer.from_byte == packet.seq);
        if !asked {
            return;
        }
        // Linux: the first data of a connection is acknowledged at once (tcp_event_data_recv); what
        // was answered once is taken for a conversation, in which the answer acknowledges.
        let transport = &conn.sender.transport;
        if transport.receiver.acks == AckSpec::Linux && packet.seq == 0 {
            let bytes = transport.ack_bytes;
            self.control(packet.conn, PacketKind::RequestAck, 0, bytes);
        }
        self.serve(packet.conn);
    }

    /// The request has come: it is not sent again.
    pub(super) fn on_request_ack(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        if conn.waits == Waits::Data {
            conn.waits = Waits::Nothing;
        }
    }

    /// The connection is open for its sender.
    pub(super) fn open(&mut self, number: u32, rtt_us: Option<u32>) {
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
    pub(super) fn serve(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        let Some(transfer) = conn.transfer else {
            return;
        };
        if conn.sender.app_end() > transfer.from_byte {
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
        let first_bytes = match transfer.late {
            Some(late) if late.head_bytes < transfer.bytes => {
                conn.late_ns = self.now_ns.saturating_add(late.after_ns);
                conn.late_bytes = transfer.bytes - late.head_bytes;
                late.head_bytes
            }
            _ => transfer.bytes,
        };
        conn.sender.write(&mut ctx, first_bytes);
        self.schedule(number);
    }

    /// It writes what was not there before.
    pub(super) fn serve_late(&mut self, number: u32) {
        let conn = &mut self.conns[number as usize];
        conn.late_ns = u64::MAX;
        let mut ctx = Context {
            now_ns: self.now_ns,
            network: &mut self.network,
            memory: &mut self.memory,
        };
        conn.sender.write(&mut ctx, conn.late_bytes);
    }
}
