//! The kinds of measurements that consist of rows.

use super::report::Unit;

/// What a run measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Packing and unpacking of the reference layouts in one thread.
    Packing,
    /// Packing and unpacking of the layouts of DDTBench in one thread.
    Ddtbench,
    /// Messages and halos between two ranks, and whole jobs.
    #[default]
    Messages,
    /// Collective calls.
    Collectives,
    /// One-sided communication.
    OneSided,
    /// Messages and halos of another MPI library (the host), alone and behind typepack's interposer.
    Interpose,
    /// Calls from Fortran with array sections.
    Fortran,
    /// Accesses to a file that ranks share.
    Files,
}

impl Kind {
    /// All kinds, in the order of a record.
    pub const ALL: [Self; 8] = [
        Self::Packing,
        Self::Ddtbench,
        Self::Messages,
        Self::Collectives,
        Self::OneSided,
        Self::Interpose,
        Self::Fortran,
        Self::Files,
    ];

    /// Returns the name that the table of this kind has in records.
    pub fn table(self) -> &'static str {
        match self {
            Self::Packing => crate::record::PEERS,
            Self::Ddtbench => "peers --set ddtbench",
            Self::Messages => "pingpong",
            Self::Collectives => "collectives",
            Self::OneSided => "one-sided",
            Self::Interpose => "interpose",
            Self::Fortran => "fortran",
            Self::Files => "io",
        }
    }

    /// Returns a phrase that names what the rows of this kind are.
    pub fn text(self) -> &'static str {
        match self {
            Self::Packing => "packing and unpacking",
            Self::Ddtbench => "packing and unpacking, DDTBench",
            Self::Messages => "messages, halos and jobs",
            Self::Collectives => "collectives",
            Self::OneSided => "one-sided communication",
            Self::Interpose => "the interposer",
            Self::Fortran => "Fortran",
            Self::Files => "files",
        }
    }

    /// Returns the unit in which tables state speeds.
    pub fn unit(self) -> Unit {
        match self {
            Self::Packing | Self::Ddtbench => Unit::GbPerS,
            Self::Files => Unit::MbPerS,
            _ => Unit::Us,
        }
    }

    /// Returns a sentence that says what the figures of a table mean.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Packing | Self::Ddtbench => {
                "GB/s of packed data (10^9 bytes), medians of interleaved rounds. Empty: no hand loop, or a peer that \
                 failed."
            }
            Self::Messages | Self::Interpose => {
                "Microseconds, medians of interleaved rounds: half of there and back, or one exchange of six faces. \
                 line: one way of a cache line, ns."
            }
            Self::Fortran => {
                "Microseconds, medians of interleaved rounds: half of there and back, one exchange of six faces, or one \
                 MPI_Pack. over c: nanoseconds more than the same with a committed type in C. /hand: time of loops or an \
                 array assignment in Fortran over that of typepack. line: one way of a cache line, ns."
            }
            Self::Collectives => {
                "Microseconds, medians of interleaved rounds: one call, from the first rank's begin to the last one's \
                 end. line: one way of a cache line, ns."
            }
            Self::OneSided => {
                "Microseconds, medians of interleaved rounds: one operation with its flush, one fence, epoch, lock, \
                 insertion or exchange of six faces. line: one way of a cache line, ns."
            }
            Self::Files => {
                "MB/s of data of both ranks, the best of the interleaved turns; in parentheses the first access after \
                 opening. /kept: time of the loop over a kept mapping over typepack's. first/mapped: time of the loop \
                 that maps each time over that of typepack's first access."
            }
        }
    }
}
