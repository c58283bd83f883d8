//! A deterministic stream of random bytes (SplitMix64). The property tests use the stream in place of a
//! fuzzer.
//!
//! `generate.rs` reads the stream. This file uses no library, because the generator needs only a few
//! lines, and because the stream must never change: the seed and the index in a failure message must
//! always identify the same case.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// Makes stream number `index` of `seed`. Streams with different numbers are unrelated.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut stream = Self { state: seed };
        stream.state = stream.next_u64() ^ index.wrapping_mul(0xd134_2543_de82_ef95);
        stream
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`. `bound` must not be 0. The slight bias of the remainder does not
    /// matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Fills `bytes` with the next bytes of the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    #[test]
    fn equal_seeds_give_equal_bytes_and_indices_differ() {
        assert_eq!(Stream::new(1, 2).bytes(37), Stream::new(1, 2).bytes(37));
        assert_ne!(Stream::new(1, 2).bytes(37), Stream::new(1, 3).bytes(37));
        assert_ne!(Stream::new(1, 2).bytes(37), Stream::new(2, 2).bytes(37));
    }
}
