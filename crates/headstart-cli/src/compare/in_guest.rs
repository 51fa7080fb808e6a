//! A comparison on a kernel in virtual time: the same verb, run in the guest, and its results brought back.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use headstart_scenario::{ResultsDocument, Scenario};
use headstart_virtual::{GuestCommand, GuestFiles, INIT, Job, OUT, PROGRESS};

use super::work::progress_bar;
use super::{CompareArgs, print_report};
use crate::failure::Failure;
use crate::output;
use crate::virtual_kernel::{Interruption, here, machine};

/// The folder of results, below the guest's folder for what comes back.
const RESULTS: &str = "results";

/// The results document, which is written last: a folder that has it is whole.
const DOCUMENT: &str = "results.json";

pub(super) fn run(
    args: &CompareArgs,
    scenario: &Scenario,
    legs: &[Scenario],
) -> Result<(), Failure> {
    let machine = machine(args.kernel.as_deref())?;
    let mut files = GuestFiles::new();
    files.installed("nginx", "nginx-light")?;
    files.installed("curl", "curl")?;
    let place = std::path::absolute(&args.scenario).context("there is no current directory")?;
    files.copy(&args.scenario, place)?;
    let mut command = GuestCommand::new([INIT, "compare", "--in-guest", "--json"]);
    command.argv.extend(arguments(args));
    command.directory = here()?;

    let stop = Interruption::watch()?;
    let bar = progress_bar(&scenario.name);
    bar.set_length(transfers(args, scenario, legs));
    let job = Job {
        commands: vec![command],
    };
    let finished = machine.run(&job, &files, |transfers| {
        bar.set_position(transfers);
        stop.look()
    });
    bar.finish_and_clear();
    let finished = finished?;
    let ended = finished
        .commands
        .first()
        .context("the guest told nothing of the comparison")?;
    std::io::stderr()
        .write_all(&ended.stderr)
        .context("cannot write to standard error")?;
    if ended.code != 0 {
        return Err(Failure::Command(
            u8::try_from(ended.code).unwrap_or(u8::MAX),
        ));
    }
    if let Some(dir) = &args.out {
        bring_back(&finished.out().join(RESULTS), dir)?;
    }
    let text = String::from_utf8_lossy(&ended.stdout);
    if args.json {
        return output::print(text.trim_end());
    }
    let document: ResultsDocument =
        serde_json::from_str(&text).context("the guest's results cannot be read")?;
    print_report(&document)
}

/// Tells the host how many transfers have been measured. What it does not hear is only not shown.
pub(super) fn tell_progress(transfers: u64) {
    let _ = fs::write(PROGRESS, transfers.to_string());
}

/// The same wishes, for the guest.
fn arguments(args: &CompareArgs) -> Vec<String> {
    let mut arguments = vec![format!("--out={OUT}/{RESULTS}")];
    if let Some(startups) = &args.startups {
        arguments.push(format!("--startups={}", startups.join(",")));
    }
    if let Some(paths) = &args.paths {
        arguments.push(format!("--paths={}", paths.join(",")));
    }
    if let Some(sizes) = &args.sizes {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        arguments.push(format!("--sizes={}", sizes.join(",")));
    }
    arguments.extend(args.repeat.map(|repeat| format!("--repeat={repeat}")));
    arguments.extend(args.seed.map(|seed| format!("--seed={seed}")));
    arguments.extend(args.params.iter().map(|param| format!("--param={param}")));
    arguments.push("--".to_owned());
    arguments.push(args.scenario.to_string_lossy().into_owned());
    arguments
}

/// For the progress bar: the guest may leave out what its kernel does not have.
fn transfers(args: &CompareArgs, scenario: &Scenario, legs: &[Scenario]) -> u64 {
    let startups = match &args.startups {
        Some(startups) => startups.len(),
        None => scenario.compare.startups.len(),
    };
    let repeat = args.repeat.unwrap_or(scenario.compare.repeat);
    let cases: usize = legs.iter().map(|leg| leg.cases.len()).sum();
    u64::from(repeat) * startups as u64 * cases as u64
}

/// Copies the folder of results, each file whole or not there, the document last.
fn bring_back(from: &Path, to: &Path) -> Result<(), Failure> {
    let naming = |path: &Path| format!("cannot write {}", path.display());
    fs::create_dir_all(to).with_context(|| naming(to))?;
    let old = to.join(DOCUMENT);
    match fs::remove_file(&old) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(anyhow::Error::from(error).context(naming(&old)).into());
        }
        _ => {}
    }
    let mut names: Vec<_> = fs::read_dir(from)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.file_name()))
                .collect::<Result<_, _>>()
        })
        .context("the guest's results cannot be read")?;
    names.sort_by_key(|name| name == DOCUMENT);
    for name in names {
        let file = to.join(&name);
        let content = fs::read(from.join(&name)).context("the guest's results cannot be read")?;
        let mut whole = tempfile::NamedTempFile::new_in(to).with_context(|| naming(to))?;
        whole
            .write_all(&content)
            .and_then(|()| whole.as_file().sync_all())
            .with_context(|| naming(&file))?;
        whole.persist(&file).with_context(|| naming(&file))?;
    }
    Ok(())
}
