//! Making windows.
//!
//! The ranks make a window together, in steps in which they tell each other what they know. If a rank fails in a
//! step, all ranks return an error.
//!
//! 1. Each rank tells the others the size of its memory. If the program supplies the memory, the rank also tells where
//!    it lies.
//! 2. The ranks allocate the blocks (`words.rs`), and behind them the memory that the window allocates.
//! 3. If memory has to be aligned to more than a cache line, each rank tells where its memory begins.
//! 4. If other ranks may be unable to map the memory, each rank begins to serve their requests, and tells whether it
//!    could.
//!
//! The memory of a shared window is one piece in the heap of rank 0, unless all ranks allow several pieces by the hint
//! `alloc_shared_noncontig`. Pages take memory when a rank touches them, and come from its NUMA node then. With the
//! hint `typepack_populate`, each rank takes the pages of its own memory at once.

use super::dynamic::Attached;
use super::target::Memory;
use super::words::Words;
use crate::comm::Communicator;
use crate::error::check_memory;
use crate::memory;
use crate::region::{LOST, tell};
use crate::request::reply::{ReplyWord, kind_of};
use crate::rma::accumulate::mechanism;
use crate::rma::epoch::epochs::Epochs;
use crate::rma::epoch::wait::Meetings;
use crate::rma::request::place::Memory as Requested;
use crate::rma::request::replies::Requests;
use crate::rma::request::target::TargetSide;
use crate::rma::request::tries::Tries;
use crate::rma::{Window, WindowHints};
use crate::settings::Settings;
use crate::{Error, ErrorKind, Result, WindowErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

/// How a window was made. The number of a flavor is that of the standard's ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// From memory that the program supplies.
    #[doc(alias = "MPI_WIN_FLAVOR_CREATE")]
    Create = 311,
    /// With memory that the window allocates.
    #[doc(alias = "MPI_WIN_FLAVOR_ALLOCATE")]
    Allocate = 312,
    /// Without memory: the ranks attach memory later.
    #[doc(alias = "MPI_WIN_FLAVOR_DYNAMIC")]
    Dynamic = 313,
    /// With memory that the ranks share, so that every rank can load from it and store to it.
    #[doc(alias = "MPI_WIN_FLAVOR_SHARED")]
    Shared = 314,
}

/// The memory of this rank in a window that is being made.
struct Mine {
    base: *mut u8,
    bytes: u64,
    unit: u64,
}

/// The words of the first step: the error class if this rank has failed (else 0), the flavor, the size of the memory in
/// bytes, the displacement unit, the alignment in bytes, the bits `APART` and `POPULATE`, for memory of the
/// program the rank in whose heap it lies and its offset in this heap (or its address, if it lies in no heap), and the
/// hint `mpi_accumulate_granularity`.
type Words1 = [u64; 9];

/// The bit of a rank that allows memory in several pieces.
const APART: u64 = 1;
/// The bit of a rank whose memory takes all its pages at once.
const POPULATE: u64 = 2;

/// The number that stands for the heap if memory lies in no rank's heap.
const NO_HEAP: u64 = u64::MAX;

impl Window {
    /// Makes a window with `bytes` bytes at this rank, which are zero. Each rank may pass a different number. A
    /// displacement counts units of `unit` bytes. `hints` are keys and values of an info object. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Comm` if `comm` is an intercommunicator, `WindowErrorKind::Size` if `bytes` is negative,
    /// `ErrorKind::Argument` if `unit` is not positive, `ErrorKind::Other` if the ranks make windows of different
    /// flavors, `ErrorKind::NoMemory` if a rank has too little memory, and `ErrorKind::ProcAborted` if a rank has died.
    /// An error of one rank is an error on all ranks.
    #[doc(alias = "MPI_Win_allocate")]
    pub fn allocate(
        comm: &Communicator,
        bytes: i64,
        unit: i64,
        hints: &[(String, String)],
    ) -> Result<Self> {
        Self::make(comm, Flavor::Allocate, own(bytes, unit), hints)
    }

    /// Makes a window like [`allocate`](Self::allocate), whose memory all ranks can use through pointers
    /// ([`shared_query`](Self::shared_query)). The memory of a rank begins where that of the rank below ends, unless
    /// the hint `alloc_shared_noncontig` is true on all ranks. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate), but `WindowErrorKind::Shared` if a rank cannot map the
    /// memory of another one.
    #[doc(alias = "MPI_Win_allocate_shared")]
    pub fn allocate_shared(
        comm: &Communicator,
        bytes: i64,
        unit: i64,
        hints: &[(String, String)],
    ) -> Result<Self> {
        Self::make(comm, Flavor::Shared, own(bytes, unit), hints)
    }

    /// Makes a window from memory of the program: `bytes` bytes at `base`. A displacement counts units of `unit` bytes.
    /// Collective.
    ///
    /// # Safety
    ///
    /// - Until the window is freed, `bytes` bytes at `base` are readable and writable, and this process accesses
    ///   them only as the epochs of the window permit.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate), and `WindowErrorKind::Base` if `base` is null and `bytes` is
    /// positive.
    #[doc(alias = "MPI_Win_create")]
    pub unsafe fn create_raw(
        comm: &Communicator,
        base: *mut u8,
        bytes: i64,
        unit: i64,
        hints: &[(String, String)],
    ) -> Result<Self> {
        let mine = own(bytes, unit).and_then(|mine| {
            if base.is_null() && mine.bytes > 0 {
                let detail = format!("null pointer for {bytes} bytes");
                return Err(Error::new(ErrorKind::Window(WindowErrorKind::Base), "base", detail));
            }
            Ok(Mine { base, ..mine })
        });
        Self::make(comm, Flavor::Create, mine, hints)
    }

    /// Makes a window without memory, to which the ranks attach memory later. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate).
    #[doc(alias = "MPI_Win_create_dynamic")]
    pub fn dynamic(comm: &Communicator, hints: &[(String, String)]) -> Result<Self> {
        Self::make(comm, Flavor::Dynamic, own(0, 1), hints)
    }

    /// Takes part in a call that makes a window, as a rank that has failed with `error`. The other ranks then return an
    /// error too and do not wait.
    pub fn refuse(comm: &Communicator, error: Error) {
        // The caller returns its own error.
        let _refused = Self::make(comm, Flavor::Dynamic, Err(error), &[]);
    }

    fn make(
        comm: &Communicator,
        flavor: Flavor,
        mine: Result<Mine>,
        given: &[(String, String)],
    ) -> Result<Self> {
        comm.check_intra("comm")?;
        // In a forked child, this call fails. Without it, a window of one rank would be made without communication.
        let mine = match comm.endpoint().enter() {
            Err(error) if error.kind() == ErrorKind::State => return Err(error),
            // Memory was short for the messages that this rank took. The other ranks learn of it as of any other error.
            entered => entered.and(mine),
        };
        let mut hints = WindowHints::default();
        hints.set(given, true);
        let all = agreed(comm, flavor, mine, &hints).inspect_err(|_| {
            // A rank that has not got the words of the others does not know whether they go on.
            let _refused = Words::new(comm, usize::MAX, false);
        })?;
        let in_one_piece =
            flavor == Flavor::Shared && all.iter().any(|words| words[5] & APART == 0);
        // A sum that does not fit makes the allocation below fail.
        let before = all[..comm.rank()].iter().map(|words| words[2]).fold(0, u64::saturating_add);
        hints.place(flavor, in_one_piece);
        let lengths = lengths(&all, flavor, in_one_piece);
        // If a sum does not fit, this rank asks for `usize::MAX` bytes, so that the allocation fails on all ranks.
        let more = lengths.as_ref().map_or(usize::MAX, |lengths| lengths[comm.rank()]);
        // Each rank takes the pages of its own part of a piece, so that they come from its NUMA node.
        let apart = in_one_piece && comm.size() > 1;
        let words = Words::new(comm, more, hints.populate && !apart).map_err(|error| {
            match (error.kind(), flavor) {
                (ErrorKind::Window(WindowErrorKind::Shared), Flavor::Shared) => error,
                // The program has not asked for memory that it can share.
                (ErrorKind::Window(WindowErrorKind::Shared), _) => {
                    Error::new(ErrorKind::NoMemory, "size", error.to_string())
                }
                _ => error,
            }
        })?;
        let lengths =
            lengths.ok_or_else(|| internal("the blocks were allocated without a length"))?;
        for (rank, &length) in lengths.iter().enumerate() {
            if words.region()?.len(rank) != Words::bytes(comm.size()) + length {
                return Err(internal("a rank has allocated a block of another length"));
            }
        }
        let place = || -> Result<_> {
            let pads = pads(comm, &words, &all, in_one_piece)?;
            if apart && all.iter().any(|words| words[5] & POPULATE != 0) {
                let start = Words::bytes(comm.size()) + (pads[0] + before) as usize;
                let own = if hints.populate { all[comm.rank()][2] as usize } else { 0 };
                words.region()?.populate(0, start..start + own)?;
            }
            for (rank, said) in all.iter().enumerate() {
                mechanism::fix(&words, rank, said[8])?;
            }
            targets(comm, &words, flavor, in_one_piece, &all, &pads)
        };
        // A rank that fails here takes part in step 4, if there is one.
        let targets = place();
        let words = Arc::new(words);
        let attached = Attached::new(comm.size());
        // Every rank takes the next tag, even if it has no private memory, so that the tags of all ranks stay equal.
        // Requests have even tags, and answers have odd tags.
        let tag = (comm.next_place().tag & (i32::MAX >> 1)) << 1;
        let has_requests = matches!(flavor, Flavor::Dynamic | Flavor::Create) && comm.size() > 1;
        let target_side = if has_requests {
            let side = targets.as_ref().map_err(Error::clone).and_then(|targets| {
                let memory = match flavor {
                    Flavor::Dynamic => Requested::Attached(attached.shared()),
                    // Also memory in a heap, because another rank may be unable to map the heap.
                    _ => {
                        let own = &targets[comm.rank()];
                        Requested::Piece(own.base as usize, own.bytes)
                    }
                };
                TargetSide::begin(comm, tag, &words, memory)
            });
            Some(begun(comm, side)?)
        } else {
            None
        };
        let targets = targets?;
        hints.align(flavor, targets[comm.rank()].base.addr());
        let mapped = || targets.iter().filter(|target| target.is_mapped && target.bytes > 0);
        let first = mapped().map(|target| target.base.addr()).min().unwrap_or(0);
        let end = mapped().map(|target| target.base.addr() + target.bytes as usize).max();
        Ok(Self {
            rank: comm.rank(),
            comm: comm.clone(),
            flavor,
            mapped: (first, end.unwrap_or(0) - first),
            requests: Requests::new(comm.endpoint().clone(), &words, comm.rank()),
            words,
            meetings: Meetings::new(),
            epochs: Epochs::new(comm.size()),
            no_locks: AtomicBool::new(hints.no_locks),
            hints: Mutex::new(hints),
            targets,
            tries: Tries::new(comm.size()),
            attached,
            calls: AtomicU32::new(0),
            check_types: Settings::current().is_some_and(|settings| settings.check_types),
            stored: AtomicBool::new(false),
            tag,
            alone: Mutex::new(()),
            target_side,
        })
    }
}

/// Does step 4, after this rank has begun to serve requests, or has failed to.
fn begun(comm: &Communicator, side: Result<TargetSide>) -> Result<TargetSide> {
    let all = tell(comm, [ReplyWord::to(&side, 0).word()])?;
    let side = side?;
    others_could(all.iter().map(|[word]| *word))?;
    Ok(side)
}

/// Returns an error if one of the words of all ranks says that a rank has failed.
fn others_could(words: impl Iterator<Item = u64>) -> Result<()> {
    let failed = |(rank, word): (usize, u64)| Some((rank, ReplyWord::of(word).class()?));
    match words.enumerate().find_map(failed) {
        None => Ok(()),
        Some((rank, class)) => {
            let detail = format!("the call failed on rank {rank} of the communicator");
            Err(Error::new(kind_of(class), "win", detail))
        }
    }
}

fn own(bytes: i64, unit: i64) -> Result<Mine> {
    check_memory()?;
    let bytes = u64::try_from(bytes).map_err(|_| {
        let kind = ErrorKind::Window(WindowErrorKind::Size);
        Error::new(kind, "size", format!("{bytes} is negative"))
    })?;
    let unit = u64::try_from(unit).ok().filter(|unit| *unit > 0).ok_or_else(|| {
        Error::new(ErrorKind::Argument, "disp_unit", format!("{unit} is not positive"))
    })?;
    Ok(Mine { base: std::ptr::null_mut(), bytes, unit })
}

/// Does step 1. Returns the words of all ranks.
fn agreed(
    comm: &Communicator,
    flavor: Flavor,
    mine: Result<Mine>,
    hints: &WindowHints,
) -> Result<Vec<Words1>> {
    let said: Words1 = match &mine {
        Ok(mine) => {
            let (heap, offset) = heap_of(mine);
            let align = hints.alignment as u64;
            let bit = |bit: u64, is_set: bool| if is_set { bit } else { 0 };
            let bits = bit(APART, hints.noncontiguous) | bit(POPULATE, hints.populate);
            let granularity = hints.accumulate_granularity;
            [0, flavor as u64, mine.bytes, mine.unit, align, bits, heap, offset, granularity]
        }
        Err(_) => [ReplyWord::to(&mine, 0).word(), 0, 0, 0, 0, 0, 0, 0, 0],
    };
    let all = tell(comm, said)?;
    let mine = mine?;
    others_could(all.iter().map(|words| words[0]))?;
    let wrong = |words: &&Words1| {
        words[1] != flavor as u64
            || i64::try_from(words[2]).is_err()
            || i64::try_from(words[3]).is_err()
            || words[3] == 0
            || !words[4].is_power_of_two()
            || words[4] > 1 << 21
    };
    if all.iter().any(|words| wrong(&words)) {
        let detail = "the ranks make different windows at the same time";
        return Err(Error::new(ErrorKind::Other, "win", detail));
    }
    // In this rank's own words, the base address replaces the offset: later steps need the address, and no other rank
    // uses it.
    let mut all = all;
    if flavor == Flavor::Create {
        all[comm.rank()][7] = mine.base as u64;
    }
    Ok(all)
}

/// Returns the world rank of the heap in which the program's memory lies, and the offset of the memory in that heap.
/// If the memory lies in no heap, returns `NO_HEAP` and the address of the memory.
fn heap_of(mine: &Mine) -> (u64, u64) {
    if mine.bytes == 0 || mine.base.is_null() {
        return (NO_HEAP, 0);
    }
    let found = memory::heaps().and_then(|heaps| heaps.locate(mine.base as usize, mine.bytes));
    found.map_or((NO_HEAP, mine.base as u64), |(rank, offset)| (rank as u64, offset))
}

/// Returns the number of bytes that each rank allocates behind its block; `None` if a sum does not fit in a `usize`.
fn lengths(all: &[Words1], flavor: Flavor, in_one_piece: bool) -> Option<Vec<usize>> {
    let of = |words: &Words1| -> Option<usize> {
        let pad = words[4].checked_sub(super::words::LINE as u64)?;
        usize::try_from(words[2].checked_add(pad)?).ok()
    };
    match flavor {
        Flavor::Create | Flavor::Dynamic => Some(vec![0; all.len()]),
        Flavor::Shared if in_one_piece => {
            let mut lengths = vec![0; all.len()];
            lengths[0] = (largest_alignment(all) as usize).checked_sub(super::words::LINE)?;
            for words in all {
                lengths[0] = lengths[0].checked_add(usize::try_from(words[2]).ok()?)?;
            }
            Some(lengths)
        }
        Flavor::Allocate | Flavor::Shared => all.iter().map(of).collect(),
    }
}

/// Returns the largest alignment that a rank asks for. Memory in one piece begins at a multiple of it.
fn largest_alignment(all: &[Words1]) -> u64 {
    all.iter().map(|words| words[4]).max().unwrap_or(super::words::LINE as u64)
}

/// Returns the number of unused bytes between the block of each rank and its memory.
fn pads(
    comm: &Communicator,
    words: &Words,
    all: &[Words1],
    in_one_piece: bool,
) -> Result<Vec<u64>> {
    if all.iter().all(|words| words[4] <= super::words::LINE as u64) {
        return Ok(vec![0; all.len()]);
    }
    let start = words.region()?.as_ptr(comm.rank()).map_or(0, |start| start as usize);
    let start = start + Words::bytes(comm.size());
    let largest = largest_alignment(all);
    let align = |words: &Words1| if in_one_piece { largest } else { words[4] };
    let own = align(&all[comm.rank()]) as usize;
    let pad = (start.next_multiple_of(own) - start) as u64;
    let pads = tell(comm, [pad])?;
    if pads.contains(&[LOST]) {
        return Err(Error::new(ErrorKind::Other, "win", "a rank could not talk to the others"));
    }
    Ok(pads
        .iter()
        .zip(all)
        .map(|([pad], words)| (*pad).min(align(words).saturating_sub(64)))
        .collect())
}

/// Finds the memory of all ranks.
fn targets(
    comm: &Communicator,
    words: &Words,
    flavor: Flavor,
    in_one_piece: bool,
    all: &[Words1],
    pads: &[u64],
) -> Result<Box<[Memory]>> {
    let mut before = 0;
    let block = Words::bytes(comm.size());
    let start = |rank: usize| -> Result<*mut u8> {
        let start = words.region()?.as_ptr(rank).ok_or_else(|| internal("a rank has no block"))?;
        Ok(start.wrapping_add(block).wrapping_add(pads[rank] as usize))
    };
    let target = |(rank, said): (usize, &Words1)| -> Result<Memory> {
        let &[_, _, bytes, unit, _, _, heap, offset, _] = said;
        let mapped =
            |base| Memory { base, is_mapped: true, address: None, bytes, unit, _heap: None };
        match flavor {
            Flavor::Allocate => Ok(mapped(start(rank)?)),
            Flavor::Shared if in_one_piece => {
                let base = start(0)?.wrapping_add(before);
                before += bytes as usize;
                Ok(mapped(base))
            }
            // A null address tells the program that the rank has no memory.
            Flavor::Shared if bytes == 0 => Ok(mapped(std::ptr::null_mut())),
            Flavor::Shared => Ok(mapped(start(rank)?)),
            Flavor::Create if rank == comm.rank() => Ok(mapped(offset as *mut u8)),
            Flavor::Create | Flavor::Dynamic => Ok(far(heap, offset, bytes, unit)),
        }
    };
    all.iter().enumerate().map(target).collect()
}

/// Finds memory of a rank: `bytes` bytes at `offset` of the heap of world rank `heap`, or at the address `offset` if
/// `heap` is `NO_HEAP`. The base is null if this process cannot map the memory.
fn far(heap: u64, offset: u64, bytes: u64, unit: u64) -> Memory {
    let (base, is_mapped) = (std::ptr::null_mut(), bytes == 0);
    let address = Some(offset).filter(|_| heap == NO_HEAP);
    let nowhere = Memory { base, is_mapped, address, bytes, unit, _heap: None };
    let Some((base, map)) = mapped_at(heap, offset, bytes) else { return nowhere };
    Memory { base, is_mapped: true, _heap: map, ..nowhere }
}

/// Returns the address in this process of `bytes` bytes at `offset` of the heap of world rank `heap`, and the mapping
/// that must live as long as the address is used (`None` for this rank's own heap). Returns `None` if the bytes do not
/// lie in the heap, or if this process cannot map it.
pub(in crate::rma) fn mapped_at(
    heap: u64,
    offset: u64,
    bytes: u64,
) -> Option<(*mut u8, Option<std::sync::Arc<crate::sys::memory::Mapping>>)> {
    let (rank, heaps) = (usize::try_from(heap).ok()?, memory::heaps()?);
    let (start, map) = heaps.map(rank, &(offset..offset.checked_add(bytes)?)).ok()?;
    Some((start.as_ptr(), Some(map).filter(|_| rank != heaps.rank())))
}

#[cold]
fn internal(detail: &str) -> Error {
    Error::new(ErrorKind::Internal, "win", detail)
}
