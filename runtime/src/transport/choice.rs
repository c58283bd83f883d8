//! The choice of the protocol that carries a message.
//!
//! The sender chooses first. A short message is eager. For a long message [`offers`] lists the protocols
//! in the order in which the sender asks them; the first protocol that does not decline writes the
//! envelope, and the envelope may say where the data lies. When a receive has matched, the receiver
//! chooses among the protocols that the RTS allows ([`carriers`]).
//!
//! `peer.rs` calls [`offers`] and [`carriers`], and `heap.rs` and `private.rs` call the other functions.
//! `endpoint/engine.rs` calls [`Terms::is_eager`] before it opens a request.

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

/// The settings for the protocols.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Longest eager message in bytes.
    pub eager_limit: u64,
    /// The protocol that `TYPEPACK_TRANSPORT` forces.
    pub forced: Forced,
}

impl Terms {
    /// Returns whether a message of `bytes` bytes travels through the ring with its envelope. A send first
    /// calls this function: an eager message that finds the queue to its receiver empty needs no request
    /// (`endpoint/engine.rs`), and an eager message of a rank to itself is copied
    /// (`endpoint/engine/own.rs`).
    #[inline]
    pub fn is_eager(self, bytes: u64) -> bool {
        bytes <= self.eager_limit
    }
}

/// Returns the protocols that a sender asks, in this order, to write the first envelope of a message of
/// `bytes` bytes. The last protocol never declines.
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

/// Returns the protocols that a receiver asks, in this order, to take the data of an RTS that places its
/// data in the memory `place`. The last protocol never declines.
pub fn carriers(place: Option<Space>) -> &'static [Choice] {
    match place {
        None => &[Choice::Pipeline],
        Some(Space::Heap) => &[Choice::Heap, Choice::Pipeline],
        Some(Space::Private) => &[Choice::Private, Choice::Pipeline],
    }
}

/// Source data is sparse if fewer than this many bytes of each touched cache line belong to the message. A
/// whole line crosses between cores, however few of its bytes are used. If the sender packs a column of
/// doubles, only an eighth of the number of lines crosses.
///
/// `typepack-bench pingpong`, near (60 ns), both ranks exchange faces at the same time, in us:
///
/// | data | packed | fused |
/// |---|---|---|
/// | doubles of a column (8 bytes of a line) | 172 | 302 |
/// | structs of 13 bytes | 338 | 512 |
/// | cells of 40 bytes (24 bytes of a line by the estimate here) | 704 | 913 |
const SPARSE: u64 = 32;

/// The facts about a message whose receive has been matched.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Distance between the cores of the two ranks.
    pub distance: Distance,
    /// Mean number of bytes of each cache line of the source that belong to the message.
    pub useful: u64,
    /// The receive's memory also lies in a heap, so both ranks can copy.
    pub shared: bool,
    /// The receiver has other operations under way, or other work after this call. It has no time to spare,
    /// and most likely the sender has none either.
    pub busy: bool,
}

/// Returns whether the receiver copies the data of a message out of the sender's heap instead of having
/// it packed.
///
/// - Between far cores, data that is not sparse is copied only once: two copies through chunks were
///   measured at 2 GB/s, one copy at 13 GB/s (notes on the Zen 4 machine).
/// - Between near cores, two ranks that pack and unpack at the same time move the same number of lines in
///   less time than one rank that copies alone (contiguous 1 MiB: 74 and 90 us; structs of 52 in 56 bytes:
///   75 and 109 us). Two ranks that copy together need less time than either (28 us and 36 us).
/// - Ranks copy sparse data together only if they have nothing else to do: the x face of 128^3 takes 60 us
///   packed and 50 us fused. For exchanges see [`SPARSE`].
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

/// Shortest message in bytes that both ranks copy from heap to heap; shorter messages are usually eager.
/// `typepack-bench pingpong`, 16 KiB in 64-byte blocks, near: 1.7 us by both ranks, 2.4 us by the receiver,
/// 3.3 us packed.
pub const HELP_MIN: u64 = 8 << 10;

/// Shortest message in bytes that both ranks copy from private memory to private memory between near cores.
/// A system call and the page lookups in it cost more than a chunk, and the bytes that the sender writes
/// end in the sender's cache. Measured with a C program in which both ranks rewrite the buffer each time,
/// near (57 ns), half round trip in us:
///
/// | bytes | copied by both ranks | pipeline |
/// |---|---|---|
/// | 64 KiB | 9.5 | 7.6 |
/// | 256 KiB | 21.7 | 17.1 |
/// | 1 MiB | 69.9 | 58.6 |
/// | 4 MiB | 238 | 329 (Intel MPI 314) |
pub const SPLIT_NEAR: u64 = 2 << 20;

/// Shortest message in bytes that both ranks copy from private memory to private memory between far cores.
/// From 1 MiB on, chunks were measured at 2 GB/s and system calls at 13 GB/s (on another machine, notes of
/// the project; this machine has no far cores to measure). Below this size a system call costs more time
/// than it saves.
pub const SPLIT_FAR: u64 = 128 << 10;

/// Returns whether a sender puts the address of its data into the RTS, for a message of `bytes` bytes in
/// one run of private memory. If the receive is also one run, both ranks then copy the message.
///
/// On AMD's processors (`amd`) the answer is no, because chunks are faster at every length on Zen 5.
/// `typepack-bench pingpong`, contiguous, in us:
///
/// | bytes | by calls | through chunks |
/// |---|---|---|
/// | 4 MiB near | 381 | 264 |
/// | 2 MiB far | 135 | 88 |
/// | 4 MiB far | 311 | 199 |
/// | 16 MiB far | 1557 | 1170 |
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

    /// Checks that the last protocol of each order accepts every message.
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

    /// Checks the whole way from the launcher's table to the protocol of a message: 2 packages with 2 NUMA
    /// nodes each, nodes with 2 level 3 caches, and some cores whose level 3 cache is unknown.
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
        // Rank 5 is not bound.
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
