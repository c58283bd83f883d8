//! The header of a checkpoint file: the facts that a run needs to continue from the file.
//!
//! `checkpoint.rs` writes the header before the values, and checks it when a run continues from a file. A file
//! may come from anywhere, so no number in the header is used before [`Header::parse`] and
//! [`Header::check`] have accepted it. Every error text is one clause.
//!
//! All numbers are little-endian:
//!
//! | byte | content |
//! |---|---|
//! | 0 | 16 bytes: the mark of the format |
//! | 16 | version, 4 bytes |
//! | 20 | stencil, 2 bytes; boundary, 2 bytes |
//! | 24 | type of the values as NumPy writes it, 8 bytes: `<f8` and zeros |
//! | 32 | grid (z, y, x), fields, steps: 8 bytes each |
//! | 72 | checksum of the values, 8 bytes |
//! | 80 | checksum of all other bytes of the header, 8 bytes |
//! | 88 | zeros |
//!
//! The values follow at byte [`HEADER`]: one cube per field, z slowest.

use super::initial::mix;
use super::options::{Boundary, Options, Stencil, Triple};

/// Number of bytes of the header. The values begin at a page, so that a mapped file has them aligned.
pub const HEADER: usize = 4096;

const MARK: &[u8; 16] = b"\x93typepack halo\r\n";
const VERSION: u32 = 1;
const DOUBLES: &[u8; 8] = b"<f8\0\0\0\0\0";
/// Position of the checksum of the header.
const SUM: usize = 80;

/// The facts in a header that differ from file to file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub stencil: Stencil,
    pub boundary: Boundary,
    /// Cells of the whole grid: z, y, x.
    pub grid: [u64; 3],
    pub fields: u64,
    /// Number of steps from time 0 to the values of the file.
    pub steps: u64,
    /// The checksum of the values.
    pub checksum: u64,
}

/// The stencils and the boundaries. A header stores the index of its stencil and of its boundary in these lists.
const STENCILS: [Stencil; 2] = [Stencil::Star, Stencil::Box];
const BOUNDARIES: [Boundary; 2] = [Boundary::Periodic, Boundary::Fixed];

/// Returns the checksum of a header. It covers all bytes of the header except the eight that store it.
fn sum(bytes: &[u8; HEADER]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.iter().enumerate().filter(|(index, _)| index * 8 != SUM);
    words.fold(0, |sum, (_, word)| mix(sum ^ u64::from_le_bytes(*word)))
}

/// Returns the `N` bytes from byte `at` on.
fn bytes<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|index| header[at + index])
}

impl Header {
    /// Returns the header for the values that a run with these options has after `steps` steps. `checksum` is the
    /// checksum of the values.
    pub fn new(options: &Options, steps: usize, checksum: u64) -> Self {
        // The casts are lossless: the values are extents and counts of memory.
        Self {
            stencil: options.stencil,
            boundary: options.boundary,
            grid: options.grid.0.map(|extent| extent as u64),
            fields: options.fields.0 as u64,
            steps: steps as u64,
            checksum,
        }
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MARK);
        put(16, &VERSION.to_le_bytes());
        put(20, &u16::from(self.stencil == Stencil::Box).to_le_bytes());
        put(22, &u16::from(self.boundary == Boundary::Fixed).to_le_bytes());
        put(24, DOUBLES);
        let [z, y, x] = self.grid;
        for (index, word) in [z, y, x, self.fields, self.steps, self.checksum].iter().enumerate() {
            put(32 + 8 * index, &word.to_le_bytes());
        }
        let sum = sum(&header);
        header[SUM..SUM + 8].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Reads the header of a file. `file` has the first [`HEADER`] bytes of the file, or all if it has fewer.
    pub fn parse(file: &[u8]) -> Result<Self, String> {
        if !file.starts_with(MARK) {
            return Err("not a checkpoint of typepack halo".to_owned());
        }
        let Some(header) = file.first_chunk::<HEADER>() else {
            return Err(format!(
                "too short: the file has {} bytes; the header has {HEADER}",
                file.len()
            ));
        };
        // Check the version before the checksum, because another version may store its checksum at another place.
        let version = u32::from_le_bytes(bytes(header, 16));
        if version != VERSION {
            return Err(format!("the version is {version}; this program reads version {VERSION}"));
        }
        let word = |at| u64::from_le_bytes(bytes(header, at));
        if word(SUM) != sum(header) {
            return Err("the header is damaged: its checksum does not fit its content".to_owned());
        }
        let named = bytes::<8>(header, 24);
        if named != *DOUBLES {
            let named = String::from_utf8_lossy(&named);
            let named = named.trim_end_matches('\0');
            return Err(format!("the type of the values is {named:?}; this program reads \"<f8\""));
        }
        let half = |at| usize::from(u16::from_le_bytes(bytes(header, at)));
        let unknown = |what, number| format!("the {what} is number {number}, which is unknown");
        Ok(Self {
            stencil: *STENCILS.get(half(20)).ok_or_else(|| unknown("stencil", half(20)))?,
            boundary: *BOUNDARIES.get(half(22)).ok_or_else(|| unknown("boundary", half(22)))?,
            grid: [word(32), word(40), word(48)],
            fields: word(56),
            steps: word(64),
            checksum: word(72),
        })
    }

    /// Checks that a run with these options can continue from a file with this header and `len` bytes.
    pub fn check(&self, options: &Options, len: u64) -> Result<(), String> {
        let wanted = Self::new(options, options.steps.0, 0);
        let differ = |what: &str, found: String, wanted: String| {
            Err(format!("the {what} is {found}; the options say {wanted}"))
        };
        if self.grid != wanted.grid {
            let [z, y, x] = self.grid;
            return differ("grid", format!("{x}x{y}x{z}"), Triple(options.grid.0).to_string());
        }
        if self.fields != wanted.fields {
            let (found, wanted) = (self.fields.to_string(), wanted.fields.to_string());
            return differ("number of fields", found, wanted);
        }
        if self.stencil != wanted.stencil {
            return differ("stencil", self.stencil.to_string(), wanted.stencil.to_string());
        }
        if self.boundary != wanted.boundary {
            return differ("boundary", self.boundary.to_string(), wanted.boundary.to_string());
        }
        if self.steps > wanted.steps {
            return Err(format!(
                "the file is from step {}; --steps must be at least that, and is {}",
                self.steps, wanted.steps
            ));
        }
        // The product cannot overflow: grid and fields are those of the options, and `job.rs` has checked that their
        // values fit in memory.
        let wanted = self.grid.iter().product::<u64>() * self.fields * 8;
        let found = len.saturating_sub(HEADER as u64);
        if found != wanted {
            let how = if found < wanted { "short" } else { "long" };
            return Err(format!(
                "too {how}: the file has {found} bytes of values; the grid needs {wanted}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Count;
    use super::*;

    fn options() -> Options {
        let mut options = Options::new(Triple([4, 5, 6]), Triple([1; 3]), Count(9));
        options.fields = Count(2);
        options.boundary = Boundary::Fixed;
        options
    }

    const LEN: u64 = HEADER as u64 + 4 * 5 * 6 * 2 * 8;

    #[test]
    fn a_header_is_read_back() {
        let header = Header::new(&options(), 7, 0x0123_4567_89ab_cdef);
        assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
        assert_eq!(header.check(&options(), LEN), Ok(()));
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_refused() {
        let good = Header::new(&options(), 7, 1).to_bytes();
        for at in 0..HEADER {
            for change in [1, 0x80] {
                let mut bad = good;
                bad[at] ^= change;
                let error = Header::parse(&bad).expect_err("a damaged header");
                assert_eq!(error.lines().count(), 1);
            }
            Header::parse(&good[..at]).expect_err("a header that is cut off");
        }
    }

    /// Returns a header that is valid except for `bytes`, which replace its bytes from `at` on. The checksum is
    /// that of the changed header.
    fn forged(at: usize, bytes: &[u8]) -> [u8; HEADER] {
        let mut header = Header::new(&options(), 7, 1).to_bytes();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        let sum = sum(&header);
        header[SUM..SUM + 8].copy_from_slice(&sum.to_le_bytes());
        header
    }

    #[test]
    fn a_header_whose_checksum_fits_is_checked_all_the_same() {
        let huge = u64::MAX.to_le_bytes();
        let cases: [(usize, &[u8], &str); 9] = [
            (16, &[2], "the version is 2; this program reads version 1"),
            (24, b">f4", "the type of the values is \">f4\"; this program reads \"<f8\""),
            (20, &[2], "the stencil is number 2, which is unknown"),
            (22, &[0, 1], "the boundary is number 256, which is unknown"),
            (20, &[1], "the stencil is box; the options say star"),
            (22, &[0], "the boundary is periodic; the options say fixed"),
            (32, &huge, "the grid is 6x5x18446744073709551615; the options say 6x5x4"),
            (56, &huge, "the number of fields is 18446744073709551615; the options say 2"),
            (64, &[10], "the file is from step 10; --steps must be at least that, and is 9"),
        ];
        for (at, bytes, wanted) in cases {
            let header = Header::parse(&forged(at, bytes));
            let found = header.and_then(|header| header.check(&options(), LEN));
            assert_eq!(found, Err(wanted.to_owned()));
        }
    }

    #[test]
    fn the_length_of_the_file_must_fit() {
        let header = Header::new(&options(), 7, 1);
        for (len, how) in [(0, "short"), (LEN - 1, "short"), (LEN + 1, "long"), (u64::MAX, "long")]
        {
            let error = header.check(&options(), len).expect_err("a wrong length");
            assert!(error.starts_with(&format!("too {how}: ")), "{error}");
        }
    }
}
