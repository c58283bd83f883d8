//! When compiling pays.
//!
//! The engine adds up what a kernel would have saved a nest in a direction, by its table of costs
//! (`engine/src/plan/cost/`), and asks for the kernel once that is what a compilation takes; `lib.rs`
//! hands that number on from here, as a number of bytes.

use std::fmt;
use std::str::FromStr;

/// When kernels are compiled (`TYPEPACK_JIT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Never: everything runs on the engine's memcpy strategies and its interpreter.
    Off,
    /// When a layout has moved enough bytes to repay the compilation.
    #[default]
    Lazy,
    /// At commit.
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

/// A text that names no [`Mode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseModeError {
    text: String,
}

impl fmt::Display for ParseModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JIT mode: \"{}\" is none of off, lazy, eager", self.text)
    }
}

impl std::error::Error for ParseModeError {}

/// How a [`Jit`](crate::Jit) behaves. Read from no environment: the runtime hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// When to compile.
    pub mode: Mode,
    /// What a compilation costs, in mode [`Lazy`](Mode::Lazy), as packed bytes: as much as a kernel
    /// saves a nest of 8-byte blocks that was interpreted so far. Nests that have a good leaf kernel
    /// move many times as many bytes before they are compiled, or are never.
    pub threshold: u64,
    /// Most address space for code, in bytes; rounded down to whole pages. 0 refuses every shape.
    pub memory_max: u64,
}

impl Settings {
    /// The default [`threshold`](Self::threshold), in bytes.
    ///
    /// The break-even: by then a nest has lost about as much time as its kernel takes to compile, so
    /// that waiting costs at most twice the better choice.
    /// Measured (`cargo run --release -p typepack-jit --example tune`, Sapphire Rapids): 190 to
    /// 250 us per kernel, 2.5 GB/s with one memcpy per block against 15 to 50 GB/s compiled in
    /// cache: 220 us / (1 / 2.5 - 1 / 20 ns per byte) = 630 KB.
    pub const THRESHOLD: u64 = 512 << 10;
    /// The default [`memory_max`](Self::memory_max), in bytes. Reserved, not used: address space
    /// costs nothing until a kernel is there, and 1024 kernels take 4 MiB.
    pub const MEMORY_MAX: u64 = 64 << 20;
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: Mode::Lazy, threshold: Self::THRESHOLD, memory_max: Self::MEMORY_MAX }
    }
}

impl Settings {
    /// What the engine is told: packed bytes before it asks for a kernel.
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
        assert_eq!(error.to_string(), "JIT mode: \"Eager\" is none of off, lazy, eager");
    }

    #[test]
    fn off_never_asks_and_eager_asks_at_once() {
        let settings = |mode| Settings { mode, threshold: 7, ..Settings::default() };
        assert_eq!(settings(Mode::Off).asks_after(), u64::MAX);
        assert_eq!(settings(Mode::Lazy).asks_after(), 7);
        assert_eq!(settings(Mode::Eager).asks_after(), 0);
    }
}
