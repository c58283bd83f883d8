//! Which protocol carries a message.
//!
//! The sender chooses first, by what it knows: a short message is eager; of a long one it says where
//! the data lies, if that is of use ([`offers`], in this order; the first protocol that does not decline
//! writes the envelope). The receiver chooses among what it was offered, when a receive has matched
//! ([`carriers`]). What a protocol asks to accept or decline a message is here, too: how far apart the
//! two ranks' cores are (`fabric.rs`, from the launcher's table), how long the message is, how much of
//! each cache line of the source belongs to it, whether the receive's memory is shared as well, and
//! whether the ranks have anything else to do.
//!
//! `peer.rs` asks for the order, `heap.rs` and `private.rs` for the rest; `endpoint/engine.rs` asks
//! [`Terms::is_eager`] before it opens a request.

use crate::message::envelope::Space;
use crate::settings::Forced;
use crate::shm::topology::Distance;

/// The protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Packed into the ring, with the envelope (`eager.rs`).
    Eager,
    /// Packed into chunks by the sender, unpacked by the receiver (`pipeline.rs`).
    Pipeline,
    /// Copied out of the sender's heap (`heap.rs`).
    Heap,
    /// Copied between private memories (`private.rs`).
    Private,
}

/// What the settings say about protocols.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Longest eager message in bytes.
    pub eager_limit: u64,
    /// What `TYPEPACK_TRANSPORT` asks for.
    pub forced: Forced,
}

impl Terms {
    /// Whether a message of `bytes` bytes goes through the ring with its envelope. A send asks this
    /// first: an eager message that finds the ring empty needs no request (`endpoint/engine.rs`), and an
    /// eager message to the own rank is copied (`endpoint/engine/own.rs`).
    #[inline]
    pub fn is_eager(self, bytes: u64) -> bool {
        bytes <= self.eager_limit
    }
}

/// The protocols that a sender asks, in this order, to write the first envelope of a message of
/// `bytes` bytes. The last one takes every message that gets to it.
#[inline]
pub fn offers(terms: Terms, bytes: u64) -> &'static [Choice] {
    if terms.is_eager(bytes) {
        return &[Choice::Eager];
    }
    match terms.forced {
        Forced::Nothing => &[Choice::Heap, Choice::Private, Choice::Pipeline],
        Forced::Packed => &[Choice::Pipeline],
        Forced::Heap => &[Choice::Heap, Choice::Pipeline],
        Forced::Cma => &[Choice::Private, Choice::Pipeline],
    }
}

/// The protocols that a receiver asks, in this order, to take the data of an RTS that says that it lies
/// in this memory. The last one takes every message that gets to it.
pub fn carriers(place: Option<Space>) -> &'static [Choice] {
    match place {
        None => &[Choice::Pipeline],
        Some(Space::Heap) => &[Choice::Heap, Choice::Pipeline],
        Some(Space::Private) => &[Choice::Private, Choice::Pipeline],
    }
}

/// Bytes of each touched cache line that belong to the message, below which its data is sparse. A
/// line comes over whole, however little of it is wanted; packed by its owner, an eighth of the lines
/// carries the doubles of a column.
///
/// `typepack-bench pingpong`, near (60 ns), both ranks exchanging faces at a time, in us, packed
/// against fused: doubles of a column (8 bytes of a line) 172 and 302, structs of 13 bytes 338 and
/// 512, cells of 40 bytes (24 by our count) 704 and 913.
const SPARSE: u64 = 32;

/// What is known of a message whose receive has been matched.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Between the cores of the two ranks.
    pub distance: Distance,
    /// Bytes of each cache line of the source that belong to the message, in the mean.
    pub useful: u64,
    /// Both ranks can copy: the receive's memory lies in the heap as well.
    pub shared: bool,
    /// The receiver has other operations under way, or goes on to other work: it has no time to
    /// spare, nor has, most likely, the other rank.
    pub busy: bool,
}

/// Whether the data of a message in the sender's heap is copied out of it, not packed.
///
/// - Far apart, data that is not sparse crosses once: two copies through chunks were measured at
///   2 GB/s, one at 13 (notes on the Zen 4 machine).
/// - Near, two ranks that pack and unpack at the same time move as many lines in less time than one
///   that copies alone (contiguous 1 MiB 74 against 90 us, structs of 52 in 56 bytes 75 against 109),
///   and two that copy together beat both (28 us and 36).
/// - Sparse data is copied together only by ranks that have nothing else to do: x face of 128^3 60 us
///   packed, 50 fused; but see [`SPARSE`] for exchanges.
pub fn is_fused(forced: Forced, situation: Situation) -> bool {
    let Situation { distance, useful, shared, busy } = situation;
    let (far, sparse) = (distance > Distance::L3, useful < SPARSE);
    match forced {
        Forced::Packed | Forced::Cma => false,
        Forced::Heap => true,
        Forced::Nothing if far => !sparse,
        Forced::Nothing => shared && !(sparse && busy),
    }
}

/// Shortest message that is that both ranks copy from heap to heap, in bytes; shorter ones are eager as a rule. `typepack-bench
/// pingpong`, 16 KiB in 64-byte blocks, near: 1.7 us by both, 2.4 by the receiver, 3.3 packed.
pub const HELP_MIN: u64 = 8 << 10;

/// Shortest message in bytes that both ranks copy from private memory to private memory, near. A
/// system call and the pages it has to look up cost more than a chunk, and what the sender writes
/// ends in its cache. C program, both rewriting the buffer each time, near (57 ns), copied by both
/// against the pipeline, half round trip in us: 64 KiB 9.5 and 7.6, 256 KiB 21.7 and 17.1, 1 MiB 69.9
/// and 58.6, 4 MiB 238 and 329 (Intel MPI 314).
pub const SPLIT_NEAR: u64 = 2 << 20;

/// The same between far cores, where chunks were measured at 2 GB/s from 1 MiB on and calls at 13 (on
/// another machine, notes of the project; this one has no far cores to measure). Below this size a call
/// costs more than it can gain.
pub const SPLIT_FAR: u64 = 128 << 10;

/// Whether a message of `bytes` bytes in one run of private memory is offered with its address, to be
/// copied by both ranks where the receive is one run as well.
///
/// Not on AMD's processors (`amd`): on Zen 5 the chunks are faster at every length. `typepack-bench
/// pingpong`, contiguous, by calls and by chunks, near: 4 MiB 381 and 264 us; far: 2 MiB 135 and
/// 88, 4 MiB 311 and 199, 16 MiB 1557 and 1170.
pub fn tells_address(forced: Forced, distance: Distance, bytes: u64, amd: bool) -> bool {
    match forced {
        Forced::Packed | Forced::Heap => false,
        Forced::Cma => true,
        Forced::Nothing if amd => false,
        Forced::Nothing if distance > Distance::L3 => bytes >= SPLIT_FAR,
        Forced::Nothing => bytes >= SPLIT_NEAR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_hold() {
        for (distance, useful, shared, busy, fused) in [
            (Distance::L3, 64, true, true, true),
            (Distance::L3, 64, false, false, false),
            (Distance::L3, 8, true, false, true),
            (Distance::L3, 8, true, true, false),
            (Distance::Core, 8, true, true, false),
            (Distance::Numa, 8, true, false, false),
            (Distance::Machine, 8, false, false, false),
            (Distance::Machine, 64, false, true, true),
        ] {
            let situation = Situation { distance, useful, shared, busy };
            assert_eq!(is_fused(Forced::Nothing, situation), fused, "{situation:?}");
            assert!(!is_fused(Forced::Packed, situation));
            assert!(is_fused(Forced::Heap, situation));
        }
    }

    /// Whatever is asked first, somebody takes the message.
    #[test]
    fn every_message_has_a_protocol() {
        for forced in [Forced::Nothing, Forced::Packed, Forced::Heap, Forced::Cma] {
            let terms = Terms { eager_limit: 64, forced };
            assert_eq!(offers(terms, 64), [Choice::Eager]);
            assert_eq!(offers(terms, 65).last(), Some(&Choice::Pipeline));
        }
        for place in [None, Some(Space::Heap), Some(Space::Private)] {
            assert_eq!(carriers(place).last(), Some(&Choice::Pipeline));
        }
    }

    /// From the table that the launcher ships to the way of a message: 2 packages with 2 NUMA nodes
    /// each, a node with 2 caches of level 3, some cores without any that are known.
    #[test]
    fn the_table_decides() {
        use crate::shm::segment::{JobFlags, Segment};
        use crate::shm::topology::CpuInfo;
        use crate::transport::fabric::Fabric;
        use std::sync::atomic::Ordering;
        let some = Some;
        let table: Vec<CpuInfo> = (0..16)
            .map(|cpu: u32| CpuInfo {
                core: some(cpu),
                l2: some(cpu / 2),
                l3: some(cpu / 2).filter(|_| cpu < 12),
                numa: some(cpu / 4),
                package: some(cpu / 8),
                allowed: true,
            })
            .collect();
        let segment = Segment::create(6, &table, JobFlags::default(), 0).expect("a segment");
        // Rank 5 is bound to nothing.
        for (rank, cpu) in [0, 1, 2, 4, 12].into_iter().enumerate() {
            segment.slot(rank).bound_cpu.store(cpu + 1, Ordering::Relaxed);
        }
        let fabric = Fabric::join(std::sync::Arc::new(segment), 0).expect("rank 0");
        let found: Vec<Distance> = (0..6).map(|rank| fabric.distance(rank)).collect();
        use Distance::{Core, L2, Machine, Numa, Package};
        assert_eq!(found, [Core, L2, Numa, Package, Machine, Machine]);
        let sparse = |distance| Situation { distance, useful: 8, shared: true, busy: false };
        for (rank, distance) in found.into_iter().enumerate() {
            let near = rank < 2;
            assert_eq!(is_fused(Forced::Nothing, sparse(distance)), near, "{distance:?}");
            assert_eq!(tells_address(Forced::Nothing, distance, SPLIT_FAR, false), !near);
            assert!(tells_address(Forced::Nothing, distance, SPLIT_NEAR, false));
            assert!(!tells_address(Forced::Nothing, distance, SPLIT_NEAR, true));
        }
    }

    #[test]
    fn long_runs_are_copied_by_both() {
        for (forced, distance, bytes, told) in [
            (Forced::Nothing, Distance::L3, SPLIT_NEAR - 1, false),
            (Forced::Nothing, Distance::L3, SPLIT_NEAR, true),
            (Forced::Nothing, Distance::Machine, SPLIT_FAR - 1, false),
            (Forced::Nothing, Distance::Numa, SPLIT_FAR, true),
            (Forced::Cma, Distance::Core, 1, true),
            (Forced::Packed, Distance::Machine, u64::MAX, false),
            (Forced::Heap, Distance::Machine, u64::MAX, false),
        ] {
            assert_eq!(tells_address(forced, distance, bytes, false), told, "{forced:?} {bytes}");
        }
    }
}
