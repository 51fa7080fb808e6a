//! The live line: what the path does, while the command runs.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headstart_path::{Emulation, Glance, GlanceSource};
use indicatif::{ProgressBar, ProgressStyle};

use super::summary::per_second;

/// How often it is written again.
const EVERY: Duration = Duration::from_millis(250);

/// The line on standard error, if that is a terminal.
pub(super) struct Status {
    running: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Status {
    /// Begins to show the line, unless nobody would see it.
    pub(super) fn start(emulation: &Emulation, wanted: bool) -> Status {
        if !wanted || !std::io::stderr().is_terminal() {
            return Status { running: None };
        }
        let (end, ended) = mpsc::channel();
        let source = emulation.glance_source();
        let thread = thread::Builder::new()
            .name("status".to_owned())
            .spawn(move || show(source, &ended));
        // Without a thread there is no line, and nothing else is lost.
        let running = thread.ok().map(|thread| (end, thread));
        Status { running }
    }

    /// Takes the line away.
    pub(super) fn end(self) {
        if let Some((end, thread)) = self.running {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn show(source: GlanceSource, ended: &mpsc::Receiver<()>) {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    let (mut before, mut at) = (source.glance(), Instant::now());
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
        let (now, passed) = (source.glance(), at.elapsed());
        at += passed;
        let (Some((forward, reverse)), Some((forward_before, reverse_before))) = (now, before)
        else {
            break;
        };
        bar.set_message(format!(
            "down {} | up {}",
            direction(&forward, &forward_before, passed),
            direction(&reverse, &reverse_before, passed)
        ));
        before = now;
    }
    bar.finish_and_clear();
}

fn direction(now: &Glance, before: &Glance, passed: Duration) -> String {
    let bits = now.out_bytes.saturating_sub(before.out_bytes) as f64 * 8.0;
    format!(
        "{}, queue {}, dropped {}, late {:.0} us",
        per_second(bits / passed.as_secs_f64()),
        now.queue_len_pkts,
        now.dropped_pkts,
        now.latest_us
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_rate_queue_drops_and_lateness() {
        let before = Glance::default();
        let now = Glance {
            out_bytes: 312_500,
            dropped_pkts: 3,
            queue_len_pkts: 17,
            latest_us: 42.4,
        };
        let said = direction(&now, &before, Duration::from_millis(250));
        assert_eq!(said, "10.00 Mbit/s, queue 17, dropped 3, late 42 us");
    }
}
