//! Reads the `TYPEPACK_*` variables that are settings of the library, once per process.
//!
//! The first call of [`Settings::get`] reads them, usually in `init()` or in the first commit. Three other
//! files of the library also read the environment: `shm/attach.rs` reads the variables that `mpiexec` sets,
//! `world.rs` reads the variables of launchers and looks for unknown names, and `variables.rs` reads the
//! current values for its list.
//!
//! Invariants: if a variable has a value outside its domain, the process gets an error that names the
//! variable and the value; no default silently replaces the value. `init()` reports unknown names once.

use crate::shm::pair::EAGER_MAX;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use typepack_engine::choice::Tune;
use typepack_engine::contiguous::{Method, ParseMethodError};
use typepack_engine::{Isa, ParseIsaError, Strategy};

/// The default of `TYPEPACK_EAGER_LIMIT`: the length of the longest message that a rank sends eagerly, in
/// bytes.
const EAGER_LIMIT: u64 = 8 << 10;

/// The default of `TYPEPACK_UNEXPECTED_MAX`: how many bytes a rank stores for those messages of one sender
/// that no receive has matched yet.
pub(crate) const UNEXPECTED_MAX: u64 = 16 << 20;

/// The names of the variables that the library or the launcher accepts.
pub(crate) const USED: [&str; 35] = [
    "TYPEPACK_JIT",
    "TYPEPACK_JIT_THRESHOLD",
    "TYPEPACK_JIT_MEMORY_MAX",
    "TYPEPACK_KERNEL",
    "TYPEPACK_ISA",
    "TYPEPACK_THREADS",
    "TYPEPACK_VERIFY",
    "TYPEPACK_CHECK_TYPES",
    "TYPEPACK_ERRORS",
    "TYPEPACK_EAGER_LIMIT",
    "TYPEPACK_UNEXPECTED_MAX",
    "TYPEPACK_SPIN_US",
    "TYPEPACK_CMA",
    "TYPEPACK_IO",
    "TYPEPACK_COLL",
    "TYPEPACK_TRANSPORT",
    "TYPEPACK_COPY",
    "TYPEPACK_TUNE",
    "TYPEPACK_TUNE_FILE",
    "TYPEPACK_BIND",
    "TYPEPACK_CC",
    "TYPEPACK_CXX",
    "TYPEPACK_FC",
    "TYPEPACK_WATCHDOG",
    "TYPEPACK_INTERPOSE",
    "TYPEPACK_REPORT",
    "TYPEPACK_QUIET",
    "TYPEPACK_RANK",
    "TYPEPACK_SIZE",
    "TYPEPACK_LOCAL_RANK",
    "TYPEPACK_JOB_FD",
    "TYPEPACK_APPNUM",
    "TYPEPACK_APPSIZE",
    "TYPEPACK_UNIVERSE_SIZE",
    "TYPEPACK_INITIAL_ERRHANDLER",
];

/// The protocols that `TYPEPACK_TRANSPORT` allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// The library chooses a protocol for each message.
    #[default]
    Nothing,
    /// Messages travel only through rings and chunks (buffers in shared memory), even if their data lies in
    /// the shared heap.
    Packed,
    /// Messages travel as with [`Forced::Packed`], but those of medium length go through the ring in fragments, without
    /// an RTS.
    Fragments,
    /// Messages travel as with [`Forced::Packed`], and the receiver unpacks chunks with streaming stores.
    Streamed,
    /// If the data lies in the shared heap, the receiver copies it from layout to layout, even for short
    /// messages.
    Heap,
    /// If the data is contiguous at the sender and at the receiver, the receiver copies it from the
    /// sender's private memory by system calls, even for short messages.
    Cma,
}

/// How accesses to files move data (`TYPEPACK_IO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileMethod {
    /// The library chooses for each access.
    #[default]
    Auto,
    /// Through mapped files, where the system can map the file.
    Mapped,
    /// By system calls.
    Calls,
}

/// How a blocking collective call moves data (`TYPEPACK_COLL`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CollectiveMethod {
    /// The library chooses for each call.
    #[default]
    Auto,
    /// Through cells, if the data are short enough.
    Cells,
    /// Through cells. Each rank that needs the result of a reduction combines the elements of all ranks.
    Whole,
    /// Through cells. In a reduction, each rank combines a slice of the elements.
    Slices,
    /// Through cells, in pieces of another length: longer, or shorter if the ranks share CPUs.
    Pieces,
    /// By messages.
    Messages,
}

/// The names of the methods in `TYPEPACK_COLL`.
const METHODS: [(&str, CollectiveMethod); 6] = [
    ("auto", CollectiveMethod::Auto),
    ("cells", CollectiveMethod::Cells),
    ("whole", CollectiveMethod::Whole),
    ("slices", CollectiveMethod::Slices),
    ("pieces", CollectiveMethod::Pieces),
    ("messages", CollectiveMethod::Messages),
];

impl CollectiveMethod {
    /// Returns whether the operation with this name has the method.
    fn is_for(self, operation: &str) -> bool {
        match self {
            Self::Whole | Self::Slices => ["reduce", "allreduce"].contains(&operation),
            Self::Pieces => {
                let cut =
                    ["bcast", "reduce", "allreduce", "scan", "exscan", "allgather", "alltoall"];
                cut.contains(&operation)
            }
            Self::Auto | Self::Cells | Self::Messages => true,
        }
    }
}

/// A collective operation whose method can be forced. The names are in [`COLLECTIVES`], in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveName {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Scan,
    Exscan,
    Gather,
    Allgather,
    Alltoall,
    Scatter,
    /// The forms with unequal parts.
    Alltoallv,
    /// Both forms.
    ReduceScatter,
    /// All neighbourhood collectives.
    Neighbor,
}

/// The names of the operations in `TYPEPACK_COLL`.
pub(crate) const COLLECTIVES: [&str; 13] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "gather",
    "allgather",
    "alltoall",
    "scatter",
    "alltoallv",
    "reduce_scatter",
    "neighbor",
];

/// The methods of all collective operations. All ranks must have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveMethods {
    methods: [CollectiveMethod; COLLECTIVES.len()],
    /// True if all operations use messages.
    messages: bool,
}

impl CollectiveMethods {
    /// Returns the method of an operation.
    #[inline]
    pub fn of(&self, name: CollectiveName) -> CollectiveMethod {
        self.methods[name as usize]
    }

    /// Returns whether all operations use messages.
    #[inline]
    pub fn are_messages(&self) -> bool {
        self.messages
    }

    /// Reads a list such as `bcast:messages,reduce:cells`. The name `all` stands for all operations that have the
    /// method.
    fn parse(text: &str) -> Option<Self> {
        let mut methods = Self::default();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            let (name, method) = entry.split_once(':').unwrap_or(("all", entry));
            let (_, method) = METHODS.iter().find(|(other, _)| *other == method)?;
            let is_meant = |other: &str| (name == "all" || name == other) && method.is_for(other);
            let mut found = false;
            for (_, slot) in
                COLLECTIVES.iter().zip(&mut methods.methods).filter(|(other, _)| is_meant(other))
            {
                (*slot, found) = (*method, true);
            }
            if !found {
                return None;
            }
        }
        methods.messages =
            methods.methods.iter().all(|method| *method == CollectiveMethod::Messages);
        Some(methods)
    }

    /// Returns a line for each operation: its name, its method, and all methods that it has.
    pub fn lines(&self) -> Vec<String> {
        let line = |(operation, method): (&&str, &CollectiveMethod)| {
            let named = METHODS.iter().find(|(_, other)| other == method);
            let has = METHODS.iter().filter(|(_, other)| other.is_for(operation));
            let has: Vec<&str> = has.map(|(name, _)| *name).collect();
            let name = named.map_or("", |(name, _)| *name);
            format!("{operation:<24} {name:<32} {}", has.join(", "))
        };
        COLLECTIVES.iter().zip(&self.methods).map(line).collect()
    }
}

/// Reads the settings of the code generator.
#[cfg(feature = "jit")]
fn code_generator(
    value: &impl Fn(&'static str) -> Option<String>,
) -> Result<typepack_jit::Settings> {
    let mut jit = typepack_jit::Settings::default();
    if let Some(text) = value("TYPEPACK_JIT") {
        jit.mode = text.parse().map_err(|_| bad("TYPEPACK_JIT", &text, "off, lazy or eager"))?;
    }
    if let Some(bytes) = number(value, "TYPEPACK_JIT_THRESHOLD", BYTES, ANY)? {
        jit.threshold = bytes;
    }
    if let Some(bytes) = number(value, "TYPEPACK_JIT_MEMORY_MAX", BYTES, ANY)? {
        jit.memory_max = bytes;
    }
    Ok(jit)
}

/// The settings of this process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The settings of the code generator: when and how it compiles kernels.
    #[cfg(feature = "jit")]
    pub jit: typepack_jit::Settings,
    /// The strategy with which the engine must pack all types (`TYPEPACK_KERNEL`); `None` leaves the choice
    /// to the engine.
    pub strategy: Option<Strategy>,
    /// The instruction set of leaf kernels, which are precompiled (`TYPEPACK_ISA`); `None` selects the best
    /// set that this CPU supports.
    pub isa: Option<Isa>,
    /// The largest number of threads that pack and unpack one buffer together (`TYPEPACK_THREADS`). The
    /// default is 1, because most ranks are bound to one core.
    pub threads: usize,
    /// True if the engine checks kernels against the interpreter (`TYPEPACK_VERIFY`).
    pub verify: bool,
    /// True if a receive compares its types with the types of the message (`TYPEPACK_CHECK_TYPES`).
    pub check_types: bool,
    /// True if the C library prints the errors that a program ignores (`TYPEPACK_ERRORS`).
    pub all_errors: bool,
    /// The length of the longest message that a rank sends eagerly (at once, through the ring), in bytes.
    /// If `TYPEPACK_TRANSPORT` is `eager`, this is the largest possible value. If it is `pipeline`, `heap`
    /// or `cma`, this is 0.
    pub eager_limit: u64,
    /// How many bytes a rank stores for those messages of one sender that no receive has matched yet
    /// (`TYPEPACK_UNEXPECTED_MAX`). The data of further such messages stays at the sender, except for
    /// messages of at most 64 bytes.
    pub unexpected_max: u64,
    /// The protocol that messages must use (`TYPEPACK_TRANSPORT`).
    pub forced: Forced,
    /// The method of all long contiguous copies (`TYPEPACK_COPY`); `None` leaves the choice to the library.
    pub copy: Option<Method>,
    /// Which choosers measure during the run which way is best (`TYPEPACK_TUNE`).
    pub tune: Tune,
    /// The file that keeps what the library has measured (`TYPEPACK_TUNE_FILE`).
    pub tune_file: Option<PathBuf>,
    /// How accesses to files move data (`TYPEPACK_IO`).
    pub file_method: FileMethod,
    /// How blocking collective calls move data (`TYPEPACK_COLL`).
    pub collectives: CollectiveMethods,
    /// True if ranks may access each other's private memory (`TYPEPACK_CMA`).
    pub cma: bool,
    /// How long a waiting rank spins before it sleeps (`TYPEPACK_SPIN_US`); `None` stands for `SPIN`
    /// (`endpoint/progress/waiting.rs`). In a job with more ranks than CPUs, ranks never spin, whatever the value.
    pub spin: Option<Duration>,
    /// True if each rank prints a report when it leaves the job (`TYPEPACK_REPORT`).
    pub report: bool,
    /// True if the report lists the committed types (`TYPEPACK_REPORT=types`).
    pub report_types: bool,
    /// True if the library prints no warnings (`TYPEPACK_QUIET`).
    pub quiet: bool,
}

impl Settings {
    /// Returns the settings of the process. The first call reads the environment.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if a variable has a value outside its domain.
    pub fn get() -> Result<&'static Self> {
        Self::known().as_ref().map_err(Clone::clone)
    }

    /// Returns the settings of this process, or `None` if a variable has a value outside its domain. This function is
    /// for calls that are made often.
    #[inline]
    pub fn current() -> Option<&'static Self> {
        Self::known().as_ref().ok()
    }

    #[inline]
    fn known() -> &'static Result<Self> {
        static SETTINGS: OnceLock<Result<Settings>> = OnceLock::new();
        SETTINGS.get_or_init(|| {
            let mut assigned = assigned();
            assigned.are_read = true;
            Settings::read(|name| {
                assigned.values.get(name).cloned().or_else(|| of_environment(name))
            })
        })
    }

    pub(crate) fn read(value: impl Fn(&'static str) -> Option<String>) -> Result<Self> {
        #[cfg(feature = "jit")]
        let jit = code_generator(&value)?;
        let strategy = match value("TYPEPACK_KERNEL").as_deref() {
            None | Some("auto") => None,
            Some("interpreter") => Some(Strategy::Interpreter),
            Some("leaf") => Some(Strategy::Leaf),
            Some("kernel") => Some(Strategy::Kernel),
            Some(text) => {
                return Err(bad("TYPEPACK_KERNEL", text, "auto, leaf, kernel or interpreter"));
            }
        };
        let isa = match value("TYPEPACK_ISA") {
            None => None,
            Some(text) => Some(text.parse().map_err(|error: ParseIsaError| {
                Error::new(ErrorKind::Argument, "TYPEPACK_ISA", error.to_string())
            })?),
        };
        let threads = match number(&value, "TYPEPACK_THREADS", "number of threads", 1..=u64::MAX)? {
            None => 1,
            // A number above the number of CPUs is allowed here, because `typepack::threads` starts at most
            // one thread per CPU.
            Some(threads) => usize::try_from(threads).unwrap_or(usize::MAX),
        };
        let eager_limit = number(&value, "TYPEPACK_EAGER_LIMIT", BYTES, 0..=EAGER_MAX as u64)?;
        let mut eager_limit = eager_limit.unwrap_or(EAGER_LIMIT);
        let unexpected_max = number(&value, "TYPEPACK_UNEXPECTED_MAX", BYTES, ANY)?;
        let unexpected_max = unexpected_max.unwrap_or(UNEXPECTED_MAX);
        let forced = match value("TYPEPACK_TRANSPORT").as_deref() {
            None | Some("auto") => Forced::Nothing,
            Some("ring") => Forced::Packed,
            Some("eager") => {
                eager_limit = EAGER_MAX as u64;
                Forced::Packed
            }
            Some("pipeline") => {
                eager_limit = 0;
                Forced::Packed
            }
            Some("parts") => Forced::Fragments,
            Some("streamed") if Method::Streaming.is_available() => {
                eager_limit = 0;
                Forced::Streamed
            }
            Some("heap") => {
                eager_limit = 0;
                Forced::Heap
            }
            Some("cma") => {
                eager_limit = 0;
                Forced::Cma
            }
            Some(text) => {
                let wanted = if Method::Streaming.is_available() {
                    "auto, ring, eager, parts, pipeline, streamed, heap or cma"
                } else {
                    "auto, ring, eager, parts, pipeline, heap or cma"
                };
                return Err(bad("TYPEPACK_TRANSPORT", text, wanted));
            }
        };
        let copy = match value("TYPEPACK_COPY").as_deref() {
            None | Some("auto") => None,
            Some(text) => Some(text.parse().map_err(|error: ParseMethodError| {
                Error::new(ErrorKind::Argument, "TYPEPACK_COPY", format!("{error}, or auto"))
            })?),
        };
        let tune = match value("TYPEPACK_TUNE").as_deref() {
            None => Tune::default(),
            Some(text) => {
                Tune::parse(text).map_err(|wanted| bad("TYPEPACK_TUNE", text, &wanted))?
            }
        };
        let tune_file =
            value("TYPEPACK_TUNE_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
        let file_method = match value("TYPEPACK_IO").as_deref() {
            None | Some("auto") => FileMethod::Auto,
            Some("mmap") => FileMethod::Mapped,
            Some("pwrite") => FileMethod::Calls,
            Some(text) => return Err(bad("TYPEPACK_IO", text, "auto, mmap or pwrite")),
        };
        let collectives = match value("TYPEPACK_COLL") {
            None => CollectiveMethods::default(),
            Some(text) => CollectiveMethods::parse(&text).ok_or_else(|| {
                let names = COLLECTIVES.join(", ");
                let methods = METHODS.map(|(name, _)| name).join(", ");
                let wanted = format!(
                    "a list of OPERATION:METHOD, separated by commas; the operations are all, {names}; the methods \
                     are {methods} (whole and slices only for reduce and allreduce)"
                );
                bad("TYPEPACK_COLL", &text, &wanted)
            })?,
        };
        let cma = match value("TYPEPACK_CMA").as_deref() {
            None | Some("auto") => true,
            Some("off") => false,
            Some(text) => return Err(bad("TYPEPACK_CMA", text, "auto or off")),
        };
        let spin = number(&value, "TYPEPACK_SPIN_US", "number of microseconds", ANY)?;
        let spin = spin.map(Duration::from_micros);
        let verify = flag(&value, "TYPEPACK_VERIFY")?;
        let check_types = flag(&value, "TYPEPACK_CHECK_TYPES")?;
        let (report, report_types) = match value("TYPEPACK_REPORT").as_deref() {
            None | Some("" | "0") => (false, false),
            Some("1") => (true, false),
            Some("types") => (true, true),
            Some(text) => return Err(bad("TYPEPACK_REPORT", text, "0, 1 or types")),
        };
        let all_errors = match value("TYPEPACK_ERRORS").as_deref() {
            None | Some("fatal") => false,
            Some("all") => true,
            Some(text) => return Err(bad("TYPEPACK_ERRORS", text, "fatal or all")),
        };
        let quiet = flag(&value, "TYPEPACK_QUIET")?;
        Ok(Self {
            #[cfg(feature = "jit")]
            jit,
            strategy,
            isa,
            threads,
            verify,
            check_types,
            all_errors,
            eager_limit,
            unexpected_max,
            forced,
            copy,
            tune,
            tune_file,
            file_method,
            collectives,
            cma,
            spin,
            report,
            report_types,
            quiet,
        })
    }
}

/// The values that the program has given to settings through the tool interface, in place of the environment.
struct Assigned {
    values: BTreeMap<&'static str, String>,
    /// True if the settings have been read, so that a later value has no effect on them.
    are_read: bool,
}

fn assigned() -> MutexGuard<'static, Assigned> {
    static ASSIGNED: Mutex<Assigned> =
        Mutex::new(Assigned { values: BTreeMap::new(), are_read: false });
    ASSIGNED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_environment(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) => Some(value),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(raw)) => Some(raw.display().to_string()),
    }
}

/// Returns the value that the program or the environment has given to a setting.
pub(crate) fn given(name: &str) -> Option<String> {
    assigned().values.get(name).cloned().or_else(|| of_environment(name))
}

/// Gives a setting a value in place of that of the environment. If the settings have been read, calls `change`, which
/// changes what the library has made of the setting, and returns false if that is not possible. Returns whether the
/// setting has the value.
///
/// # Errors
/// Returns `ErrorKind::Argument` if the value is outside the domain of the setting.
pub(crate) fn assign(
    name: &'static str,
    value: &str,
    change: impl FnOnce(&Settings) -> bool,
) -> Result<bool> {
    let settings = Settings::read(|asked| (asked == name).then(|| value.to_owned()))?;
    let mut assigned = assigned();
    let done = !assigned.are_read || change(&settings);
    if done {
        assigned.values.insert(name, value.to_owned());
    }
    Ok(done)
}

/// Returns whether the library prints the errors that a program ignores.
pub(crate) fn prints_all_errors() -> bool {
    // The lock is free again before the settings may be read for the first time.
    let given = assigned().values.get("TYPEPACK_ERRORS").map(|value| value == "all");
    given.unwrap_or_else(|| Settings::current().is_some_and(|settings| settings.all_errors))
}

fn bad(name: &'static str, value: &str, wanted: &str) -> Error {
    Error::new(ErrorKind::Argument, name, format!("\"{value}\" is not {wanted}"))
}

const BYTES: &str = "number of bytes";
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

/// Returns the number that the variable `name` has, or `None` if the variable is not set. `what` tells the
/// user in an error text which kind of number is expected, for example "number of bytes".
fn number(
    value: &impl Fn(&'static str) -> Option<String>,
    name: &'static str,
    what: &str,
    allowed: RangeInclusive<u64>,
) -> Result<Option<u64>> {
    let Some(text) = value(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| allowed.contains(number));
    number.map(Some).ok_or_else(|| {
        let (low, high) = allowed.into_inner();
        let wanted = match high {
            u64::MAX => format!("{low} or more"),
            _ => format!("between {low} and {high}"),
        };
        bad(name, &text, &format!("a valid {what}; it must be {wanted}"))
    })
}

fn flag(value: &impl Fn(&'static str) -> Option<String>, name: &'static str) -> Result<bool> {
    match value(name).as_deref() {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(text) => Err(bad(name, text, "0 or 1")),
    }
}

/// Returns one sentence that lists the unknown `TYPEPACK_*` names among `names`, or `None` if all are known.
pub fn unknown_names(names: impl Iterator<Item = String>) -> Option<String> {
    let mut strange: Vec<String> = names
        .filter(|name| name.starts_with("TYPEPACK_") && !USED.contains(&name.as_str()))
        .collect();
    strange.sort();
    (!strange.is_empty()).then(|| format!("unknown environment variables: {}", strange.join(", ")))
}

/// The variables in which launchers say how many processes they have started, and who sets them.
const LAUNCHERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "that of Open MPI, which does not speak PMI-1"),
    ("PMI_SIZE", "which gives no PMI_FD"),
    ("MPI_LOCALNRANKS", "which gives no PMI_FD"),
    ("SLURM_NTASKS", "that of Slurm, without --mpi=pmi2"),
];

/// Returns a warning if a launcher that does not speak PMI-1 started this program as one of several processes.
pub fn foreign_launcher(value: impl Fn(&'static str) -> Option<String>) -> Option<String> {
    let is_several =
        |name| value(name).and_then(|text| text.parse::<u64>().ok()).is_some_and(|n| n > 1);
    let (name, who) = LAUNCHERS.into_iter().find(|(name, _)| is_several(name))?;
    Some(format!(
        "{name} is set: another launcher started this program, {who}, so each process is the only rank of \
         its own job; start the program with typepack's mpiexec (typepack doctor says where it is), with MPICH's mpiexec or \
         with srun --mpi=pmi2, or set TYPEPACK_QUIET=1 to silence this line"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Result<Settings> {
        Settings::read(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_owned()))
    }

    #[test]
    fn values_are_understood() {
        let settings = read(&[
            ("TYPEPACK_JIT", "eager"),
            ("TYPEPACK_JIT_THRESHOLD", "12"),
            ("TYPEPACK_KERNEL", "interpreter"),
            ("TYPEPACK_ISA", "portable"),
            ("TYPEPACK_THREADS", "2"),
            ("TYPEPACK_EAGER_LIMIT", "64"),
            ("TYPEPACK_UNEXPECTED_MAX", "0"),
            ("TYPEPACK_SPIN_US", "0"),
            ("TYPEPACK_REPORT", "1"),
            ("TYPEPACK_CHECK_TYPES", "1"),
            ("TYPEPACK_ERRORS", "all"),
            ("TYPEPACK_COPY", "vector"),
            ("TYPEPACK_TUNE", "off"),
            ("TYPEPACK_COLL", "all:messages,bcast:cells,scan:auto"),
        ])
        .unwrap();
        #[cfg(feature = "jit")]
        assert!(matches!(settings.jit.mode, typepack_jit::Mode::Eager));
        #[cfg(feature = "jit")]
        assert_eq!(settings.jit.threshold, 12);
        assert_eq!(settings.strategy, Some(Strategy::Interpreter));
        assert_eq!(settings.isa, Some(Isa::Portable));
        assert_eq!((settings.threads, read(&[]).unwrap().threads), (2, 1));
        assert_eq!((settings.eager_limit, settings.unexpected_max), (64, 0));
        assert_eq!((settings.copy, settings.tune), (Some(Method::Vector), Tune::OFF));
        let methods = settings.collectives;
        assert_eq!(methods.of(CollectiveName::Bcast), CollectiveMethod::Cells);
        assert_eq!(methods.of(CollectiveName::Scan), CollectiveMethod::Auto);
        assert_eq!(methods.of(CollectiveName::Alltoall), CollectiveMethod::Messages);
        assert!(!methods.are_messages());
        assert!(read(&[("TYPEPACK_COLL", "messages")]).unwrap().collectives.are_messages());
        let slices = read(&[("TYPEPACK_COLL", "all:messages,all:slices")]).unwrap().collectives;
        assert_eq!(slices.of(CollectiveName::Allreduce), CollectiveMethod::Slices);
        assert_eq!(slices.of(CollectiveName::Scan), CollectiveMethod::Messages);
        assert_eq!(slices.lines()[1].split_whitespace().nth(1), Some("messages"));
        assert_eq!(slices.lines().len(), COLLECTIVES.len());
        assert_eq!(read(&[]).unwrap().unexpected_max, 16 << 20);
        assert_eq!(settings.spin, Some(Duration::ZERO));
        assert!(settings.report && !settings.verify && settings.check_types);
        assert!(settings.all_errors);
        assert_eq!(read(&[("TYPEPACK_TRANSPORT", "pipeline")]).unwrap().eager_limit, 0);
    }

    #[test]
    fn bad_values_name_variable_and_value() {
        for (name, value) in [
            ("TYPEPACK_JIT", "always"),
            ("TYPEPACK_JIT_THRESHOLD", "-1"),
            ("TYPEPACK_KERNEL", "fast"),
            ("TYPEPACK_ISA", "mmx"),
            ("TYPEPACK_THREADS", "0"),
            ("TYPEPACK_THREADS", "many"),
            ("TYPEPACK_EAGER_LIMIT", "1000000"),
            ("TYPEPACK_UNEXPECTED_MAX", "16M"),
            ("TYPEPACK_UNEXPECTED_MAX", "-1"),
            ("TYPEPACK_SPIN_US", "long"),
            ("TYPEPACK_TRANSPORT", "tcp"),
            ("TYPEPACK_CMA", "on"),
            ("TYPEPACK_COPY", "memcpy"),
            ("TYPEPACK_COLL", "bcast:tree"),
            ("TYPEPACK_COLL", "bcast:slices"),
            ("TYPEPACK_COLL", "all:cells,broadcast:messages"),
            ("TYPEPACK_TUNE", "1"),
            ("TYPEPACK_TUNE", "off:copy"),
            ("TYPEPACK_VERIFY", "yes"),
            ("TYPEPACK_CHECK_TYPES", "strict"),
            ("TYPEPACK_ERRORS", "1"),
        ] {
            let text = read(&[(name, value)]).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn strange_names_and_launchers_are_noticed() {
        let names = |list: &[&str]| {
            unknown_names(list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>().into_iter())
        };
        assert_eq!(names(&["PATH", "TYPEPACK_JIT"]), None);
        assert!(names(&["TYPEPACK_JITT"]).unwrap().contains("TYPEPACK_JITT"));
        // The library must accept a name only if the variable has an effect. These variables are planned, but
        // have no effect yet.
        for name in ["TYPEPACK_CHAOS", "TYPEPACK_EXPLAIN"] {
            assert_eq!(names(&[name]).unwrap(), format!("unknown environment variables: {name}"));
        }
        for (text, method) in [
            ("auto", FileMethod::Auto),
            ("mmap", FileMethod::Mapped),
            ("pwrite", FileMethod::Calls),
        ] {
            let read = Settings::read(|name| (name == "TYPEPACK_IO").then(|| text.to_owned()));
            assert_eq!(read.unwrap().file_method, method);
        }
        let read = Settings::read(|name| (name == "TYPEPACK_IO").then(|| "mapped".to_owned()));
        assert!(read.unwrap_err().to_string().contains("auto, mmap or pwrite"));
        assert_eq!(foreign_launcher(|_| None), None);
        let slurm = |n: &'static str| (n == "SLURM_NTASKS").then(|| "4".to_owned());
        assert!(foreign_launcher(slurm).unwrap().contains("SLURM_NTASKS"));
        let one = |n: &'static str| (n == "PMI_SIZE").then(|| "1".to_owned());
        assert_eq!(foreign_launcher(one), None);
    }
}
