//! What is simulated, as plain data. `headstart-scenario` reads it from TOML; a program may build it.

use headstart_core::{MemoryParams, Path};
use headstart_link::{Distribution, LinkConfig, Span};
use headstart_scenario::{LateBody, Sizes, Traffic, Transport, Users};

use crate::network::Route;
use crate::runner::Runner;

/// A simulation but for its seed.
#[derive(Clone, Debug)]
pub struct SimSpec {
    /// The links, in the order of their numbers.
    pub links: Vec<LinkConfig>,
    /// Ways over the links.
    pub routes: Vec<Route>,
    /// Who sends what.
    pub groups: Vec<Group>,
    /// What is remembered of destinations at the start.
    pub memory: Vec<(u32, Path)>,
    /// How it is learnt.
    pub memory_params: MemoryParams,
    /// With the end of whose traffic it ends, by number of the group; empty: when nothing is left to do.
    pub ends_with: Vec<u32>,
    /// When it ends at the latest.
    pub until: Span,
    /// How far apart the samples of windows and queues are at least.
    pub sample_every: Span,
}

/// Senders and receivers of one kind.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name in the results.
    pub name: String,
    /// Which of the routes its packets take.
    pub route: u32,
    /// How its connections behave.
    pub transport: Transport,
    /// Who decides how they start.
    pub runner: Runner,
    /// Under which number its senders remember the path.
    pub destination: u32,
    /// What each user's or each fresh connection's path adds to the round trip, half of it each way.
    pub extra_rtt: Option<Distribution<Span>>,
    /// Whether the application tells the start-up the size of each transfer.
    pub hints: bool,
    /// What leaves first of each transfer, in a segment of its own: a server's status line and headers,
    /// written before the body. 0: nothing.
    pub head_bytes: u16,
    /// How the application writes each transfer, if not at once.
    pub late_body: Option<LateBody>,
    /// What it asks for.
    pub traffic: Traffic,
}

/// A simulation that cannot be, with what to change.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A queue that cannot be.
    #[error("link {link}: {cause}")]
    Queue {
        /// Its number.
        link: usize,
        /// What is wrong with it.
        cause: headstart_link::QueueSpecError,
    },
    /// A route over a link that is not there, or a group over such a route.
    #[error("{what} {number} of {place} is not there: there are {count}")]
    NotThere {
        /// `link` or `route`.
        what: &'static str,
        /// Its number.
        number: u32,
        /// What refers to it.
        place: String,
        /// How many there are.
        count: usize,
    },
    /// A number out of its range.
    #[error("group \"{group}\": {key} is {value}; give {range}")]
    Range {
        /// The group.
        group: String,
        /// What.
        key: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
    /// Packets that take no time at all would go round for ever.
    #[error(
        "group \"{group}\": its route has no link and its paths no delay in the {way} direction; \
         give a link or extra_rtt"
    )]
    NoDelay {
        /// The group.
        group: String,
        /// `forward` or `reverse`.
        way: &'static str,
    },
}

impl SimSpec {
    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// What is wrong, and what to change.
    pub fn check(&self) -> Result<(), SimError> {
        for (number, link) in self.links.iter().enumerate() {
            let checked = link.queue.check();
            checked.map_err(|cause| SimError::Queue {
                link: number,
                cause,
            })?;
        }
        for (number, route) in self.routes.iter().enumerate() {
            for link in route.forward.iter().chain(&route.reverse) {
                if *link as usize >= self.links.len() {
                    return Err(SimError::NotThere {
                        what: "link",
                        number: *link,
                        place: format!("route {number}"),
                        count: self.links.len(),
                    });
                }
            }
        }
        self.groups
            .iter()
            .try_for_each(|group| self.check_group(group))
    }

    fn check_group(&self, group: &Group) -> Result<(), SimError> {
        let range = |key, value, range| {
            let group = group.name.clone();
            Err(SimError::Range {
                group,
                key,
                value,
                range,
            })
        };
        let Some(route) = self.routes.get(group.route as usize) else {
            return Err(SimError::NotThere {
                what: "route",
                number: group.route,
                place: format!("group \"{}\"", group.name),
                count: self.routes.len(),
            });
        };
        if group.extra_rtt.is_none() {
            for (way, links) in [("forward", &route.forward), ("reverse", &route.reverse)] {
                if links.is_empty() {
                    let group = group.name.clone();
                    return Err(SimError::NoDelay { group, way });
                }
            }
        }
        let transport = &group.transport;
        let mss = u64::from(transport.mss_bytes);
        if !(1..=60_000).contains(&mss) {
            return range("mss_bytes", mss, "1 to 60000");
        }
        let header = u64::from(transport.header_bytes);
        if header > 1000 {
            return range("header_bytes", header, "0 to 1000");
        }
        if transport.initial_window_pkts == 0 {
            return range("initial_window_pkts", 0, "at least 1");
        }
        if transport.dupthresh == 0 {
            return range("dupthresh", 0, "at least 1");
        }
        match &group.traffic {
            Traffic::Users(users) if users.users == 0 => range("users", 0, "at least 1"),
            Traffic::Users(users) if users.parallel == 0 => range("parallel", 0, "at least 1"),
            Traffic::Users(Users {
                bytes: Sizes::InTurn(sizes),
                ..
            }) if sizes.is_empty() => range("sizes", 0, "at least one"),
            Traffic::Arrivals(arrivals) if arrivals.connections == Some(0) => {
                range("connections", 0, "at least 1")
            }
            Traffic::Users(_) | Traffic::Arrivals(_) => Ok(()),
        }
    }
}
