//! A server of a site: its memory without a kernel, and what the kernel would do to it.

use headstart_core::{MemoryParams, Path};
use headstart_kernel::{Lesson, LiveMemory, PrefixLengths};
use headstart_memory::{Local, Site, SiteConfig, SiteState, SiteUrl};

use super::table::Table;
use super::{Store, eventually};

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
        self.learns_at(prefix, cwnd_pkts, LiveMemory::now_ns());
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
            learnt_ns: LiveMemory::now_ns(),
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
