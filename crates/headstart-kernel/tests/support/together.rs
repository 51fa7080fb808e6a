//! What several start-ups are to do alike.

use std::thread::sleep;
use std::time::Duration;

use headstart_core::{EventKind, LossKind, Path, Phase};
use headstart_kernel::{Kernel, PathEntry, Prefix, Record};

use super::*;

/// 20 Mbit/s and 100 ms, which hold 166 packets; a queue that does not overflow.
pub fn roomy_lane(kernel: &Kernel, startup: &str) -> Lane {
    let lane = Lane::new(kernel, 1, "20mbit", 100, 400);
    lane.open_receiver();
    lane.server_uses(startup);
    lane
}

/// Makes `path` what is remembered of the lane's client, by IPv4 and IPv6.
pub fn remember(kernel: &Kernel, lane: &Lane, path: Path) {
    let client = lane.emulation.client();
    for prefix in [
        Prefix::of(client.addr_v4().into(), 24),
        Prefix::of(client.addr_v6().into(), 48),
    ] {
        kernel.remember(&PathEntry { prefix, path }).unwrap();
    }
}

/// The reasons of the verdicts, without those that say nothing.
pub fn reasons(records: &[Record]) -> Vec<&'static str> {
    let said = that_say_why(records);
    said.into_iter().map(|(why, _)| why).collect()
}

/// At a loss the usual penalty is taken, and all the rest is CUBIC's or Reno's. The cuts of CUBIC (0.7, tcp_cubic.c:
/// beta = 717 / 1024) and of Reno (RFC 5681: a half). `None`: the test was skipped.
pub fn assert_native_takes_over_at_a_loss(startup: &str) -> Option<()> {
    for (reno, beta) in [(0, 717), (1, 512)] {
        let kernel = kernel(&only(startup, &[("reno", reno)]))?;
        let lane = Lane::new(&kernel, 1, "10mbit", 40, 12);
        lane.open_receiver();
        lane.server_uses(startup);
        let mut client = lane.connect();
        client.fetch(500_000);
        assert!(
            dropped(&lane.wire(&client)) > 0,
            "the queue was meant to overflow"
        );
        let records = kernel.take_records().unwrap();
        let is_loss = |record: &Record| record.event.kind == EventKind::Loss as u8;
        let at = records.iter().position(is_loss).unwrap();
        let (loss, after) = (&records[at], &records[at + 1..]);
        assert_eq!(loss.event.loss, LossKind::Fast as u8);
        assert_eq!(that_says(&records, "ordinary-loss").at_ns, loss.at_ns);
        let is_native = |record: &Record| {
            let verdict = &record.verdict;
            verdict.phase == Phase::Native as u8
                && verdict.pacing_bytes_per_s == 0
                && verdict.cwnd_pkts == 0
        };
        // A timeout, which a machine that is busy for long brings about, begins slow start anew.
        let timed_out =
            |record: &&Record| is_loss(record) && record.event.loss == LossKind::Timeout as u8;
        let mut until_timeout = after.iter().take_while(|record| !timed_out(record));
        let other = until_timeout.find(|record| !is_native(record));
        assert!(other.is_none(), "after {loss:?}: {other:?}");
        // Once; or once more: seen on busy machines only, where a tail loss probe, it seems, costs a cut of its own.
        let cut_pkts = |window_pkts: u32| (window_pkts * beta / 1024).max(2);
        let once = cut_pkts(loss.event.cwnd_pkts);
        assert!(
            (cut_pkts(once)..=once).contains(&after[0].event.ssthresh_pkts),
            "reno={reno}, {loss:?}, then {:?}",
            after[0]
        );
    }
    Some(())
}

/// After a pause the first flight is native CUBIC's, and the start-up says that it is over. `None`: the test was
/// skipped.
pub fn assert_native_restarts_after_idle(startup: &str) -> Option<()> {
    let kernel = kernel(&only(startup, &[]))?;
    let lane = roomy_lane(&kernel, startup);
    let mut client = lane.connect();
    client.fetch(100_000);
    lane.wire(&client);
    sleep(Duration::from_secs(4));
    client.fetch(100_000);
    assert_eq!(first_flight(&lane.wire(&client)).len(), 10);
    that_says(&kernel.take_records().unwrap(), "paused");
    Some(())
}
