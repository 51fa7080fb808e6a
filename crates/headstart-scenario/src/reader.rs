//! Walks a TOML document by hand, because every complaint has to name its line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use headstart_link::{Distribution, Quantity, RateSpec, Trace};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{ByteSize, Fault, ScenarioError};

/// A key that a table may have, with a value as it could be (as TOML).
#[derive(Clone, Copy)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// A value as it could be.
    pub example: &'static str,
}

impl Key {
    fn line_as_it_could_be(self) -> String {
        match self.example {
            table if table.starts_with('[') && self.name != "startups" => table.to_owned(),
            value => format!("{} = {value}", self.name),
        }
    }
}

/// The file that is read: it turns positions into lines, and faults into errors.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Its name, as the user gave it.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// The document as a table of tables.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn document(&self) -> Result<Spanned<DeTable<'a>>, ScenarioError> {
        DeTable::parse(self.text).map_err(|error| {
            let position = error.span().map_or(0, |span| span.start);
            let message = error.message().trim_end().replace('\n', ", ");
            self.error(self.line_at(position), Fault::Syntax(message))
        })
    }

    /// What is wrong at `line`.
    pub fn error(&self, line: usize, fault: Fault) -> ScenarioError {
        ScenarioError {
            file: self.file.to_owned(),
            line: Some(line),
            fault: Box::new(fault),
        }
    }

    /// The text of a file that is named from where the scenario is.
    fn beside(&self, file: &str) -> io::Result<String> {
        let folder = Path::new(self.file).parent().unwrap_or(Path::new(""));
        fs::read_to_string(folder.join(file))
    }

    fn line_at(&self, position: usize) -> usize {
        let before = &self.text.as_bytes()[..position.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// A table of the document and what is needed to complain about it.
#[derive(Clone)]
pub struct Table<'a> {
    /// The file.
    pub source: Source<'a>,
    /// `in [path]`, `at the top level`.
    pub place: String,
    /// Where it begins, from 1.
    pub line: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The document's own table.
    pub fn top(source: Source<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        let place = "at the top level".to_owned();
        let entries = document.get_ref();
        Self {
            source,
            place,
            line: 1,
            entries,
        }
    }

    /// Refuses the first key, in the order of the file, that is none of `known`.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn only(&self, known: &[Key]) -> Result<(), ScenarioError> {
        let stranger = self
            .entries
            .keys()
            .filter(|key| {
                !known
                    .iter()
                    .any(|known| known.name == key.get_ref().as_ref())
            })
            .min_by_key(|key| key.span().start);
        let Some(key) = stranger else { return Ok(()) };
        let fault = Fault::UnknownKey {
            key: key.get_ref().to_string(),
            place: self.place.clone(),
            known: known.iter().map(|known| known.name.to_owned()).collect(),
        };
        Err(self
            .source
            .error(self.source.line_at(key.span().start), fault))
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: Key) -> Option<Value<'a>> {
        let value = self.entries.get(key.name)?;
        Some(self.value(key.name.to_owned(), key.example, value))
    }

    /// The value of `key`, which has to be there.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn need(&self, key: Key) -> Result<Value<'a>, ScenarioError> {
        self.get(key).ok_or_else(|| {
            let fault = Fault::MissingKey {
                key: key.name,
                place: self.place.clone(),
                example: key.line_as_it_could_be(),
            };
            self.source.error(self.line, fault)
        })
    }

    /// What is wrong with `key`, where no line of the file says it.
    pub(crate) fn bad(&self, key: Key, cause: &dyn Display) -> ScenarioError {
        let (place, cause) = (self.place.clone(), cause.to_string());
        let key = key.name;
        self.source
            .error(self.line, Fault::BadValue { key, place, cause })
    }

    /// All keys with their values, by the order of the file.
    pub fn entries(&self, example: &'static str) -> Vec<(String, Value<'a>)> {
        let in_order: BTreeMap<usize, _> = self
            .entries
            .iter()
            .map(|entry| (entry.0.span().start, entry))
            .collect();
        let named = in_order.into_values().map(|(key, value)| {
            let name = key.get_ref().to_string();
            (name.clone(), self.value(name, example, value))
        });
        named.collect()
    }

    fn value(
        &self,
        key: String,
        example: &'static str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Value<'a> {
        Value {
            source: self.source,
            line: self.source.line_at(value.span().start),
            place: self.place.clone(),
            value: value.get_ref(),
            key,
            example,
        }
    }
}

/// A value of the document and what is needed to complain about it.
pub struct Value<'a> {
    source: Source<'a>,
    /// Where it begins, from 1.
    pub line: usize,
    place: String,
    key: String,
    example: &'static str,
    value: &'a DeValue<'a>,
}

impl<'a> Value<'a> {
    /// What is wrong with it.
    pub fn error(&self, fault: Fault) -> ScenarioError {
        self.source.error(self.line, fault)
    }

    fn wrong_type(&self, wanted: &'static str) -> ScenarioError {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let example = match self.example {
            table if wanted.contains("table") => table.to_owned(),
            value => format!("{} = {value}", self.key),
        };
        self.error(Fault::WrongType {
            key: self.key.clone(),
            place: self.place.clone(),
            found: found.to_owned(),
            wanted,
            example,
        })
    }

    /// The value as true or false.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn truth(&self) -> Result<bool, ScenarioError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    /// The value as text.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn text(&self) -> Result<&'a str, ScenarioError> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong_type("a string"))
    }

    /// The value as text that says something.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn words(&self, key: Key) -> Result<&'a str, ScenarioError> {
        let text = self.text()?;
        if text.trim().is_empty() {
            let example = key.line_as_it_could_be();
            let place = self.place.clone();
            return Err(self.error(Fault::Empty {
                key: key.name,
                place,
                example,
            }));
        }
        Ok(text)
    }

    /// The value as a rate, duration or queue written as text.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn parsed<T>(&self, key: Key) -> Result<T, ScenarioError>
    where
        T: FromStr<Err: Display>,
    {
        self.text()?
            .parse()
            .map_err(|cause: T::Err| self.bad(key, &cause))
    }

    /// The value as a distribution; a file that it names stands beside the scenario.
    pub(crate) fn distribution<Q: Quantity>(
        &self,
        key: Key,
    ) -> Result<Distribution<Q>, ScenarioError> {
        let read = |file: &str| self.source.beside(file).map_err(|error| error.to_string());
        Distribution::parse_with(self.text()?, read).map_err(|cause| self.bad(key, &cause))
    }

    /// The value as the name of a trace that stands beside the scenario.
    pub(crate) fn trace(&self, key: Key) -> Result<RateSpec, ScenarioError> {
        let file = self.words(key)?;
        let text = self.source.beside(file).map_err(|error| {
            let cause = format!("the trace {file:?} cannot be read: {error}; give its path from where the scenario is");
            self.bad(key, &cause)
        })?;
        let trace = Trace::parse(file, &text).map_err(|cause| self.bad(key, &cause))?;
        Ok(RateSpec::Trace(trace))
    }

    /// A value that is refused for `cause`, which says what to write instead.
    pub fn bad(&self, key: Key, cause: &dyn Display) -> ScenarioError {
        let cause = cause.to_string();
        self.error(Fault::BadValue {
            key: key.name,
            place: self.place.clone(),
            cause,
        })
    }

    /// The value as a truth value.
    pub(crate) fn flag(&self) -> Result<bool, ScenarioError> {
        let flag = self.value.as_bool();
        flag.ok_or_else(|| self.wrong_type("a truth value"))
    }

    /// The value as one of a few names.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn one_of<T: Copy>(
        &self,
        object: &'static str,
        names: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        let name = self.text()?;
        let found = names.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).ok_or_else(|| {
            self.error(Fault::UnknownName {
                object,
                name: name.to_owned(),
                place: self.place.clone(),
                known: names.iter().map(|(known, _)| (*known).to_owned()).collect(),
            })
        })
    }

    /// The value as a whole number of `min` to `max`.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn whole(&self, min: u64, max: u64) -> Result<u64, ScenarioError> {
        let DeValue::Integer(integer) = self.value else {
            return Err(self.wrong_type("a whole number"));
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| {
                self.error(Fault::OutOfRange {
                    key: self.key.clone(),
                    place: self.place.clone(),
                    value: integer.to_string(),
                    min,
                    max,
                })
            })
    }

    /// The value as an amount of data that is not 0: a text with a unit, or a number of bytes.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn size(&self, key: Key) -> Result<ByteSize, ScenarioError> {
        let size = match self.value {
            DeValue::Integer(_) => ByteSize::from_bytes(self.whole(0, i64::MAX.cast_unsigned())?),
            DeValue::String(_) => self.parsed(key)?,
            _ => return Err(self.wrong_type("a size")),
        };
        if size.bytes() == 0 {
            let place = self.place.clone();
            return Err(self.error(Fault::Zero {
                key: key.name,
                place,
                least: "\"1B\"",
            }));
        }
        Ok(size)
    }

    /// Whether it is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.value.as_array().is_some()
    }

    /// The value as a table that stands `place`.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn table(&self, place: String) -> Result<Table<'a>, ScenarioError> {
        let entries = self
            .value
            .as_table()
            .ok_or_else(|| self.wrong_type("a table"))?;
        Ok(Table {
            source: self.source,
            place,
            line: self.line,
            entries,
        })
    }

    /// The value as a list, its items with the key and place of the list itself.
    ///
    /// # Errors
    /// [`ScenarioError`], with the line, where it is not.
    pub fn list(&self, wanted: &'static str) -> Result<Vec<Value<'a>>, ScenarioError> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong_type(wanted))?;
        let item = |value: &'a Spanned<DeValue<'a>>| Value {
            source: self.source,
            line: self.source.line_at(value.span().start),
            place: self.place.clone(),
            key: self.key.clone(),
            example: self.example,
            value: value.get_ref(),
        };
        Ok(array.iter().map(item).collect())
    }
}
