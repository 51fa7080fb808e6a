//! Initial windows of destinations and listeners.

use std::str::FromStr;

use libbpf_rs::{MapCore, MapFlags};

use crate::contract::{self, RawWindowKey};
use crate::error::KernelError;
use crate::paths::Prefix;

/// The largest initial window, in packets: that of `su_standard`'s parameter.
const MOST_PKTS: u8 = 100;

/// The initial window of connections to a destination, from a listener, or both.
///
/// Written `10.0.0.0/8=30`, `:8080=3`, `10.0.0.0/8:8080=5`, `[fd00::/8]:80=4`. A rule for a port stands above one
/// for any port; among those, the longest prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRule {
    /// The destinations; `None` is all of IPv4 and IPv6.
    pub prefix: Option<Prefix>,
    /// Our port; `None` is any.
    pub local_port: Option<u16>,
    /// The window, 1 to 100 packets.
    pub iw_pkts: u8,
}

/// Why a rule was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text}: {why}; write PREFIX=PKTS, :PORT=PKTS, or both, e.g. 10.0.0.0/8:8080=5 or [fd00::/8]:80=4"
)]
pub struct WindowRuleError {
    text: String,
    why: String,
}

impl FromStr for WindowRule {
    type Err = WindowRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: String| WindowRuleError {
            text: text.to_owned(),
            why,
        };
        let (whom, window) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no =".to_owned()))?;
        let iw_pkts = window
            .parse()
            .ok()
            .filter(|pkts| (1..=MOST_PKTS).contains(pkts))
            .ok_or_else(|| {
                wrong(format!(
                    "the window must be 1 to {MOST_PKTS} pkts (got {window})"
                ))
            })?;
        // An IPv6 prefix has colons of its own: with a port it stands in brackets.
        let (prefix, port) = match whom.strip_prefix('[') {
            Some(rest) => rest
                .split_once(']')
                .ok_or_else(|| wrong("a bracket is not closed".to_owned()))?,
            None if whom.matches(':').count() > 1 => (whom, ""),
            None => whom.split_at(whom.find(':').unwrap_or(whom.len())),
        };
        let local_port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some(number) => Some(
                number
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or_else(|| wrong(format!("\"{number}\" is no port")))?,
            ),
            None => return Err(wrong(format!("\"{port}\" is no port"))),
        };
        let prefix = match prefix {
            "" => None,
            prefix => Some(prefix.parse().map_err(|error| wrong(format!("{error}")))?),
        };
        if prefix.is_none() && local_port.is_none() {
            return Err(wrong("neither a destination nor a port".to_owned()));
        }
        Ok(WindowRule {
            prefix,
            local_port,
            iw_pkts,
        })
    }
}

impl WindowRule {
    pub(crate) fn write(&self, map: &impl MapCore) -> Result<(), KernelError> {
        let everywhere = [
            Prefix::of(std::net::Ipv4Addr::UNSPECIFIED.into(), 0),
            Prefix::of(std::net::Ipv6Addr::UNSPECIFIED.into(), 0),
        ];
        for prefix in self
            .prefix
            .as_ref()
            .map_or(&everywhere[..], std::slice::from_ref)
        {
            let raw = prefix.raw();
            let key = RawWindowKey {
                match_bits: 32 + u32::from(raw.bits),
                family: raw.family,
                reserved: 0,
                local_port: self.local_port.unwrap_or(0),
                addr: raw.addr,
            };
            let window = u32::from(self.iw_pkts).to_ne_bytes();
            map.update(contract::bytes_of(&key), &window, MapFlags::ANY)
                .map_err(|error| {
                    KernelError::operation(format!("setting the initial window of {prefix}"), error)
                })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        let rule = |text: &str| text.parse::<WindowRule>().unwrap();
        let prefix = |text: &str| Some(text.parse::<Prefix>().unwrap());
        let made = |prefix, local_port, iw_pkts| WindowRule {
            prefix,
            local_port,
            iw_pkts,
        };
        assert_eq!(rule("10.0.0.0/8=30"), made(prefix("10.0.0.0/8"), None, 30));
        assert_eq!(rule(":8080=3"), made(None, Some(8080), 3));
        assert_eq!(
            rule("10.1.2.3:80=1"),
            made(prefix("10.1.2.3/32"), Some(80), 1)
        );
        assert_eq!(rule("fd00::/8=100"), made(prefix("fd00::/8"), None, 100));
        assert_eq!(
            rule("[fd00::/8]:80=4"),
            made(prefix("fd00::/8"), Some(80), 4)
        );
    }

    #[test]
    fn a_wrong_rule_is_refused_with_what_is_wrong() {
        for (text, word) in [
            ("10.0.0.0/8", "there is no ="),
            ("10.0.0.0/8=0", "1 to 100 pkts (got 0)"),
            ("10.0.0.0/8=101", "1 to 100 pkts (got 101)"),
            ("10.0.0.0/33=3", "32 bits"),
            ("10.0.0/8=3", "no address"),
            (":0=3", "no port"),
            ("[fd00::/8=3", "not closed"),
            ("=3", "neither"),
        ] {
            let error = text.parse::<WindowRule>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
