//! Counts operations that begin in one order and may end in another order, such as the requests of a rank.

use std::collections::BTreeSet;

/// Numbers operations in the order in which they begin: 1, 2, 3 and so on.
#[derive(Debug, Default)]
pub(in crate::rma) struct CompletionCounter {
    started: u64,
    /// The numbers of the operations that have begun and not ended.
    open: BTreeSet<u64>,
}

impl CompletionCounter {
    /// Counts an operation that begins. Returns the number of the operation.
    pub fn begin(&mut self) -> u64 {
        self.started += 1;
        self.open.insert(self.started);
        self.started
    }

    /// Counts an operation that ends at once.
    #[inline]
    pub fn pass(&mut self) {
        self.started += 1;
    }

    /// Ends the operation with this number.
    pub fn end(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Returns the greatest number up to which all operations have ended.
    #[inline]
    pub fn over(&self) -> u64 {
        self.open.first().map_or(self.started, |first| first - 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::rma::request::completions::CompletionCounter;

    #[test]
    fn an_operation_that_has_not_ended_stops_the_count() {
        let mut completions = CompletionCounter::default();
        assert_eq!(completions.over(), 0);
        completions.pass();
        let (long, other) = (completions.begin(), completions.begin());
        completions.pass();
        assert_eq!((long, other, completions.over()), (2, 3, 1));
        completions.end(other);
        assert_eq!(completions.over(), 1);
        completions.end(long);
        assert_eq!(completions.over(), 4);
        // A second end of the same operation changes nothing.
        completions.end(long);
        completions.pass();
        assert_eq!(completions.over(), 5);
    }
}
