//! A server of a site: its memory without a kernel, and what the kernel would do to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstart_core::{MemoryParams, Path};
use headstart_kernel::{KernelError, Lesson, Prefix, PrefixLengths};
use headstart_memory::{Local, Site, SiteConfig, SiteState, SiteUrl};
use nix::time::{ClockId, clock_gettime};

use super::{Store, eventually};

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
    u64::try_from(Duration::from(now).as_nanos()).unwrap()
}

/// A server's memory without a kernel.
#[derive(Clone, Default)]
pub(crate) struct Table(Arc<Mutex<HashMap<Prefix, Lesson>>>);

impl Local for Table {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn look(&self, each: &mut dyn FnMut(Lesson)) -> Result<(), KernelError> {
        self.0.lock().unwrap().values().copied().for_each(each);
        Ok(())
    }

    fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
        Ok(self.0.lock().unwrap().get(&prefix).copied())
    }

    fn put(&self, lesson: &Lesson) -> Result<(), KernelError> {
        self.0.lock().unwrap().insert(lesson.prefix, *lesson);
        Ok(())
    }
}

pub(crate) struct Server<S = Site> {
    pub(crate) table: Table,
    pub(crate) site: S,
}

impl Server {
    pub(crate) fn of(store: &Store) -> Server {
        Server::at(SiteUrl::parse(&store.url(), None).unwrap())
    }

    pub(crate) fn at(url: SiteUrl) -> Server {
        Server::alone().joins(url, MemoryParams::default())
    }

    #[track_caller]
    pub(crate) fn gets_to_know(&self, prefix: &str, cwnd_pkts: u32) {
        let knows = eventually(|| self.window(prefix) == Some(cwnd_pkts));
        assert!(knows, "{:?}, {:?}", self.entry(prefix), self.site.status());
    }

    #[track_caller]
    pub(crate) fn gets_into(&self, state: SiteState) {
        let there = eventually(|| self.site.status().state == state);
        assert!(there, "{:?}", self.site.status());
    }
}

impl Server<()> {
    pub(crate) fn alone() -> Server<()> {
        Server {
            table: Table::default(),
            site: (),
        }
    }

    pub(crate) fn joins(self, url: SiteUrl, params: MemoryParams) -> Server {
        let config = SiteConfig {
            url,
            params,
            lengths_v4: PrefixLengths::new(vec![24, 32]),
            lengths_v6: PrefixLengths::new(vec![48]),
        };
        let site = Site::share(config, self.table.clone()).unwrap();
        Server {
            table: self.table,
            site,
        }
    }
}

impl<S> Server<S> {
    /// As the kernel does: at once, whatever the store does.
    pub(crate) fn learns(&self, prefix: &str, cwnd_pkts: u32) {
        self.learns_at(prefix, cwnd_pkts, now_ns());
    }

    pub(crate) fn learns_at(&self, prefix: &str, cwnd_pkts: u32, learnt_ns: u64) {
        let path = Path {
            cwnd_pkts,
            ssthresh_pkts: 50,
            srtt_us: 60_000,
            rttvar_us: 4_000,
            min_rtt_us: 50_000,
            rate_bytes_per_s: 1_000_000,
            ending_mpkts: cwnd_pkts * 1000,
            window_mean_mpkts: cwnd_pkts * 1000,
            min_rtt_mean_us: 50_000,
            samples: 1,
            ended: 2,
            ..Path::default()
        };
        let prefix = prefix.parse().unwrap();
        self.table
            .put(&Lesson {
                prefix,
                path,
                learnt_ns,
            })
            .unwrap();
    }

    /// As the kernel does where a start from memory fails.
    pub(crate) fn forgets(&self, prefix: &str) {
        let lesson = Lesson {
            prefix: prefix.parse().unwrap(),
            path: Path::default(),
            learnt_ns: now_ns(),
        };
        self.table.put(&lesson).unwrap();
    }

    /// How many it knows, those that were forgotten among them.
    pub(crate) fn paths(&self) -> usize {
        self.table.0.lock().unwrap().len()
    }

    pub(crate) fn entry(&self, prefix: &str) -> Option<Lesson> {
        self.table.get(prefix.parse().unwrap()).unwrap()
    }

    /// `None`: not known, or forgotten.
    pub(crate) fn window(&self, prefix: &str) -> Option<u32> {
        let entry = self.entry(prefix);
        entry
            .map(|lesson| lesson.path.cwnd_pkts)
            .filter(|pkts| *pkts > 0)
    }
}
