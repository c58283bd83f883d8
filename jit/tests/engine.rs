//! Checks that types which the engine commits with a [`Jit`] pack as the typemap says, and that the
//! engine uses the kernels.

use std::sync::Arc;
use typepack_engine::{
    Datatype, Direction, Named, Order, Settings as EngineSettings, Strategy, pack, typemap, unpack,
};
use typepack_jit::{Jit, Mode, Settings};

fn commit(ty: &Datatype, jit: &Jit) -> typepack_engine::Plan {
    let compiler = Some(Arc::new(jit.clone()) as Arc<_>);
    // Forces compiled kernels, because otherwise leaf kernels would execute some of the layouts.
    let strategy = Some(Strategy::Kernel);
    ty.commit_with(&EngineSettings { compiler, strategy, ..EngineSettings::default() })
        .expect("the type is committed")
}

fn round_trip(ty: &Datatype, jit: &Jit, count: u64) {
    let plan = commit(ty, jit);
    let bytes = (ty.extent() * count as i64 + ty.true_extent()) as usize;
    let memory: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
    let expected = typemap::pack(ty, count, &memory, 0);
    let mut packed = vec![0_u8; expected.len()];
    pack(&plan, count, &memory, &mut packed).expect("the data is packed");
    assert!(packed == expected, "{ty:?}");
    let mut back = vec![0_u8; bytes];
    let mut back_expected = back.clone();
    unpack(&plan, count, &packed, &mut back).expect("the data is unpacked");
    typemap::unpack(ty, count, &packed, &mut back_expected, 0);
    assert!(back == back_expected, "{ty:?}");
}

fn types() -> Vec<Datatype> {
    let double = Datatype::named(Named::F64);
    let face = |sub: [i64; 3], start: [i64; 3]| {
        Datatype::subarray(&[18, 18, 18], &sub, &start, Order::C, &double)
            .expect("the subarray is valid")
    };
    let members = [Named::U8, Named::I32, Named::F64].map(Datatype::named);
    let particle =
        Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members).expect("the struct is valid");
    let displacements: Vec<i64> = (0..100).map(|i| i * i % 97 + 2 * i).collect();
    vec![
        Datatype::vector(100, 1, 2, &double).expect("the vector is valid"),
        face([16, 16, 1], [1, 1, 1]),
        face([16, 1, 16], [1, 1, 1]),
        face([1, 16, 16], [1, 1, 1]),
        particle,
        Datatype::indexed_block(1, &displacements, &double).expect("the index list is valid"),
    ]
}

#[test]
fn committed_types_run_on_kernels() {
    let jit = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
    let before = typepack_engine::stats::bytes().kernel;
    for ty in types() {
        round_trip(&ty, &jit, 1);
        round_trip(&ty, &jit, 5);
    }
    assert!(jit.counters().kernels > 0);
    assert_eq!(jit.counters().refusals, 0);
    assert!(typepack_engine::stats::bytes().kernel > before);
    let vector =
        Datatype::vector(100, 1, 2, &Datatype::named(Named::F64)).expect("the vector is valid");
    assert_eq!(commit(&vector, &jit).kernel_name(Direction::Pack), "pack loop loop b8");
}

/// Tests a `Jit` without code memory: the engine must use no kernel and still move the right bytes.
#[test]
fn without_code_memory_the_interpreter_works() {
    let jit = Jit::new(Settings { mode: Mode::Eager, memory_max: 0, ..Settings::default() });
    for ty in types() {
        round_trip(&ty, &jit, 3);
    }
    assert_eq!(jit.counters().kernels, 0);
    assert!(jit.counters().refusals > 0);
}

/// Checks that long calls move the right bytes while the engine compares the leaf kernel with the compiled kernel, and
/// that both of them have run.
#[test]
fn a_measured_choice_changes_no_byte() {
    use std::sync::atomic::{AtomicU64, Ordering};
    /// The false clock: each reading is later by an irregular time, so that either executor may seem the faster one.
    fn tick() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(1);
        let now = NOW.load(Ordering::Relaxed);
        NOW.fetch_add(100 + now.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 77, Ordering::Relaxed)
    }
    typepack_engine::contiguous::set_clock(tick, true);
    let jit = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
    let before = typepack_engine::stats::bytes();
    for ty in types() {
        let compiler = Some(Arc::new(jit.clone()) as Arc<_>);
        let settings = EngineSettings { compiler, ..EngineSettings::default() };
        let plan = ty.commit_with(&settings).expect("the type is committed");
        let count = (20 << 10) / plan.element_bytes() + 1;
        let bytes = (ty.extent() * count as i64 + ty.true_extent()) as usize;
        let memory: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
        let expected = typemap::pack(&ty, count, &memory, 0);
        let mut back_expected = vec![0xee_u8; bytes];
        typemap::unpack(&ty, count, &expected, &mut back_expected, 0);
        let mut packed = vec![0_u8; expected.len()];
        let mut back = vec![0_u8; bytes];
        for call in 0..3000 {
            packed.fill(call as u8);
            pack(&plan, count, &memory, &mut packed).expect("the data is packed");
            assert!(packed == expected, "{ty:?}, call {call}");
            if call % 8 == 0 {
                back.fill(0xee);
                unpack(&plan, count, &packed, &mut back).expect("the data is unpacked");
                assert!(back == back_expected, "{ty:?}, call {call}");
            }
        }
    }
    let after = typepack_engine::stats::bytes();
    assert!(after.kernel > before.kernel && after.leaf > before.leaf);
}
