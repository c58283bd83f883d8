//! [`Guarded`] for Miri, which protects no pages and needs none: it sees every access outside.

pub(super) struct Guarded(Vec<u8>);

impl Guarded {
    pub(super) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    /// As the one of `../tests.rs`.
    pub(super) fn place(&mut self, bytes: usize, shift: usize, at_end: bool) -> &mut [u8] {
        let start = if at_end { self.0.len() - bytes - shift } else { shift };
        &mut self.0[start..][..bytes]
    }
}
