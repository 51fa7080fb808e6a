//! Takes apart what people write for a queue: `kind:LIMIT,name=value,flag`.

use std::fmt::Display;
use std::str::FromStr;

use crate::spec::QueueSpecError;
use crate::{QueueSize, QueueSizeError};

/// A queue's text, taken apart. Each `value` and `flag` takes its option out; what is left at
/// [`Options::finish`] is an error.
pub(crate) struct Options<'a> {
    text: &'a str,
    pub(crate) kind: &'a str,
    limit: Option<&'a str>,
    left: Vec<(&'a str, Option<&'a str>)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(crate) fn of(text: &'a str) -> Options<'a> {
        let (kind, rest) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let mut words = rest.split(',').map(str::trim).peekable();
        // The limit comes first and has no name.
        let limit = words.next_if(|word| !word.contains('=') && !is_name(word));
        let left = words
            .map(|word| match word.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
                None => (word, None),
            })
            .collect();
        Options {
            text,
            kind: kind.trim_end(),
            limit: limit.filter(|limit| !limit.is_empty()),
            left,
            known: Vec::new(),
        }
    }

    /// The size; `None` if none is given.
    pub(crate) fn limit(&self) -> Result<Option<QueueSize>, QueueSpecError> {
        let read = |text: &str| {
            text.parse()
                .map_err(|cause: QueueSizeError| QueueSpecError::BadLimit {
                    text: self.text.to_owned(),
                    why: format!(": {cause}"),
                })
        };
        self.limit.map(read).transpose()
    }

    /// The size of a queue that cannot do without.
    pub(crate) fn needed_limit(&self) -> Result<QueueSize, QueueSpecError> {
        self.limit()?.ok_or_else(|| QueueSpecError::BadLimit {
            text: self.text.to_owned(),
            why: format!(
                ": write it like \"{}:400\", \"{0}:64KiB\" or \"{0}:1bdp\"",
                self.kind
            ),
        })
    }

    /// The value of `name=value`, if it is given.
    pub(crate) fn value<T>(&mut self, name: &'static str) -> Result<Option<T>, QueueSpecError>
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
    ) -> Result<Option<bool>, QueueSpecError> {
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
    pub(crate) fn finish(self) -> Result<(), QueueSpecError> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let (text, option) = (self.text.to_owned(), (*name).to_owned());
        if self.known.contains(name) {
            let cause = "it is given twice".to_owned();
            return Err(QueueSpecError::BadOption {
                text,
                option,
                cause,
            });
        }
        let known = match self.known.is_empty() {
            true => "there is none for this kind".to_owned(),
            false => format!("known are {}", self.known.join(", ")),
        };
        Err(QueueSpecError::UnknownOption {
            text,
            option,
            known,
        })
    }

    fn take(&mut self, name: &'static str) -> Option<Option<&'a str>> {
        self.known.push(name);
        let at = self.left.iter().position(|(found, _)| *found == name)?;
        Some(self.left.remove(at).1)
    }

    fn bad(&self, option: &str, cause: &impl Display) -> QueueSpecError {
        QueueSpecError::BadOption {
            text: self.text.to_owned(),
            option: option.to_owned(),
            cause: cause.to_string(),
        }
    }
}

/// Whether a word without a value is a flag rather than a size.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
}
