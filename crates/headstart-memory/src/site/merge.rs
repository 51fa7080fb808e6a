//! What becomes of an entry of ours when the site has another one of the same prefix.

use headstart_core::Path;
use headstart_kernel::Lesson;

/// Clocks of two machines are compared through the store's, with the time that a message takes between: within this
/// nobody can tell which was first. A tie goes to the failure, else to what is there. In ns.
pub(crate) const SLACK_NS: u64 = 10_000_000;

/// What becomes of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Merged {
    /// It stays.
    Keep,
    /// Theirs takes its place.
    Take(Lesson),
    /// This takes its place, and is to be told to the site.
    Tell(Lesson),
}

/// `told`: the site knew ours before it had theirs, so that theirs was learnt on top of it. Otherwise both were learnt
/// at the same time, neither knowing of the other.
pub(crate) fn merge(
    ours: Option<&Lesson>,
    told: bool,
    theirs: &Lesson,
    spread_gain_pct: u32,
) -> Merged {
    let Some(ours) = ours else {
        // Of a path that is not known here there is nothing to forget.
        return if theirs.is_forgotten() {
            Merged::Keep
        } else {
            Merged::Take(*theirs)
        };
    };
    // The same numbers are the same lesson, which came by another way.
    let told = told || ours.path == theirs.path;
    match (ours.is_forgotten(), theirs.is_forgotten()) {
        (true, true) => Merged::Keep,
        // A failed use spreads, unless something was learnt after it.
        (false, true) if theirs.learnt_ns + SLACK_NS >= ours.learnt_ns => Merged::Take(*theirs),
        (false, true) => Merged::Keep,
        (true, false) if theirs.learnt_ns > ours.learnt_ns + SLACK_NS => Merged::Take(*theirs),
        (true, false) => Merged::Keep,
        (false, false) if told && theirs.learnt_ns > ours.learnt_ns + SLACK_NS => {
            Merged::Take(*theirs)
        }
        (false, false) if told => Merged::Keep,
        (false, false) => Merged::Tell(at_the_same_time(ours, theirs, spread_gain_pct)),
    }
}

/// The newer of the two, as uncertain as their difference makes it. What the two know in common cannot be told apart
/// from what each learnt by itself, so nothing is averaged: it would count twice.
fn at_the_same_time(ours: &Lesson, theirs: &Lesson, gain_pct: u32) -> Lesson {
    let (newer, older) = if ours.learnt_ns >= theirs.learnt_ns {
        (&ours.path, &theirs.path)
    } else {
        (&theirs.path, &ours.path)
    };
    let mut path = *newer;
    // Only a lower bound: it never lowers what is known.
    if newer.window_mean_mpkts == 0 && older.cwnd_pkts > newer.cwnd_pkts {
        path = Path {
            cwnd_pkts: older.cwnd_pkts,
            ssthresh_pkts: older.ssthresh_pkts,
            rate_bytes_per_s: older.rate_bytes_per_s,
            ending_mpkts: older.ending_mpkts,
            window_mean_mpkts: older.window_mean_mpkts,
            ..*newer
        };
    }
    path.window_dev_mpkts = spread(
        (newer.window_mean_mpkts, newer.window_dev_mpkts),
        (older.window_mean_mpkts, older.window_dev_mpkts),
        gain_pct,
    );
    path.min_rtt_dev_us = spread(
        (newer.min_rtt_mean_us, newer.min_rtt_dev_us),
        (older.min_rtt_mean_us, older.min_rtt_dev_us),
        gain_pct,
    );
    // Each of the two has a lesson that the other has not.
    path.samples = ours.path.samples.max(theirs.path.samples).saturating_add(1);
    Lesson {
        prefix: ours.prefix,
        path,
        // Or the store would not take it for news.
        learnt_ns: ours.learnt_ns.max(theirs.learnt_ns + 2 * SLACK_NS),
    }
}

/// The deviation from the newer one's mean: no less than either had, and as large a part of the mean as a lesson at the
/// larger mean makes of the smaller one. Which was learnt first, often nobody can tell: whether the path is believed
/// must not hang on it.
fn spread(newer: (u32, u32), older: (u32, u32), gain_pct: u32) -> u32 {
    let widest = newer.1.max(older.1);
    let smaller = newer.0.min(older.0);
    // A mean of 0: none was found.
    if smaller == 0 {
        return widest;
    }
    let apart = u128::from(newer.0.abs_diff(older.0)) * u128::from(gain_pct) / 100;
    let deviation = apart * u128::from(newer.0) / u128::from(smaller);
    widest.max(u32::try_from(deviation).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_core::{Event, MemoryParams};

    const S: u64 = 1_000_000_000;
    const GAIN: u32 = 25;

    fn lesson(learnt_ns: u64, cwnd_pkts: u32) -> Lesson {
        Lesson {
            prefix: "10.1.2.0/24".parse().unwrap(),
            path: Path {
                cwnd_pkts,
                window_mean_mpkts: cwnd_pkts * 1000,
                srtt_us: 50_000,
                min_rtt_us: 50_000,
                min_rtt_mean_us: 50_000,
                samples: 3,
                ..Path::default()
            },
            learnt_ns,
        }
    }

    fn forgotten(at_ns: u64) -> Lesson {
        Lesson {
            path: Path::default(),
            ..lesson(at_ns, 0)
        }
    }

    #[test]
    fn what_is_not_known_here_is_taken_but_for_a_failure() {
        let theirs = lesson(S, 40);
        assert_eq!(merge(None, false, &theirs, GAIN), Merged::Take(theirs));
        assert_eq!(merge(None, false, &forgotten(S), GAIN), Merged::Keep);
    }

    #[test]
    fn what_was_learnt_on_top_of_ours_takes_its_place_and_what_is_older_does_not() {
        let (old, new) = (lesson(S, 40), lesson(2 * S, 50));
        assert_eq!(merge(Some(&old), true, &new, GAIN), Merged::Take(new));
        assert_eq!(merge(Some(&new), true, &old, GAIN), Merged::Keep);
    }

    #[test]
    fn a_failure_beats_what_was_learnt_before_it_and_at_the_same_time() {
        for told in [true, false] {
            let failure = forgotten(2 * S);
            assert_eq!(
                merge(Some(&lesson(S, 40)), told, &failure, GAIN),
                Merged::Take(failure)
            );
            let tie = lesson(2 * S + SLACK_NS, 40);
            assert_eq!(
                merge(Some(&tie), told, &failure, GAIN),
                Merged::Take(failure)
            );
            assert_eq!(merge(Some(&failure), told, &tie, GAIN), Merged::Keep);
        }
    }

    #[test]
    fn what_was_learnt_after_a_failure_counts() {
        let (failure, after) = (forgotten(S), lesson(2 * S, 40));
        assert_eq!(
            merge(Some(&failure), true, &after, GAIN),
            Merged::Take(after)
        );
        assert_eq!(merge(Some(&after), false, &failure, GAIN), Merged::Keep);
    }

    /// Two servers found 100 and 10 at the same time: whatever the order, the path is one that nobody starts from.
    #[test]
    fn two_that_disagree_at_the_same_time_make_an_entry_that_abstains() {
        let (large, small) = (lesson(S, 100), lesson(2 * S, 10));
        let (late_large, early_small) = (lesson(2 * S, 100), lesson(S, 10));
        // A quarter of the difference of 90 packets, as a part of 10.
        for (ours, theirs, newer_pkts, dev_mpkts) in [
            (&large, &small, 10, 22_500),
            (&small, &large, 10, 22_500),
            (&late_large, &early_small, 100, 225_000),
            (&early_small, &late_large, 100, 225_000),
        ] {
            let Merged::Tell(merged) = merge(Some(ours), false, theirs, GAIN) else {
                panic!("not told");
            };
            assert_eq!(merged.path.cwnd_pkts, newer_pkts);
            assert_eq!(merged.path.window_dev_mpkts, dev_mpkts);
            assert!(merged.learnt_ns > theirs.learnt_ns + SLACK_NS);
            let mut path = merged.path;
            let why = MemoryParams::default().recall(&mut path, &Event::default());
            assert_eq!(headstart_core::why_name(why), "path-spread");
        }
    }

    #[test]
    fn a_lower_bound_does_not_lower_what_another_found_at_the_same_time() {
        let found = lesson(S, 100);
        let mut bound = lesson(2 * S, 10);
        bound.path.window_mean_mpkts = 0;
        for (ours, theirs) in [(&found, &bound), (&bound, &found)] {
            let Merged::Tell(merged) = merge(Some(ours), false, theirs, GAIN) else {
                panic!("not told");
            };
            assert_eq!(merged.path.cwnd_pkts, 100);
            assert_eq!(merged.path.window_mean_mpkts, 100_000);
            assert_eq!(merged.path.samples, 4);
        }
    }

    #[test]
    fn the_same_lesson_by_two_ways_counts_once() {
        let same = lesson(S, 40);
        assert_eq!(merge(Some(&same), false, &same, GAIN), Merged::Keep);
        let later = lesson(2 * S, 40);
        assert_eq!(merge(Some(&same), false, &later, GAIN), Merged::Take(later));
    }
}
