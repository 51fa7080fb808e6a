//! The structures of `core/base.h`, field by field, and the tables which the native build exports.
//!
//! All numbers have the units of their names; positions are bytes of the stream since the connection opened.

use std::ffi::{CStr, c_char};

use serde::{Deserialize, Serialize};

/// `ssthresh` where there is none yet: `SU_INFINITE_SSTHRESH`, in packets.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// The end of a range whose end is not known yet: `SU_OPEN_END`, in bytes.
pub const OPEN_END: u64 = u64::MAX;
/// The same, without a packet that ends what has been written when it leaves: `SU_BUT_LAST`.
pub const BUT_LAST: u64 = OPEN_END - 1;

/// What happened to the connection (`enum su_event_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It is established; nothing has been sent.
    Open = 0,
    /// A pause longer than the RTO ends.
    Idle = 1,
    /// Nothing is in flight, and data is about to leave.
    Send = 2,
    /// An ACK advanced it.
    Ack = 3,
    /// The stack has found a loss and asks what the penalty is.
    Loss = 4,
}

/// How a loss was found (`enum su_loss_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// No loss.
    None = 0,
    /// Fast retransmit: duplicate ACKs, SACK or RACK.
    Fast = 1,
    /// The retransmission timer.
    Timeout = 2,
    /// `NewReno`: a partial new ACK during fast recovery.
    PartialAck = 3,
    /// No loss, but a mark of the network.
    Ecn = 4,
}

/// Where the stack's own loss recovery stands (`enum su_recovery`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// None.
    Open = 0,
    /// Fast recovery, or a reduction after ECN.
    Fast = 1,
    /// Slow start after a timeout.
    Timeout = 2,
}

/// How the last connection of a path stood (`enum su_ended`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Not known.
    Unknown = 0,
    /// In slow start.
    SlowStart = 1,
    /// In congestion avoidance.
    Avoidance = 2,
    /// While a loss was being repaired.
    Recovery = 3,
}

/// Where a start-up stands (`enum su_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The stack's own congestion control is in charge.
    Native = 0,
    /// A window is chosen and waits for data.
    Armed = 1,
    /// The window is leaving; no ACK of it has come yet.
    OpenLoop = 2,
    /// ACKs clock the sending; the window is not yet all acknowledged.
    Clocked = 3,
    /// Packets of the window were lost; no penalty is taken.
    Recovering = 4,
    /// The start-up itself grows the window.
    SlowStart = 5,
}

/// An event with the snapshot of the connection (`struct su_event`). See `core/base.h` for each field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "each field is described, with its unit, in core/base.h"
)]
pub struct Event {
    pub now_us: u64,
    pub sent_bytes: u64,
    pub acked_bytes: u64,
    pub idle_us: u64,
    pub unsent_bytes: u64,
    pub hint_bytes: u64,
    pub delivered_pkts: u32,
    pub lost_pkts: u32,
    pub inflight_pkts: u32,
    pub cwnd_pkts: u32,
    pub ssthresh_pkts: u32,
    pub rtt_us: u32,
    pub srtt_us: u32,
    pub rttvar_us: u32,
    pub min_rtt_us: u32,
    pub rto_us: u32,
    pub mss_bytes: u32,
    pub unpaced_pkts: u32,
    pub peer_window_bytes: u32,
    pub retransmitted_pkts: u32,
    pub kind: u8,
    pub loss: u8,
    pub recovery: u8,
    pub sack_ok: u8,
    pub cwnd_limited: u8,
    pub iw_pkts: u8,
    /// OPEN: the stack begins with 1, because the SYN or SYN-ACK was lost.
    #[serde(default)]
    pub handshake_lost: u8,
    /// cwnd itself is what stopped the last window's sending, with all of it in flight.
    #[serde(default)]
    pub window_full: u8,
}

/// What is remembered of a path (`struct su_path`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "each field is described, with its unit, in core/base.h"
)]
pub struct Path {
    pub age_us: u64,
    pub rate_bytes_per_s: u64,
    pub cwnd_pkts: u32,
    pub ssthresh_pkts: u32,
    pub srtt_us: u32,
    pub rttvar_us: u32,
    pub min_rtt_us: u32,
    pub ending_mpkts: u32,
    pub window_mean_mpkts: u32,
    pub window_dev_mpkts: u32,
    pub min_rtt_mean_us: u32,
    pub min_rtt_dev_us: u32,
    pub lost_pkts: u32,
    pub samples: u32,
    pub ended: u8,
    #[serde(skip)]
    pub refused: u8,
    #[serde(skip)]
    pub reserved: [u8; 6],
}

/// What a start-up makes use of (`enum su_uses`).
pub(crate) mod uses {
    pub(crate) const PATH: u32 = 1;
    pub(crate) const SHAPE: u32 = 2;
    pub(crate) const MARKS: u32 = 4;
}

/// A start-up's answer (`struct su_verdict`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
#[allow(
    missing_docs,
    reason = "each field is described, with its unit, in core/base.h"
)]
pub struct Verdict {
    pub pacing_bytes_per_s: u64,
    pub mark_from_byte: u64,
    pub mark_to_byte: u64,
    pub cwnd_pkts: u32,
    pub ssthresh_pkts: u32,
    pub burst_pkts: u32,
    pub rto_min_us: u32,
    pub recovery_cwnd_pkts: u32,
    pub phase: u8,
    pub why: u8,
    pub owns_slow_start: u8,
    pub forget_path: u8,
}

/// What a connection proves of its path (`struct su_proof`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Proof {
    /// The last window that got through without loss, in packets.
    pub window_pkts: u32,
    evidence: u32,
    /// The most that was delivered in one round trip without loss, in packets.
    pub most_pkts: u32,
}

/// How much a [`Proof`] is worth (`enum su_evidence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: the window came from memory and was not used whole.
    None,
    /// The path carries at least this much.
    AtLeast,
    /// The window was found by congestion avoidance or after a loss.
    Exact,
}

impl Proof {
    /// A proof of `window_pkts`, which were delivered in one round trip.
    pub fn new(window_pkts: u32, evidence: Evidence) -> Proof {
        Proof {
            window_pkts,
            evidence: evidence as u32,
            most_pkts: window_pkts,
        }
    }

    /// What it is worth.
    pub fn evidence(&self) -> Evidence {
        match self.evidence {
            1 => Evidence::AtLeast,
            2 => Evidence::Exact,
            _ => Evidence::None,
        }
    }
}

/// A start-up's state, opaque (`union su_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StateWords(pub [u64; 16]);

/// A start-up's parameters in the order of its table (`union su_params`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ParamWords(pub [u32; 16]);

/// The path memory's parameters in the order of its table (`struct su_memory_params`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MemoryWords(pub [u32; 9]);

// The C side asserts the same sizes; together they pin the layout.
const _: () = assert!(size_of::<Event>() == 112);
const _: () = assert!(size_of::<Path>() == 72);
const _: () = assert!(size_of::<Verdict>() == 48);
const _: () = assert!(size_of::<StateWords>() == 128);
const _: () = assert!(size_of::<ParamWords>() == 64);
const _: () = assert!(size_of::<MemoryWords>() == 36);

impl Phase {
    /// Its name in logs and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Native => "native",
            Phase::Armed => "armed",
            Phase::OpenLoop => "open-loop",
            Phase::Clocked => "clocked",
            Phase::Recovering => "recovering",
            Phase::SlowStart => "slow-start",
        }
    }
}

impl Path {
    /// How the last connection stood; `Unknown` for a number that this build does not know.
    pub fn ended(&self) -> Ended {
        [Ended::SlowStart, Ended::Avoidance, Ended::Recovery]
            .into_iter()
            .find(|ended| *ended as u8 == self.ended)
            .unwrap_or(Ended::Unknown)
    }
}

impl Verdict {
    /// Whether new data from `first_byte` to `end_byte` leaves with low drop priority, where the application has
    /// written up to `written_bytes`.
    pub fn marks(&self, first_byte: u64, end_byte: u64, written_bytes: u64) -> bool {
        let last = self.mark_to_byte == BUT_LAST && end_byte >= written_bytes;
        (self.mark_from_byte..self.mark_to_byte).contains(&first_byte) && !last
    }

    /// The phase, or `None` for a number that this build does not know.
    pub fn phase(&self) -> Option<Phase> {
        [
            Phase::Native,
            Phase::Armed,
            Phase::OpenLoop,
            Phase::Clocked,
            Phase::Recovering,
            Phase::SlowStart,
        ]
        .into_iter()
        .find(|phase| *phase as u8 == self.phase)
    }

    /// Whether the pacing that earlier verdicts asked for is over, when this one, which asks for none, has answered
    /// `event` (`su_pacing_is_over`, `core/pacing.h`).
    pub fn pacing_is_over(&self, event: &Event) -> bool {
        // SAFETY: both point to live values of the C layout (sizes asserted on both sides); the C side keeps neither.
        unsafe { su_native_pacing_is_over(event, self) != 0 }
    }

    /// What the verdict says of the start-up's end.
    pub fn ending(&self) -> Ending {
        let sets_a_window = [WHY_INITIAL_WINDOW, WHY_RESTART_WINDOW].contains(&self.why);
        match self.phase() {
            _ if self.why == 0 || sets_a_window => Ending::None,
            Some(Phase::Native | Phase::Recovering) => Ending::Left,
            Some(Phase::Armed) if self.why == WHY_APP_LIMITED => Ending::Rests,
            _ => Ending::None,
        }
    }
}

/// `SU_WHY_ORDINARY_LOSS`: a loss ended slow start.
pub const WHY_ORDINARY_LOSS: u8 = 17;
/// `SU_WHY_SSTHRESH`: the window has reached ssthresh.
pub const WHY_SSTHRESH: u8 = 25;
/// `SU_WHY_INITIAL_WINDOW`: a window is set, and the stack goes on with it.
const WHY_INITIAL_WINDOW: u8 = 1;
/// `SU_WHY_APP_LIMITED`: the data ended before the window did.
const WHY_APP_LIMITED: u8 = 11;
/// `SU_WHY_RESTART_WINDOW`: as the initial window, after a pause.
const WHY_RESTART_WINDOW: u8 = 18;

/// What a verdict says of the start-up's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing: it goes on, or there was none.
    None,
    /// The data ended first; the window stands for what comes next.
    Rests,
    /// The start-up leaves, with the verdict's reason.
    Left,
}

#[repr(C)]
pub(crate) struct NativeParam {
    name: *const c_char,
    unit: *const c_char,
    help: *const c_char,
    pub(crate) value: u32,
    pub(crate) min: u32,
    pub(crate) max: u32,
    reserved: u32,
}

#[repr(C)]
pub(crate) struct NativeStartup {
    name: *const c_char,
    source: *const c_char,
    params: *const NativeParam,
    param_count: usize,
    pub(crate) alg: u32,
    pub(crate) uses: u32,
}

#[repr(C)]
struct NativeWhy {
    text: *const c_char,
    help: *const c_char,
    number: u32,
    reserved: u32,
}

unsafe extern "C" {
    static su_native_startups: [NativeStartup; 0];
    static su_native_startup_count: usize;
    static su_native_whys: [NativeWhy; 0];
    static su_native_why_count: usize;

    pub(crate) fn su_native_step(
        alg: u32,
        state: *mut StateWords,
        params: *const ParamWords,
        path: *const Path,
        event: *const Event,
        verdict: *mut Verdict,
    );
    pub(crate) fn su_native_proof(alg: u32, state: *const StateWords, event: *const Event)
    -> Proof;
    fn su_native_pacing_is_over(event: *const Event, verdict: *const Verdict) -> u32;
    pub(crate) fn su_native_path_learn(
        path: *mut Path,
        params: *const MemoryWords,
        event: *const Event,
        proof: Proof,
    ) -> u32;
    pub(crate) fn su_native_path_recall(
        path: *mut Path,
        params: *const MemoryWords,
        event: *const Event,
    ) -> u32;
    static su_native_memory_params: [NativeParam; 0];
    static su_native_memory_param_count: usize;
}

/// A string of the C tables.
fn text(pointer: *const c_char) -> &'static str {
    // SAFETY: every pointer in the tables is a string literal of native.c: valid, terminated, for ever.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().unwrap_or("?")
}

pub(crate) fn native_startups() -> &'static [NativeStartup] {
    // SAFETY: native.c defines the constant array and its length together; both are immutable.
    unsafe {
        std::slice::from_raw_parts(
            (&raw const su_native_startups).cast(),
            su_native_startup_count,
        )
    }
}

pub(crate) fn native_memory_params() -> &'static [NativeParam] {
    // SAFETY: as for `native_startups`.
    unsafe {
        std::slice::from_raw_parts(
            (&raw const su_native_memory_params).cast(),
            su_native_memory_param_count,
        )
    }
}

fn native_whys() -> &'static [NativeWhy] {
    // SAFETY: as for `native_startups`.
    unsafe { std::slice::from_raw_parts((&raw const su_native_whys).cast(), su_native_why_count) }
}

impl NativeStartup {
    pub(crate) fn name(&self) -> &'static str {
        text(self.name)
    }

    pub(crate) fn source(&self) -> &'static str {
        text(self.source)
    }

    pub(crate) fn params(&self) -> &'static [NativeParam] {
        // SAFETY: native.c sets pointer and count from one array.
        unsafe { std::slice::from_raw_parts(self.params, self.param_count) }
    }
}

impl NativeParam {
    pub(crate) fn name(&self) -> &'static str {
        text(self.name)
    }

    pub(crate) fn unit(&self) -> &'static str {
        text(self.unit)
    }

    pub(crate) fn help(&self) -> &'static str {
        text(self.help)
    }
}

/// The name of a reason code in logs and JSON; `"?"` for a number that this build does not know.
pub fn why_name(why: u8) -> &'static str {
    native_whys()
        .iter()
        .find(|row| row.number == u32::from(why))
        .map_or("?", |row| text(row.text))
}

/// One line of explanation of a reason code.
pub fn why_help(why: u8) -> &'static str {
    native_whys()
        .iter()
        .find(|row| row.number == u32::from(why))
        .map_or("?", |row| text(row.help))
}
