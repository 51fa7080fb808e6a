//! What a receiver holds beyond the next byte that it expects, and what it tells of that.

use std::collections::VecDeque;

use crate::packet::{Block, Blocks};

/// Runs of bytes that came before others that they follow.
#[derive(Debug, Default)]
pub(crate) struct OutOfOrder {
    /// In order; they do not touch.
    runs: VecDeque<Block>,
    /// Those that grew last, the last one first (RFC 2018, section 4).
    recent: Blocks,
    /// What came twice and has not been told yet (RFC 2883).
    duplicate: Option<Block>,
}

impl OutOfOrder {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Behind the last byte.
    pub(crate) fn end(&self) -> Option<u64> {
        self.runs.back().map(|last| last.end)
    }

    pub(crate) fn recent(&self) -> &Blocks {
        &self.recent
    }

    pub(crate) fn came_twice(&mut self, run: Block) {
        self.duplicate = Some(run);
    }

    pub(crate) fn take_duplicate(&mut self) -> Option<Block> {
        self.duplicate.take()
    }

    pub(crate) fn keep(&mut self, mut run: Block) {
        // The common places: the end of the last run, or beyond it.
        let from = match self.runs.back() {
            Some(last) if run.start > last.end => self.runs.len(),
            Some(last) if run.start >= last.start => self.runs.len() - 1,
            _ => self.runs.partition_point(|other| other.end < run.start),
        };
        let mut to = from;
        while let Some(other) = self.runs.get(to) {
            if other.start > run.end {
                break;
            }
            if other.start <= run.start && other.end >= run.end {
                self.duplicate = Some(run);
                let other = *other;
                return self.remember(other);
            }
            run.start = run.start.min(other.start);
            run.end = run.end.max(other.end);
            to += 1;
        }
        match to - from {
            0 => self.runs.insert(from, run),
            1 => self.runs[from] = run,
            _ => {
                self.runs[from] = run;
                self.runs.drain(from + 1..to);
            }
        }
        self.remember(run);
    }

    /// `run` is the newest; those that it has swallowed are forgotten.
    fn remember(&mut self, run: Block) {
        let mut recent = Blocks::default();
        recent.push(run);
        for old in self.recent.iter() {
            let swallowed = old.start >= run.start && old.end <= run.end;
            if !swallowed {
                recent.push(old);
            }
        }
        self.recent = recent;
    }

    /// All before `next` has come. Returns how far it has come with the runs behind that, which are no longer out of
    /// order.
    pub(crate) fn join(&mut self, mut next: u64) -> u64 {
        while let Some(run) = self.runs.front() {
            if run.start > next {
                break;
            }
            next = next.max(run.end);
            self.runs.pop_front();
        }
        let mut recent = Blocks::default();
        self.recent
            .iter()
            .filter(|run| run.start > next)
            .for_each(|run| recent.push(run));
        self.recent = recent;
        next
    }
}
