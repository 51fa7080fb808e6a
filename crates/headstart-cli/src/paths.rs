//! `headstart paths`: what is remembered of paths.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use headstart_core::INFINITE_SSTHRESH;
use headstart_kernel::{LiveMemory, PathEntry, Prefix};
use headstart_memory::{Now, SitePaths, SiteUrl, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::memory::file_of;
use crate::output::{self, Table};

/// Show, forget, export and import what is remembered of paths.
///
/// While a headstart runs it is the memory in the kernel, which all of them share; otherwise the saved one.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart paths list
  headstart paths show 10.77.1.2         the entry that answers for this address, in full
  headstart paths forget 10.77.0.0/16    also all that lies in it
  headstart paths export > paths.json; headstart paths import paths.json
  headstart paths list --url redis://:PASSWORD@10.0.0.9/0     what the site knows")]
pub(crate) struct PathsArgs {
    #[command(subcommand)]
    verb: Verb,
    /// The saved memory.
    #[arg(long, value_name = "FILE", global = true)]
    memory: Option<PathBuf>,
    /// The memory of a site, to list, show or export it: redis://[:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS.
    #[arg(long, value_name = "URL", global = true, conflicts_with = "memory")]
    url: Option<String>,
    /// Who may vouch for the certificate of the site's store (PEM); default: the system's.
    #[arg(long, value_name = "FILE", global = true, requires = "url")]
    authorities: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// One line an entry.
    List,
    /// The entry that answers for an address, or that of a prefix.
    Show {
        /// 10.77.1.2, 10.77.1.0/24 or local-network.
        #[arg(value_name = "PREFIX")]
        prefix: Prefix,
    },
    /// Forget a prefix and all that lies in it.
    Forget {
        /// 10.77.1.2, 10.77.1.0/24 or local-network.
        #[arg(value_name = "PREFIX", required_unless_present = "all")]
        prefix: Option<Prefix>,
        /// Forget everything.
        #[arg(long, conflicts_with = "prefix")]
        all: bool,
    },
    /// Print everything as JSON, for import.
    Export,
    /// Take up what was exported; what is known of the same prefixes is replaced.
    Import {
        /// A file that export wrote; `-` is standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: u32,
    verb: String,
    /// `live`, `saved` or `site`.
    source: String,
    paths: Vec<PathEntry>,
}

/// The memory that the verb works on. Changes of a live one are made in the saved one too: a kill before the next
/// save is not to bring back what was forgotten.
struct Memory {
    live: Option<LiveMemory>,
    saved: Option<Store>,
    file: Option<PathBuf>,
    site: Option<SiteUrl>,
}

impl Memory {
    fn open(args: &PathsArgs) -> Result<Memory, Failure> {
        if let Some(url) = &args.url {
            return Memory::of_site(url, args);
        }
        // --memory FILE asks for that file, whatever runs.
        let live = match args.memory {
            None => LiveMemory::find(),
            Some(_) => None,
        };
        let file = file_of(args.memory.as_ref());
        let saved = file.as_deref().map(Store::open_existing).transpose();
        let saved = match saved {
            Ok(saved) => saved.flatten(),
            Err(error) if live.is_some() => {
                tracing::warn!("{error}");
                None
            }
            Err(error) => return Err(Failure::Run(error.into())),
        };
        Ok(Memory {
            live,
            saved,
            file,
            site: None,
        })
    }

    /// Its servers would tell again what was forgotten there, and take what was imported for a lesson of the path.
    fn of_site(url: &str, args: &PathsArgs) -> Result<Memory, Failure> {
        if matches!(args.verb, Verb::Forget { .. } | Verb::Import { .. }) {
            return Err(Failure::Usage(anyhow!(
                "a site's memory can be listed, shown and exported with --url; forget and import change this machine's"
            )));
        }
        let site = SiteUrl::parse(url, args.authorities.as_deref());
        Ok(Memory {
            live: None,
            saved: None,
            file: None,
            site: Some(site.map_err(|error| Failure::Usage(error.into()))?),
        })
    }

    fn source(&self) -> &'static str {
        match (&self.site, &self.live) {
            (Some(_), _) => "site",
            (None, Some(_)) => "live",
            (None, None) => "saved",
        }
    }

    fn paths(&self) -> Result<Vec<PathEntry>, Failure> {
        if let Some(url) = &self.site {
            let site = SitePaths::read(url).map_err(anyhow::Error::from)?;
            if site.rejected > 0 {
                tracing::warn!("{url}: {} entries are none, and left out", site.rejected);
            }
            return Ok(site.paths);
        }
        let mut paths = match (&self.live, &self.saved) {
            (Some(live), _) => live.paths().map_err(anyhow::Error::from)?,
            (None, Some(saved)) => saved.load(&Now::here()).map_err(anyhow::Error::from)?,
            (None, None) => Vec::new(),
        };
        paths.sort_unstable_by_key(|entry| entry.prefix);
        Ok(paths)
    }

    fn forget(&mut self, gone: impl Fn(&Prefix) -> bool) -> Result<usize, Failure> {
        let there = self.paths()?;
        let (gone, kept): (Vec<_>, Vec<_>) =
            there.into_iter().partition(|entry| gone(&entry.prefix));
        if let Some(live) = &self.live {
            for entry in &gone {
                live.forget(entry.prefix).map_err(anyhow::Error::from)?;
            }
        }
        if let Some(saved) = &mut self.saved {
            saved
                .save(&kept, &Now::here())
                .map_err(anyhow::Error::from)?;
        }
        Ok(gone.len())
    }

    fn import(&mut self, entries: &[PathEntry]) -> Result<(), Failure> {
        if let Some(live) = &self.live {
            for entry in entries {
                live.remember(entry).map_err(anyhow::Error::from)?;
            }
            return Ok(());
        }
        let file = self.file.as_deref().ok_or_else(|| {
            Failure::Usage(anyhow!(
                "there is no saved memory to import into: name one with --memory FILE"
            ))
        })?;
        let mut store = Store::open(file).map_err(anyhow::Error::from)?;
        let now = Now::here();
        let mut all = store.load(&now).map_err(anyhow::Error::from)?;
        all.retain(|old| !entries.iter().any(|new| new.prefix == old.prefix));
        all.extend_from_slice(entries);
        store.save(&all, &now).map_err(anyhow::Error::from)?;
        Ok(())
    }
}

pub(crate) fn run(args: &PathsArgs) -> Result<(), Failure> {
    let mut memory = Memory::open(args)?;
    match &args.verb {
        Verb::List => list(args, &memory, "list"),
        Verb::Export => print_document(&memory, "export", memory.paths()?),
        Verb::Show { prefix } => show(args, &memory, prefix),
        Verb::Forget { prefix, all } => {
            let forgotten = memory.forget(|known| {
                *all || prefix.as_ref().is_some_and(|wanted| wanted.contains(known))
            })?;
            report(args, &memory, "forget", "forgotten", forgotten)
        }
        Verb::Import { file } => {
            let entries = read(file)?;
            memory.import(&entries)?;
            report(args, &memory, "import", "imported", entries.len())
        }
    }
}

fn print_document(memory: &Memory, verb: &str, paths: Vec<PathEntry>) -> Result<(), Failure> {
    let document = Document {
        schema: SCHEMA,
        verb: format!("paths {verb}"),
        source: memory.source().to_owned(),
        paths,
    };
    let text = serde_json::to_string_pretty(&document).context("cannot write the document")?;
    output::print(&text)
}

fn report(
    args: &PathsArgs,
    memory: &Memory,
    verb: &str,
    done: &str,
    count: usize,
) -> Result<(), Failure> {
    if !args.json {
        return output::print(&format!("{done}: {count} ({} memory)", memory.source()));
    }
    let document = json!({
        "schema": SCHEMA, "verb": format!("paths {verb}"), "source": memory.source(), done: count,
    });
    output::print(&document.to_string())
}

fn read(file: &std::path::Path) -> Result<Vec<PathEntry>, Failure> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(Failure::Usage)?;
    let document: Document = serde_json::from_str(&text)
        .with_context(|| format!("{} is no export of headstart", file.display()))
        .map_err(Failure::Usage)?;
    if document.schema != SCHEMA {
        return Err(Failure::Usage(anyhow!(
            "{}: its schema is {}, and this version reads {SCHEMA}",
            file.display(),
            document.schema
        )));
    }
    Ok(document.paths)
}

fn threshold(pkts: u32) -> String {
    if pkts >= INFINITE_SSTHRESH {
        "none".to_owned()
    } else {
        pkts.to_string()
    }
}

fn ms(us: u32) -> String {
    format!("{:.1}", f64::from(us) / 1e3)
}

fn pkts(mpkts: u32) -> String {
    format!("{:.1}", f64::from(mpkts) / 1e3)
}

fn list(args: &PathsArgs, memory: &Memory, verb: &str) -> Result<(), Failure> {
    let paths = memory.paths()?;
    if args.json {
        return print_document(memory, verb, paths);
    }
    if paths.is_empty() {
        return output::print(&format!(
            "nothing is remembered ({} memory)",
            memory.source()
        ));
    }
    let header = [
        "prefix",
        "window pkts",
        "ssthresh",
        "min RTT ms",
        "Mbit/s",
        "ended",
        "age s",
        "samples",
    ];
    let mut table = Table::new(&header, 1..5);
    for PathEntry { prefix, path } in &paths {
        table.row([
            prefix.to_string(),
            path.cwnd_pkts.to_string(),
            threshold(path.ssthresh_pkts),
            ms(path.min_rtt_us),
            format!("{:.1}", path.rate_bytes_per_s as f64 * 8.0 / 1e6),
            ended(path),
            (path.age_us / 1_000_000).to_string(),
            path.samples.to_string(),
        ]);
    }
    output::print(&format!(
        "{table}\n\n{} entries ({} memory)",
        paths.len(),
        memory.source()
    ))
}

fn ended(path: &headstart_core::Path) -> String {
    let word = serde_json::to_value(path.ended()).unwrap_or_default();
    word.as_str().unwrap_or("?").to_owned()
}

fn show(args: &PathsArgs, memory: &Memory, wanted: &Prefix) -> Result<(), Failure> {
    let known = memory.paths()?;
    // The longest prefix answers.
    let answer = known
        .iter()
        .filter(|entry| entry.prefix.contains(wanted))
        .max_by_key(|entry| entry.prefix.bits());
    let Some(entry) = answer else {
        return Err(Failure::Run(anyhow!(
            "nothing is remembered of {wanted} ({} memory); headstart paths list shows what is",
            memory.source()
        )));
    };
    if args.json {
        return print_document(memory, "show", vec![*entry]);
    }
    let path = &entry.path;
    let mut table = Table::new(&["", "", ""], 1..2);
    let mut row = |name: &str, value: String, unit: &str| {
        table.row([name.to_owned(), value, unit.to_owned()]);
    };
    row("prefix", entry.prefix.to_string(), "");
    row("last loss-free window", path.cwnd_pkts.to_string(), "pkts");
    row("ending window, filtered", pkts(path.ending_mpkts), "pkts");
    row("ssthresh", threshold(path.ssthresh_pkts), "pkts");
    row("srtt", ms(path.srtt_us), "ms");
    row("rttvar", ms(path.rttvar_us), "ms");
    row("min RTT", ms(path.min_rtt_us), "ms");
    row(
        "delivery rate",
        path.rate_bytes_per_s.to_string(),
        "bytes/s",
    );
    row(
        "windows found exactly, mean",
        pkts(path.window_mean_mpkts),
        "pkts",
    );
    row(
        "and their mean deviation",
        pkts(path.window_dev_mpkts),
        "pkts",
    );
    row("min RTT, mean", ms(path.min_rtt_mean_us), "ms");
    row("and its mean deviation", ms(path.min_rtt_dev_us), "ms");
    row(
        "lost by the last connection",
        path.lost_pkts.to_string(),
        "pkts",
    );
    row("the last connection ended in", ended(path), "");
    row("age", (path.age_us / 1_000_000).to_string(), "s");
    row("samples", path.samples.to_string(), "");
    output::print(&table.to_string())
}
