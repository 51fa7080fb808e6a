//! Whole paths by name, with the numbers of the papers: the options that each stands for.

/// A path by name. Its values are written as on the command line and in a scenario; what is given
/// beside the name stands in place of what the preset says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where the numbers are from, and which of them are ours.
    pub source: &'static str,
    /// From server to client.
    pub rate: &'static str,
    /// From client to server.
    pub reverse_rate: &'static str,
    /// The round-trip time of the empty path.
    pub rtt: &'static str,
    /// The queue from server to client.
    pub queue: &'static str,
    /// The queue from client to server.
    pub reverse_queue: &'static str,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 9] = [
        Preset {
            name: "directpc",
            about: "a satellite downstream with a dial-up return",
            source: "Fast Start, section 5.3: 12 Mbit/s down, about 400 ms, a dial-up phone line up. \
                     The modem's 28.8 kbit/s and the queues are ours; no header compression",
            rate: "12mbit",
            reverse_rate: "28.8kbit",
            rtt: "400ms",
            queue: "drop-tail:1bdp",
            reverse_queue: "drop-tail:20",
        },
        Preset {
            name: "satellite",
            about: "a two-way satellite path",
            source: "the rates of scenarios/satellite.toml: 12 Mbit/s and 400 ms as in Fast Start, \
                     section 5.3; 1 Mbit/s up is ours",
            rate: "12mbit",
            reverse_rate: "1mbit",
            rtt: "400ms",
            queue: "drop-tail:1bdp",
            reverse_queue: "drop-tail:1bdp",
        },
        Preset {
            name: "cable-1998",
            about: "an early cable modem, whose acknowledgements wait behind uploads",
            source: "Fast Start, section 5.4: highly asymmetric, about 2 ms of delay, hundreds of ms \
                     with traffic both ways. The rates and queues are ours",
            rate: "10mbit",
            reverse_rate: "128kbit",
            rtt: "4ms",
            queue: "drop-tail:50",
            reverse_queue: "drop-tail:10",
        },
        Preset {
            name: "t1",
            about: "a T1 line across a country, the bottleneck of Fast Start's simulations",
            source: "Fast Start, section 4 and figure 1: 1.5 Mbit/s, a link delay of 50 ms; 50 packets \
                     of buffer as in figure 5",
            rate: "1.5mbit",
            reverse_rate: "1.5mbit",
            rtt: "100ms",
            queue: "drop-tail:50",
            reverse_queue: "drop-tail:50",
        },
        Preset {
            name: "t1-satellite",
            about: "a T1 line over a geostationary satellite",
            source: "Fast Start, section 4 and figure 1: 1.5 Mbit/s, a link delay of 200 ms; 50 packets \
                     of buffer as in figure 5",
            rate: "1.5mbit",
            reverse_rate: "1.5mbit",
            rtt: "400ms",
            queue: "drop-tail:50",
            reverse_queue: "drop-tail:50",
        },
        Preset {
            name: "t3-satellite",
            about: "a T3 line over a geostationary satellite",
            source: "Network Adaptive TCP Slow Start, table 1, scenario 3: 45 Mbit/s, a link delay of \
                     200 ms, a buffer of 20 KB",
            rate: "45mbit",
            reverse_rate: "45mbit",
            rtt: "400ms",
            queue: "drop-tail:20kB",
            reverse_queue: "drop-tail:20kB",
        },
        Preset {
            name: "dsl",
            about: "the median broadband line of 2009",
            source: "An Argument for Increasing TCP's Initial Congestion Window, data centre AvgDC: \
                     a median of 1.2 Mbit/s and about 70 ms. 256 kbit/s up and the queues are ours",
            rate: "1.2mbit",
            reverse_rate: "256kbit",
            rtt: "70ms",
            queue: "drop-tail:50",
            reverse_queue: "drop-tail:20",
        },
        Preset {
            name: "docsis",
            about: "a cable modem with other users on the cable",
            source: "HyStart, section 6.3: 10 Mbit/s down, 384 kbit/s up, shaped; heavy swings of the \
                     round-trip time. 30 ms and the queues are ours",
            rate: "10mbit",
            reverse_rate: "docsis:384kbit",
            rtt: "30ms",
            queue: "drop-tail:100",
            reverse_queue: "drop-tail:50",
        },
        Preset {
            name: "wifi",
            about: "a laptop behind a shared wireless access point",
            source: "HyStart, section 6.4: about 30 ms to the server, peaks from other users of the \
                     access point. The radio's rates and the queues are ours",
            rate: "wifi",
            reverse_rate: "wifi",
            rtt: "30ms",
            queue: "drop-tail:256",
            reverse_queue: "drop-tail:256",
        },
    ];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Preset> {
        const ALL: &[Preset] = &Preset::ALL;
        ALL.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Link, LinkConfig, QueueSpec, RateSpec, Span, testing::Numbered};

    #[test]
    fn every_preset_is_a_path_that_can_be() {
        for preset in Preset::ALL {
            let rtt: Span = preset.rtt.parse().unwrap();
            for (rate, queue) in [
                (preset.rate, preset.queue),
                (preset.reverse_rate, preset.reverse_queue),
            ] {
                let rate: RateSpec = rate.parse().unwrap();
                let queue: QueueSpec = queue.parse().unwrap();
                let delay = Span::from_ns(rtt.as_ns() / 2);
                let config = LinkConfig::new(rate.nominal(), delay, queue).with_rate(rate);
                assert!(Link::<Numbered>::new(&config).is_ok(), "{}", preset.name);
            }
            assert_eq!(Preset::named(preset.name), Some(&preset));
            assert!(!preset.source.contains("  ") && !preset.about.contains("  "));
        }
        assert_eq!(Preset::named("isdn"), None);
    }
}
