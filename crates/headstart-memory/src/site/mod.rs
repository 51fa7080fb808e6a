//! The memory of a site (SPAND): what one server learns, the others know.
//!
//! A store, Valkey or Redis, holds the newest entry of each prefix, and in which order they changed. A thread of its
//! own brings them in and out. Nobody waits for it: connections ask the kernel's memory, which is there whether the
//! store is slow, full, empty or gone.

mod exchange;
mod link;
mod merge;
mod reading;
mod text;

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_core::MemoryParams;
use headstart_kernel::PrefixLengths;

pub use exchange::Local;
use exchange::{Exchange, ExchangeError};
use link::{Link, LinkError};
pub use link::{SiteUrl, SiteUrlError};
pub use reading::{SiteError, SitePaths};
use text::Limits;

/// How often the site is looked at.
const ROUND: Duration = Duration::from_secs(1);
/// A store that is not there is asked again after this time, twice that, and so on.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// A store that is full is told again after so many rounds.
const FULL_ROUNDS: u32 = 10;
/// Looking through a memory of a million paths takes longer than a round is to cost: no more than a twentieth of a
/// processor.
const LOOK_SHARE: u32 = 20;

/// How a memory is shared.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// The store.
    pub url: SiteUrl,
    /// The cap, the lifetime and the weights of this machine.
    pub params: MemoryParams,
    /// The prefix lengths that this machine asks for.
    pub lengths_v4: PrefixLengths,
    /// As `lengths_v4`, for IPv6.
    pub lengths_v6: PrefixLengths,
}

/// Where the sharing stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteState {
    /// Not asked yet.
    #[default]
    Connecting,
    /// What is learnt comes and goes.
    Shared,
    /// The store takes no more; what others told before still comes.
    Full,
    /// The store is not there, or does not answer in time.
    Unreachable,
    /// The store is there, and refuses.
    Refused,
}

impl SiteState {
    /// As status and log have it.
    pub fn name(self) -> &'static str {
        match self {
            SiteState::Connecting => "connecting",
            SiteState::Shared => "shared",
            SiteState::Full => "full",
            SiteState::Unreachable => "unreachable",
            SiteState::Refused => "refused",
        }
    }
}

/// What the sharing does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteStatus {
    /// Where it stands.
    pub state: SiteState,
    /// Why it is not shared.
    pub why: Option<String>,
    /// Paths told to the site.
    pub told: u64,
    /// Paths taken from the site.
    pub taken: u64,
    /// Of them, those with a value above a cap.
    pub capped: u64,
    /// What stood in the store and was no path.
    pub rejected: u64,
    /// The last of them, and why.
    pub last_rejected: Option<String>,
    /// How often the store was found empty that had not been.
    pub emptied: u64,
    /// Exchanges that went through.
    pub exchanges: u64,
    /// Exchanges that did not.
    pub failures: u64,
}

/// A memory that is shared, until this value is dropped.
#[derive(Debug)]
pub struct Site {
    status: Arc<Mutex<SiteStatus>>,
    // The thread ends when this is gone.
    _stop: Sender<()>,
}

impl Site {
    /// Begins to share `local`, from a thread of its own. What is wrong with the store is told by the status and the log
    /// alone.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn share(config: SiteConfig, local: impl Local + 'static) -> std::io::Result<Site> {
        let status = Arc::new(Mutex::new(SiteStatus::default()));
        let (stop, stopped) = channel();
        let limits = Limits::new(&config.params, config.lengths_v4, config.lengths_v6);
        let sharing = Sharing {
            exchange: Exchange::new(local, limits, origin()),
            url: config.url,
            link: None,
            status: Arc::clone(&status),
            retry: FIRST_RETRY,
            full_rounds: 0,
        };
        thread::Builder::new()
            .name("hs-site".to_owned())
            .spawn(move || sharing.work(&stopped))?;
        Ok(Site {
            status,
            _stop: stop,
        })
    }

    /// What it does.
    pub fn status(&self) -> SiteStatus {
        let status = self.status.lock();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A name that no other process of the site has.
fn origin() -> String {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let name: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    // Without /proc there would be no kernel's memory to share either.
    format!("{name}{}", std::process::id())
}

struct Sharing<L> {
    exchange: Exchange<L>,
    url: SiteUrl,
    link: Option<Link>,
    status: Arc<Mutex<SiteStatus>>,
    retry: Duration,
    full_rounds: u32,
}

impl<L: Local> Sharing<L> {
    fn work(mut self, stopped: &Receiver<()>) {
        loop {
            let done = self.round();
            let look = Duration::from_nanos(self.exchange.look_ns);
            let wait = match &done {
                Ok(true) => Duration::ZERO,
                Ok(false) => ROUND.max(look * LOOK_SHARE),
                Err(_) => self.retry,
            };
            self.tell(done);
            if !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }

    /// True: there is more to exchange.
    fn round(&mut self) -> Result<bool, ExchangeError> {
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(Link::connect(&self.url)?),
        };
        let more = self.exchange.pull(link)?;
        self.full_rounds = self.full_rounds.saturating_sub(1);
        if self.full_rounds > 0 {
            return Ok(more);
        }
        // What has not come in yet may be on top of what we would tell.
        Ok(more || self.exchange.push(link)?)
    }

    /// What the outcome of a round means for the next one.
    fn judge(&mut self, done: Result<bool, ExchangeError>) -> (SiteState, Option<String>) {
        let error = match done {
            Ok(_) if self.full_rounds > 0 => return (SiteState::Full, None),
            Ok(_) => {
                self.retry = FIRST_RETRY;
                return (SiteState::Shared, None);
            }
            Err(error) => error,
        };
        let why = Some(error.to_string());
        if let ExchangeError::Link(LinkError::Full(_)) = error {
            // The connection is good, and what others told can be read.
            self.full_rounds = FULL_ROUNDS;
            return (SiteState::Full, why);
        }
        // What it would say next may be the answer to what was asked before.
        self.link = None;
        self.retry = (self.retry * 2).min(LAST_RETRY);
        match error {
            ExchangeError::Link(LinkError::Unreachable(_)) => (SiteState::Unreachable, why),
            _ => (SiteState::Refused, why),
        }
    }

    /// Into status and log.
    fn tell(&mut self, done: Result<bool, ExchangeError>) {
        let (state, why) = self.judge(done);
        let counts = &self.exchange.counts;
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.rejected > 0 && status.rejected == 0 {
            let what = counts.last_rejected.as_deref().unwrap_or_default();
            tracing::warn!(
                "the shared memory {}: it holds what is no path: {what}",
                self.url
            );
        }
        if counts.emptied > status.emptied {
            tracing::warn!(
                "the shared memory {} was emptied; all is told again",
                self.url
            );
        }
        if state != status.state {
            match &why {
                Some(why) => tracing::warn!(
                    "the shared memory {}: {why}; what is known here goes on",
                    self.url
                ),
                None => tracing::info!("the shared memory {}: {}", self.url, state.name()),
            }
        }
        let failed = why.is_some();
        *status = SiteStatus {
            state,
            // Between two attempts to tell, a full store is full for the same reason.
            why: why.or_else(|| status.why.take().filter(|_| state == SiteState::Full)),
            told: counts.told,
            taken: counts.taken,
            capped: counts.capped,
            rejected: counts.rejected,
            last_rejected: counts.last_rejected.clone(),
            emptied: counts.emptied,
            exchanges: status.exchanges + u64::from(!failed),
            failures: status.failures + u64::from(failed),
        };
    }
}
