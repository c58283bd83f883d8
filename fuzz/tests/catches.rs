//! Checks that the checker finds faults. The kernels in these tests make deliberate mistakes. The
//! checker must catch each mistake that changes a result, and must accept the kernels without mistakes.

use std::sync::Arc;
use typepack_engine::kernel::{
    Compiler, Entry, Kernel, LeafShape, LevelShape, Shape, TransferShape,
};
use typepack_engine::{Direction, Settings, Strategy, stats};
use typepack_fuzz::{Case, Checker, Effort, Pair, Stream, signature};

/// Packs or unpacks one loop over 8-byte blocks, with deliberate mistake number `MISTAKE`: 0 is no
/// mistake, 1 visits the blocks in reverse order, 2 leaves out a byte, and 3 writes a byte into a gap.
///
/// # Safety
///
/// - The arguments meet the conditions of [`Entry`] for the shape `loop b8`.
unsafe extern "C" fn kernel<const PACK: bool, const MISTAKE: u8>(
    params: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: `params` has three words, because the shape `loop b8` has one level and no word for a
    // length.
    let (count, stride) = unsafe { (*params, *params.add(1) as isize) };
    for i in 0..count as usize {
        let i = if MISTAKE == 1 { count as usize - 1 - i } else { i };
        let (mem, packed) = (mem.wrapping_offset(i as isize * stride), packed.wrapping_add(8 * i));
        let bytes = if MISTAKE == 2 && count > 3 && i == 3 { 7 } else { 8 };
        // SAFETY: by the conditions of `Entry`, block `i` of `mem` and of `packed` is valid for this
        // access. Mistake 3 writes a ninth byte, which falls into a gap of the test's type; the test's
        // memory contains the gap.
        unsafe {
            if PACK {
                mem.copy_to_nonoverlapping(packed, bytes);
            } else {
                packed.copy_to_nonoverlapping(mem, bytes);
                if MISTAKE == 3 && i == 0 && count > 1 {
                    mem.add(8).write(0);
                }
            }
        }
    }
}

#[derive(Debug)]
struct Mistaken {
    pack: Entry,
    unpack: Entry,
}

// SAFETY:
// - `kernel` returns kernels only for the shape `loop b8`, and they implement it except for the
//   mistakes under test; those stay within the test's memory.
unsafe impl Compiler for Mistaken {
    fn threshold(&self) -> u64 {
        0
    }

    fn kernel(&self, shape: &Shape) -> Option<Kernel> {
        let right =
            shape.levels == [LevelShape::Loop] && shape.leaf == LeafShape::Fixed { bytes: 8 };
        let entry = match shape.direction {
            Direction::Pack => self.pack,
            Direction::Unpack => self.unpack,
        };
        // SAFETY: the functions above implement this shape except for the mistakes under test, which
        // stay within the test's memory. They are part of this program, so they stay mapped, and they
        // never unwind.
        right.then(|| unsafe { Kernel::new(entry, "mistaken".into(), Arc::new(())) })
    }
}

/// Copies one loop over 8-byte blocks to another layout, with deliberate mistake number `MISTAKE`: 0 is
/// no mistake, 1 visits the blocks in reverse order, and 2 leaves out a byte.
///
/// # Safety
///
/// - The arguments meet the conditions of [`Entry`] for the shape `copy loop-loop b8`.
unsafe extern "C" fn copier<const MISTAKE: u8>(params: *const u64, src: *mut u8, dst: *mut u8) {
    // SAFETY: `params` has five words, because the shape has one level: a count, and then two words for
    // the source and two for the destination.
    let (count, from, to) = unsafe { (*params, *params.add(1) as isize, *params.add(3) as isize) };
    for i in 0..count as isize {
        let i = if MISTAKE == 1 { count as isize - 1 - i } else { i };
        let bytes = if MISTAKE == 2 && i == 3 { 7 } else { 8 };
        let (src, dst) = (src.wrapping_offset(i * from), dst.wrapping_offset(i * to));
        // SAFETY: by the conditions of `Entry`, block `i` of both sides is valid for this access, and
        // the two sides do not overlap.
        unsafe { src.copy_to_nonoverlapping(dst, bytes) };
    }
}

#[derive(Debug)]
struct Copier(Entry);

// SAFETY:
// - `transfer_kernel` returns kernels only for the shape `copy loop-loop b8`, and they implement it
//   except for the mistakes under test; those stay within the test's memory.
unsafe impl Compiler for Copier {
    fn threshold(&self) -> u64 {
        0
    }

    fn kernel(&self, _: &Shape) -> Option<Kernel> {
        None
    }

    fn transfer_kernel(&self, shape: &TransferShape) -> Option<Kernel> {
        // SAFETY: `copier` implements this shape except for the mistakes under test, which stay within
        // the test's memory. It is part of this program, so it stays mapped, and it never unwinds.
        (shape.to_string() == "copy loop-loop b8")
            .then(|| unsafe { Kernel::new(self.0, "mistaken".into(), Arc::new(())) })
    }
}

fn settings(pack: Entry, unpack: Entry) -> Settings {
    let compiler = Some(Arc::new(Mistaken { pack, unpack }) as _);
    // Without a forced strategy, leaf kernels would execute the plans of these tests, and the engine
    // would not ask the compiler for a kernel.
    Settings { compiler, strategy: Some(Strategy::Kernel), ..Settings::default() }
}

fn check(pack: Entry, unpack: Entry, case: &str) -> Result<(), String> {
    let case: Case = case.parse().expect("a case");
    let settings = vec![("mistaken", settings(pack, unpack))];
    Checker::with(settings).check(&case, Effort::Thorough).map(|_| ())
}

const GAPS: &str = "20 * resized(0, 16, double)";
const OVERLAPS: &str = "20 * resized(0, 4, double)";

#[test]
fn no_mistake_passes() {
    for case in [GAPS, OVERLAPS] {
        check(kernel::<true, 0>, kernel::<false, 0>, case).expect(case);
    }
}

#[test]
fn a_missing_byte_is_caught() {
    let reason = check(kernel::<true, 2>, kernel::<false, 0>, GAPS).expect_err("a fault");
    assert!(reason.contains("pack") && reason.contains("mistaken"), "{reason}");
    let reason = check(kernel::<true, 0>, kernel::<false, 2>, GAPS).expect_err("a fault");
    assert!(reason.contains("unpack"), "{reason}");
}

#[test]
fn a_touched_gap_is_caught() {
    let reason = check(kernel::<true, 0>, kernel::<false, 3>, GAPS).expect_err("a fault");
    assert!(reason.contains("unpack"), "{reason}");
}

#[test]
fn the_wrong_order_is_caught_where_blocks_overlap() {
    check(kernel::<true, 1>, kernel::<false, 1>, GAPS).expect("order does not matter here");
    let reason = check(kernel::<true, 0>, kernel::<false, 1>, OVERLAPS).expect_err("a fault");
    assert!(reason.contains("unpack"), "{reason}");
}

/// Checks that `Settings::verify` always uses the interpreter's result. A kernel that leaves out a byte
/// or writes in the wrong order must be counted once and not be used again; a correct kernel must stay
/// in use.
#[test]
fn verification_drops_a_mistaken_kernel() {
    let right = settings(kernel::<true, 0>, kernel::<false, 0>);
    for (case, faulty, directions) in [
        (GAPS, right, &[][..]),
        (GAPS, settings(kernel::<true, 2>, kernel::<false, 0>), &[Direction::Pack]),
        (GAPS, settings(kernel::<true, 0>, kernel::<false, 2>), &[Direction::Unpack]),
        (OVERLAPS, settings(kernel::<true, 0>, kernel::<false, 1>), &[Direction::Unpack]),
    ] {
        let verified = Settings { verify: true, ..faulty };
        let case: Case = case.parse().expect("a case");
        let plan = case.recipe.build().and_then(|ty| ty.commit_with(&verified)).expect("a plan");
        let before = stats::bytes().disagreements;
        // The data is not the result of packing. Where blocks overlap, that result contains the same
        // bytes twice, and would hide a wrong order of writes.
        let data: [u8; 160] = std::array::from_fn(|i| i as u8);
        let (mut memory, mut packed) = ([7u8; 320], [0u8; 160]);
        for _ in 0..3 {
            typepack_engine::unpack(&plan, case.count, &data, &mut memory).expect("unpacked");
            typepack_engine::pack(&plan, case.count, &memory, &mut packed).expect("packed");
        }
        assert_eq!(stats::bytes().disagreements - before, directions.len() as u64, "{case}");
        for direction in [Direction::Pack, Direction::Unpack] {
            let dropped = plan.kernel_name(direction) == "interpreter";
            assert_eq!(dropped, directions.contains(&direction), "{case}: {direction:?}");
        }
        // Compares all ranges, gaps included, with the model.
        Checker::with(vec![("verified", verified)]).check(&case, Effort::Thorough).expect("agrees");
    }
    for (entry, to, faults) in [
        (copier::<0> as Entry, GAPS, 0),
        (copier::<2>, GAPS, 1),
        (copier::<1>, GAPS, 0),
        (copier::<1>, OVERLAPS, 1),
    ] {
        a_mistaken_copier_is_dropped(entry, to, faults);
    }
}

/// Checks that the calls that the interpreter executes after a kernel was dropped are not counted as calls
/// of the kernel. The calls move far more bytes than the other tests of this file, which run at the same
/// time.
#[test]
fn a_dropped_kernel_moves_no_more_bytes() {
    const COUNT: usize = 1 << 20;
    let faulty = settings(kernel::<true, 2>, kernel::<false, 0>);
    let verified = Settings { verify: true, ..faulty };
    let case: Case = GAPS.parse().expect("a case");
    let plan = case.recipe.build().and_then(|ty| ty.commit_with(&verified)).expect("a plan");
    let (memory, mut packed) = (vec![7u8; 16 * COUNT], vec![0u8; 8 * COUNT]);
    let before = stats::bytes();
    for _ in 0..3 {
        typepack_engine::pack(&plan, COUNT as u64, &memory, &mut packed).expect("packed");
    }
    let after = stats::bytes();
    assert_eq!((after.kernel - before.kernel) / packed.len() as u64, 1);
    assert_eq!((after.interpreter - before.interpreter) / packed.len() as u64, 3);
}

/// Checks `Settings::verify` for a fused copy into the layout `to` with the kernel `entry`. `faults` is
/// the number of disagreements that must be counted.
fn a_mistaken_copier_is_dropped(entry: Entry, to: &str, faults: u64) {
    let compiler = Some(Arc::new(Copier(entry)) as _);
    let verified = Settings { compiler, verify: true, ..Settings::default() };
    let commit = |case: &str| {
        let case: Case = case.parse().expect("a case");
        case.recipe.build().and_then(|ty| ty.commit_with(&verified)).expect("a plan")
    };
    let (from, to) = (commit("20 * resized(0, 24, double)"), commit(to));
    let before = stats::bytes();
    let src: [u8; 480] = std::array::from_fn(|i| (i % 251) as u8);
    let (mut dst, mut expected) = ([7u8; 320], [7u8; 320]);
    for i in 0..20 {
        let at = i * to.footprint().extent as usize;
        expected[at..at + 8].copy_from_slice(&src[24 * i..24 * i + 8]);
    }
    for _ in 0..3 {
        dst.fill(7);
        typepack_engine::copy(&from, 20, &src, &to, 20, &mut dst).expect("copied");
        assert_eq!(dst, expected, "the answer is not the interpreter's");
    }
    let after = stats::bytes();
    assert_eq!(after.disagreements - before.disagreements, faults);
    let calls = if faults == 0 { 3 } else { 1 };
    assert_eq!(after.fused_kernel - before.fused_kernel, calls * 160);
}

/// Checks that the signature check rejects pairs with different signatures, even if only one of the two
/// rules for equality sees the difference.
#[test]
fn a_false_pair_is_caught() {
    let check = |from: &str, to: &str| {
        let case = |text: &str| text.parse::<Case>().expect("a case");
        let pair = Pair { from: case(from), to: case(to) };
        signature::check(&pair, &pair.from, &mut Stream::new(1, 1))
    };
    check("6 * double", "2 * hvector(3, 1, 24, double)").expect("one signature");
    check("6 * double", "6 * int64_t").expect_err("other basic types");
    check("6 * long", "6 * int64_t").expect_err("other names");
    check("6 * double", "5 * double").expect_err("fewer elements");
}
