//! `[transport]`: how the two ends of a simulated connection behave, everything that can be chosen of TCP.

use serde::{Deserialize, Serialize};

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RtoSpec {
    /// Least value: of 4 rttvar as in Linux, or of the whole timer as in RFC 6298, 2.4.
    pub min_us: u32,
    /// The clock's granularity, 0: none. One packet a round trip is timed, in whole ticks, as BSD and ns
    /// do it; timers expire on a tick.
    pub tick_us: u32,
    /// Variance and floor as Linux has them.
    pub as_linux: bool,
    /// Before the first sample, and of the SYN: 1 s by RFC 6298, 2.1; 3 s by RFC 1122 and RFC 2988, until 2011.
    pub initial_us: u32,
}

const INITIAL_RTO_US: u32 = 1_000_000;

impl RtoSpec {
    /// Linux: 4 rttvar of at least 200 ms, microseconds.
    pub const fn linux() -> RtoSpec {
        RtoSpec {
            min_us: 200_000,
            tick_us: 0,
            as_linux: true,
            initial_us: INITIAL_RTO_US,
        }
    }

    /// RFC 6298 with this minimum and clock.
    pub const fn classic(min_us: u32, tick_us: u32) -> RtoSpec {
        RtoSpec {
            min_us,
            tick_us,
            as_linux: false,
            initial_us: INITIAL_RTO_US,
        }
    }

    /// The floor under 4 rttvar, in us.
    pub fn floor_us(&self) -> u64 {
        match self.as_linux {
            true => u64::from(self.min_us),
            // RFC 6298, 2.3: max(G, K RTTVAR).
            false => u64::from(self.tick_us),
        }
    }

    /// The least the whole timer may be, in us.
    pub fn least_rto_us(&self) -> u64 {
        match self.as_linux {
            true => 0,
            false => u64::from(self.min_us),
        }
    }

    /// The length of a tick, in us; 0: none.
    pub fn ticks_us(&self) -> u64 {
        u64::from(self.tick_us)
    }

    /// Whether the variance is computed as in Linux.
    pub fn linux_variance(&self) -> bool {
        self.as_linux
    }
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoverySpec {
    /// RACK-TLP (RFC 8985) and PRR (RFC 9937) as Linux has them; without SACK, duplicate ACKs and PRR.
    Linux,
    /// SACK-based recovery (RFC 6675).
    Sack,
    /// `NewReno` (RFC 6582): SACK is not used. Impatient: only the first partial ACK restarts the timer.
    NewRenoImpatient,
    /// `NewReno`, slow but steady: each partial ACK restarts the timer.
    NewRenoSteady,
}

impl RecoverySpec {
    /// Whether it is one of the two `NewReno`s.
    pub const fn is_new_reno(self) -> bool {
        matches!(
            self,
            RecoverySpec::NewRenoImpatient | RecoverySpec::NewRenoSteady
        )
    }
}

/// What follows slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AvoidanceSpec {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// CUBIC, whose slow start `HyStart` ends as in Linux.
    CubicHystart,
}

/// By how much slow start grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthSpec {
    /// One packet for each that is acknowledged (Linux; RFC 3465 without limit).
    PerPacket,
    /// One packet for each acknowledgement (ns; RFC 5681 with whole segments).
    PerAck,
}

/// What a pause does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleSpec {
    /// Linux (RFC 2861): halved for each RTO, down to the initial window.
    Linux,
    /// RFC 5681, 4.1: the initial window, after one RTO.
    Restart,
    /// Nothing.
    Keep,
}

/// Spacing of packets out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacingSpec {
    /// Only where a start-up asks for it.
    Off,
    /// Always, as Linux does it: 2 cwnd / srtt in slow start, 1.2 cwnd / srtt after it.
    Linux,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckSpec {
    /// Each packet.
    EveryPacket,
    /// Linux: the first 16 packets at once, then every second one or after the timer.
    Linux,
    /// Every second packet or after the timer, from the first on.
    Delayed,
}

/// Selective acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SackSpec {
    /// None.
    Off,
    /// As many blocks as fit: 4, or 3 beside timestamps.
    On,
    /// None any more while more than so many runs of bytes wait for what is missing; what comes out
    /// of order then is discarded (the Windows XP of the `HyStart` paper).
    UpToRuns(u32),
}

/// The receiver's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSpec {
    /// So many bytes, always.
    Fixed(u32),
    /// Linux: so many at first, then twice of what was read in a round trip, up to `most`.
    Linux {
        /// At first, in bytes.
        first: u32,
        /// The limit, in bytes.
        most: u32,
    },
}

/// The receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverSpec {
    /// When it acknowledges.
    pub acks: AckSpec,
    /// The delayed-ACK timer, in us.
    pub delay_us: u32,
    /// Selective acknowledgements.
    pub sack: SackSpec,
    /// Its window.
    pub window: WindowSpec,
}

/// How a connection opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeSpec {
    /// Not at all: the sender starts when the transfer does (the ns papers). No request either.
    None,
    /// SYN, SYN-ACK, and the request with the last ACK.
    ThreeWay,
    /// The request is in the SYN (RFC 7413).
    FastOpen,
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transport {
    /// Bytes of data in a full packet.
    pub mss_bytes: u16,
    /// Bytes of headers of a data packet, on the wire.
    pub header_bytes: u16,
    /// Bytes of an acknowledgement on the wire.
    pub ack_bytes: u16,
    /// The window at the start, in packets.
    pub initial_window_pkts: u32,
    /// The first slow-start threshold, in packets; `None`: unlimited.
    pub initial_ssthresh_pkts: Option<u32>,
    /// What the sender may have in flight at most, in bytes (the send buffer).
    pub send_buffer_bytes: Option<u64>,
    /// How it opens.
    pub handshake: HandshakeSpec,
    /// The request's bytes on the wire, where there is one.
    pub request_bytes: u16,
    /// Losses.
    pub recovery: RecoverySpec,
    /// Duplicate ACKs that mean a loss, for `NewReno` and RFC 6675.
    pub dupthresh: u32,
    /// Whether the first two duplicate ACKs let new data out (RFC 3042), for `NewReno` and RFC 6675.
    pub limited_transmit: bool,
    /// After slow start.
    pub avoidance: AvoidanceSpec,
    /// In slow start.
    pub growth: GrowthSpec,
    /// The timer.
    pub rto: RtoSpec,
    /// Whether the handshake's round trip is its first sample. Before Linux 3.1 a server had it by timestamps alone.
    pub handshake_rtt: bool,
    /// Whether an expiry is put to the test (F-RTO, RFC 5682), where there is SACK; `None`: with Linux' recovery.
    pub frto: Option<bool>,
    /// After a pause.
    pub idle: IdleSpec,
    /// Spacing.
    pub pacing: PacingSpec,
    /// Whether the timestamps option is used.
    pub timestamps: bool,
    /// Whether ECN is used (RFC 3168).
    pub ecn: bool,
    /// The other end.
    pub receiver: ReceiverSpec,
}

/// `TCP_INIT_CWND` of Linux; RFC 6928.
pub const LINUX_IW_PKTS: u32 = 10;

impl Transport {
    /// Linux as it comes, over Ethernet: CUBIC with `HyStart`, SACK, timestamps.
    pub const fn linux() -> Transport {
        Transport {
            mss_bytes: 1448,
            header_bytes: 52,
            ack_bytes: 52,
            initial_window_pkts: LINUX_IW_PKTS,
            initial_ssthresh_pkts: None,
            send_buffer_bytes: None,
            handshake: HandshakeSpec::ThreeWay,
            request_bytes: 132,
            recovery: RecoverySpec::Linux,
            dupthresh: 3,
            limited_transmit: true,
            avoidance: AvoidanceSpec::CubicHystart,
            growth: GrowthSpec::PerPacket,
            rto: RtoSpec::linux(),
            handshake_rtt: true,
            frto: None,
            idle: IdleSpec::Linux,
            pacing: PacingSpec::Off,
            timestamps: true,
            ecn: false,
            receiver: ReceiverSpec {
                acks: AckSpec::Linux,
                delay_us: 40_000,
                sack: SackSpec::On,
                window: WindowSpec::Linux {
                    first: 65_535,
                    most: 32 << 20,
                },
            },
        }
    }

    /// As the papers' simulators have it: no handshake, an ACK a packet, a window without bound.
    pub const fn classic(recovery: RecoverySpec) -> Transport {
        Transport {
            mss_bytes: 1000,
            header_bytes: 40,
            ack_bytes: 40,
            initial_window_pkts: 1,
            handshake: HandshakeSpec::None,
            recovery,
            avoidance: AvoidanceSpec::Reno,
            growth: GrowthSpec::PerAck,
            rto: RtoSpec::classic(1_000_000, 100_000),
            idle: IdleSpec::Keep,
            timestamps: false,
            receiver: ReceiverSpec {
                acks: AckSpec::EveryPacket,
                delay_us: 100_000,
                sack: SackSpec::On,
                window: WindowSpec::Fixed(1 << 30),
            },
            ..Transport::linux()
        }
    }

    /// Whether F-RTO is in use.
    pub fn uses_frto(&self) -> bool {
        let with_linux = matches!(self.recovery, RecoverySpec::Linux);
        self.frto.unwrap_or(with_linux)
    }

    /// Whether the two ends use selective acknowledgements.
    pub const fn uses_sack(&self) -> bool {
        !matches!(self.receiver.sack, SackSpec::Off) && !self.recovery.is_new_reno()
    }
}
