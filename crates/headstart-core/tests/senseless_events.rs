//! What holds for every start-up on events without sense or order.

mod model;
mod random;

use headstart_core::{Connection, Event, EventKind, LossKind, Startup, Verdict};
use model::oracle::well_formed;
use proptest::prelude::*;
use random::{any_event, any_params, any_path, runner};

/// The kernel's side leaves out what a start-up has no use for.
#[test]
fn a_start_up_makes_use_of_nothing_but_what_it_says() {
    for startup in Startup::all() {
        let lists = prop::collection::vec((any_path(), any_event()), 1..60);
        runner(1)
            .run(&(any_params(startup), lists), |(params, list)| {
                let mut connection = Connection::new(params);
                let mut unknown = Connection::new(params);
                for (path, event) in &list {
                    let verdict = connection.step(path.as_ref(), event);
                    if !startup.recalls() {
                        prop_assert_eq!(verdict, unknown.step(None, event));
                    }
                    let shape = (verdict.pacing_bytes_per_s, verdict.burst_pkts);
                    let shape = (shape, verdict.recovery_cwnd_pkts);
                    prop_assert!(startup.shapes() || shape == ((0, 0), 0));
                    let marks = verdict.mark_from_byte != verdict.mark_to_byte;
                    prop_assert!(startup.marks() || !marks);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

#[test]
fn an_event_without_sense_still_gets_a_verdict_that_can_be_read() {
    for startup in Startup::all() {
        let lists = prop::collection::vec((any_path(), any_event()), 1..60);
        runner(1)
            .run(&(any_params(startup), lists), |(params, list)| {
                let mut connection = Connection::new(params);
                for (path, event) in &list {
                    well_formed(&connection.step(path.as_ref(), event))?;
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

#[test]
fn a_connection_that_opens_knows_nothing_of_the_one_before_it() {
    for startup in Startup::all() {
        let before = prop::collection::vec((any_path(), any_event()), 1..20);
        let after = prop::collection::vec((any_path(), any_event()), 1..20);
        runner(1)
            .run(
                &(any_params(startup), before, after),
                |(params, before, after)| {
                    let mut used = Connection::new(params);
                    let mut fresh = Connection::new(params);
                    for (path, event) in &before {
                        used.step(path.as_ref(), event);
                    }
                    let open = Event {
                        kind: EventKind::Open as u8,
                        cwnd_pkts: 10,
                        srtt_us: 1,
                        sack_ok: 1,
                        ..Event::default()
                    };
                    for (path, event) in std::iter::once(&(None, open)).chain(&after) {
                        prop_assert_eq!(
                            used.step(path.as_ref(), event),
                            fresh.step(path.as_ref(), event)
                        );
                        prop_assert_eq!(used.state(), fresh.state());
                    }
                    Ok(())
                },
            )
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

/// Where the pacing of a start ends while nothing is repaired, no more may leave at once than at a connection's
/// beginning; unless the window was full, so that it held nothing back.
#[test]
fn what_pacing_has_held_back_may_not_leave_as_one_burst() {
    let counts = (0u64..5000, 0u32..5000, 0u64..5000, 0u64..5000);
    let strategy = (counts, any_event(), any::<bool>(), 100u32..9000);
    runner(4)
        .run(&strategy, |(counts, event, full, mss_bytes)| {
            let (flight_pkts, cwnd_pkts, unsent_pkts, peer_pkts) = counts;
            let mss = u64::from(mss_bytes);
            let event = Event {
                sent_bytes: flight_pkts * mss,
                acked_bytes: 0,
                inflight_pkts: u32::try_from(flight_pkts).unwrap(),
                cwnd_pkts,
                unsent_bytes: unsent_pkts * mss,
                peer_window_bytes: u32::try_from(peer_pkts * mss).unwrap(),
                mss_bytes,
                window_full: u8::from(full),
                ..event
            };
            let over = Verdict::default().pacing_is_over(&event);
            let window_pkts = u64::from(cwnd_pkts).saturating_sub(flight_pkts);
            let at_once_pkts = window_pkts
                .min(unsent_pkts)
                .min(peer_pkts.saturating_sub(flight_pkts));
            let lost = event.kind == EventKind::Loss as u8 && event.loss != LossKind::Ecn as u8;
            let repairs = lost || event.recovery != 0;
            prop_assert_eq!(over, repairs || full || at_once_pkts <= 10, "{:?}", event);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
