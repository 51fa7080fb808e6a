//! The path memory beside the kernel's: on disk, and shared with the site. Each has a thread of its own; the kernel's
//! memory answers connections whatever they do.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use headstart_kernel::{Kernel, KernelError, LiveMemory, MemoryOptions, PathEntry};
use headstart_memory::{Now, Site, SiteConfig, SiteState, SiteStatus, Store};

use crate::config::MemoryConfig;
use crate::protocol::{MemoryStatus, SiteReport};

/// How often the paths are counted, at the most.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// What a kill -9 can lose at the most.
const SAVE_EVERY: Duration = Duration::from_secs(30);
/// Going through a million paths takes time: no more than a twentieth of a processor, each.
const SHARE: u32 = 20;

/// How long to wait after what took so long, `usual` at the least.
fn rest(usual: Duration, took_ns: u64) -> Duration {
    usual.max(Duration::from_nanos(took_ns) * SHARE)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What the thread has done.
#[derive(Debug, Default)]
struct Done {
    paths_known: u64,
    saved_ns: Option<u64>,
    error: Option<String>,
    /// What has not been told yet.
    news: Vec<String>,
}

pub(crate) struct Memory {
    config: MemoryConfig,
    store: Option<Store>,
    done: Arc<Mutex<Done>>,
    saver: Option<(Sender<()>, JoinHandle<()>)>,
    site: Option<Site>,
}

impl Memory {
    /// How the kernel is to remember.
    pub(crate) fn options(config: &MemoryConfig) -> MemoryOptions {
        MemoryOptions {
            params: config.params,
            max_entries: config.max_paths,
            ..MemoryOptions::default()
        }
    }

    /// Takes what was saved into the kernel. A file that cannot be used is told, and the memory begins empty.
    pub(crate) fn load(config: &MemoryConfig, kernel: &Kernel) -> Memory {
        let mut memory = Memory {
            config: config.clone(),
            store: None,
            done: Arc::default(),
            saver: None,
            site: None,
        };
        let Some(file) = &config.file else {
            return memory;
        };
        let opened = Store::open(file).and_then(|store| {
            let entries = store.load(&Now::here())?;
            memory.store = Some(store);
            Ok(entries)
        });
        match opened {
            Ok(entries) => {
                if let Err(error) = remember(kernel, entries) {
                    memory.done().fails(&error);
                }
            }
            Err(error) => memory.done().fails(&error),
        }
        memory
    }

    /// Begins to save and to share.
    pub(crate) fn start(&mut self, kernel: &Kernel) -> Result<(), String> {
        let live = || kernel.path_memory().map_err(|error| error.to_string());
        let (stop, stopped) = channel();
        let saver = Saver {
            memory: live()?,
            store: self.store.take(),
            done: Arc::clone(&self.done),
        };
        let thread = thread::Builder::new().name("hs-memory".to_owned());
        let thread = thread.spawn(move || saver.work(&stopped));
        self.saver = Some((stop, thread.map_err(|error| error.to_string())?));
        if let Some(url) = self.config.site.clone() {
            let usual = MemoryOptions::default();
            let config = SiteConfig {
                url,
                params: self.config.params,
                lengths_v4: usual.lengths_v4,
                lengths_v6: usual.lengths_v6,
            };
            let site = Site::share(config, live()?).map_err(|error| error.to_string())?;
            self.site = Some(site);
        }
        Ok(())
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The errors since the last time.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.done().news)
    }

    pub(crate) fn paths_known(&self) -> u64 {
        self.done().paths_known
    }

    pub(crate) fn status(&self) -> MemoryStatus {
        let done = self.done();
        let site = self.site.as_ref().zip(self.config.site.as_ref());
        MemoryStatus {
            file: self
                .config
                .file
                .as_ref()
                .map(|file| file.display().to_string()),
            saved_age_s: done
                .saved_ns
                .map(|at_ns| LiveMemory::now_ns().saturating_sub(at_ns) / 1_000_000_000),
            error: done.error.clone(),
            max_paths: self.config.max_paths,
            site: site.map(|(site, url)| report(url.to_string(), site.status())),
        }
    }

    /// Saves for the last time.
    pub(crate) fn finish(&mut self) {
        self.site = None;
        if let Some((stop, thread)) = self.saver.take() {
            drop(stop);
            // A panic there has been written to the log.
            let _ = thread.join();
        }
    }
}

impl Done {
    fn fails(&mut self, error: &dyn std::fmt::Display) {
        let text = error.to_string();
        if self.error.as_deref() != Some(&text) {
            self.news.push(text.clone());
        }
        self.error = Some(text);
    }
}

/// Where there is less room than was saved, the newest stay.
fn remember(kernel: &Kernel, mut entries: Vec<PathEntry>) -> Result<(), KernelError> {
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.path.age_us));
    entries.iter().try_for_each(|entry| kernel.remember(entry))
}

fn report(url: String, status: SiteStatus) -> SiteReport {
    SiteReport {
        url,
        state: status.state.name().to_owned(),
        shared: status.state == SiteState::Shared,
        why: status.why,
        told: status.told,
        taken: status.taken,
        capped: status.capped,
        rejected: status.rejected,
        last_rejected: status.last_rejected,
        emptied: status.emptied,
        failures: status.failures,
    }
}

struct Saver {
    memory: LiveMemory,
    store: Option<Store>,
    done: Arc<Mutex<Done>>,
}

impl Saver {
    fn work(mut self, stopped: &Receiver<()>) {
        let mut next_save_ns = LiveMemory::now_ns() + nanos(SAVE_EVERY);
        loop {
            let began_ns = LiveMemory::now_ns();
            self.count();
            let counted_ns = LiveMemory::now_ns();
            if counted_ns >= next_save_ns {
                self.save();
                let saved_ns = LiveMemory::now_ns();
                next_save_ns =
                    saved_ns + nanos(rest(SAVE_EVERY, saved_ns.saturating_sub(counted_ns)));
            }
            let wait = rest(COUNT_EVERY, counted_ns.saturating_sub(began_ns));
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return self.save();
            }
        }
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) {
        let mut count = 0;
        let looked = self
            .memory
            .look(|lesson| count += u64::from(!lesson.is_forgotten()));
        let mut done = self.done();
        match looked {
            Ok(()) => done.paths_known = count,
            Err(error) => done.fails(&error),
        }
    }

    /// A save that fails leaves the file as it was.
    fn save(&mut self) {
        let Some(store) = self.store.as_mut() else {
            return;
        };
        let saved = self
            .memory
            .paths()
            .map_err(|error| error.to_string())
            .and_then(|paths| {
                let saved = store.save(&paths, &Now::here());
                saved.map_err(|error| error.to_string())
            });
        let mut done = self.done();
        match saved {
            Ok(()) => {
                done.saved_ns = Some(LiveMemory::now_ns());
                done.error = None;
            }
            Err(error) => done.fails(&error),
        }
    }
}
