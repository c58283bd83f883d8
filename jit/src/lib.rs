//! Makes machine code for typepack's loop programs.
//!
//! The engine cuts the work of a datatype into nests. A nest consists of loops, one inside another,
//! around a block or a few short runs. The shape of a nest is everything on which its machine code
//! depends, for example the number of its loops, but not their counts or strides. The engine asks
//! for the kernel of a shape through its trait [`Compiler`], which [`Jit`] implements. A request
//! takes these steps:
//!
//! 1. `policy.rs`: states the cost of a compilation; the engine asks for a kernel once that kernel
//!    would have saved as much time;
//! 2. `cache.rs`: looks for a kernel, or a refusal, of the shape;
//! 3. `translate/`: translates the shape to CLIF, Cranelift's intermediate code;
//! 4. `compiler.rs`: compiles the CLIF to machine code, for the machine that `target.rs` describes;
//! 5. `memory.rs`: puts the machine code into executable pages.
//!
//! If a step fails, the shape is refused (`error.rs`). The refusal is counted (`counters.rs`), and the
//! engine's interpreter or one of its leaf kernels does the work. This crate does not print, read the
//! environment, or panic on a refusal.
//!
//! ```
//! use typepack_engine::kernel::{Compiler, Direction, LeafShape, LevelShape, Shape};
//! use typepack_jit::{Jit, Mode, Settings};
//!
//! let jit = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
//! let shape = Shape {
//!     direction: Direction::Pack,
//!     levels: vec![LevelShape::Loop],
//!     leaf: LeafShape::Fixed { bytes: 8 },
//! };
//! // A refusal is not an error: the interpreter executes the nest.
//! let Some(kernel) = jit.kernel(&shape) else { return };
//! assert_eq!(kernel.name(), "pack loop b8");
//!
//! // Packs every other double of six.
//! let mut memory = [0.0_f64, 1.0, 2.0, 3.0, 4.0, 5.0];
//! let mut packed = [0.0_f64; 3];
//! let params = [3_u64, 16, 0];
//! // SAFETY: `params` has the three words of one level; its three blocks of 8 bytes, 16 bytes
//! // apart, lie in `memory`; `packed` has 24 bytes; `memory` and `packed` do not overlap.
//! unsafe {
//!     kernel.entry()(params.as_ptr(), memory.as_mut_ptr().cast(), packed.as_mut_ptr().cast());
//! }
//! assert_eq!(packed, [0.0, 2.0, 4.0]);
//! ```

mod cache;
mod compiler;
mod counters;
mod error;
mod memory;
mod policy;
mod report;
mod target;
mod translate;

pub use counters::Counters;
pub use error::{Error, ErrorKind, Result};
pub use policy::{Mode, ParseModeError, Settings};
pub use report::{Report, report};
pub use target::Target;

use cache::{CAPACITY, Cache};
use compiler::CodeGenerator;
use counters::{Live, add};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use translate::Translate;
use typepack_engine::kernel::{Compiler, Kernel, Shape, TransferShape};

/// The JIT compiler of a process. The settings of a commit contain a clone of it. Clones share
/// kernels and counters.
#[derive(Clone)]
pub struct Jit {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    /// The code generator; an error with the reason if every shape is refused.
    generator: Result<CodeGenerator>,
    cache: Cache<Shape>,
    transfers: Cache<TransferShape>,
    counters: Live,
    /// Who wants to know of each compilation.
    told: OnceLock<fn(u64, u64)>,
}

impl Jit {
    /// Tries to set up the code generator, to reserve code memory, and to run a stub, which proves that
    /// new code can run. Never fails: if one of these steps fails, or if the mode is [`Mode::Off`], the
    /// new `Jit` refuses every shape.
    pub fn new(settings: Settings) -> Self {
        let generator = match settings.mode {
            // With the mode off, the process needs no code memory, so none is reserved.
            Mode::Off => {
                Err(Error::new(ErrorKind::Target, "the code generator is off (mode `off`)"))
            }
            Mode::Lazy | Mode::Eager => CodeGenerator::new(settings.memory_max),
        };
        let (cache, transfers) = (Cache::new(CAPACITY), Cache::new(CAPACITY));
        let (counters, told) = (Live::default(), OnceLock::new());
        Self { shared: Arc::new(Shared { settings, generator, cache, transfers, counters, told }) }
    }

    /// Calls `tell` after each later compilation of a kernel, with its time in nanoseconds and the number of bytes of
    /// machine code. Only the first call of this function has an effect.
    pub fn on_compiled(&self, tell: fn(u64, u64)) {
        self.shared.told.get_or_init(|| tell);
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters.read()
    }

    /// Returns the mode, which says when kernels are compiled.
    pub fn mode(&self) -> Mode {
        self.shared.settings.mode
    }

    /// Returns the reason if this `Jit` refuses every shape: the mode is off, the system denies code
    /// memory or its execution, [`Settings::memory_max`] is less than a page, the stub that tests new
    /// code returned a wrong value, or there is no code generator for this machine. Returns `None` if
    /// the `Jit` compiles kernels.
    pub fn disabled(&self) -> Option<&Error> {
        self.shared.generator.as_ref().err()
    }
}

// SAFETY: `translate/` wrote the kernel for exactly the requested shape. The cache compares whole
// shapes, so it returns a kernel only for the shape that the kernel was compiled for.
unsafe impl Compiler for Jit {
    fn threshold(&self) -> u64 {
        self.shared.settings.asks_after()
    }

    fn kernel(&self, shape: &Shape) -> Option<Kernel> {
        self.shared.kernel(&self.shared.cache, shape)
    }

    fn transfer_kernel(&self, shape: &TransferShape) -> Option<Kernel> {
        self.shared.kernel(&self.shared.transfers, shape)
    }
}

impl Shared {
    /// Returns the kernel of `shape`, either from `cache` or newly compiled; `None` if the shape is
    /// refused.
    fn kernel<S>(&self, cache: &Cache<S>, shape: &S) -> Option<Kernel>
    where
        S: Translate + Clone + Eq + Hash,
    {
        let counters = &self.counters;
        let answer = match &self.generator {
            Err(_) => None,
            Ok(generator) => {
                let (kernel, known) = cache.get(shape, || {
                    let start = Instant::now();
                    let compiled = generator.compile(shape);
                    let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    add(&counters.compile_ns, spent);
                    let (kernel, bytes) = compiled.ok()?;
                    add(&counters.kernels, 1);
                    add(&counters.code_bytes, bytes as u64);
                    if let Some(tell) = self.told.get() {
                        tell(spent, bytes as u64);
                    }
                    Some(kernel)
                });
                if known && kernel.is_some() {
                    add(&counters.hits, 1);
                }
                kernel
            }
        };
        if answer.is_none() {
            add(&counters.refusals, 1);
        }
        answer
    }
}

impl fmt::Debug for Jit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jit")
            .field("settings", &self.shared.settings)
            .field("disabled", &self.disabled())
            .field("counters", &self.counters())
            .finish()
    }
}

/// Returns the machine code of `shape` for `target`: one position-independent function of the type
/// [`Entry`](typepack_engine::kernel::Entry), without relocations.
///
/// # Errors
///
/// - Returns [`ErrorKind::Shape`] if the shape is outside the translator's limits.
/// - Returns [`ErrorKind::Target`] if there is no code generator for the target: those for other machines come with the
///   feature `every-target`.
/// - Returns [`ErrorKind::CodeGeneration`] if the code generator fails.
pub fn emit(shape: &Shape, target: Target) -> Result<Vec<u8>> {
    compiler::emit(shape, target).map(|code| code.bytes)
}

/// Returns the CLIF of `shape` for `target`, as Cranelift prints it, before optimisation.
///
/// # Errors
///
/// Returns the errors of [`emit`].
pub fn clif(shape: &Shape, target: Target) -> Result<String> {
    compiler::clif(shape, target)
}

/// Does what [`emit`] does, for the kernel of a fused copy (from one layout directly to another).
///
/// # Errors
///
/// Returns the errors of [`emit`].
pub fn emit_transfer(shape: &TransferShape, target: Target) -> Result<Vec<u8>> {
    compiler::emit(shape, target).map(|code| code.bytes)
}

/// Does what [`clif`] does, for the kernel of a fused copy (from one layout directly to another).
///
/// # Errors
///
/// Returns the errors of [`emit`].
pub fn clif_transfer(shape: &TransferShape, target: Target) -> Result<String> {
    compiler::clif(shape, target)
}
