//! The list of `TYPEPACK_*` variables, with the domain, the default and the current value of each
//! variable.
//!
//! `typepack info` and other tools print this list. The library itself reads the values in `settings.rs`,
//! which also reports invalid values. The list does not contain the variables that `mpiexec` sets for
//! ranks, because these are not settings.

use crate::endpoint::progress::SPIN;
use crate::settings::Settings;

/// What a variable, a counter or an event is about. Tools show them in these categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The library as a whole: checks, reports, warnings.
    Library,
    /// Packing and unpacking.
    Packing,
    /// The code generator.
    Compiler,
    /// Messages between ranks.
    Messages,
    /// Collective calls.
    Collectives,
    /// One-sided calls.
    Windows,
    /// Files.
    Files,
    /// How ranks wait.
    Waiting,
    /// Programs that start or build others: `mpiexec`, `mpicc`, the interposer.
    Programs,
}

/// For whom something is meant (`MPI_T_VERBOSITY_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users of programs.
    User,
    /// People who make programs fast.
    Tuner,
    /// People who make programs fast, as a detail.
    TunerDetail,
    /// Developers of the library.
    Developer,
}

/// Who must change a variable together (`MPI_T_SCOPE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process cannot change the variable, because another program has read it.
    Constant,
    /// Each process for itself.
    Local,
    /// All processes of the job, to equal values.
    AllEqual,
}

/// One environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// The name of the variable.
    pub name: &'static str,
    /// The values that the variable may have.
    pub domain: &'static str,
    /// The value that the library uses if the variable is not set.
    pub default: String,
    /// The value in the environment, if the variable is set.
    pub value: Option<String>,
    /// What the variable is about.
    pub topic: Topic,
    /// For whom the variable is meant.
    pub audience: Audience,
    /// Who can change the variable. Most variables can only be changed before the library reads them: in the first call
    /// of [`init`](crate::init) or [`commit`](crate::commit()).
    pub scope: Scope,
}

/// Returns all variables, in the order of the documentation.
pub fn variables() -> Vec<Variable> {
    use Audience::{Developer, Tuner, TunerDetail, User};
    use Scope::{AllEqual, Constant, Local};
    // Read the settings with no variable set, so that every setting has its default.
    let defaults = Settings::read(|_| None).ok();
    let of = |value: fn(&Settings) -> String| defaults.as_ref().map(value).unwrap_or_default();
    let spin = format!("{} (always 0 with more ranks than CPUs)", SPIN.as_micros());
    let transports = "auto, ring, eager, parts, pipeline, streamed, heap, cma";
    let copies = "auto, vector, pages, repeat, streaming";
    let watchdog = "10 (60 if mpiexec does not write to a terminal)";
    #[cfg(feature = "jit")]
    let compiler = (Topic::Compiler, Local);
    let library = (Topic::Library, Local);
    let packing = (Topic::Packing, Local);
    let messages = (Topic::Messages, Local);
    let programs = (Topic::Programs, Constant);
    let calls = (Topic::Collectives, AllEqual);
    [
        #[cfg(feature = "jit")]
        ("TYPEPACK_JIT", "off, lazy, eager", of(|s| s.jit.mode.to_string()), compiler, Tuner),
        #[cfg(feature = "jit")]
        (
            "TYPEPACK_JIT_THRESHOLD",
            "bytes",
            of(|s| s.jit.threshold.to_string()),
            compiler,
            TunerDetail,
        ),
        #[cfg(feature = "jit")]
        (
            "TYPEPACK_JIT_MEMORY_MAX",
            "bytes",
            of(|s| s.jit.memory_max.to_string()),
            compiler,
            TunerDetail,
        ),
        ("TYPEPACK_KERNEL", "auto, leaf, kernel, interpreter", "auto".into(), packing, TunerDetail),
        ("TYPEPACK_ISA", "an instruction set", "the best one".into(), packing, TunerDetail),
        ("TYPEPACK_THREADS", "threads, 1 or more", "1".into(), packing, Tuner),
        ("TYPEPACK_VERIFY", "0, 1", "0".into(), packing, Developer),
        ("TYPEPACK_CHECK_TYPES", "0, 1", "0".into(), (Topic::Library, AllEqual), User),
        ("TYPEPACK_ERRORS", "fatal, all", "fatal".into(), library, User),
        ("TYPEPACK_EAGER_LIMIT", "bytes", of(|s| s.eager_limit.to_string()), messages, Tuner),
        ("TYPEPACK_UNEXPECTED_MAX", "bytes", of(|s| s.unexpected_max.to_string()), messages, Tuner),
        ("TYPEPACK_SPIN_US", "microseconds", spin, (Topic::Waiting, Local), Tuner),
        ("TYPEPACK_CMA", "auto, off", "auto".into(), messages, Tuner),
        ("TYPEPACK_IO", "auto, mmap, pwrite", "auto".into(), (Topic::Files, Local), Tuner),
        ("TYPEPACK_COLL", "a list of OPERATION:METHOD", "all:auto".into(), calls, Tuner),
        ("TYPEPACK_TRANSPORT", transports, "auto".into(), messages, TunerDetail),
        ("TYPEPACK_COPY", copies, "auto".into(), packing, TunerDetail),
        ("TYPEPACK_TUNE", "on, off, off:LIST", "on".into(), (Topic::Library, AllEqual), Tuner),
        ("TYPEPACK_TUNE_FILE", "a path", "none".into(), (Topic::Library, AllEqual), Tuner),
        ("TYPEPACK_BIND", "a value of mpiexec -bind-to", "core".into(), programs, User),
        ("TYPEPACK_CC", "a compiler", "cc".into(), programs, User),
        ("TYPEPACK_CXX", "a compiler", "c++".into(), programs, User),
        ("TYPEPACK_FC", "a compiler", "gfortran".into(), programs, User),
        ("TYPEPACK_WATCHDOG", "seconds", watchdog.into(), programs, User),
        ("TYPEPACK_INTERPOSE", "on, off, all", "on".into(), programs, Developer),
        ("TYPEPACK_REPORT", "0, 1, types", "0".into(), library, User),
        ("TYPEPACK_QUIET", "0, 1", "0".into(), library, User),
    ]
    .map(|(name, domain, default, (topic, scope), audience)| {
        let value = std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Variable { name, domain, default, value, topic, audience, scope }
    })
    .into()
}

/// Returns a line that lists the names among `names` that begin with `TYPEPACK_` and that no part of typepack reads;
/// `None` if there are none.
pub fn unknown(names: impl Iterator<Item = String>) -> Option<String> {
    crate::settings::unknown_names(names)
}

/// Returns a line for each blocking collective operation: its name, the method that `TYPEPACK_COLL` forces, and all
/// methods that the operation has.
///
/// # Errors
/// Returns `ErrorKind::Argument` if a variable of the environment has an invalid value.
pub fn collectives() -> crate::Result<Vec<String>> {
    Ok(Settings::get()?.collectives.lines())
}

impl Variable {
    /// Returns what the variable does, as text for the guide's reference.
    pub fn meaning(&self) -> &'static str {
        match self.name {
            "TYPEPACK_JIT" => {
                "When kernels are compiled: `off` never, `lazy` when a layout has moved enough bytes to repay the \
                 compilation, `eager` at commit."
            }
            "TYPEPACK_JIT_THRESHOLD" => {
                "With `lazy`: the cost of a compilation, stated in packed bytes. A smaller number compiles earlier."
            }
            "TYPEPACK_JIT_MEMORY_MAX" => "How much address space compiled kernels may take.",
            "TYPEPACK_KERNEL" => "Forces one kind of kernel for all types.",
            "TYPEPACK_ISA" => {
                "The instruction set of leaf kernels: `portable`, `sse4`, `avx2` or `avx512`. The processor must \
                 have the instruction set."
            }
            "TYPEPACK_THREADS" => {
                "How many threads pack together in calls that take `typepack::threads()`."
            }
            "TYPEPACK_VERIFY" => "1 compares every kernel call with the interpreter.",
            "TYPEPACK_CHECK_TYPES" => {
                "1 compares the types of every message with those of its receive, the arguments of collective calls, the \
                 grid of `MPI_Cart_create`, the graph of `MPI_Graph_create`, the kind of `MPI_Comm_split_type`, and the \
                 edges of a topology. All ranks must have the same value."
            }
            "TYPEPACK_ERRORS" => {
                "`all` prints one line also for each error that a program ignores, because its error handler is \
                 `MPI_ERRORS_RETURN`."
            }
            "TYPEPACK_EAGER_LIMIT" => "Messages up to this length are sent eagerly.",
            "TYPEPACK_UNEXPECTED_MAX" => {
                "How much memory a rank uses for the messages of one other rank that no receive has matched. \
                 Above this, the data of such messages stays at the sender. Sends of at most 64 bytes wait only \
                 above 16 times this value."
            }
            "TYPEPACK_SPIN_US" => {
                "How long a waiting rank spins before it sleeps. With 0, it lets other processes run a few times \
                 instead, or for up to 50 us if none wants the CPU. In a job with more ranks than CPUs, ranks never \
                 spin: the value counts as 0."
            }
            "TYPEPACK_CMA" => {
                "Whether ranks may read each other's private memory by system calls: for messages, and for gets from \
                 windows."
            }
            "TYPEPACK_IO" => {
                "How files are read and written: `mmap` through mapped files where the system allows it, \
                 `pwrite` by system calls."
            }
            "TYPEPACK_COLL" => {
                "How blocking collective calls move data: `cells` through memory that the ranks share (at most 32 ranks), \
                 `messages` by messages; for `reduce` and `allreduce`, `whole` and `slices` are cells in which each rank \
                 that needs the result combines all elements, or each rank combines a slice; for `bcast`, `reduce`, \
                 `allreduce`, `scan`, `exscan`, `allgather` and `alltoall`, `pieces` are cells with pieces of another \
                 length. The operations are `all`, `barrier`, `bcast`, `reduce`, `allreduce`, \
                 `scan`, `exscan`, `gather`, `scatter`, `allgather`, `alltoall`, `alltoallv` (and `MPI_Alltoallw`), \
                 `reduce_scatter` (both forms) and `neighbor` (all neighbourhood collectives), as in \
                 `all:messages,bcast:cells`. All ranks must have the same value."
            }
            "TYPEPACK_TRANSPORT" => {
                "Forces one protocol for all messages that the protocol can carry."
            }
            "TYPEPACK_COPY" => {
                "Forces one method for copies of long runs: `vector` registers, the same in two `pages` by turns, the \
                 instruction `rep movsb` (`repeat`), or `streaming` stores. The processor must have the method."
            }
            "TYPEPACK_TUNE" => {
                "`on` measures during the run which way is best for long messages, long copies, kernels, files and \
                 blocking collective calls; `off` always takes the first way of the static order. `off:` and a list \
                 such as `off:messages,copies` does so for these choosers only: `messages` (long ones), `parts` \
                 (messages through the ring), `short` (messages), `collective` (calls), `pieces` (of such calls), \
                 `files`, `copies`, `kernels`, `waits`, and `host` (packing in front of another MPI library)."
            }
            "TYPEPACK_TUNE_FILE" => {
                "Keeps what was measured about messages, collective calls and copies in this file, and starts the next job with it. A \
                 file of another processor or version is ignored and replaced; a file that is not a tune file, or belongs to \
                 another user than this one and root, is left alone. The file is written where its name led at init."
            }
            "TYPEPACK_BIND" => "The default of `mpiexec -bind-to`.",
            "TYPEPACK_CC" => {
                "The compiler that `mpicc` calls, with or without arguments. `-cc=` comes first; `MPICH_CC` and then \
                 `OMPI_CC` count if this variable is not set."
            }
            "TYPEPACK_CXX" => {
                "The compiler that `mpicxx` calls, in the same way. `-cxx=` comes first; `MPICH_CXX` and then \
                 `OMPI_CXX` count if this variable is not set."
            }
            "TYPEPACK_FC" => {
                "The compiler that `mpifort` calls, in the same way. `-fc=` comes first; `MPICH_FC` and then `OMPI_FC` \
                 count if this variable is not set."
            }
            "TYPEPACK_WATCHDOG" => {
                "If nothing in the job moves for this time, `mpiexec` prints once what every rank waits for; 0 never. In \
                 front of another MPI library: how long a call waits for ranks without the library before a line says so \
                 (10 seconds if not set)."
            }
            "TYPEPACK_INTERPOSE" => {
                "With `libtypepack_interpose.so` in front of another MPI library: `on` takes over packing, `off` hands \
                 every call on, and `all` also says that all ranks of the job have the library."
            }
            "TYPEPACK_REPORT" => {
                "1 prints a report of each rank at the end of the job: messages, bytes, kernels, choices. `types` adds \
                 a line for each committed datatype, as an expression for `typepack explain`, with its uses and bytes \
                 (those of external32 are not counted)."
            }
            "TYPEPACK_QUIET" => "1 silences warnings.",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::USED;
    use std::collections::BTreeSet;

    #[test]
    fn no_variable_is_forgotten() {
        use crate::shm::attach;
        let set_by_mpiexec = [
            attach::JOB_FD,
            attach::RANK,
            attach::SIZE,
            attach::LOCAL_RANK,
            attach::APP_NUMBER,
            attach::APP_SIZE,
            attach::UNIVERSE_SIZE,
            attach::INITIAL_ERRHANDLER,
        ];
        let known: BTreeSet<&str> =
            USED.into_iter().filter(|name| !set_by_mpiexec.contains(name)).collect();
        let listed: BTreeSet<&str> = variables().iter().map(|variable| variable.name).collect();
        assert_eq!(listed, known);
    }

    #[test]
    fn defaults_are_in_their_domains() {
        for variable in variables().iter().filter(|v| v.name != "TYPEPACK_BIND") {
            // In a default, the text after the first blank is an explanation and not part of the value.
            let default = variable.default.split(' ').next().unwrap();
            let default = if variable.name == "TYPEPACK_ISA" { "portable" } else { default };
            let name = variable.name;
            let read = Settings::read(|asked| (asked == name).then(|| default.to_owned()));
            assert!(read.is_ok(), "{name}={default}: {read:?}");
        }
    }
}
