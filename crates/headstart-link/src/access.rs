//! Access links that are shared with others, as people write them: `wifi:26mbit/52mbit,fail=10%`,
//! `docsis:384kbit,map=2ms`. What is modelled, and what is not, is in docs/links.md.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::options::{OptionFault, Options};
use crate::packet::FULL_PACKET_BYTES;
use crate::rate::RateSpecError;
use crate::transmitter::{docsis, wifi};
use crate::{Rate, Share, Span};

/// The shortest mean of anything that lasts: a link that was idle for an hour is caught up with by
/// drawing every change of that hour.
const LEAST_MEAN: Span = Span::from_ns(1_000_000);

/// A sender behind a Wi-Fi access point's radio, or the access point itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WifiSpec {
    /// The rates that it moves up and down between, rising.
    pub rates: Arc<[Rate]>,
    /// How long it stays at one, in the mean.
    pub hold: Span,
    /// How likely an attempt to send fails.
    pub fail: Share,
    /// How long others interfere at a time, in the mean.
    pub burst: Span,
    /// How long they do not, in the mean; 0: they never do.
    pub every: Span,
    /// How likely an attempt fails while they do.
    pub burst_fail: Share,
    /// Packets sent in one access to the radio, at most.
    pub aggregate: u32,
}

impl WifiSpec {
    /// As many as an A-MPDU's block acknowledgement can name.
    const MOST_AGGREGATE: u32 = 64;

    /// 802.11n, 20 MHz, one stream, 800 ns guard interval (IEEE 802.11-2016, table 19-27): MCS 3 to
    /// 7. The other defaults are ours, for an access point with other users: see docs/links.md.
    fn default_rates() -> Arc<[Rate]> {
        [26_000_000, 39_000_000, 52_000_000, 58_500_000, 65_000_000]
            .map(Rate::at_least_one)
            .into()
    }

    fn parse(text: &str) -> Result<WifiSpec, RateSpecError> {
        let mut options = Options::of(text);
        let rates = match options.first {
            None => WifiSpec::default_rates(),
            Some(rates) => rates
                .split('/')
                .map(|rate| rate.trim().parse().map_err(RateSpecError::from))
                .collect::<Result<_, _>>()?,
        };
        let spec = WifiSpec {
            rates,
            hold: options.value("hold")?.unwrap_or(Span::from_ns(500_000_000)),
            fail: options
                .value("fail")?
                .unwrap_or(Share::exactly(100_000_000)),
            burst: options.value("burst")?.unwrap_or(Span::from_ns(30_000_000)),
            every: options
                .value("every")?
                .unwrap_or(Span::from_ns(2_000_000_000)),
            burst_fail: options
                .value("burst_fail")?
                .unwrap_or(Share::exactly(800_000_000)),
            aggregate: options.value("aggregate")?.unwrap_or(16),
        };
        options.finish()?;
        spec.check(text).map(|()| spec)
    }

    fn check(&self, text: &str) -> Result<(), RateSpecError> {
        let refuse = |why: String| Err(access_error(text, why));
        if !self.rates.is_sorted_by(|a, b| a < b) || self.rates.is_empty() {
            return refuse("its rates have to rise".to_owned());
        }
        if self.hold < LEAST_MEAN {
            return refuse(format!("hold has to be at least {LEAST_MEAN}"));
        }
        if self.every > Span::ZERO && (self.every < LEAST_MEAN || self.burst < LEAST_MEAN) {
            return refuse(format!(
                "burst and every have to be at least {LEAST_MEAN} (every=0s: no bursts)"
            ));
        }
        if self.fail == Share::ONE || self.burst_fail == Share::ONE {
            return refuse("with fail or burst_fail at 100% nothing is ever sent".to_owned());
        }
        match self.aggregate {
            1..=WifiSpec::MOST_AGGREGATE => Ok(()),
            _ => refuse(format!(
                "aggregate is 1 to {} packets",
                WifiSpec::MOST_AGGREGATE
            )),
        }
    }

    /// What full packets are carried at, if they never stop coming and nobody interferes: the mean
    /// over its rates.
    fn nominal(&self) -> Rate {
        let sum: u64 = self
            .rates
            .iter()
            .map(|&rate| wifi::saturated(self, rate))
            .sum();
        Rate::at_least_one(sum / self.rates.len().max(1) as u64)
    }
}

impl fmt::Display for WifiSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates: Vec<String> = self.rates.iter().map(Rate::to_string).collect();
        write!(
            f,
            "wifi:{},hold={},fail={}",
            rates.join("/"),
            self.hold,
            self.fail
        )?;
        write!(f, ",burst={},every={}", self.burst, self.every)?;
        write!(
            f,
            ",burst_fail={},aggregate={}",
            self.burst_fail, self.aggregate
        )
    }
}

/// The upstream of a cable modem, which asks before it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocsisSpec {
    /// What the subscriber pays for: the modem asks for no more.
    pub rate: Rate,
    /// The rate of the channel that all modems share.
    pub channel: Rate,
    /// The time that one allocation map (MAP) describes.
    pub map: Span,
    /// What is granted at once, at most.
    pub grant_bytes: u32,
    /// How much may be sent at the channel's rate after a pause: the maximum traffic burst.
    pub burst_bytes: u32,
    /// How likely a request in the contention region collides.
    pub collide: Share,
    /// How long the others are busy at a time, in the mean.
    pub busy: Span,
    /// How long they are not, in the mean; 0: they never are.
    pub every: Span,
    /// How likely a request collides while they are.
    pub busy_collide: Share,
    /// How likely a grant is put off to the next MAP, again and again, while they are.
    pub busy_defer: Share,
}

impl DocsisSpec {
    fn parse(text: &str) -> Result<DocsisSpec, RateSpecError> {
        let mut options = Options::of(text);
        let Some(rate) = options.first else {
            return Err(access_error(
                text,
                "the subscriber's rate is missing".to_owned(),
            ));
        };
        let share = |option: Option<Share>, billionths| match option {
            Some(share) => share,
            None => Share::exactly(billionths),
        };
        let spec = DocsisSpec {
            rate: rate.parse()?,
            channel: options
                .value("channel")?
                .unwrap_or(Rate::at_least_one(10_240_000)),
            map: options.value("map")?.unwrap_or(Span::from_ns(2_000_000)),
            grant_bytes: options.value("grant_bytes")?.unwrap_or(6000),
            burst_bytes: options.value("burst_bytes")?.unwrap_or(3044),
            collide: share(options.value("collide")?, 50_000_000),
            busy: options.value("busy")?.unwrap_or(Span::from_ns(200_000_000)),
            every: options
                .value("every")?
                .unwrap_or(Span::from_ns(1_000_000_000)),
            busy_collide: share(options.value("busy_collide")?, 500_000_000),
            busy_defer: share(options.value("busy_defer")?, 800_000_000),
        };
        options.finish()?;
        spec.check(text).map(|()| spec)
    }

    fn check(&self, text: &str) -> Result<(), RateSpecError> {
        let refuse = |why: String| Err(access_error(text, why));
        if self.channel < self.rate {
            let (channel, rate) = (self.channel, self.rate);
            return refuse(format!("a channel of {channel} cannot carry {rate}"));
        }
        if self.map < LEAST_MEAN {
            return refuse(format!("map has to be at least {LEAST_MEAN}"));
        }
        if self.every > Span::ZERO && (self.every < LEAST_MEAN || self.busy < LEAST_MEAN) {
            return refuse(format!(
                "busy and every have to be at least {LEAST_MEAN} (every=0s: never busy)"
            ));
        }
        if self.grant_bytes < FULL_PACKET_BYTES || self.burst_bytes < FULL_PACKET_BYTES {
            return refuse(format!(
                "grant_bytes and burst_bytes have to be at least {FULL_PACKET_BYTES}, a full packet"
            ));
        }
        let most = docsis::most_bits_per_s(self);
        if most < self.rate.bits_per_s() {
            let most = Rate::at_least_one(most);
            return refuse(format!(
                "a grant of {} bytes for each request carries {most} at most: raise grant_bytes or \
                 shorten map",
                self.grant_bytes
            ));
        }
        Ok(())
    }
}

impl fmt::Display for DocsisSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "docsis:{},channel={},map={}",
            self.rate, self.channel, self.map
        )?;
        write!(
            f,
            ",grant_bytes={},burst_bytes={}",
            self.grant_bytes, self.burst_bytes
        )?;
        write!(
            f,
            ",collide={},busy={},every={}",
            self.collide, self.busy, self.every
        )?;
        write!(
            f,
            ",busy_collide={},busy_defer={}",
            self.busy_collide, self.busy_defer
        )
    }
}

/// An access link that is shared with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessSpec {
    /// `wifi[:RATE/RATE/...]`
    Wifi(WifiSpec),
    /// `docsis:RATE`
    Docsis(DocsisSpec),
}

impl AccessSpec {
    /// Whether a text means one of these.
    pub(crate) fn is_meant_by(text: &str) -> bool {
        let kind = text.split(':').next().unwrap_or_default().trim();
        matches!(kind, "wifi" | "docsis")
    }

    /// The rate that queues are measured by: of full packets that never stop coming.
    pub(crate) fn nominal(&self) -> Rate {
        match self {
            AccessSpec::Wifi(wifi) => wifi.nominal(),
            AccessSpec::Docsis(docsis) => docsis.rate,
        }
    }

    /// The highest rate that lasts for a while.
    pub(crate) fn fastest(&self) -> Rate {
        match self {
            AccessSpec::Wifi(wifi) => wifi.rates.last().copied().unwrap_or(wifi.nominal()),
            AccessSpec::Docsis(docsis) => docsis.rate,
        }
    }
}

impl FromStr for AccessSpec {
    type Err = RateSpecError;

    fn from_str(text: &str) -> Result<AccessSpec, RateSpecError> {
        match Options::of(text).kind {
            "docsis" => DocsisSpec::parse(text).map(AccessSpec::Docsis),
            _ => WifiSpec::parse(text).map(AccessSpec::Wifi),
        }
    }
}

impl fmt::Display for AccessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessSpec::Wifi(wifi) => wifi.fmt(f),
            AccessSpec::Docsis(docsis) => docsis.fmt(f),
        }
    }
}

fn access_error(text: &str, why: String) -> RateSpecError {
    RateSpecError::Access {
        text: text.to_owned(),
        why,
    }
}

impl From<OptionFault> for RateSpecError {
    fn from(fault: OptionFault) -> RateSpecError {
        use crate::options::Fault;
        let option = &fault.option;
        let why = match &fault.fault {
            Fault::Unknown(known) => format!("no option {option:?}: {known}"),
            Fault::Bad(cause) => format!("option {option:?}: {cause}"),
        };
        access_error(&fault.text, why)
    }
}

#[cfg(test)]
mod tests {
    use crate::RateSpec;

    fn spec(text: &str) -> RateSpec {
        text.parse().unwrap()
    }

    #[test]
    fn an_access_link_is_written_as_it_is_read() {
        for text in [
            "wifi",
            "wifi:6mbit/54mbit,hold=100ms,fail=5%,burst=10ms,every=1s,burst_fail=50%,aggregate=1",
            "wifi:every=0s",
            "docsis:384kbit",
            "docsis:2mbit,channel=30mbit,map=4ms,grant_bytes=16000,collide=1%,busy_defer=10%",
        ] {
            let shown = spec(text).to_string();
            assert_eq!(spec(&shown), spec(text), "{shown}");
            assert_eq!(spec(&shown).to_string(), shown);
        }
        assert_eq!(spec("wifi:6mbit/54mbit").fastest().to_string(), "54mbit");
        assert_eq!(spec("docsis:384kbit").nominal().to_string(), "384kbit");
    }

    #[test]
    fn an_access_link_that_cannot_be_is_refused_with_the_next_step() {
        let error = |text: &str| text.parse::<RateSpec>().unwrap_err().to_string();
        assert!(error("wifi:54mbit/6mbit").contains("rates have to rise"));
        assert!(error("wifi:54mb").contains("unknown unit"));
        assert!(error("wifi:hold=1us").contains("hold has to be at least 1ms"));
        assert!(error("wifi:fail=100%").contains("nothing is ever sent"));
        assert!(error("wifi:burst=0s").contains("every=0s: no bursts"));
        assert!(error("wifi:aggregate=65").contains("1 to 64 packets"));
        assert!(error("wifi:agregate=6").contains("known are hold, fail"));
        assert!(error("docsis").contains("the subscriber's rate is missing"));
        assert!(error("docsis:20mbit").contains("a channel of 10.24mbit cannot carry 20mbit"));
        assert!(error("docsis:1mbit,map=0s").contains("map has to be at least 1ms"));
        assert!(error("docsis:1mbit,grant_bytes=100").contains("at least 1500, a full packet"));
        assert!(error("docsis:10mbit,map=10ms").contains("raise grant_bytes or shorten map"));
        assert!(error("docsis:1mbit,map").contains("option \"map\""));
    }
}
