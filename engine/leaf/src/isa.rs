//! The instruction sets that leaf kernels and copies may use.
//!
//! The engine picks the instruction set that a plan's settings ask for or else the best one that this
//! machine supports. `routine/` picks the instance of each leaf kernel for that instruction set. The copy
//! loops of `contiguous/` use the best one; `contiguous::limit` can limit them for the whole process. This
//! crate does not read the environment: the runtime reads `TYPEPACK_ISA` and passes it to the engine in
//! the settings.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// An instruction set for leaf kernels. The variants are in ascending order, and the first is
/// available on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// The baseline of the target: 16-byte moves (SSE2, NEON).
    Portable,
    /// x86-64 with SSSE3 and SSE4 (the level x86-64-v2): 16-byte moves, byte shuffles.
    Sse4,
    /// x86-64 with AVX2: 32-byte moves, byte shuffles.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL and VBMI, and BMI2: 64-byte moves, masked stores, byte
    /// permutes.
    Avx512,
}

impl Isa {
    /// All instruction sets, whether this machine supports them or not.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Sse4, Self::Avx2, Self::Avx512];

    /// Returns the best instruction set that this machine supports.
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Self::Portable)
        })
    }

    /// Returns whether this machine supports the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse4 => {
                is_x86_feature_detected!("ssse3")
                    && is_x86_feature_detected!("sse4.1")
                    && is_x86_feature_detected!("sse4.2")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Sse4 | Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// Returns the name of the instruction set, as it is written in `TYPEPACK_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Sse4 => "sse4",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = ParseIsaError;

    fn from_str(text: &str) -> Result<Self, ParseIsaError> {
        let named = Self::ALL.into_iter().find(|isa| isa.name() == text);
        let isa = named.ok_or_else(|| ParseIsaError { text: text.to_owned(), known: false })?;
        if isa.is_available() {
            Ok(isa)
        } else {
            Err(ParseIsaError { text: text.to_owned(), known: true })
        }
    }
}

/// The error for a string that is not the name of an instruction set that this machine supports.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseIsaError {
    text: String,
    known: bool,
}

impl fmt::Display for ParseIsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known {
            write!(f, "instruction set: this machine has no {}", self.text)
        } else {
            write!(
                f,
                "instruction set: \"{}\" is not one of portable, sse4, avx2, avx512",
                self.text
            )
        }
    }
}

impl fmt::Debug for ParseIsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ParseIsaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_or_refused() {
        for isa in Isa::ALL {
            let read = isa.name().parse::<Isa>();
            if isa.is_available() {
                assert_eq!(read, Ok(isa));
            } else {
                let text = read.unwrap_err().to_string();
                assert_eq!(text, format!("instruction set: this machine has no {isa}"));
            }
        }
        let error = "avx".parse::<Isa>().unwrap_err().to_string();
        assert_eq!(error, "instruction set: \"avx\" is not one of portable, sse4, avx2, avx512");
        assert!(Isa::best().is_available());
    }
}
