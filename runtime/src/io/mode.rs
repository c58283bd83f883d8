//! The access modes of files (MPI-5.0 section 14.2.1).

use crate::{Error, ErrorKind, FileErrorKind, Result};
use std::ops::BitOr;

/// How a file is opened. Modes are combined with `|`; exactly one of [`READ_ONLY`](Self::READ_ONLY),
/// [`READ_WRITE`](Self::READ_WRITE) and [`WRITE_ONLY`](Self::WRITE_ONLY) must be among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(u32);

impl Mode {
    /// All file pointers begin at the end of the file.
    #[doc(alias = "MPI_MODE_APPEND")]
    pub const APPEND: Self = Self(1);
    /// The call makes the file if the file does not exist.
    #[doc(alias = "MPI_MODE_CREATE")]
    pub const CREATE: Self = Self(2);
    /// The file is removed when it is closed.
    #[doc(alias = "MPI_MODE_DELETE_ON_CLOSE")]
    pub const DELETE_ON_CLOSE: Self = Self(4);
    /// The call fails if the file exists already.
    #[doc(alias = "MPI_MODE_EXCL")]
    pub const EXCLUSIVE: Self = Self(8);
    /// The program only reads the file.
    #[doc(alias = "MPI_MODE_RDONLY")]
    pub const READ_ONLY: Self = Self(16);
    /// The program reads and writes the file.
    #[doc(alias = "MPI_MODE_RDWR")]
    pub const READ_WRITE: Self = Self(32);
    /// The program uses the file only in sequence, through the shared file pointer.
    #[doc(alias = "MPI_MODE_SEQUENTIAL")]
    pub const SEQUENTIAL: Self = Self(64);
    /// Nobody else opens the file at the same time.
    #[doc(alias = "MPI_MODE_UNIQUE_OPEN")]
    pub const UNIQUE: Self = Self(128);
    /// The program only writes the file.
    #[doc(alias = "MPI_MODE_WRONLY")]
    pub const WRITE_ONLY: Self = Self(256);

    const ALL: u32 = 511;

    /// Returns the mode with these bits, which are those of the MPI ABI. The bits are checked when a file is
    /// opened.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits of the MPI ABI.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether all modes of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the program may read the file.
    pub const fn reads(self) -> bool {
        !self.contains(Self::WRITE_ONLY)
    }

    /// Returns whether the program may write the file.
    pub const fn writes(self) -> bool {
        !self.contains(Self::READ_ONLY)
    }

    /// Checks that the modes can be used together.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::Mode`] if they cannot.
    pub(super) fn check(self) -> Result<()> {
        let refused =
            |detail: String| Err(Error::new(ErrorKind::File(FileErrorKind::Mode), "amode", detail));
        if self.0 & !Self::ALL != 0 {
            return refused(format!("{:#x} has bits that are not access modes", self.0));
        }
        let access = [Self::READ_ONLY, Self::READ_WRITE, Self::WRITE_ONLY];
        if access.iter().filter(|mode| self.contains(**mode)).count() != 1 {
            return refused(format!(
                "{:#x} must have exactly one of the modes for reading, for writing, and for both",
                self.0
            ));
        }
        if self.contains(Self::READ_ONLY) && self.0 & (Self::CREATE.0 | Self::EXCLUSIVE.0) != 0 {
            return refused(format!("{:#x} makes a file that can only be read", self.0));
        }
        if self.contains(Self::READ_WRITE.or(Self::SEQUENTIAL)) {
            return refused(format!("{:#x} reads and writes a file in sequence", self.0));
        }
        Ok(())
    }
}

impl BitOr for Mode {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Mode {
    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Makes a file, or opens an existing one, for reading and writing.
    pub const CREATE_READ_WRITE: Self = Self::CREATE.or(Self::READ_WRITE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_checked() {
        for good in [16, 32, 256, 2 | 32, 2 | 8 | 256, 64 | 256, 16 | 64 | 1, 4 | 128 | 32, 8 | 32]
        {
            assert!(Mode::from_bits(good).check().is_ok(), "{good}");
        }
        for bad in [0, 1, 2, 16 | 32, 16 | 256, 32 | 256, 16 | 2, 16 | 8, 32 | 64, 512 | 32] {
            let error = Mode::from_bits(bad).check().expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::File(FileErrorKind::Mode), "{bad}");
        }
        assert!(Mode::READ_ONLY.reads() && !Mode::READ_ONLY.writes());
        assert!(Mode::WRITE_ONLY.writes() && !Mode::WRITE_ONLY.reads());
    }
}
