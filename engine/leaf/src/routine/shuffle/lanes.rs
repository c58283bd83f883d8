//! Fills whole registers with the data of a few windows.
//!
//! `mod.rs` uses this method if two or more elements fill a *lane* of 16 packed bytes exactly. All lanes then
//! have the same shuffles, one per window, and lie at a constant distance in memory. The results of the
//! shuffles are merged and stored. On AVX2, a register holds two lanes. A window of the first lane and the
//! same window of the second lane are loaded into the two halves of one register. So no byte ever moves from
//! one half to the other.
//!
//! The first window of a lane begins at the first byte of data of the lane, and the last window may read
//! beyond the lane's last byte of data. So the last lanes of a call use other windows (the field `last`),
//! which do not read beyond the last byte of data. The last lane of a call may overlap the lane before it,
//! and then stores some packed bytes again.

#[cfg(target_arch = "x86_64")]
use super::blend::Blend;
use super::vector::{Register, Vector};
use super::{Call, Isa, LANE, NONE, Pattern, WINDOWS, Window, windows};

/// A pattern that is packed lane by lane.
pub(super) struct Lanes {
    /// The windows of a lane. Each begins at a byte of data.
    first: Box<[Window]>,
    /// Other windows for the same lane. Each ends at a byte of data.
    last: Box<[Window]>,
    /// Number of elements per lane: `1 << shift`.
    shift: u32,
    /// Number of elements that must follow the lanes that `first` packs.
    spare: usize,
    #[cfg(target_arch = "x86_64")]
    blend: Option<Blended>,
}

/// The methods that use adjacent loads of 32 bytes (`blend.rs`).
#[cfg(target_arch = "x86_64")]
struct Blended {
    blend: Blend,
    /// Number of elements that must follow the registers that `blend` packs.
    spare: usize,
    /// The method for the last elements of a call. It reads nothing behind them.
    ending: Blend,
}

impl Lanes {
    /// Returns the number of elements per lane. Returns `None` if no whole number of elements fills a lane,
    /// or if a single element fills a lane or more.
    pub(super) fn elements(pattern: &Pattern) -> Option<usize> {
        (pattern.bytes.is_power_of_two() && pattern.bytes < LANE).then(|| LANE / pattern.bytes)
    }

    /// Builds the tables. [`elements`](Self::elements) must have returned `Some` for the pattern.
    pub(super) fn new(pattern: &Pattern) -> Self {
        let elements = LANE / pattern.bytes;
        let sources = pattern.sources(elements);
        let first: Box<[Window]> = windows(&sources)
            .into_iter()
            .map(|(start, range)| window(&sources, start as isize, range))
            .collect();
        // At least a quarter of the memory is data, so the 16 bytes of a lane come from at most 64 bytes.
        assert!(first.len() <= WINDOWS, "a lane has {} windows", first.len());
        // Cover the sources again, with windows from the last source backwards.
        let mut last = Vec::new();
        let mut end = sources.len();
        while end > 0 {
            let start = sources[end - 1] as isize + 1 - LANE as isize;
            let begin = sources.partition_point(|&at| (at as isize) < start);
            last.push(window(&sources, start, begin..end));
            end = begin;
        }
        let reach = first.last().map_or(0, |window| window.offset as usize + LANE);
        let spare = pattern.spanning(reach).saturating_sub(elements);
        Self {
            first,
            last: last.into(),
            shift: elements.trailing_zeros(),
            spare,
            #[cfg(target_arch = "x86_64")]
            blend: Blended::new(pattern, elements),
        }
    }

    /// Packs the `count` elements of `call` and returns `count`.
    ///
    /// # Safety
    ///
    /// - `self` was made for `pattern`, and `count` is at least four times the number of elements per lane.
    /// - The memory from the first to the last byte of data of `count` elements is valid for reads, apart
    ///   from pages without data. `packed` is valid for writes of the packed bytes of these elements.
    /// - The CPU has the instruction set `isa`, which has byte shuffles.
    #[inline]
    pub(super) unsafe fn run(&self, isa: Isa, pattern: &Pattern, call: Call) -> usize {
        let Call { count, mem, packed } = call;
        // SAFETY: `avx2` and `baseline` have the conditions of this function, which the caller guarantees.
        // The CPU has `isa`, so `avx2` is called only on a CPU with AVX2.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => self.avx2(pattern, count, mem, packed),
                _ => self.baseline(pattern, count, mem, packed),
            }
        }
        count
    }

    /// Packs `count` elements with registers of one lane.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
    unsafe fn baseline(&self, pattern: &Pattern, count: usize, mem: *const u8, packed: *mut u8) {
        let whole = (count - self.spare.min(count)) >> self.shift;
        let pitch = pattern.stride << self.shift;
        // SAFETY: at least `spare` elements follow the `whole` lanes, so the windows of `first` end at or
        // before the last byte of data. `ends` packs the elements after these lanes. The caller guarantees
        // that the memory and the packed bytes of `count` elements are valid.
        unsafe {
            match self.first.len() {
                1 => narrow::<Register, 1>(&self.first, pitch, whole, mem, packed),
                2 => narrow::<Register, 2>(&self.first, pitch, whole, mem, packed),
                3 => narrow::<Register, 3>(&self.first, pitch, whole, mem, packed),
                _ => narrow::<Register, WINDOWS>(&self.first, pitch, whole, mem, packed),
            }
            self.ends(pattern, whole, count, mem, packed);
        }
    }

    /// Packs `count` elements with registers of two lanes.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold; the CPU has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(&self, pattern: &Pattern, count: usize, mem: *const u8, packed: *mut u8) {
        let pitch = pattern.stride << self.shift;
        if let Some(blended) = &self.blend {
            let elements = 2 << self.shift;
            let registers = (count - blended.spare.min(count)) >> (self.shift + 1);
            // SAFETY: at least `spare` elements follow the elements of the `registers` registers, so no load
            // reaches beyond the last byte of data. The caller guarantees that the memory and the packed
            // bytes are valid.
            unsafe { blended.blend.run(registers, 2 * pitch, mem, packed) };
            let mut next = registers * elements;
            while next < count {
                let from = next.min(count - elements);
                // SAFETY: `from` is at most `count - elements`, so the elements of the register and their
                // packed bytes are valid. The loads of `ending` end at or before the last byte of data of
                // these elements. They begin at most one gap before these elements. This memory belongs to
                // the call, because `from` is not 0: `count` is at least the elements of two registers, and
                // `spare` is at most those of one register.
                unsafe {
                    blended.ending.run(
                        1,
                        2 * pitch,
                        mem.wrapping_add(from * pattern.stride),
                        packed.wrapping_add(from * pattern.bytes),
                    );
                }
                next = from + elements;
            }
            return;
        }
        let pairs = (count - self.spare.min(count)) >> (self.shift + 1);
        // SAFETY: at least `spare` elements follow the `pairs` pairs of lanes, so the windows of `first` do
        // not reach beyond the last byte of data. `ends` packs the elements after these lanes. The caller
        // guarantees that the memory and the packed bytes are valid, and that the CPU has AVX2.
        unsafe {
            match self.first.len() {
                1 => wide::<1>(&self.first, pitch, pairs, mem, packed),
                2 => wide::<2>(&self.first, pitch, pairs, mem, packed),
                3 => wide::<3>(&self.first, pitch, pairs, mem, packed),
                _ => wide::<WINDOWS>(&self.first, pitch, pairs, mem, packed),
            }
            self.ends(pattern, 2 * pairs, count, mem, packed);
        }
    }

    /// Packs the elements of all lanes from lane `done` on, with windows that end at data.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold.
    /// - `done` lanes have at most `count` elements.
    #[inline(always)]
    unsafe fn ends(
        &self,
        pattern: &Pattern,
        done: usize,
        count: usize,
        mem: *const u8,
        packed: *mut u8,
    ) {
        let elements = 1 << self.shift;
        let mut next = done << self.shift;
        while next < count {
            // The last lane ends with the last element, and may begin before `next`.
            let from = next.min(count - elements);
            // A window of `last` may begin up to 15 bytes before its lane. No memory of the call precedes the
            // first lane, so this lane uses the windows of `first`. These may read beyond the lane, but
            // another lane follows it.
            let list = if from == 0 { &self.first } else { &self.last };
            // SAFETY: `from` is at most `count - elements`, so the lane has `elements` elements, and its
            // data and its packed bytes are valid. The windows of `last` end at data of the lane, and begin
            // less than 16 bytes before its first byte of data. If `from` is not 0, at least one whole
            // lane, which has 16 bytes of data, lies before this lane, so these windows begin at or after
            // the first element.
            unsafe {
                lane::<Register>(
                    list,
                    mem.wrapping_add(from * pattern.stride),
                    packed.wrapping_add(from * pattern.bytes),
                );
            }
            next = from + elements;
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Blended {
    /// Returns the methods for `pattern`, which has `elements` elements per lane. Returns `None` if the
    /// methods do not suit the pattern.
    fn new(pattern: &Pattern, elements: usize) -> Option<Self> {
        let blend = Blend::new(pattern)?;
        let spare = pattern.spanning(blend.reach()).saturating_sub(2 * elements);
        let ending = Blend::ending(pattern)?;
        (spare <= 2 * elements).then_some(Self { blend, spare, ending })
    }
}

/// Returns the window at `start` that holds the sources in `range`.
fn window(sources: &[usize], start: isize, range: std::ops::Range<usize>) -> Window {
    let mut shuffle = [NONE; LANE];
    let packed = range.start;
    for nth in range {
        shuffle[nth] = (sources[nth] as isize - start) as u8;
    }
    Window { shuffle, offset: start, packed }
}

/// Packs one lane.
///
/// # Safety
///
/// - The windows of the lane at `mem` are valid for reads, and 16 bytes at `packed` for writes.
/// - The CPU has the instruction set of `V`.
#[inline(always)]
unsafe fn lane<V: Vector>(list: &[Window], mem: *const u8, packed: *mut u8) {
    // SAFETY: the caller guarantees that each window and the packed bytes are valid, and that the CPU has the
    // instruction set. `shuffle` has 16 bytes.
    unsafe {
        let part = |window: &Window| {
            let memory = V::load(mem.wrapping_offset(window.offset));
            memory.shuffled(V::load(window.shuffle.as_ptr()))
        };
        let mut data = part(&list[0]);
        for window in &list[1..] {
            data = data.or(part(window));
        }
        data.store(packed);
    }
}

/// Packs `count` lanes one at a time. The lanes lie `pitch` bytes apart in memory, and each has `K` windows.
///
/// # Safety
///
/// - `list` has at least `K` windows, and these hold all data of the lane.
/// - The windows of `count` lanes are valid for reads, and `packed` for writes of 16 bytes per lane.
/// - The CPU has the instruction set of `V`.
#[inline(always)]
unsafe fn narrow<V: Vector, const K: usize>(
    list: &[Window],
    pitch: usize,
    count: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    // SAFETY: `shuffle` has 16 bytes, and the caller guarantees that the CPU has the instructions of `V`.
    let shuffles: [V; K] = std::array::from_fn(|k| unsafe { V::load(list[k].shuffle.as_ptr()) });
    let offsets: [isize; K] = std::array::from_fn(|k| list[k].offset);
    let (mut mem, mut packed) = (mem, packed);
    for _ in 0..count {
        // SAFETY: the loop runs `count` times, so `mem` and `packed` are where an existing lane begins. The
        // caller guarantees that the windows and the packed bytes of this lane are valid, and that the CPU
        // has the instructions of `V`.
        unsafe {
            let mut data = V::load(mem.wrapping_offset(offsets[0])).shuffled(shuffles[0]);
            for k in 1..K {
                data = data.or(V::load(mem.wrapping_offset(offsets[k])).shuffled(shuffles[k]));
            }
            data.store(packed);
        }
        mem = mem.wrapping_add(pitch);
        packed = packed.wrapping_add(LANE);
    }
}

/// Packs `pairs` pairs of lanes. The lanes lie `pitch` bytes apart in memory, and have `K` windows each.
///
/// # Safety
///
/// - `list` has at least `K` windows, and these hold all data of the lane.
/// - The windows of two times `pairs` lanes are valid for reads, and `packed` for writes of 16 bytes per
///   lane.
/// - The CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn wide<const K: usize>(
    list: &[Window],
    pitch: usize,
    pairs: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    use std::arch::x86_64::*;
    let shuffles: [__m256i; K] = std::array::from_fn(|k| {
        // SAFETY: `shuffle` has 16 bytes.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(list[k].shuffle.as_ptr().cast()) })
    });
    let offsets: [isize; K] = std::array::from_fn(|k| list[k].offset);
    let (mut mem, mut packed) = (mem, packed);
    for _ in 0..pairs {
        // SAFETY: the loop runs `pairs` times, so `mem` is where a pair of lanes begins. The caller
        // guarantees that the windows of both lanes are readable.
        let part = |k: usize| unsafe {
            let at = mem.wrapping_offset(offsets[k]);
            let low = _mm_loadu_si128(at.cast());
            let high = _mm_loadu_si128(at.wrapping_add(pitch).cast());
            _mm256_shuffle_epi8(_mm256_set_m128i(high, low), shuffles[k])
        };
        let mut data = part(0);
        for k in 1..K {
            data = _mm256_or_si256(data, part(k));
        }
        // SAFETY: `packed` is where the 32 packed bytes of this pair begin, and the caller guarantees that
        // these are writable.
        unsafe { _mm256_storeu_si256(packed.cast(), data) };
        mem = mem.wrapping_add(2 * pitch);
        packed = packed.wrapping_add(2 * LANE);
    }
}
