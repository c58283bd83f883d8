//! Decides when compiling a kernel pays.
//!
//! For each nest (loops around a block or a few short runs) and direction, the engine adds up the
//! time that a kernel would have saved. A table of costs gives that time (`engine/src/plan/cost/`).
//! The engine asks for the kernel when the sum reaches the cost of a compilation. This file states
//! that cost as a number of bytes, and `lib.rs` passes the number to the engine.

use std::fmt;
use std::str::FromStr;

/// Selects when kernels are compiled. The runtime reads the mode from the variable `TYPEPACK_JIT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Never: memcpy, leaf kernels and the engine's interpreter do all the work.
    Off,
    /// After a layout has moved enough bytes to repay the compilation.
    #[default]
    Lazy,
    /// When a type is committed, for each of its nests that a kernel may execute fastest. The kernel
    /// of a fused copy is compiled at the first copy.
    Eager,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "off",
            Self::Lazy => "lazy",
            Self::Eager => "eager",
        })
    }
}

impl FromStr for Mode {
    type Err = ParseModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "lazy" => Ok(Self::Lazy),
            "eager" => Ok(Self::Eager),
            _ => Err(ParseModeError { text: text.to_owned() }),
        }
    }
}

/// The error for a text that is not the name of a [`Mode`].
#[derive(Clone, PartialEq, Eq)]
pub struct ParseModeError {
    text: String,
}

impl fmt::Display for ParseModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JIT mode: \"{}\" is not one of off, lazy, eager", self.text)
    }
}

impl fmt::Debug for ParseModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ParseModeError {}

/// The settings of a [`Jit`](crate::Jit). This crate does not read the environment: the runtime
/// passes the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Selects when kernels are compiled.
    pub mode: Mode,
    /// The cost of a compilation in mode [`Lazy`](Mode::Lazy), as a number of packed bytes. It
    /// stands for the time that a kernel saves while a nest of 8-byte blocks packs this many bytes.
    /// The engine asks for the kernel of a nest when that kernel would have saved this much time. A
    /// nest with a fast leaf kernel loses less time per byte, so it moves many more bytes before it
    /// is compiled, or is never compiled.
    pub threshold: u64,
    /// Maximum address space for code, in bytes, rounded down to whole pages. With less than one page,
    /// every shape is refused.
    pub memory_max: u64,
}

impl Settings {
    /// The default [`threshold`](Self::threshold), in bytes.
    ///
    /// This is the break-even point: after this many bytes a nest has lost about as much time as
    /// compiling its kernel takes. So waiting costs at most about twice as much as the better of two
    /// fixed choices: compiling at once, and never compiling.
    ///
    /// Measurements on Sapphire Rapids (`cargo run --release -p typepack-jit --example tune`):
    /// compiling takes 190 to 250 us per kernel. One memcpy per block reaches 2.5 GB/s, and kernels
    /// reach 15 to 50 GB/s on data in the caches. So the break-even point is 220 us divided by
    /// (1/2.5 - 1/20) ns per byte, which is 630 KB. The default is 512 KiB, the power of two below
    /// this number.
    pub const THRESHOLD: u64 = 512 << 10;
    /// The default [`memory_max`](Self::memory_max), in bytes. Each [`Jit`](crate::Jit) reserves this
    /// much address space. Reserved space costs nothing until a kernel uses it; 1024 kernels take 4
    /// MiB.
    pub const MEMORY_MAX: u64 = 64 << 20;
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: Mode::Lazy, threshold: Self::THRESHOLD, memory_max: Self::MEMORY_MAX }
    }
}

impl Settings {
    /// Returns the threshold for the engine: the cost of a compilation as a number of packed bytes.
    /// It is 0 if kernels are compiled at once, and `u64::MAX` if kernels are never compiled.
    pub(crate) fn asks_after(&self) -> u64 {
        match self.mode {
            Mode::Off => u64::MAX,
            Mode::Lazy => self.threshold,
            Mode::Eager => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in [Mode::Off, Mode::Lazy, Mode::Eager] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "Eager".parse::<Mode>().expect_err("case matters");
        assert_eq!(error.to_string(), "JIT mode: \"Eager\" is not one of off, lazy, eager");
    }

    #[test]
    fn off_never_asks_and_eager_asks_at_once() {
        let settings = |mode| Settings { mode, threshold: 7, ..Settings::default() };
        assert_eq!(settings(Mode::Off).asks_after(), u64::MAX);
        assert_eq!(settings(Mode::Lazy).asks_after(), 7);
        assert_eq!(settings(Mode::Eager).asks_after(), 0);
    }
}
