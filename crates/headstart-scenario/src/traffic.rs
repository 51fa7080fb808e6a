//! `[[traffic]]`: who asks for what in a simulation, and when.

use headstart_link::{Distribution, LinkConfig, Span};

use crate::{ByteSize, Count, Listed, Transport};

/// A transfer without end: a bulk flow.
pub const ENDLESS: ByteSize = ByteSize::from_bytes(1 << 62);

/// What is asked for, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Users who ask for page after page and think in between (closed loop). One page of one endless
    /// object is a bulk flow; many pages of one object over one connection are bursts with gaps.
    Users(Users),
    /// Transfers that come whatever became of those before (open loop).
    Arrivals(Arrivals),
}

/// Closed-loop traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// How many there are.
    pub users: u32,
    /// When the first page of a user is asked for.
    pub start: Distribution<Span>,
    /// How much later than the user before; added to `start`.
    pub stagger: Span,
    /// How many pages each asks for; `None`: without end.
    pub pages: Option<u32>,
    /// Objects of a page.
    pub objects: Distribution<Count>,
    /// Whether the first object has to be there before the others are asked for.
    pub index_first: bool,
    /// The size of an object.
    pub bytes: Sizes,
    /// Connections of a user at once.
    pub parallel: u8,
    /// Whether they are kept for the next page.
    pub persistent: bool,
    /// From the end of a page to the request for the next.
    pub think: Distribution<Span>,
}

/// Sizes of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// By lot.
    Drawn(Distribution<ByteSize>),
    /// These, one after the other, and then again.
    InTurn(Vec<ByteSize>),
}

/// Open-loop traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// When the first gap begins.
    pub start: Span,
    /// How many transfers; `None`: without end.
    pub transfers: Option<u64>,
    /// From one transfer to the next; exponential: a Poisson process.
    pub gap: Distribution<Span>,
    /// The size of a transfer.
    pub bytes: Distribution<ByteSize>,
    /// Over how many lasting connections, in turn; `None`: each over its own.
    pub connections: Option<u32>,
}

/// A server that has the beginning of its answer at once, and the rest later: a page's head, written before the
/// back end has made its body (IW10 paper, section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateBody {
    /// How much is there at once; of a smaller transfer, all.
    pub head: Distribution<ByteSize>,
    /// How long after it the rest is.
    pub after: Distribution<Span>,
}

impl Users {
    /// One bulk flow that starts then.
    pub fn bulk(start: Span) -> Users {
        Users {
            users: 1,
            start: Distribution::fixed(start),
            stagger: Span::ZERO,
            pages: Some(1),
            objects: Distribution::fixed(Count(1)),
            index_first: false,
            bytes: Sizes::Drawn(Distribution::fixed(ENDLESS)),
            parallel: 1,
            persistent: true,
            think: Distribution::fixed(Span::ZERO),
        }
    }
}

/// One `[[traffic]]` of a scenario: senders and receivers of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficGroup {
    /// Its name in the results.
    pub name: String,
    /// Under which start-up it runs always; `None`: under each that is compared.
    pub startup: Option<Listed>,
    /// The links that its data crosses, by their numbers in [`SimTables::links`].
    pub route: Vec<u32>,
    /// The links that its acknowledgements cross.
    pub reverse_route: Vec<u32>,
    /// What each user's or each fresh connection's path adds to the round trip.
    pub extra_rtt: Option<Distribution<Span>>,
    /// Under which number its senders remember the path.
    pub destination: u32,
    /// Whether the application tells a start-up the size of each transfer.
    pub hints: bool,
    /// How the application writes each transfer, if not at once.
    pub late_body: Option<LateBody>,
    /// How its connections behave.
    pub transport: Transport,
    /// What it asks for.
    pub traffic: Traffic,
}

/// How the last connection to a destination stood at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEnding {
    /// In slow start: the window was at least so large.
    SlowStart,
    /// In congestion avoidance: the window was found.
    Avoidance,
    /// While a loss was being repaired.
    Recovery,
}

/// What senders remember of a destination when a run begins: one `[[memory]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// Number of the destination.
    pub destination: u32,
    /// The last window that got through without loss, in packets.
    pub window_pkts: u32,
    /// The threshold then, in packets.
    pub ssthresh_pkts: u32,
    /// Round-trip time of the empty path.
    pub rtt: Span,
    /// Smoothed round-trip time, and its variance.
    pub srtt: Span,
    /// As above.
    pub rttvar: Span,
    /// How long ago it was learnt.
    pub age: Span,
    /// How the connection stood that taught it.
    pub ended: PathEnding,
}

/// What a scenario says for the simulator alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimTables {
    /// Of the connections of the cases.
    pub transport: Transport,
    /// Whether `HyStart` ends the slow start of CUBIC, as in Linux.
    pub hystart: bool,
    /// The links by name; the first two are those of `[path]`, called forward and reverse.
    pub links: Vec<(String, LinkConfig)>,
    /// Who sends what.
    pub traffic: Vec<TrafficGroup>,
    /// When a run ends at the latest.
    pub until: Span,
    /// How far apart samples of windows and queues are at least.
    pub sample_every: Span,
    /// The most by which the hosts of a case delay a packet each way; `None`: as the simulator has it.
    pub host_jitter: Option<Span>,
    /// The traffic with whose end a run ends, by its place in `traffic`; empty: all of it.
    pub ends_with: Vec<u32>,
    /// What is remembered of destinations at the start of a run of traffic.
    pub memory: Vec<KnownPath>,
    /// Parameters of the path memory, each `NAME=VALUE`.
    pub memory_params: Vec<String>,
}
