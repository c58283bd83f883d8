//! Counts operations that begin in one order and may end in another order, such as the requests of a rank.

use std::collections::BTreeSet;

/// Numbers operations in the order in which they begin: 1, 2, 3 and so on.
#[derive(Debug, Default)]
pub(in crate::rma) struct Tally {
    begun: u64,
    /// The numbers of the operations that have begun and not ended.
    open: BTreeSet<u64>,
}

impl Tally {
    /// Counts an operation that begins. Returns the number of the operation.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.open.insert(self.begun);
        self.begun
    }

    /// Counts an operation that ends at once.
    #[inline]
    pub fn pass(&mut self) {
        self.begun += 1;
    }

    /// Ends the operation with this number.
    pub fn end(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Returns the greatest number up to which all operations have ended.
    #[inline]
    pub fn over(&self) -> u64 {
        self.open.first().map_or(self.begun, |first| first - 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::rma::request::tally::Tally;

    #[test]
    fn an_operation_that_has_not_ended_stops_the_count() {
        let mut tally = Tally::default();
        assert_eq!(tally.over(), 0);
        tally.pass();
        let (long, other) = (tally.begin(), tally.begin());
        tally.pass();
        assert_eq!((long, other, tally.over()), (2, 3, 1));
        tally.end(other);
        assert_eq!(tally.over(), 1);
        tally.end(long);
        assert_eq!(tally.over(), 4);
        // A second end of the same operation changes nothing.
        tally.end(long);
        tally.pass();
        assert_eq!(tally.over(), 5);
    }
}
