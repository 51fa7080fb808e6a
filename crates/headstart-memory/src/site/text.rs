//! An entry as it stands in the store: numbers in decimal, between single spaces. Nothing that comes from there is
//! believed before it was looked at.

use headstart_core::{INFINITE_SSTHRESH, MemoryParams, Path};
use headstart_kernel::{Prefix, PrefixLengths};

/// No round trip is longer: TCP_RTO_MAX of Linux.
const MOST_RTT_US: u32 = 120_000_000;
/// A clock that was set back since may make an entry seem to be of the future; by so much it is believed.
const CLOCK_SLACK_US: u64 = 1_000_000;
/// A number that counts up must not wrap.
const MOST_SAMPLES: u32 = 1_000_000;
/// The largest segment that IP has, in bytes.
const MOST_MSS_BYTES: u128 = 65_535;

/// What is held against each entry that comes.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) max_window_pkts: u32,
    pub(crate) lifetime_us: u64,
    pub(crate) spread_gain_pct: u32,
    pub(crate) lengths_v4: PrefixLengths,
    pub(crate) lengths_v6: PrefixLengths,
}

impl Limits {
    pub(crate) fn new(
        params: &MemoryParams,
        lengths_v4: PrefixLengths,
        lengths_v6: PrefixLengths,
    ) -> Limits {
        let of = |name| params.get(name).unwrap_or_default();
        Limits {
            max_window_pkts: of("max_window_pkts"),
            lifetime_us: u64::from(of("lifetime_s")) * 1_000_000,
            spread_gain_pct: of("spread_gain_pct"),
            lengths_v4,
            lengths_v6,
        }
    }

    /// Whether this machine asks for entries of that length. The local network as one group is each machine's own.
    pub(crate) fn wants(&self, prefix: &Prefix) -> bool {
        let (lengths, most) = match prefix.addr() {
            Some(addr) if addr.is_ipv4() => (&self.lengths_v4, 32),
            Some(_) => (&self.lengths_v6, 128),
            None => return false,
        };
        prefix.bits().is_some_and(|bits| lengths.has(bits, most))
    }
}

/// The fields behind the time, in their order.
pub(crate) fn write(origin: &str, path: &Path) -> String {
    format!(
        "{origin} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
        path.cwnd_pkts,
        path.ssthresh_pkts,
        path.srtt_us,
        path.rttvar_us,
        path.min_rtt_us,
        path.rate_bytes_per_s,
        path.ending_mpkts,
        path.window_mean_mpkts,
        path.window_dev_mpkts,
        path.min_rtt_mean_us,
        path.min_rtt_dev_us,
        path.lost_pkts,
        path.samples,
        path.ended,
    )
}

/// What came, and what is to be done with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// An entry; its age is set.
    Entry {
        prefix: Prefix,
        path: Path,
        origin: String,
        /// A value in it was above a cap.
        capped: bool,
    },
    /// Of no use here: too old, or of a length that nobody asks for.
    Unwanted,
    /// No entry at all. The text says why.
    Garbage(&'static str),
}

/// Reads an entry. `now_us` is the store's clock.
pub(crate) fn read(prefix: &[u8], text: &[u8], now_us: u64, limits: &Limits) -> Incoming {
    match parse(prefix, text) {
        Ok((prefix, learnt_us, origin, path)) => {
            judge(prefix, learnt_us, origin, path, now_us, limits)
        }
        Err(why) => Incoming::Garbage(why),
    }
}

type Parsed = (Prefix, u64, String, Path);

fn parse(prefix: &[u8], text: &[u8]) -> Result<Parsed, &'static str> {
    let words = |bytes| std::str::from_utf8(bytes).map_err(|_| "it is no text");
    let name = words(prefix)?;
    let prefix: Prefix = name.parse().map_err(|_| "its key is no prefix")?;
    if prefix.to_string() != name {
        return Err("its key is not written as prefixes are");
    }
    let mut fields = words(text)?.split(' ');
    let mut field = || fields.next().ok_or("fields are missing");
    let learnt_us = whole(field()?)?;
    let origin = field()?.to_owned();
    let path = Path {
        cwnd_pkts: whole(field()?)?,
        ssthresh_pkts: whole(field()?)?,
        srtt_us: whole(field()?)?,
        rttvar_us: whole(field()?)?,
        min_rtt_us: whole(field()?)?,
        rate_bytes_per_s: whole(field()?)?,
        ending_mpkts: whole(field()?)?,
        window_mean_mpkts: whole(field()?)?,
        window_dev_mpkts: whole(field()?)?,
        min_rtt_mean_us: whole(field()?)?,
        min_rtt_dev_us: whole(field()?)?,
        lost_pkts: whole(field()?)?,
        samples: whole(field()?)?,
        ended: whole(field()?)?,
        ..Path::default()
    };
    match fields.next() {
        None => Ok((prefix, learnt_us, origin, path)),
        Some(_) => Err("there are too many fields"),
    }
}

fn whole<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    // No sign, which `parse` would take.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or("a field is no number that fits")
}

fn judge(
    prefix: Prefix,
    learnt_us: u64,
    origin: String,
    mut path: Path,
    now_us: u64,
    limits: &Limits,
) -> Incoming {
    if learnt_us > now_us + CLOCK_SLACK_US {
        return Incoming::Garbage("it was learnt in the future");
    }
    path.age_us = now_us.saturating_sub(learnt_us);
    if !limits.wants(&prefix) || path.age_us > limits.lifetime_us {
        return Incoming::Unwanted;
    }
    if path.cwnd_pkts == 0 {
        let path = Path {
            age_us: path.age_us,
            ..Path::default()
        };
        return Incoming::Entry {
            prefix,
            path,
            origin,
            capped: false,
        };
    }
    let rtts = [path.srtt_us, path.min_rtt_us];
    if rtts
        .iter()
        .any(|rtt_us| !(1..=MOST_RTT_US).contains(rtt_us))
        || path.rttvar_us > MOST_RTT_US
    {
        return Incoming::Garbage("no round trip is like that");
    }
    if path.ssthresh_pkts < 2 || path.samples == 0 || path.ended > 3 {
        return Incoming::Garbage("no connection ends like that");
    }
    let before = path;
    cap(&mut path, limits);
    Incoming::Entry {
        prefix,
        path,
        origin,
        capped: path != before,
    }
}

/// The caps of this machine, whatever those of the one that told it are.
fn cap(path: &mut Path, limits: &Limits) {
    let (cap_pkts, cap_mpkts) = (limits.max_window_pkts, limits.max_window_pkts * 1000);
    if path.cwnd_pkts > cap_pkts {
        let rate = u128::from(path.rate_bytes_per_s) * u128::from(cap_pkts);
        let rate = rate / u128::from(path.cwnd_pkts);
        path.rate_bytes_per_s = u64::try_from(rate).unwrap_or(u64::MAX);
        path.cwnd_pkts = cap_pkts;
    }
    let most_rate = u128::from(cap_pkts) * MOST_MSS_BYTES * 1_000_000 / u128::from(path.min_rtt_us);
    let most_rate = u64::try_from(most_rate).unwrap_or(u64::MAX);
    path.rate_bytes_per_s = path.rate_bytes_per_s.min(most_rate);
    path.ssthresh_pkts = path.ssthresh_pkts.min(INFINITE_SSTHRESH);
    path.ending_mpkts = path.ending_mpkts.min(cap_mpkts);
    path.window_mean_mpkts = path.window_mean_mpkts.min(cap_mpkts);
    path.samples = path.samples.min(MOST_SAMPLES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_US: u64 = 1_800_000_000_000_000;

    fn limits() -> Limits {
        Limits::new(
            &MemoryParams::default(),
            PrefixLengths::new(vec![24, 32]),
            PrefixLengths::new(vec![48]),
        )
    }

    fn path() -> Path {
        Path {
            rate_bytes_per_s: 1_000_000,
            cwnd_pkts: 40,
            ssthresh_pkts: 30,
            srtt_us: 60_000,
            rttvar_us: 5_000,
            min_rtt_us: 50_000,
            ending_mpkts: 41_000,
            window_mean_mpkts: 39_000,
            window_dev_mpkts: 1_000,
            min_rtt_mean_us: 51_000,
            min_rtt_dev_us: 100,
            lost_pkts: 2,
            samples: 7,
            ended: 2,
            ..Path::default()
        }
    }

    fn read_path(prefix: &str, age_us: u64, path: &Path) -> Incoming {
        let text = format!("{} {}", NOW_US - age_us, write("a1", path));
        read(prefix.as_bytes(), text.as_bytes(), NOW_US, &limits())
    }

    #[test]
    fn what_is_written_is_read() {
        let expected = Incoming::Entry {
            prefix: "10.1.2.0/24".parse().unwrap(),
            path: Path {
                age_us: 5,
                ..path()
            },
            origin: "a1".to_owned(),
            capped: false,
        };
        assert_eq!(read_path("10.1.2.0/24", 5, &path()), expected);
    }

    #[test]
    fn nothing_above_a_cap_comes_through() {
        let large = Path {
            cwnd_pkts: 4_000_000,
            rate_bytes_per_s: u64::MAX,
            ending_mpkts: u32::MAX,
            window_mean_mpkts: u32::MAX,
            ssthresh_pkts: u32::MAX,
            samples: u32::MAX,
            ..path()
        };
        let Incoming::Entry { path, capped, .. } = read_path("10.1.2.0/24", 0, &large) else {
            panic!("refused");
        };
        assert!(capped);
        assert_eq!((path.cwnd_pkts, path.ending_mpkts), (2000, 2_000_000));
        assert_eq!(
            (path.window_mean_mpkts, path.samples),
            (2_000_000, 1_000_000)
        );
        assert_eq!(path.ssthresh_pkts, INFINITE_SSTHRESH);
        assert!(path.rate_bytes_per_s <= 2000 * 65_535 * 20);
    }

    #[test]
    fn what_is_too_old_or_of_a_length_that_nobody_asks_for_is_left_out() {
        assert_eq!(
            read_path("10.1.2.0/24", 1_800_000_001, &path()),
            Incoming::Unwanted
        );
        for prefix in ["10.1.0.0/16", "fd00::/64", "local-network"] {
            assert_eq!(
                read_path(prefix, 0, &path()),
                Incoming::Unwanted,
                "{prefix}"
            );
        }
    }

    #[test]
    fn garbage_is_called_garbage() {
        let good = format!("{NOW_US} {}", write("a1", &path()));
        let future = good.replacen(&NOW_US.to_string(), &(NOW_US + 2_000_000).to_string(), 1);
        let cases: [(&[u8], &[u8]); 10] = [
            (b"10.1.2.0/24", b""),
            (b"10.1.2.0/24", b"hello"),
            (b"10.1.2.0/24", b"\xff\xfe"),
            (b"\xff", good.as_bytes()),
            (b"10.1.2.0/33", good.as_bytes()),
            (b"10.1.2.9/24", good.as_bytes()),
            (b"10.1.2.0/24", &good.as_bytes()[..good.len() - 4]),
            (b"10.1.2.0/24", &[good.as_bytes(), b" 1"].concat()),
            (b"10.1.2.0/24", &good.replace(" 40 ", " -40 ").into_bytes()),
            (b"10.1.2.0/24", future.as_bytes()),
        ];
        for (prefix, text) in cases {
            let read = read(prefix, text, NOW_US, &limits());
            let shown = String::from_utf8_lossy(text);
            assert!(matches!(read, Incoming::Garbage(_)), "{shown}: {read:?}");
        }
        for wrong in [
            Path {
                srtt_us: 0,
                ..path()
            },
            Path {
                min_rtt_us: 120_000_001,
                ..path()
            },
            Path {
                ssthresh_pkts: 1,
                ..path()
            },
            Path {
                samples: 0,
                ..path()
            },
            Path { ended: 4, ..path() },
        ] {
            let read = read_path("10.1.2.0/24", 0, &wrong);
            assert!(matches!(read, Incoming::Garbage(_)), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_end_the_reader_and_none_lead_above_the_cap(prefix: Vec<u8>, text: Vec<u8>, words: [u32; 12],
            rate: u64, ended: u8) {
            read(&prefix, &text, NOW_US, &limits());
            let path = Path {
                rate_bytes_per_s: rate,
                cwnd_pkts: words[0], ssthresh_pkts: words[1], srtt_us: words[2], rttvar_us: words[3],
                min_rtt_us: words[4], ending_mpkts: words[5], window_mean_mpkts: words[6],
                window_dev_mpkts: words[7], min_rtt_mean_us: words[8], min_rtt_dev_us: words[9],
                lost_pkts: words[10], samples: words[11], ended, ..Path::default()
            };
            if let Incoming::Entry { path, .. } = read_path("10.1.2.0/24", 0, &path) {
                prop_assert!(path.cwnd_pkts <= 2000 && path.ending_mpkts <= 2_000_000);
                prop_assert!(path.window_mean_mpkts <= 2_000_000);
            }
        }
    }
}
