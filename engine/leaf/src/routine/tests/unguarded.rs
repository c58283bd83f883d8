//! The version of [`Guarded`] for Miri. Miri cannot protect pages and does not need to, because it
//! detects every access outside the buffer.

pub(super) struct Guarded(Vec<u8>);

impl Guarded {
    pub(super) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    /// Does what `Guarded::place` in `../tests.rs` does.
    pub(super) fn place(&mut self, bytes: usize, shift: usize, at_end: bool) -> &mut [u8] {
        let start = if at_end { self.0.len() - bytes - shift } else { shift };
        &mut self.0[start..][..bytes]
    }
}
