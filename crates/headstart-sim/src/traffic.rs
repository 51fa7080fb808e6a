//! Who asks for what, and when: users who think, and arrivals that do not wait.

use headstart_link::{Distribution, Draws, Span};

use crate::connection::{Late, Order};
use crate::spec::Group;
use headstart_scenario::{Arrivals, LateBody, Sizes, Traffic, Users};

/// The streams of the generator: one for each purpose, so that what is drawn for one does not shift
/// the others, and the same work is asked for whatever the start-ups make of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Traffic = 1,
    Paths = 2,
    Links = 3,
}

/// The number of the stream of `who` in group `group`.
pub(crate) fn stream(purpose: Purpose, group: usize, who: u64) -> u64 {
    (purpose as u64) << 60 | (group as u64) << 40 | (who & ((1 << 40) - 1))
}

/// A user of a closed loop.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) group: u32,
    pub(crate) draws: Draws,
    /// Pages still to be asked for; `None`: without end.
    pub(crate) pages_left: Option<u32>,
    /// Objects of the page that are not yet asked for.
    pub(crate) objects_left: u64,
    /// Objects asked for so far.
    pub(crate) asked: usize,
    /// Connections that carry one.
    pub(crate) busy: u32,
    /// The first object is on its way, and the others wait for it.
    pub(crate) index: bool,
    /// The connections that it has; those that carry nothing first.
    pub(crate) idle_conns: Vec<u32>,
}

/// The arrivals of an open loop.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) group: u32,
    pub(crate) draws: Draws,
    pub(crate) left: Option<u64>,
    pub(crate) next_conn: u32,
    /// The lasting connections, once they are there.
    pub(crate) conns: Vec<u32>,
}

/// Someone with a place in the timetable.
#[derive(Debug)]
pub(crate) enum Actor {
    User(User),
    Arriving(Arriving),
}

impl Actor {
    pub(crate) fn group(&self) -> u32 {
        match self {
            Actor::User(user) => user.group,
            Actor::Arriving(arriving) => arriving.group,
        }
    }
}

/// All actors of a run, and when each first has something to do.
pub(crate) fn actors(groups: &[Group], seed: u64) -> Vec<(u64, Actor)> {
    let mut actors = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let group_number = u32::try_from(number).unwrap_or(u32::MAX);
        match &group.traffic {
            Traffic::Users(users) => {
                for index in 0..users.users {
                    let mut draws =
                        Draws::new(seed, stream(Purpose::Traffic, number, u64::from(index)));
                    let start_ns = users.start.sample(&mut draws).as_ns();
                    let late_ns = users.stagger.as_ns().saturating_mul(u64::from(index));
                    let user = User {
                        group: group_number,
                        draws,
                        pages_left: users.pages,
                        objects_left: 0,
                        asked: 0,
                        busy: 0,
                        index: false,
                        idle_conns: Vec::new(),
                    };
                    actors.push((start_ns.saturating_add(late_ns), Actor::User(user)));
                }
            }
            Traffic::Arrivals(arrivals) => {
                let mut draws = Draws::new(seed, stream(Purpose::Traffic, number, 0));
                let first_ns = arrivals
                    .start
                    .as_ns()
                    .saturating_add(next_gap_ns(&arrivals.gap, &mut draws));
                let arriving = Arriving {
                    group: group_number,
                    draws,
                    left: arrivals.transfers,
                    next_conn: 0,
                    conns: Vec::new(),
                };
                actors.push((first_ns, Actor::Arriving(arriving)));
            }
        }
    }
    actors
}

/// At least 1 ns, so that time goes on.
pub(crate) fn next_gap_ns(gap: &Distribution<Span>, draws: &mut Draws) -> u64 {
    gap.sample(draws).as_ns().max(1)
}

/// A transfer of `bytes`, written as `late_body` says. Only what is drawn for it shifts the stream.
fn order(bytes: u64, late_body: Option<&LateBody>, draws: &mut Draws) -> Order {
    let late = late_body.map(|late_body| Late {
        head_bytes: late_body.head.sample(draws).bytes().max(1),
        after_ns: late_body.after.sample(draws).as_ns(),
    });
    Order { bytes, late }
}

impl User {
    /// Another page begins. False when there is none any more.
    pub(crate) fn begin_page(&mut self, users: &Users) -> bool {
        match &mut self.pages_left {
            Some(0) => return false,
            Some(left) => *left -= 1,
            None => {}
        }
        self.objects_left = users.objects.sample(&mut self.draws).0.max(1);
        self.index = users.index_first && self.objects_left > 1;
        true
    }

    /// The next object, if one may be asked for now.
    pub(crate) fn next_object(
        &mut self,
        users: &Users,
        late_body: Option<&LateBody>,
    ) -> Option<Order> {
        let most = if self.index {
            1
        } else {
            u32::from(users.parallel)
        };
        if self.objects_left == 0 || self.busy >= most {
            return None;
        }
        self.objects_left -= 1;
        self.busy += 1;
        let size = match &users.bytes {
            Sizes::Drawn(sizes) => sizes.sample(&mut self.draws),
            Sizes::InTurn(sizes) => sizes[self.asked % sizes.len()],
        };
        self.asked += 1;
        Some(order(size.bytes().max(1), late_body, &mut self.draws))
    }

    /// An object has come. True when it was the last of its page.
    pub(crate) fn object_came(&mut self) -> bool {
        self.busy -= 1;
        self.index = false;
        self.objects_left == 0 && self.busy == 0
    }
}

impl Arriving {
    /// The next transfer, and how long until the one after it, in ns. `None`: no more come.
    pub(crate) fn next(
        &mut self,
        arrivals: &Arrivals,
        late_body: Option<&LateBody>,
    ) -> Option<(Order, u64)> {
        match &mut self.left {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        let bytes = arrivals.bytes.sample(&mut self.draws).bytes().max(1);
        let order = order(bytes, late_body, &mut self.draws);
        let gap_ns = match self.left {
            Some(0) => u64::MAX,
            _ => next_gap_ns(&arrivals.gap, &mut self.draws),
        };
        Some((order, gap_ns))
    }
}
