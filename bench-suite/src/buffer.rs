//! Page-aligned memory.
//!
//! Alignment decides how a strided walk meets the cache sets, so it is the same for every
//! competitor and every run (and, page-aligned, the hardest case for strides of powers of two).
//! Used by `prepare.rs`.

/// Alignment in bytes.
pub const PAGE: usize = 4096;

/// Zeroed bytes that begin at a multiple of [`PAGE`]. Memory that is never touched costs nothing.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// `length` zeroed bytes.
    pub fn new(length: usize) -> Self {
        let bytes = vec![0u8; length + PAGE];
        let start = (PAGE - bytes.as_ptr().addr() % PAGE) % PAGE;
        Self { bytes, start, length }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    /// The bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, PAGE};

    #[test]
    fn buffers_are_page_aligned_and_exact() {
        for length in [0, 1, 4095, 4096, 100_000] {
            let mut buffer = Buffer::new(length);
            assert_eq!(buffer.bytes().as_ptr().addr() % PAGE, 0);
            assert_eq!(buffer.bytes_mut().len(), length);
        }
    }
}
