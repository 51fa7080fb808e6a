//! One look at the site: what others learnt comes in, what was learnt here goes out.

use std::collections::{HashMap, HashSet};

use headstart_kernel::{KernelError, Lesson, LiveMemory, PathEntry, Prefix};

use super::link::{Link, LinkError, Teller, Telling};
use super::merge::{Merged, SLACK_NS, merge};
use super::text::{Incoming, Limits, read, write};

/// So many paths go in one message, 100 KB at the most: the store is held for some milliseconds.
const BATCH: usize = 500;
/// So many messages each way make one exchange.
const MOST_BATCHES: usize = 64;
/// So many lessons are held in memory to be told; the rest is looked up again.
const MOST_WAITING: usize = BATCH * MOST_BATCHES;

/// The memory of this machine that is shared.
pub trait Local: Send {
    /// Now, by the clock of [`Lesson::learnt_ns`].
    fn now_ns(&self) -> u64;
    /// Every entry, also those that say that a path was forgotten, in no order.
    ///
    /// # Errors
    /// When it cannot be read.
    fn look(&self, each: &mut dyn FnMut(Lesson)) -> Result<(), KernelError>;
    /// The entry of a prefix.
    ///
    /// # Errors
    /// When it cannot be read.
    fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError>;
    /// Writes an entry as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    fn put(&self, lesson: &Lesson) -> Result<(), KernelError>;
}

impl Local for LiveMemory {
    fn now_ns(&self) -> u64 {
        LiveMemory::now_ns()
    }

    fn look(&self, each: &mut dyn FnMut(Lesson)) -> Result<(), KernelError> {
        LiveMemory::look(self, each)
    }

    fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
        LiveMemory::get(self, prefix)
    }

    fn put(&self, lesson: &Lesson) -> Result<(), KernelError> {
        LiveMemory::put(self, lesson)
    }
}

/// Why an exchange ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Local(#[from] KernelError),
}

/// What was exchanged since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) told: u64,
    pub(crate) taken: u64,
    pub(crate) capped: u64,
    pub(crate) rejected: u64,
    pub(crate) emptied: u64,
    pub(crate) last_rejected: Option<String>,
}

/// What of ours has been told: all that was learnt before this moment, and at this moment all up to this prefix.
type Mark = (u64, Option<Prefix>);

pub(crate) struct Exchange<L> {
    local: L,
    limits: Limits,
    /// Names this process to the others.
    origin: String,
    /// Of the store; empty: nothing has been told to it.
    epoch: String,
    /// The last change that we have seen.
    seen: String,
    told: Mark,
    /// Everything that the store has comes in for the first time: it was told on top of what we have, or we have
    /// it from there.
    joining: bool,
    /// What came from there, and is not to be told back.
    came: HashMap<Prefix, u64>,
    /// Told, and not taken: another had changed them since we looked.
    unsettled: HashSet<Prefix>,
    /// How long the last look through our own memory took.
    pub(crate) look_ns: u64,
    pub(crate) counts: Counts,
}

impl<L: Local> Exchange<L> {
    pub(crate) fn new(local: L, limits: Limits, origin: String) -> Exchange<L> {
        Exchange {
            local,
            limits,
            origin,
            epoch: String::new(),
            seen: "0".to_owned(),
            told: (0, None),
            joining: true,
            came: HashMap::new(),
            unsettled: HashSet::new(),
            look_ns: 0,
            counts: Counts::default(),
        }
    }

    /// Takes what others learnt. True: there is more.
    pub(crate) fn pull(&mut self, link: &mut Link) -> Result<bool, ExchangeError> {
        for _ in 0..MOST_BATCHES {
            let changes = link.pull(&self.epoch, &self.seen, BATCH)?;
            if changes.epoch != self.epoch {
                self.begin_anew(&changes.epoch);
            }
            self.seen = changes.last;
            for (prefix, text) in &changes.entries {
                self.take(prefix, text, changes.now_us)?;
            }
            if changes.entries.len() < BATCH {
                self.joining = false;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The store was emptied, or is one that we do not know: all that is known here is told again.
    fn begin_anew(&mut self, epoch: &str) {
        // What comes into a store that was empty when we looked was learnt beside what we have not told yet.
        if !self.epoch.is_empty() {
            self.counts.emptied += 1;
            self.joining = true;
        }
        epoch.clone_into(&mut self.epoch);
        "0".clone_into(&mut self.seen);
        self.told = (0, None);
        self.came.clear();
        self.unsettled.clear();
    }

    fn take(&mut self, prefix: &[u8], text: &[u8], store_us: u64) -> Result<(), ExchangeError> {
        let (prefix, path, origin, capped) = match read(prefix, text, store_us, &self.limits) {
            Incoming::Unwanted => return Ok(()),
            Incoming::Garbage(why) => {
                self.counts.rejected += 1;
                let shown = String::from_utf8_lossy(prefix);
                self.counts.last_rejected = Some(format!("{:?}: {why}", shown.as_ref()));
                return Ok(());
            }
            Incoming::Entry {
                prefix,
                path,
                origin,
                capped,
            } => (prefix, path, origin, capped),
        };
        // Our own comes back once; after a restart what we told before is another's.
        if origin == self.origin {
            return Ok(());
        }
        let theirs = Lesson::of(&PathEntry { prefix, path }, self.local.now_ns());
        let ours = self.local.get(prefix)?;
        let told = ours
            .as_ref()
            .is_none_or(|ours| self.joining || !self.is_news(ours));
        match merge(ours.as_ref(), told, &theirs, self.limits.spread_gain_pct) {
            Merged::Keep => return Ok(()),
            Merged::Take(lesson) => {
                self.local.put(&lesson)?;
                self.unsettled.remove(&prefix);
                if lesson.learnt_ns >= self.told.0 {
                    self.came.insert(prefix, lesson.learnt_ns);
                }
            }
            Merged::Tell(lesson) => {
                self.local.put(&lesson)?;
                self.came.remove(&prefix);
                self.unsettled.insert(prefix);
            }
        }
        self.counts.taken += 1;
        self.counts.capped += u64::from(capped);
        Ok(())
    }

    /// Whether it was learnt here, and has not been told.
    fn is_news(&self, lesson: &Lesson) -> bool {
        self.unsettled.contains(&lesson.prefix)
            || (lesson.learnt_ns, Some(lesson.prefix)) > self.told
                && self.came.get(&lesson.prefix) != Some(&lesson.learnt_ns)
    }

    /// Tells what was learnt here since the last time, the oldest first. True: there is more.
    pub(crate) fn push(&mut self, link: &mut Link) -> Result<bool, ExchangeError> {
        let looked_ns = self.local.now_ns();
        let oldest_ns = looked_ns.saturating_sub(self.limits.lifetime_us.saturating_mul(1000));
        let mut waiting: Vec<Lesson> = Vec::new();
        let mut more = false;
        self.local.look(&mut |lesson| {
            let of_this_time = (oldest_ns..=looked_ns).contains(&lesson.learnt_ns);
            if of_this_time && self.limits.wants(&lesson.prefix) && self.is_news(&lesson) {
                waiting.push(lesson);
                if waiting.len() == 2 * MOST_WAITING {
                    keep_oldest(&mut waiting);
                    more = true;
                }
            }
        })?;
        self.look_ns = self.local.now_ns().saturating_sub(looked_ns);
        if waiting.len() > MOST_WAITING {
            keep_oldest(&mut waiting);
            more = true;
        }
        waiting.sort_unstable_by_key(|lesson| (lesson.learnt_ns, lesson.prefix));
        for batch in waiting.chunks(BATCH) {
            if !self.tell(link, batch)? {
                return Ok(true);
            }
        }
        if !more {
            self.told = (looked_ns + 1, None);
        }
        let told_ns = self.told.0;
        self.came.retain(|_, learnt_ns| *learnt_ns >= told_ns);
        // What another changed meanwhile comes in with the next look, and is told then.
        Ok(more || !self.unsettled.is_empty())
    }

    /// False: the store is not the one that we knew.
    fn tell(&mut self, link: &mut Link, batch: &[Lesson]) -> Result<bool, ExchangeError> {
        let now_ns = self.local.now_ns();
        let tellings: Vec<Telling> = batch
            .iter()
            .map(|lesson| Telling {
                prefix: lesson.prefix.to_string(),
                age_us: lesson.entry(now_ns).path.age_us,
                forgotten: lesson.is_forgotten(),
                text: write(&self.origin, &lesson.path),
            })
            .collect();
        // A new epoch is called after who began it, and when.
        let new_epoch = format!("{}-{now_ns}", self.origin);
        let teller = Teller {
            name: &self.origin,
            epoch: &self.epoch,
            new_epoch: &new_epoch,
            seen: &self.seen,
            lifetime_us: self.limits.lifetime_us,
            slack_us: SLACK_NS / 1000,
        };
        let (epoch, unseen) = link.push(&teller, &tellings)?;
        if epoch != self.epoch {
            let ours = epoch == new_epoch && self.epoch.is_empty();
            self.begin_anew(&epoch);
            // Another's, which began since we looked, or ours in the place of one that is gone: all is told again.
            if !ours {
                return Ok(false);
            }
        }
        for lesson in batch {
            self.unsettled.remove(&lesson.prefix);
        }
        let unseen = unseen.iter().filter_map(|place| batch.get(*place));
        self.unsettled.extend(unseen.map(|lesson| lesson.prefix));
        self.counts.told += batch.len() as u64;
        if let Some(last) = batch.last() {
            // What is unsettled may be older than what was told before.
            self.told = self.told.max((last.learnt_ns, Some(last.prefix)));
        }
        Ok(true)
    }
}

fn keep_oldest(lessons: &mut Vec<Lesson>) {
    lessons.select_nth_unstable_by_key(MOST_WAITING, |lesson| (lesson.learnt_ns, lesson.prefix));
    lessons.truncate(MOST_WAITING);
}
