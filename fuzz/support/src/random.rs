//! Makes pseudo-random numbers that are the same in every run.

/// A generator with a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64-bit number.
    #[expect(clippy::should_implement_trait, reason = "no caller iterates over the numbers")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`. `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// Returns a random count up to `high`. The count is rarely 0, because a count of 0 makes every
    /// type above it empty.
    pub fn count(&mut self, high: i64) -> i64 {
        if self.below(16) == 0 { 0 } else { self.between(1, high) }
    }

    /// Returns `length` counts up to `high`, every fifth of them 0.
    pub fn counts(&mut self, length: i64, high: i64) -> Vec<i64> {
        (0..length).map(|_| if self.below(5) == 0 { 0 } else { self.between(1, high) }).collect()
    }

    /// Returns `length` numbers from `low` to `high`, both included.
    pub fn list(&mut self, length: i64, low: i64, high: i64) -> Vec<i64> {
        (0..length).map(|_| self.between(low, high)).collect()
    }

    /// Returns `true` with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns `len` random bytes, each the low byte of a number.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}
