//! Packets that are lost on the wire, after they took their time in transmission.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::ImpairmentError;
use crate::Share;
use crate::dice::{Dice, Purpose};
use crate::text::serde_as_text;

/// Which packets are lost on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LossSpec {
    /// Each with this probability, whatever became of the others: `1%`.
    Bernoulli(Share),
    /// In bursts: `gilbert-elliott:p=1%,r=25%`.
    GilbertElliott(GilbertElliott),
    /// Exactly these, counted from 1 in the order of their transmission: `packets:3,5,9`. In
    /// rising order and each once.
    Packets(Arc<[u64]>),
}

/// A wire that is good or bad for a while (Gilbert 1960, Elliott 1963). It begins good. The state
/// in which a packet finds it decides over the packet; then it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GilbertElliott {
    /// From good to bad, at each packet: "p".
    pub p: Share,
    /// From bad to good, at each packet: "r".
    pub r: Share,
    /// Loss while bad: "1 - h"; 100 % in Gilbert's simple case.
    pub bad: Share,
    /// Loss while good: "1 - k"; 0 in Gilbert's simple case.
    pub good: Share,
}

const EXAMPLES: &str = "\"1%\", \"gilbert-elliott:p=1%,r=25%\" or \"packets:3,5,9\"";

fn error(text: &str, why: impl Into<String>) -> ImpairmentError {
    ImpairmentError {
        kind: "loss",
        text: text.to_owned(),
        why: why.into(),
        examples: EXAMPLES,
    }
}

impl FromStr for LossSpec {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<LossSpec, ImpairmentError> {
        match text.trim().split_once(':') {
            None => match text.parse::<Share>() {
                Ok(share) => Ok(LossSpec::Bernoulli(share)),
                Err(_) => Err(error(text, "it is no share from 0 to 1")),
            },
            Some(("gilbert-elliott", options)) => gilbert_elliott(text, options),
            Some(("packets", numbers)) => packets(text, numbers),
            Some((kind, _)) => Err(error(text, format!("no such kind {kind:?}"))),
        }
    }
}

fn gilbert_elliott(text: &str, options: &str) -> Result<LossSpec, ImpairmentError> {
    let (mut p, mut r, mut bad, mut good) = (None, None, Some(Share::ONE), Some(Share::ZERO));
    for option in options.split(',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let place = match name.trim() {
            "p" => &mut p,
            "r" => &mut r,
            "bad" => &mut bad,
            "good" => &mut good,
            _ => {
                return Err(error(
                    text,
                    format!("no such option {name:?}: known are p, r, bad, good"),
                ));
            }
        };
        let share: Share = value
            .parse()
            .map_err(|why| error(text, format!("{name}: {why}")))?;
        *place = Some(share);
    }
    match (p, r, bad, good) {
        (Some(p), Some(r), Some(bad), Some(good)) if r > Share::ZERO => {
            Ok(LossSpec::GilbertElliott(GilbertElliott { p, r, bad, good }))
        }
        (Some(_), Some(_), _, _) => Err(error(text, "with r=0 it would never be good again")),
        _ => Err(error(text, "p and r are needed")),
    }
}

fn packets(text: &str, numbers: &str) -> Result<LossSpec, ImpairmentError> {
    let mut list = Vec::new();
    for number in numbers.split(',') {
        match number.trim().parse() {
            Ok(0) | Err(_) => {
                let why = format!("{number:?} is no packet's number, the first being 1");
                return Err(error(text, why));
            }
            Ok(number) => list.push(number),
        }
    }
    Ok(LossSpec::these(&list))
}

impl LossSpec {
    /// Exactly these packets, the first being 1, in whatever order they are given.
    #[must_use]
    pub fn these(numbers: &[u64]) -> LossSpec {
        let mut list = numbers.to_vec();
        list.sort_unstable();
        list.dedup();
        LossSpec::Packets(list.into())
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Bernoulli(share) => share.fmt(f),
            LossSpec::GilbertElliott(GilbertElliott { p, r, bad, good }) => {
                write!(f, "gilbert-elliott:p={p},r={r}")?;
                if *bad != Share::ONE {
                    write!(f, ",bad={bad}")?;
                }
                if *good != Share::ZERO {
                    write!(f, ",good={good}")?;
                }
                Ok(())
            }
            LossSpec::Packets(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                write!(f, "packets:{}", numbers.join(","))
            }
        }
    }
}

serde_as_text!(LossSpec, ImpairmentError);

/// The losing wire itself.
#[derive(Debug)]
pub(super) enum Loss {
    Bernoulli {
        chance: Share,
        dice: Dice,
    },
    GilbertElliott {
        model: GilbertElliott,
        is_bad: bool,
        dice: Dice,
    },
    Packets {
        numbers: Arc<[u64]>,
        next: usize,
        seen: u64,
    },
}

impl Loss {
    pub(super) fn new(spec: &LossSpec, seed: u64) -> Loss {
        let dice = Dice::new(seed, Purpose::Loss);
        match spec {
            &LossSpec::Bernoulli(chance) => Loss::Bernoulli { chance, dice },
            &LossSpec::GilbertElliott(model) => Loss::GilbertElliott {
                model,
                is_bad: false,
                dice,
            },
            LossSpec::Packets(numbers) => Loss::Packets {
                numbers: Arc::clone(numbers),
                next: 0,
                seen: 0,
            },
        }
    }

    /// Whether the next packet is lost.
    pub(super) fn takes_next(&mut self) -> bool {
        match self {
            Loss::Bernoulli { chance, dice } => dice.happens(*chance),
            Loss::GilbertElliott {
                model,
                is_bad,
                dice,
            } => {
                let (loss, change) = match is_bad {
                    true => (model.bad, model.r),
                    false => (model.good, model.p),
                };
                let lost = dice.happens(loss);
                *is_bad ^= dice.happens(change);
                lost
            }
            Loss::Packets {
                numbers,
                next,
                seen,
            } => {
                *seen += 1;
                let lost = numbers.get(*next) == Some(seen);
                *next += usize::from(lost);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(text: &str, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(&text.parse().unwrap(), 7);
        (0..packets).map(|_| loss.takes_next()).collect()
    }

    fn share_lost(text: &str) -> f64 {
        let lost = lost(text, 1_000_000);
        lost.iter().filter(|&&lost| lost).count() as f64 / 1e6
    }

    #[test]
    fn the_packets_named_are_lost_and_no_others() {
        let lost = lost("packets:5,1,3,3", 7);
        assert_eq!(lost, [true, false, true, false, true, false, false]);
    }

    #[test]
    fn bernoulli_loses_its_share() {
        assert!((share_lost("1%") - 0.01).abs() < 0.0005);
        assert!((share_lost("0") - 0.0).abs() < f64::EPSILON);
        assert!((share_lost("100%") - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn gilbert_elliott_loses_in_bursts_of_1_over_r() {
        // Bad for p / (p + r) = 1/26 of the packets, 4 at a time.
        let lost = lost("gilbert-elliott:p=1%,r=25%", 1_000_000);
        let packets = lost.iter().filter(|&&lost| lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((packets / 1e6 - 1.0 / 26.0).abs() < 0.002, "{packets}");
        assert!(
            (packets / bursts - 4.0).abs() < 0.15,
            "{}",
            packets / bursts
        );
        // Half of the packets while bad, a tenth while good: (0.5 + 25 * 0.1) / 26.
        let share = share_lost("gilbert-elliott:p=1%,r=25%,bad=50%,good=10%");
        assert!((share - 3.0 / 26.0).abs() < 0.003, "{share}");
    }

    #[test]
    fn a_loss_is_written_as_it_is_read() {
        for text in [
            "1%",
            "0.001%",
            "gilbert-elliott:p=1%,r=25%",
            "gilbert-elliott:p=1%,r=25%,bad=50%,good=10%",
            "packets:3,5,9",
        ] {
            let spec: LossSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<LossSpec>(&json).unwrap(), spec);
        }
    }

    #[test]
    fn a_loss_that_cannot_be_is_refused_with_the_next_step() {
        let error = |text: &str| text.parse::<LossSpec>().unwrap_err().to_string();
        assert!(error("much").contains("no share from 0 to 1; write it like \"1%\""));
        assert!(error("101%").contains("no share"));
        assert!(error("burst:3").contains("no such kind \"burst\""));
        assert!(error("gilbert-elliott:p=1%").contains("p and r are needed"));
        assert!(error("gilbert-elliott:p=1%,r=0").contains("never be good again"));
        assert!(error("gilbert-elliott:p=1%,q=1%").contains("known are p, r, bad, good"));
        assert!(error("gilbert-elliott:p=x,r=1%").contains("p: \"x\" is no share"));
        assert!(error("packets:0").contains("the first being 1"));
        assert!(error("packets:").contains("the first being 1"));
    }
}
