//! Beginning and end: joining the job, the process-wide JIT, leaving the job.
//!
//! The first call of a program is [`init`]; what it returns hands out the world communicator
//! (`comm/`), and leaves the job when it is dropped. `settings.rs` is read here, `shm/attach.rs`
//! finds the job.
//!
//! Invariant: a process joins once, as the rank that `mpiexec` made it, or as the only rank of a
//! job of its own.

use crate::comm::Communicator;
use crate::commit::jit;
use crate::endpoint::progress::Endpoint;
use crate::memory::{self, SharedBuffer};
use crate::placement::Placement;
use crate::schedule;
use crate::settings::{Settings, foreign_launcher, unknown_names};
use crate::shm::{Attached, attach, attach_from_env};
use crate::sys::{clock, machine};
use crate::transport::choice;
use crate::transport::fabric::Fabric;
use crate::{Error, ErrorKind, Result};
use bytemuck::Pod;
use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a waiting rank with a CPU to itself spins before it sleeps, unless `TYPEPACK_SPIN_US`
/// says otherwise: longer than a sleep and a wake-up cost together.
pub(crate) const SPIN: Duration = Duration::from_micros(50);

/// The job that this process has joined. Never given back: descriptors and mapping live as long
/// as the process, so that the kernel ends it with its launcher also after finalization.
static JOB: OnceLock<Attached> = OnceLock::new();

/// What other ranks read to find out whether they can access the memory of this one, and that it is
/// this one.
static PROBE: OnceLock<u64> = OnceLock::new();

/// A number that hardly another process has at that address.
fn probe_number() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(std::process::id())
}

/// This process's membership in its job; dropping it leaves the job.
///
/// Dropping writes out sends that are still on their way, takes what other ranks are in the middle
/// of sending after a receive was cut loose, prints the report if `TYPEPACK_REPORT` asks for it,
/// and tells the launcher that this rank ends in order. A process that panics leaves without that:
/// its end is a failure.
#[doc(alias = "MPI_Finalize")]
pub struct Universe {
    world: Communicator,
    own: Communicator,
    report: bool,
}

impl fmt::Debug for Universe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Universe").field("world", &self.world).finish_non_exhaustive()
    }
}

/// Joins the job: as a rank when `mpiexec` started this program, else as the only rank of its own.
///
/// Prints one line on standard error each for unknown `TYPEPACK_*` variables and for a program
/// that another launcher started as one of several.
///
/// # Errors
/// A second call in a process; a `TYPEPACK_*` variable outside its domain; a launcher of another
/// version or one that is gone; out of memory.
#[doc(alias = "MPI_Init")]
pub fn init() -> Result<Universe> {
    static JOINED: AtomicBool = AtomicBool::new(false);
    let settings = Settings::get()?;
    if JOINED.swap(true, Ordering::AcqRel) {
        let detail = "this process has joined its job already; init() works once";
        return Err(Error::new(ErrorKind::State, "init", detail));
    }
    let attached = attach_from_env()?;
    // One rank speaks for all about the environment they share.
    if !settings.quiet && attached.as_ref().is_none_or(|attached| attached.rank == 0) {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        if let Some(line) = unknown_names(names) {
            eprintln!("typepack: {line}");
        }
    }
    let fabric = match attached {
        Some(attached) => {
            let attached = JOB.get_or_init(|| attached);
            let fabric = Fabric::join(attached.segment.clone(), attached.rank)?;
            // Nobody but its only rank would copy from the memory of a job of one.
            if fabric.size() > 1 {
                fabric.heaps().into_iter().for_each(memory::join);
                if settings.cma {
                    let number = PROBE.get_or_init(probe_number);
                    fabric.open_memory(std::ptr::from_ref(number) as u64, *number);
                }
            }
            fabric
        }
        None => {
            let warning = foreign_launcher(|name| std::env::var(name).ok());
            if let Some(line) = warning.filter(|_| !settings.quiet) {
                eprintln!("typepack: {line}");
            }
            Fabric::alone()
        }
    };
    let spin = if fabric.oversubscribed() { Duration::ZERO } else { SPIN };
    let spin = settings.spin.unwrap_or(spin);
    let endpoint = Arc::new(Endpoint::new(fabric, settings.eager_limit, settings.forced, spin));
    if settings.check_types {
        endpoint.check_types()?;
    }
    schedule::calls::register(&endpoint)?;
    let own = Communicator::own(endpoint.clone());
    Ok(Universe { world: Communicator::world(endpoint), own, report: settings.report })
}

impl Universe {
    /// The communicator of all ranks of the job.
    #[doc(alias = "MPI_COMM_WORLD")]
    pub fn world(&self) -> Communicator {
        self.world.clone()
    }

    /// The communicator of this rank alone.
    #[doc(alias = "MPI_COMM_SELF")]
    pub fn own(&self) -> Communicator {
        self.own.clone()
    }

    /// `len` values, all zeros, in memory from which other ranks copy messages in place: once, from
    /// layout to layout, instead of twice. Sent and received like any other slice; may outlive the
    /// job.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// let mut field = universe.shared_buffer::<f64>(1 << 20)?;
    /// field[0] = 1.0;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Out of memory, which includes what is left to the cgroups of this process.
    #[doc(alias = "MPI_Alloc_mem")]
    pub fn shared_buffer<T: Pod>(&self, len: usize) -> Result<SharedBuffer<T>> {
        SharedBuffer::zeroed(len)
    }

    /// Whether what rank 0 prints on standard error is seen on a terminal: under `mpiexec` its
    /// terminal, which a rank behind a pipe cannot see itself. Progress displays ask for this.
    pub fn stderr_is_terminal(&self) -> bool {
        match JOB.get() {
            Some(attached) => attached.segment.flags().stderr_terminal,
            None => std::io::stderr().is_terminal(),
        }
    }

    /// The number of the program that this rank runs among those of the job (`mpiexec -n 1 a : -n 2
    /// b`), from 0; `None` without a launcher.
    #[doc(alias = "MPI_APPNUM")]
    pub fn app_number(&self) -> Option<u32> {
        told(attach::APP_NUMBER)?.parse().ok()
    }

    /// How many ranks run the same program of the job as this one; `None` without a launcher.
    pub fn app_size(&self) -> Option<u32> {
        told(attach::APP_SIZE)?.parse().ok()
    }

    /// How many processes the user has told the launcher there is room for.
    #[doc(alias = "MPI_UNIVERSE_SIZE")]
    pub fn universe_size(&self) -> Option<u32> {
        told(attach::UNIVERSE_SIZE)?.parse().ok()
    }

    /// The name of the error handler that the user has told the launcher: `mpi_errors_are_fatal`,
    /// `mpi_errors_abort` or `mpi_errors_return` (MPI-5.0 section 11.5).
    #[doc(alias = "mpi_initial_errhandler")]
    pub fn initial_errhandler(&self) -> Option<String> {
        told(attach::INITIAL_ERRHANDLER)
    }

    /// Where the launcher has put the ranks; `None` without a launcher.
    pub fn placement(&self) -> Option<Placement> {
        JOB.get().map(|attached| Placement::of(&attached.segment))
    }

    /// How messages travel from rank to rank, a sentence for each way.
    pub fn transports(&self) -> Result<Vec<String>> {
        let eager = Settings::get()?.eager_limit;
        if self.world.size() == 1 {
            return Ok(vec!["one rank: messages to itself stay in its own memory".into()]);
        }
        Ok(vec![
            format!("up to {eager} bytes: packed into the ring of the pair (eager)"),
            "longer, from the shared heap: copied once, layout to layout, by both ranks (heap)"
                .into(),
            if machine::is_amd() {
                "longer, from one run of other memory to another: copied by both, only on demand (cma)"
                    .into()
            } else {
                format!(
                    "longer, from one run of other memory to another, from {} bytes: copied by both, \
                     where the system lets them (cma)",
                    choice::SPLIT_NEAR
                )
            },
            "longer, else: through the chunks of the pair (pipeline)".into(),
        ])
    }

    /// One line about what this rank has sent and how types were packed.
    fn report(&self) -> Result<String> {
        let traffic = self.world.endpoint().traffic()?;
        let kernels = jit().counters();
        let moved = typepack_engine::stats::bytes();
        Ok(format!(
            "typepack: rank {}: {} messages ({} eager, {} pipeline, {} heap, {} cma), {} bytes sent; {} kernels, {} hits, \
             {} refusals, {:.3} ms compiling; bytes packed by memcpy {}, rows {}, kernels {}, \
             interpreter {}",
            self.world.rank(),
            traffic.messages,
            traffic.eager,
            traffic.pipelined,
            traffic.fused,
            traffic.split,
            traffic.bytes,
            kernels.kernels,
            kernels.hits,
            kernels.refusals,
            kernels.compile_ns as f64 / 1e6,
            moved.memcpy,
            moved.rows,
            moved.kernel,
            moved.interpreter,
        ))
    }
}

/// What the launcher has put into the environment of this rank. Without a launcher the name means
/// nothing: it may have come from a job that this process was started in.
fn told(name: &str) -> Option<String> {
    JOB.get().and_then(|_| std::env::var(name).ok())
}

impl Drop for Universe {
    fn drop(&mut self) {
        let report = if self.report { self.report().ok() } else { None };
        // A failure here is a death in the job, which the launcher reports; a forked child that
        // drops its copy gets an error and changes nothing.
        let _reported_by_the_launcher = self.world.endpoint().finalize(!std::thread::panicking());
        if let Some(line) = report {
            eprintln!("{line}");
        }
    }
}

/// The name of this machine in its network.
#[doc(alias = "MPI_Get_processor_name")]
pub fn processor_name() -> Vec<u8> {
    machine::host_name()
}

/// Seconds since some moment in the past that is the same for every process of the machine.
#[doc(alias = "MPI_Wtime")]
pub fn wtime() -> f64 {
    clock::monotonic()
}

/// Seconds between two ticks of [`wtime`].
#[doc(alias = "MPI_Wtick")]
pub fn wtick() -> f64 {
    clock::resolution()
}

/// Ends the job: this process exits at once with `code`, of which the system keeps the lowest eight
/// bits (1 where these are 0, so that it is seen as a failure), and the launcher ends the others.
#[doc(alias = "MPI_Abort")]
pub fn abort(code: i32) -> ! {
    let code = if code & 0xff == 0 { 1 } else { code };
    crate::sys::process::end(code)
}
