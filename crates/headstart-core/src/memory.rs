//! The path memory's rules: what is folded into an entry, and when an entry may be used.

use crate::abi::{
    Event, MemoryWords, NativeParam, Path, Proof, native_memory_params, su_native_path_learn,
    su_native_path_recall,
};
use crate::registry::{Param, ParamError, nearest, rows};

/// What a lesson did to an entry (`enum su_learnt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// Nothing.
    Nothing,
    /// The entry is another one.
    Something,
    /// What was known was wrong: the entry is empty, and is to be thrown away.
    ToForget,
}

/// The path memory's parameters, all within their ranges. One memory serves all start-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryParams {
    words: MemoryWords,
}

/// As errors and lists call it.
const NAME: &str = "memory";

impl Default for MemoryParams {
    fn default() -> Self {
        let mut words = MemoryWords::default();
        for (word, param) in words.0.iter_mut().zip(MemoryParams::params()) {
            *word = param.default;
        }
        MemoryParams { words }
    }
}

impl MemoryParams {
    /// The parameters there are, in the order of `struct su_memory_params`.
    pub fn params() -> impl Iterator<Item = Param> {
        rows(native_memory_params() as &'static [NativeParam])
    }

    /// Sets one parameter.
    ///
    /// # Errors
    /// [`ParamError`]: no such parameter, or a value out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), ParamError> {
        let known = MemoryParams::params().enumerate();
        let Some((index, param)) = known.into_iter().find(|(_, param)| param.name == name) else {
            return Err(ParamError::Unknown {
                startup: NAME,
                name: name.to_owned(),
                hint: nearest(name, MemoryParams::params().map(|param| param.name)),
                known: MemoryParams::params().map(|param| param.name).collect(),
            });
        };
        self.words.0[index] = param.check(NAME, value)?;
        Ok(())
    }

    /// The value of a parameter, by name.
    pub fn get(&self, name: &str) -> Option<u32> {
        let index = MemoryParams::params().position(|param| param.name == name)?;
        self.words.0.get(index).copied()
    }

    /// The values as the C side reads them.
    pub fn words(&self) -> &MemoryWords {
        &self.words
    }

    /// Folds a connection into what is remembered of its path, whose age is set.
    pub fn learn(&self, path: &mut Path, event: &Event, proof: Proof) -> Learnt {
        // SAFETY: all pointers are to live values of the C layout (sizes asserted on both sides); the C side keeps
        // none of them.
        match unsafe { su_native_path_learn(path, &raw const self.words, event, proof) } {
            0 => Learnt::Nothing,
            1 => Learnt::Something,
            _ => Learnt::ToForget,
        }
    }

    /// What a start-up is told of a path by the connection as `event` shows it: the entry, capped; or, where it may
    /// not be used, a path without a window, which carries the reason. The reason's number comes back; it is that of
    /// "path-known" where the entry may be used.
    pub fn recall(&self, path: &mut Path, event: &Event) -> u8 {
        // SAFETY: as in `learn`.
        let why = unsafe { su_native_path_recall(path, &raw const self.words, event) };
        u8::try_from(why).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_in_its_range_and_a_wrong_value_is_refused_with_it() {
        for param in MemoryParams::params() {
            assert!(
                (param.min..=param.max).contains(&param.default),
                "{param:?}"
            );
        }
        let mut params = MemoryParams::default();
        assert_eq!(
            params.set("lifetime_s", 0).unwrap_err().to_string(),
            "memory: lifetime_s must be 1 to 604800 s (got 0)"
        );
        let error = params.set("lifetime", 1).unwrap_err().to_string();
        assert!(error.contains("did you mean \"lifetime_s\"?"), "{error}");
        params.set("lifetime_s", 60).unwrap();
        assert_eq!(params.get("lifetime_s"), Some(60));
    }
}
