//! Cross-traffic as people write it: `bulk:10`, `bulk:5,up,window=8KiB`, `web:20,size=10KiB,think=1s`.

use std::fmt;
use std::str::FromStr;

use headstart_link::Span;

use super::{BackgroundConfig, MOST_FLOWS, Traffic};
use crate::packets::Direction;

/// A user's page and pause, where nothing else is said: the example of the help.
const MEAN_PAGE_BYTES: u64 = 10 * 1024;
const MEAN_THINK: Span = Span::from_ns(1_000_000_000);

/// The least window: Linux clamps none below half of its smallest receive buffer
/// (`SOCK_MIN_RCVBUF` / 2, net/ipv4/tcp.c), and a full segment has to fit.
const LEAST_WINDOW_BYTES: u64 = 2048;

/// A text that is no cross-traffic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "background {text:?}: {why}; write it like \"bulk:10\", \"bulk:5,up,window=8KiB,congestion=reno,start=2s\" \
     or \"web:20,size=10KiB,think=1s\""
)]
pub struct BackgroundSpecError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl BackgroundConfig {
    /// What is wrong with it, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let flows = self.traffic.flows();
        if !(1..=MOST_FLOWS).contains(&flows) {
            return Err(format!("{flows} flows: there can be 1 to {MOST_FLOWS}"));
        }
        if let Some(bytes) = self.window_bytes {
            if u64::from(bytes) < LEAST_WINDOW_BYTES {
                return Err(format!(
                    "a window of {bytes} bytes: at least {LEAST_WINDOW_BYTES} are needed"
                ));
            }
        }
        if let Traffic::Web { mean_bytes: 0, .. } = self.traffic {
            return Err("pages of 0 bytes".to_owned());
        }
        match &self.congestion {
            // The kernel's TCP_CA_NAME_MAX is 16, with the zero byte.
            Some(name) if name.is_empty() || name.len() > 15 => {
                Err(format!("{name:?} is no name of a congestion control"))
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for BackgroundConfig {
    type Err = BackgroundSpecError;

    fn from_str(text: &str) -> Result<BackgroundConfig, BackgroundSpecError> {
        read(text).map_err(|why| BackgroundSpecError {
            text: text.to_owned(),
            why,
        })
    }
}

fn read(text: &str) -> Result<BackgroundConfig, String> {
    let mut words = text.split(',').map(str::trim);
    let (kind, count) = words
        .next()
        .and_then(|first| first.split_once(':'))
        .ok_or("it says not how many")?;
    let count: u16 = count
        .trim()
        .parse()
        .map_err(|_| format!("{count:?} is no number from 1 to {MOST_FLOWS}"))?;
    let mut config = BackgroundConfig {
        traffic: match kind.trim() {
            "bulk" => Traffic::Bulk { flows: count },
            "web" => Traffic::Web {
                users: count,
                mean_bytes: MEAN_PAGE_BYTES,
                mean_think: MEAN_THINK,
            },
            other => return Err(format!("there is no kind {other:?}, only bulk and web")),
        },
        direction: Direction::Forward,
        window_bytes: None,
        congestion: None,
        start: Span::from_ns(0),
    };
    for word in words {
        match word.split_once('=') {
            None => match word {
                "up" => config.direction = Direction::Reverse,
                "down" => config.direction = Direction::Forward,
                other => return Err(format!("there is no option {other:?}")),
            },
            Some((name, value)) => config.set(name.trim(), value.trim())?,
        }
    }
    config.check()?;
    Ok(config)
}

impl BackgroundConfig {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let span = || value.parse::<Span>().map_err(|error| error.to_string());
        match (name, &mut self.traffic) {
            ("window", _) => {
                let bytes = bytes(value)?;
                self.window_bytes = Some(
                    u32::try_from(bytes).map_err(|_| format!("{value:?} is too large a window"))?,
                );
            }
            ("congestion", _) => self.congestion = Some(value.to_owned()),
            ("start", _) => self.start = span()?,
            ("size", Traffic::Web { mean_bytes, .. }) => *mean_bytes = bytes(value)?,
            ("think", Traffic::Web { mean_think, .. }) => *mean_think = span()?,
            ("size" | "think", _) => {
                return Err(format!("{name} is an option of web, not of bulk"));
            }
            (other, _) => return Err(format!("there is no option {other:?}")),
        }
        Ok(())
    }
}

/// `8KiB`, `10kB`, `1500B` or plain bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "KiB" => 1024,
        "MB" => 1_000_000,
        "MiB" => 1024 * 1024,
        other => {
            return Err(format!(
                "{other:?} is no unit of size: there are B, kB, KiB, MB, MiB"
            ));
        }
    };
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is no size, like 8KiB"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("{text:?} is too large"))
}

impl fmt::Display for BackgroundConfig {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.traffic {
            Traffic::Bulk { flows } => write!(f, "bulk:{flows}")?,
            Traffic::Web {
                users,
                mean_bytes,
                mean_think,
            } => write!(f, "web:{users},size={mean_bytes}B,think={mean_think}")?,
        }
        if self.direction == Direction::Reverse {
            f.write_str(",up")?;
        }
        if let Some(bytes) = self.window_bytes {
            write!(f, ",window={bytes}B")?;
        }
        if let Some(name) = &self.congestion {
            write!(f, ",congestion={name}")?;
        }
        if self.start.as_ns() > 0 {
            write!(f, ",start={}", self.start)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for (text, again) in [
            ("bulk:10", "bulk:10"),
            ("bulk:5, up", "bulk:5,up"),
            ("bulk:1,down,window=8KiB", "bulk:1,window=8192B"),
            (
                "bulk:2,congestion=reno,start=2s",
                "bulk:2,congestion=reno,start=2s",
            ),
            ("web:20", "web:20,size=10240B,think=1s"),
            (
                "web:3,size=1MB,think=200ms,up",
                "web:3,size=1000000B,think=200ms,up",
            ),
        ] {
            let config: BackgroundConfig = text.parse().unwrap();
            assert_eq!(config.to_string(), again);
            assert_eq!(again.parse::<BackgroundConfig>().unwrap(), config);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        for (text, why) in [
            ("bulk", "how many"),
            ("bulk:0", "1 to 1000"),
            ("bulk:70000", "no number"),
            ("ftp:1", "no kind \"ftp\""),
            ("bulk:1,sideways", "no option \"sideways\""),
            ("bulk:1,size=1kB", "option of web"),
            ("bulk:1,window=1kB", "at least 2048"),
            ("bulk:1,window=8XB", "no unit"),
            ("web:1,size=0", "0 bytes"),
            ("web:1,think=soon", "soon"),
            ("bulk:1,congestion=a-name-that-is-too-long", "no name"),
        ] {
            let said = text.parse::<BackgroundConfig>().unwrap_err().to_string();
            assert!(
                said.contains(why) && said.contains("bulk:10"),
                "{text}: {said}"
            );
        }
    }
}
