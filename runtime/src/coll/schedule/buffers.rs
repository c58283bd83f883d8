//! Buffers of a reduction. A buffer knows the steps that use its memory, and orders them: a step that reads the buffer
//! waits for the last step that wrote it, and a step that writes the buffer waits for that step and for all steps that
//! have read the buffer since.

use crate::schedule::program::{Builder, StepId};
use crate::{Plan, Result};
use typepack_engine::Elements;

/// Maximum number of steps that may read a buffer between two writes. A reduction has at most two such steps per
/// round, and at most 4096 ranks, so at most 12 rounds.
const READERS: usize = 32;

/// Memory for the elements of a reduction: the caller's memory or scratch memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::coll) struct Buffer<'a> {
    /// The elements.
    pub part: Elements<&'a Plan>,
    /// Index of this buffer's first element in the whole reduction.
    pub first: u64,
    /// The last listed step that writes the buffer; `None` if no step writes it.
    writer: Option<StepId>,
    /// The steps that read the buffer after `writer`: the first `count` entries.
    readers: [Option<StepId>; READERS],
    count: usize,
}

impl<'a> Buffer<'a> {
    /// Returns a buffer that no step has used.
    pub fn new(part: Elements<&'a Plan>) -> Self {
        Self { part, first: 0, writer: None, readers: [None; READERS], count: 0 }
    }

    /// Returns a buffer in scratch memory for as many elements as `part` has, of the same type.
    pub fn scratch(steps: &mut Builder<'_, 'a>, part: &Elements<&'a Plan>) -> Self {
        let origin = steps.scratch(part.plan, part.count);
        Self::new(Elements { origin, ..*part })
    }

    /// Returns the last listed step that writes the buffer; `None` if no step writes it.
    pub fn writer(&self) -> Option<StepId> {
        self.writer
    }

    /// Records that `step` reads this buffer. The step waits for the last writer, and fails if that writer fails.
    pub fn read_by(&mut self, steps: &mut Builder<'_, 'a>, step: StepId) {
        if let Some(writer) = self.writer {
            steps.after(step, writer);
        }
        match self.readers.get_mut(self.count) {
            Some(free) => *free = Some(step),
            None => unreachable!("a reduction has at most {READERS} readers of a buffer"),
        }
        self.count += 1;
    }

    /// Records that `step` replaces the content of this buffer. The step waits for the last writer and the readers, and
    /// runs even if they fail.
    pub fn replaced_by(&mut self, steps: &mut Builder<'_, 'a>, step: StepId) {
        if let Some(writer) = self.writer {
            steps.follow(step, writer);
        }
        self.written_by(steps, step);
    }

    /// Records that `step` reads this buffer and writes its result to it. The step waits for the last writer and the
    /// readers, and fails if the last writer fails.
    pub fn updated_by(&mut self, steps: &mut Builder<'_, 'a>, step: StepId) {
        if let Some(writer) = self.writer {
            steps.after(step, writer);
        }
        self.written_by(steps, step);
    }

    /// Makes the last writer of this buffer wait for `earlier`, a step that uses the same memory.
    pub fn follows(&self, steps: &mut Builder<'_, 'a>, earlier: StepId) {
        if let Some(writer) = self.writer {
            steps.follow(writer, earlier);
        }
    }

    fn written_by(&mut self, steps: &mut Builder<'_, 'a>, step: StepId) {
        for reader in self.readers[..self.count].iter().flatten() {
            if *reader != step {
                steps.follow(step, *reader);
            }
        }
        self.count = 0;
        self.writer = Some(step);
    }

    /// Adds a step that combines the elements of `lower` with those of this buffer, and writes the result to this
    /// buffer.
    ///
    /// # Errors
    /// Returns an engine error if the number of packed bytes does not fit in 63 bits.
    pub fn combine(&mut self, steps: &mut Builder<'_, 'a>, lower: &mut Self) -> Result<()> {
        let (from, to) = (lower.part.origin, self.part.origin);
        let step = steps.combine_part(from, to, self.first, &self.part)?;
        lower.read_by(steps, step);
        self.updated_by(steps, step);
        Ok(())
    }

    /// Adds a step that copies the elements of `from` to this buffer. `rank` is this rank.
    ///
    /// # Errors
    /// Returns an engine error if the number of packed bytes does not fit in 63 bits.
    pub fn copy(
        &mut self,
        steps: &mut Builder<'_, 'a>,
        from: &mut Self,
        rank: usize,
    ) -> Result<()> {
        let step = steps.copy(&from.part, &self.part, rank)?;
        from.read_by(steps, step);
        self.replaced_by(steps, step);
        Ok(())
    }
}
