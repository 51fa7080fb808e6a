//! Takes apart what people write for a queue or a transmitter: `kind:FIRST,name=value,flag`.

use std::fmt::Display;
use std::str::FromStr;

/// What is wrong with an option.
#[derive(Debug)]
pub(crate) struct OptionFault {
    /// The whole text.
    pub(crate) text: String,
    /// The option's name.
    pub(crate) option: String,
    pub(crate) fault: Fault,
}

#[derive(Debug)]
pub(crate) enum Fault {
    /// There is none of this name; the names there are.
    Unknown(String),
    /// Its value, or that there is one.
    Bad(String),
}

/// A text, taken apart. Each `value` and `flag` takes its option out; what is left at
/// [`Options::finish`] is an error.
pub(crate) struct Options<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: &'a str,
    /// What stands first and has no name: a size, a rate.
    pub(crate) first: Option<&'a str>,
    left: Vec<(&'a str, Option<&'a str>)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(crate) fn of(text: &'a str) -> Options<'a> {
        let (kind, rest) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let mut words = rest.split(',').map(str::trim).peekable();
        // It is no option.
        let first = words.next_if(|word| !word.contains('=') && !is_name(word));
        let left = words
            .map(|word| match word.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
                None => (word, None),
            })
            .collect();
        Options {
            text,
            kind: kind.trim_end(),
            first: first.filter(|first| !first.is_empty()),
            left,
            known: Vec::new(),
        }
    }

    /// The value of `name=value`, if it is given.
    pub(crate) fn value<T>(&mut self, name: &'static str) -> Result<Option<T>, OptionFault>
    where
        T: FromStr,
        T::Err: Display,
    {
        match self.take(name) {
            None => Ok(None),
            Some(value) => value
                .unwrap_or_default()
                .parse()
                .map(Some)
                .map_err(|cause: T::Err| self.bad(name, &cause)),
        }
    }

    /// Whether `name` is given, or `no-name`; `None`: neither.
    pub(crate) fn flag(
        &mut self,
        name: &'static str,
        negation: Option<&'static str>,
    ) -> Result<Option<bool>, OptionFault> {
        for (name, value) in [Some((name, true)), negation.map(|name| (name, false))]
            .into_iter()
            .flatten()
        {
            match self.take(name) {
                Some(Some(_)) => return Err(self.bad(name, &"it takes no value")),
                Some(None) => return Ok(Some(value)),
                None => {}
            }
        }
        Ok(None)
    }

    /// Refuses what no `value` or `flag` has taken.
    pub(crate) fn finish(self) -> Result<(), OptionFault> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        if self.known.contains(name) {
            return Err(self.bad(name, &"it is given twice"));
        }
        let known = match self.known.is_empty() {
            true => "there is none for this kind".to_owned(),
            false => format!("known are {}", self.known.join(", ")),
        };
        Err(OptionFault {
            text: self.text.to_owned(),
            option: (*name).to_owned(),
            fault: Fault::Unknown(known),
        })
    }

    fn take(&mut self, name: &'static str) -> Option<Option<&'a str>> {
        self.known.push(name);
        let at = self.left.iter().position(|(found, _)| *found == name)?;
        Some(self.left.remove(at).1)
    }

    fn bad(&self, option: &str, cause: &impl Display) -> OptionFault {
        OptionFault {
            text: self.text.to_owned(),
            option: option.to_owned(),
            fault: Fault::Bad(cause.to_string()),
        }
    }
}

/// Whether a word without a value is a flag rather than a size.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
}
