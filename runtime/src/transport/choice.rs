//! Chooses the protocol that carries a message.
//!
//! The sender chooses first. A short message is eager. For a long message, [`offers`] lists the protocols in
//! the order in which the sender asks them. The first protocol that does not decline writes the first
//! envelope. For a long message this is an RTS (request to send), which may say where the data lies. When a
//! receive has matched, the receiver chooses among the ways that the RTS allows, by measurement
//! (`tuning.rs`). The other functions here are the static rules: [`tells_address`] says whether the RTS names
//! an address in private memory, and the others say which way the receiver tries first.
//!
//! `peer.rs` calls [`offers`] and [`carriers`], and `tuning.rs` and `private.rs` call the other functions.
//! `endpoint/engine.rs` calls [`Terms::is_eager`] before it opens a request.

pub mod fragment_choice;
pub(crate) mod short_choice;
pub(crate) mod tuning;

use crate::message::envelope::Space;
use crate::settings::Forced;
use crate::transport::choice::tuning::Situation;
use typepack_engine::contiguous::Method;

/// Declares the choices and the list of them, so that no choice can be missing in the list.
macro_rules! choices {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The protocols.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Choice {
            $($(#[$doc])+ $name,)+
        }

        impl Choice {
            /// Every protocol, in the order of their turns.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

choices! {
    /// The receiver copies the message out of the sender's heap (`heap.rs`).
    Heap,
    /// The receiver copies the message between private memories (`private.rs`).
    Private,
    /// The sender packs the message into the ring, with the envelope (`eager.rs`).
    Eager,
    /// The sender packs the message into the ring in fragments (`fragments.rs`).
    Fragments,
    /// The sender packs the message into chunks, and the receiver unpacks them (`pipeline.rs`).
    Pipeline,
}

/// The settings on which the choice of a protocol depends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Length of the longest eager message in bytes.
    pub eager_limit: u64,
    /// The protocol that `TYPEPACK_TRANSPORT` forces.
    pub forced: Forced,
    /// The copy method that `TYPEPACK_COPY` forces.
    pub copy: Option<Method>,
}

impl Terms {
    /// Returns whether a message of `bytes` bytes is eager, which means that it travels through the ring
    /// with its envelope.
    #[inline]
    pub fn is_eager(self, bytes: u64) -> bool {
        bytes <= self.eager_limit
    }
}

/// Returns the protocols that a sender asks, in this order, to write the first envelope of a message of
/// `bytes` bytes. The last of them never declines.
#[inline]
pub fn offers(terms: Terms, bytes: u64) -> &'static [Choice] {
    if terms.is_eager(bytes) {
        return &[Choice::Eager];
    }
    match terms.forced {
        Forced::Nothing => &[Choice::Heap, Choice::Private, Choice::Pipeline],
        Forced::Packed | Forced::Fragments | Forced::Streamed => &[Choice::Pipeline],
        Forced::Heap => &[Choice::Heap, Choice::Pipeline],
        Forced::Cma => &[Choice::Private, Choice::Pipeline],
    }
}

/// Returns the protocols that a receiver asks, in this order, to take the data of a message. `place` is the
/// kind of memory from which the message is copied in place, or `None` if it goes through chunks. The last
/// protocol never declines.
pub fn carriers(place: Option<Space>) -> &'static [Choice] {
    match place {
        None => &[Choice::Pipeline],
        Some(Space::Heap) => &[Choice::Heap, Choice::Pipeline],
        Some(Space::Private) => &[Choice::Private, Choice::Pipeline],
    }
}

/// Source data is sparse if, on average, fewer than this number of bytes of each touched cache line
/// belong to the message. If the receiver reads the data, whole lines cross between the cores, however
/// few of their bytes belong to the message. If the sender packs a column of doubles instead, only an
/// eighth of these lines crosses.
///
/// Measured with `typepack-bench pingpong` between near cores, while both ranks exchange faces at the
/// same time. Packed messages go through chunks; for fused ones, the receiver reads the source. Times in
/// us:
///
/// | data | packed | fused |
/// |---|---|---|
/// | doubles of a column (8 bytes of a line) | 172 | 302 |
/// | structs of 13 bytes | 338 | 512 |
/// | cells of 40 bytes (24 bytes of a line by the estimate here) | 704 | 913 |
const SPARSE: u64 = 32;

/// Returns whether the receiver copies the data of a message out of the sender's heap. Otherwise the
/// sender packs it.
///
/// - Between far cores, data that is not sparse is copied only once. Two copies through chunks were
///   measured at 2 GB/s, and one copy at 13 GB/s (Zen 4).
/// - Between near cores, data is copied out of the heap only if both ranks can copy it together. Two
///   ranks that pack and unpack at the same time are faster than one rank that copies alone (1 MiB
///   contiguous: 74 us against 90 us; structs of 52 bytes every 56 bytes: 75 us against 109 us). Two
///   ranks that copy together are faster still (28 us and 36 us for these two messages).
/// - Sparse data between near cores is copied together only if the receiver is not busy. The x face of a
///   grid of 128^3 doubles then takes 50 us, and 60 us packed. For faces that both ranks exchange at the
///   same time, see [`SPARSE`].
///
/// `useful` is the mean number of bytes that belong to the message in each touched cache line of the source.
pub fn is_fused(forced: Forced, situation: Situation, useful: u64) -> bool {
    let Situation { far, shared, busy, .. } = situation;
    let sparse = useful < SPARSE;
    match forced {
        Forced::Packed | Forced::Fragments | Forced::Streamed | Forced::Cma => false,
        Forced::Heap => true,
        Forced::Nothing if far => !sparse,
        Forced::Nothing => shared && !(sparse && busy),
    }
}

/// Length of the shortest message that both ranks copy from heap to heap, in bytes. Measured with
/// `typepack-bench pingpong` between near cores, 16 KiB in 64-byte blocks: 1.7 us if both ranks copy, 2.4
/// us if the receiver copies alone, 3.3 us packed.
pub const HELP_MIN: u64 = 8 << 10;

/// Length in bytes of the shortest message that the receiver copies from private memory to private memory
/// between near cores, as long as it has no measurements (`tuning.rs`). For a shorter message, two ranks
/// that pack and unpack at the same time are faster than one rank that copies alone; from this length on,
/// each byte comes from memory and not from a cache, so one copy is better than two.
pub const PRIVATE_NEAR: u64 = 8 << 20;

/// Length in bytes of the shortest message that the receiver copies from private memory to private memory
/// between far cores, as long as it has no measurements (`tuning.rs`). From 1 MiB on, chunks were measured at
/// 2 GB/s and system calls at 13 GB/s, on a machine with far cores. Below this length a system call costs
/// more time than it saves. The sender names no address for a shorter message, unless a setting forces this
/// way ([`Forced::Cma`]).
pub const PRIVATE_FAR: u64 = 128 << 10;

/// Returns whether a sender puts the address of its data into the RTS. The message has `bytes` bytes in one
/// run of private memory. The receiver then decides whether it copies the message by system calls.
pub fn tells_address(forced: Forced, bytes: u64) -> bool {
    match forced {
        Forced::Packed | Forced::Fragments | Forced::Streamed | Forced::Heap => false,
        Forced::Cma => true,
        Forced::Nothing => bytes >= PRIVATE_FAR,
    }
}

/// Returns whether a receiver first tries to copy a message of `bytes` bytes by system calls, from one run of
/// private memory to another, before it has measured other ways.
pub fn is_private(forced: Forced, far: bool, bytes: u64) -> bool {
    match forced {
        Forced::Packed | Forced::Fragments | Forced::Streamed | Forced::Heap => false,
        Forced::Cma => true,
        Forced::Nothing => bytes >= if far { PRIVATE_FAR } else { PRIVATE_NEAR },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::label::Shape;
    use crate::shm::topology::Distance;

    /// Returns the situation of a message whose data lies in a heap.
    fn situation(far: bool, shared: bool, busy: bool) -> Situation {
        let (place, shape) = (Some(Space::Heap), Shape::Dense);
        Situation { place, shape, contiguous: true, shared, far, busy }
    }

    #[test]
    fn the_rules_hold() {
        for (far, useful, shared, busy, fused) in [
            (false, 64, true, true, true),
            (false, 64, false, false, false),
            (false, 8, true, false, true),
            (false, 8, true, true, false),
            (true, 8, true, false, false),
            (true, 8, false, false, false),
            (true, 64, false, true, true),
        ] {
            let situation = situation(far, shared, busy);
            assert_eq!(is_fused(Forced::Nothing, situation, useful), fused, "{situation:?}");
            assert!(!is_fused(Forced::Packed, situation, useful));
            assert!(is_fused(Forced::Heap, situation, useful));
        }
    }

    /// Checks that the last protocol of each order accepts every message.
    #[test]
    fn every_message_has_a_protocol() {
        for forced in [
            Forced::Nothing,
            Forced::Packed,
            Forced::Fragments,
            Forced::Streamed,
            Forced::Heap,
            Forced::Cma,
        ] {
            let terms = Terms { eager_limit: 64, forced, copy: None };
            assert_eq!(offers(terms, 64), [Choice::Eager]);
            assert_eq!(offers(terms, 65).last(), Some(&Choice::Pipeline));
        }
        for place in [None, Some(Space::Heap), Some(Space::Private)] {
            assert_eq!(carriers(place).last(), Some(&Choice::Pipeline));
        }
    }

    /// Checks that the CPU table, which the launcher writes, leads to the right protocol for a message. The
    /// table in this test has 2 packages with 2 NUMA nodes each and 2 level 3 caches per node. For some
    /// cores the level 3 cache is unknown.
    #[test]
    fn the_table_decides() {
        use crate::shm::segment::{JobFlags, Segment};
        use crate::shm::topology::CpuInfo;
        use crate::transport::link::fabric::Fabric;
        use std::sync::atomic::Ordering;
        let some = Some;
        let table: Vec<CpuInfo> = (0..16)
            .map(|cpu: u32| CpuInfo {
                core: some(cpu),
                l1: some(cpu),
                l2: some(cpu / 2),
                l3: some(cpu / 2).filter(|_| cpu < 12),
                numa: some(cpu / 4),
                package: some(cpu / 8),
                allowed: true,
            })
            .collect();
        let segment = Segment::create(6, &table, JobFlags::default(), 0).expect("a segment");
        // Bind ranks 0 to 4. Rank 5 stays without a CPU.
        for (rank, cpu) in [0, 1, 2, 4, 12].into_iter().enumerate() {
            segment.slot(rank).bound_cpu.store(cpu + 1, Ordering::Relaxed);
        }
        let fabric = Fabric::join(std::sync::Arc::new(segment), 0).expect("rank 0");
        let found: Vec<Distance> = (0..6).map(|rank| fabric.distance(rank)).collect();
        use Distance::{Core, L2, Machine, Numa, Package};
        assert_eq!(found, [Core, L2, Numa, Package, Machine, Machine]);
        for (rank, distance) in found.into_iter().enumerate() {
            let (near, far) = (rank < 2, distance > Distance::L3);
            assert_eq!(near, !far);
            assert_eq!(is_fused(Forced::Nothing, situation(far, true, false), 8), near);
            assert_eq!(is_private(Forced::Nothing, far, PRIVATE_FAR), far);
        }
    }

    #[test]
    fn long_runs_are_copied_by_the_receiver() {
        for (forced, far, bytes, split) in [
            (Forced::Nothing, false, PRIVATE_NEAR - 1, false),
            (Forced::Nothing, false, PRIVATE_NEAR, true),
            (Forced::Nothing, true, PRIVATE_FAR - 1, false),
            (Forced::Nothing, true, PRIVATE_FAR, true),
            (Forced::Cma, false, 1, true),
            (Forced::Packed, true, u64::MAX, false),
            (Forced::Heap, true, u64::MAX, false),
        ] {
            assert_eq!(is_private(forced, far, bytes), split, "{forced:?} {bytes}");
            // The receiver can decide for a copy by system calls only if the sender tells the address.
            assert!(!split || tells_address(forced, bytes));
        }
    }
}
