//! Packs and unpacks with several threads. `plan/segments.rs` divides the packed form into
//! segments, and each thread packs or unpacks whole segments with [`pack_raw`] or [`unpack_raw`].
//!
//! No two threads write the same byte. When threads pack, their segments are disjoint ranges of packed
//! bytes. When they unpack, a byte of memory that occurs twice in the layout could belong to two
//! segments; so a single thread unpacks such a layout, in typemap order. Calls of less than 4 MiB
//! ([`Threads::LEAST`]) also use a single thread, because it takes about 12 us to wake the other threads.
//! For 1 MiB, several threads are about as fast as one; for less, they are slower.

use super::whole;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{pack_raw, unpack_raw};
use crate::plan::Plan;
use crate::plan::footprint::check_bounds;
use bytemuck::{AnyBitPattern, NoUninit};
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::fmt;
use std::ops::Range;

/// Number of segments per thread. If one thread is late, the others take over its waiting segments. At
/// the end they wait for at most one segment: a quarter of a thread's share.
const SEGMENTS: u64 = 4;

/// A pool of threads that pack and unpack together. The threads sleep between calls and end when
/// the pool is dropped.
///
/// ```
/// use typepack_engine::{Datatype, Threads, pack};
///
/// let plan = "vector(1000000, 1, 2, double)".parse::<Datatype>()?.commit()?;
/// let source = vec![1.5_f64; 2_000_000];
/// let (mut one, mut many) = (vec![0_u8; 8_000_000], vec![0_u8; 8_000_000]);
/// pack(&plan, 1, &source, &mut one)?;
/// Threads::new(2)?.pack(&plan, 1, &source, &mut many)?;
/// assert!(one == many);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Threads {
    /// The threads, or `None` if the calling thread does all the work.
    pool: Option<ThreadPool>,
}

impl Threads {
    /// Minimum number of packed bytes for which a call uses several threads.
    pub const LEAST: u64 = 4 << 20;

    /// Makes a pool of `wanted` threads. If this process may use fewer CPUs, the pool has one
    /// thread per CPU.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] for `threads` if `wanted` is 0, and [`ErrorKind::Limit`] if
    /// the system cannot start the threads.
    pub fn new(wanted: usize) -> Result<Self> {
        if wanted == 0 {
            return Err(Error::new(
                ErrorKind::Argument,
                "threads",
                "0 threads are requested; at least 1 is required",
            ));
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self::exactly(wanted.min(cpus))
    }

    fn exactly(threads: usize) -> Result<Self> {
        if threads == 1 {
            return Ok(Self { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("typepack-{i}"))
            .build()
            .map_err(|error| {
                let detail = format!("cannot start {threads} threads: {error}");
                Error::new(ErrorKind::Limit, "threads", detail)
            })?;
        Ok(Self { pool: Some(pool) })
    }

    /// Returns the number of threads that share a long call.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// Packs like [`pack`](crate::pack()), but with several threads.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`pack`](crate::pack()).
    pub fn pack<T: NoUninit>(
        &self,
        plan: &Plan,
        count: u64,
        src: &[T],
        dst: &mut [u8],
    ) -> Result<usize> {
        let bytes = whole(plan, count, "dst", dst.len())?;
        check_bounds(plan, count, 0, size_of_val(src), "src")?;
        // SAFETY:
        // - the range is the whole packed form of `count` elements, and `dst` has at least `bytes`
        //   bytes (`whole`);
        // - every byte of the type map lies within `src` (`check_bounds`) and is initialised
        //   (NoUninit), and any thread may access both slices;
        // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
        unsafe {
            self.pack_raw(plan, count, src.as_ptr().cast(), 0..bytes as u64, dst.as_mut_ptr())
        };
        Ok(bytes)
    }

    /// Unpacks like [`unpack`](crate::unpack()), but with several threads. Only one thread unpacks if a
    /// byte may occur twice in the layout, or if `Settings::verify` is set. ([`Plan::overlaps`]
    /// determines whether a byte may occur twice, and the plan caches its answer.)
    ///
    /// # Errors
    ///
    /// Returns the errors of [`unpack`](crate::unpack()).
    pub fn unpack<T: NoUninit + AnyBitPattern>(
        &self,
        plan: &Plan,
        count: u64,
        src: &[u8],
        dst: &mut [T],
    ) -> Result<usize> {
        let bytes = whole(plan, count, "src", src.len())?;
        check_bounds(plan, count, 0, size_of_val(dst), "dst")?;
        // SAFETY:
        // - the range is the whole packed form of `count` elements, and `src` has at least `bytes`
        //   bytes (`whole`);
        // - every byte of the type map lies within `dst` (`check_bounds`) and may take any value
        //   (AnyBitPattern), and any thread may access both slices;
        // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
        unsafe {
            self.unpack_raw(plan, count, dst.as_mut_ptr().cast(), 0..bytes as u64, src.as_ptr())
        };
        Ok(bytes)
    }

    /// Packs like [`pack_raw`](crate::pack_raw()), but with several threads.
    ///
    /// # Safety
    ///
    /// - The conditions of [`pack_raw`](crate::pack_raw()) hold for accesses from any thread.
    pub unsafe fn pack_raw(
        &self,
        plan: &Plan,
        count: u64,
        origin: *const u8,
        range: Range<u64>,
        dst: *mut u8,
    ) {
        let sides = Sides { origin: origin.cast_mut(), packed: dst };
        self.each(plan, count, &range, true, |segment| {
            let (origin, dst) = sides.of(segment.start - range.start);
            // SAFETY: `segment` is a part of the range, and the caller guarantees that any thread
            // may access the range. `origin` and `dst` are the addresses for this segment. Segments
            // are disjoint, so no other thread writes these bytes of `dst`.
            unsafe { pack_raw(plan, count, origin, segment, dst) }
        });
    }

    /// Unpacks like [`unpack_raw`](crate::unpack_raw()), but with several threads.
    ///
    /// # Safety
    ///
    /// - The conditions of [`unpack_raw`](crate::unpack_raw()) hold for accesses from any thread.
    pub unsafe fn unpack_raw(
        &self,
        plan: &Plan,
        count: u64,
        origin: *mut u8,
        range: Range<u64>,
        src: *const u8,
    ) {
        let sides = Sides { origin, packed: src.cast_mut() };
        let disjoint = || !plan.settings().verify && plan.is_disjoint(count);
        let shared = range.end - range.start >= Self::LEAST && self.pool.is_some() && disjoint();
        self.each(plan, count, &range, shared, |segment| {
            let (origin, src) = sides.of(segment.start - range.start);
            // SAFETY: `segment` is a part of the range, and the caller guarantees that any thread
            // may access the range. `origin` and `src` are the addresses for this segment. There
            // are several segments only if no byte occurs twice in the layout, so no other thread
            // writes the bytes of this segment.
            unsafe { unpack_raw(plan, count, origin, segment, src) }
        });
    }

    /// Calls `each` for segments that together make up `range`. Several threads share the segments if
    /// `shared` is true, there is a pool, and the range has at least `LEAST` bytes. Otherwise the whole
    /// range is one segment.
    fn each(
        &self,
        plan: &Plan,
        count: u64,
        range: &Range<u64>,
        shared: bool,
        each: impl Fn(Range<u64>) + Send + Sync,
    ) {
        let bytes = range.end - range.start;
        let pool = self.pool.as_ref().filter(|_| shared && bytes >= Self::LEAST);
        let Some(pool) = pool else { return each(range.clone()) };
        let wish = bytes.div_ceil(SEGMENTS * self.count() as u64);
        let mut segments = Vec::with_capacity(SEGMENTS as usize * self.count() + 1);
        let mut at = range.start;
        while at < range.end {
            // `segment_end` returns `Ok`, because the caller guarantees that the range lies within
            // the packed form.
            let end = plan.segment_end(count, at, wish).map_or(range.end, |end| end.min(range.end));
            segments.push(at..end);
            at = end;
        }
        pool.install(|| segments.into_par_iter().with_max_len(1).for_each(each));
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("count", &self.count()).finish()
    }
}

/// The addresses of the elements and of the packed bytes, in a form that threads can share.
#[derive(Clone, Copy)]
struct Sides {
    origin: *mut u8,
    packed: *mut u8,
}

// SAFETY: the struct only stores two addresses. The caller of `pack_raw` or `unpack_raw` guarantees
// that any thread may access the memory at them.
unsafe impl Send for Sides {}
// SAFETY: a thread that shares a `Sides` can only copy the two addresses from it.
unsafe impl Sync for Sides {}

impl Sides {
    /// Returns the address of the elements, and the address of the packed byte that is `skip` bytes
    /// after the start of the range.
    fn of(&self, skip: u64) -> (*mut u8, *mut u8) {
        (self.origin, self.packed.wrapping_add(skip as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typemap;
    use crate::{Datatype, pack, unpack};

    /// Checks that three threads give the same result as one thread, whatever the number of CPUs.
    /// Small cases are also compared with the simple packing of `typemap.rs`.
    #[test]
    fn segments_make_the_whole() {
        let threads = Threads::exactly(3).expect("threads");
        assert_eq!(threads.count(), 3);
        for (text, count) in [
            ("vector(600000, 1, 2, double)", 1),
            ("contiguous(5000000, char)", 1),
            ("struct([1, 1, 1], [0, 4, 8], [char, int, double])", 400_000),
            ("subarray([90, 90, 90], [84, 80, 83], [3, 5, 2], C, double)", 1),
            ("resized(0, 8, vector(1024, 1, 1024, double))", 1000),
            ("indexed_block(3, [5, 0, 11, 20], int)", 120_000),
            ("indexed([1, 2, 5], [0, 3, 9], double)", 80_000),
            // In the next type, runs overlap within one element. In the type after that, an element
            // overlaps only the following element.
            ("vector(900000, 2, 1, double)", 1),
            ("resized(0, 8, contiguous(2, double))", 500_000),
            ("hvector(700000, 1, -8, double)", 1),
        ] {
            let ty: Datatype = text.parse().expect("a type");
            let plan = ty.commit().expect("committed");
            let bytes = plan.packed_bytes(count).expect("fits") as usize;
            assert!(bytes as u64 >= Threads::LEAST, "{text}: {bytes}");
            let low = ty.true_lb().min(ty.true_lb() + ty.extent() * (count as i64 - 1)).min(0);
            let high = ty.true_ub().max(ty.true_ub() + ty.extent() * (count as i64 - 1));
            let origin = (-low) as usize;
            let memory: Vec<u8> =
                (0..origin + high as usize).map(|i| (i * 31 % 251) as u8).collect();
            let all = 0..bytes as u64;
            let (mut one, mut many) = (vec![0; bytes], vec![0; bytes]);
            crate::pack_range(&plan, count, &memory, origin, all.clone(), &mut one)
                .expect("packed");
            // SAFETY: `pack_range` above accepted the same arguments, so the buffers are long
            // enough.
            unsafe {
                let base = memory.as_ptr().wrapping_add(origin);
                threads.pack_raw(&plan, count, base, all.clone(), many.as_mut_ptr());
            }
            assert!(one == many, "{text}");
            if bytes < 5_000_000 {
                assert!(one == typemap::pack(&ty, count, &memory, origin), "{text}");
            }
            if origin == 0 {
                many.fill(0);
                assert_eq!(threads.pack(&plan, count, &memory, &mut many).expect("packed"), bytes);
                assert!(one == many, "{text}");
            }

            let packed: Vec<u8> = (0..bytes).map(|i| (i * 7 % 253) as u8).collect();
            let (mut one, mut many) = (memory.clone(), memory.clone());
            crate::unpack_range(&plan, count, &packed, all.clone(), &mut one, origin)
                .expect("unpacked");
            for _ in 0..2 {
                many.copy_from_slice(&memory);
                // SAFETY: `unpack_range` above accepted the same arguments, so the buffers are long
                // enough.
                unsafe {
                    let base = many.as_mut_ptr().wrapping_add(origin);
                    threads.unpack_raw(&plan, count, base, all.clone(), packed.as_ptr());
                }
                assert!(one == many, "{text}");
            }
            // This part of the packed form begins and ends inside a run.
            let part = 3..bytes as u64 - 5;
            let (mut one, mut many) = (memory.clone(), memory.clone());
            let packed = &packed[3..bytes - 5];
            crate::unpack_range(&plan, count, packed, part.clone(), &mut one, origin)
                .expect("unpacked");
            // SAFETY: `unpack_range` above accepted the same part and the same arguments.
            unsafe {
                let base = many.as_mut_ptr().wrapping_add(origin);
                threads.unpack_raw(&plan, count, base, part, packed.as_ptr());
            }
            assert!(one == many, "{text}");
        }
    }

    #[test]
    fn errors_are_those_of_one_thread() {
        assert_eq!(Threads::new(0).expect_err("none").kind(), ErrorKind::Argument);
        assert!(Threads::new(usize::MAX).expect("as many as there are").count() >= 1);
        let threads = Threads::exactly(2).expect("threads");
        let ty: Datatype = "vector(1000000, 1, 2, double)".parse().expect("a type");
        let plan = ty.commit().expect("committed");
        let (mut memory, mut packed) = (vec![0_u8; 16_000_000], vec![0_u8; 8_000_000]);
        let short = packed.len() - 1;
        let mut texts = [(); 2].map(|()| Vec::new());
        for (many, texts) in [true, false].into_iter().zip(&mut texts) {
            let pack = |src: &[u8], dst: &mut [u8], count| match many {
                true => threads.pack(&plan, count, src, dst),
                false => pack(&plan, count, src, dst),
            };
            let unpack = |src: &[u8], dst: &mut [u8], count| match many {
                true => threads.unpack(&plan, count, src, dst),
                false => unpack(&plan, count, src, dst),
            };
            for refused in [
                pack(&memory, &mut packed[..short], 1),
                pack(&memory[..100], &mut packed, 1),
                pack(&memory, &mut packed, u64::MAX),
                unpack(&packed[..short], &mut memory, 1),
                unpack(&packed, &mut memory[..100], 1),
            ] {
                texts.push(refused.expect_err("refused").to_string());
            }
            assert_eq!(pack(&memory, &mut packed, 0).expect("nothing"), 0);
            assert_eq!(unpack(&packed, &mut memory, 1).expect("unpacked"), 8_000_000);
        }
        assert_eq!(texts[0], texts[1]);
    }
}
