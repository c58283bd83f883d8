//! Tests of the halo API on one rank. This rank is its own neighbour in every periodic dimension. The tests
//! check the contents of the halo, and guards that are leaked, dropped, or left by a panic.
//! `cli/tests/halo.rs` tests several ranks with the `typepack` tool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use typepack::halo::{Element, Field, Halo, Stencil};
use typepack::{Cartesian, Datatype, Named, Universe};

/// Returns a grid of one rank, which is the only rank of its job. The returned lock makes the tests run one
/// after the other, so that their collective calls have a fixed order.
fn grid(periodic: &[bool]) -> (MutexGuard<'static, ()>, Cartesian) {
    static UNIVERSE: OnceLock<Universe> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let universe = UNIVERSE.get_or_init(|| typepack::init().expect("a job of one"));
    let ones = vec![1; periodic.len()];
    (turn, universe.world().cartesian(&ones, periodic).expect("a grid of one"))
}

const SHAPE: [usize; 3] = [3, 4, 5];

/// Returns a field in which each owned cell holds a number made from its position. The halo does not hold
/// valid values yet.
fn numbered(field: usize, width: usize) -> Field<f64, 3> {
    let mut result = Field::new(SHAPE, width).expect("a small field");
    result.as_mut_slice().fill(-1.0);
    for (z, y, x) in cells(0) {
        let position = result.position([z, y, x]).expect("an owned cell");
        result.as_mut_slice()[position] = value(field, z, y, x);
    }
    result
}

fn value(field: usize, z: isize, y: isize, x: isize) -> f64 {
    (((field as isize * 10 + z) * 10 + y) * 10 + x) as f64
}

fn cells(width: isize) -> impl Iterator<Item = (isize, isize, isize)> {
    let range = move |d: usize| -width..SHAPE[d] as isize + width;
    range(0).flat_map(move |z| range(1).flat_map(move |y| range(2).map(move |x| (z, y, x))))
}

/// Checks that `field` holds the values that an exchange of the field with itself must give.
fn check(field: &Field<f64, 3>, number: usize, stencil: Stencil, periodic: [bool; 3]) {
    let width = field.width() as isize;
    for cell in cells(width) {
        let place = [cell.0, cell.1, cell.2];
        let wrapped: [isize; 3] = std::array::from_fn(|d| place[d].rem_euclid(SHAPE[d] as isize));
        let outside: Vec<usize> = (0..3).filter(|&d| wrapped[d] != place[d]).collect();
        let reached = match stencil {
            Stencil::Star => outside.len() <= 1,
            Stencil::Box => true,
        };
        let reached = reached && outside.iter().all(|&d| periodic[d]);
        let [z, y, x] = wrapped;
        let wanted = if reached { value(number, z, y, x) } else { -1.0 };
        let position = field.position(place).expect("a cell of the halo");
        assert_eq!(field.as_slice()[position], wanted, "field {number}, cell {cell:?}");
    }
}

#[test]
fn every_halo_cell_gets_the_cell_across_the_grid() {
    for periodic in [[true; 3], [true, false, true], [false; 3]] {
        let (_turn, grid) = grid(&periodic);
        for stencil in [Stencil::Star, Stencil::Box] {
            for (width, fields) in [(1, 1), (2, 1), (3, 2), (1, 4)] {
                let halo = Halo::new(&grid, SHAPE, width, stencil, fields).expect("a plan");
                let mut all: Vec<_> = (0..fields).map(|f| numbered(f, width)).collect();
                halo.start(&mut all).expect("started").wait().expect("complete");
                for (number, field) in all.iter().enumerate() {
                    check(field, number, stencil, periodic);
                }
            }
        }
    }
}

#[test]
fn two_sets_of_fields_take_turns_in_one_plan() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Box, 2).expect("a plan");
    assert_eq!(halo.faces().len(), 26);
    assert!(halo.faces().iter().all(|face| face.pack == "-"));
    let mut sets = [[numbered(0, 1), numbered(1, 1)], [numbered(2, 1), numbered(3, 1)]];
    for _ in 0..3 {
        for set in &mut sets {
            halo.exchange(set).expect("an exchange");
        }
    }
    for (number, field) in sets.iter().flatten().enumerate() {
        check(field, number, Stencil::Box, [true; 3]);
    }
    assert!(halo.faces().iter().all(|face| face.pack != "-" && face.neighbour == 0));
    assert_eq!(halo.bytes(), 8 * 2 * (5 * 6 * 7 - 3 * 4 * 5));
    assert_eq!(halo.bytes_to_others(), 0);
}

#[test]
fn the_interior_can_be_read_and_its_depth_written() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Star, 1).expect("a plan");
    let mut fields = [numbered(0, 1)];
    let mut exchange = halo.start(&mut fields).expect("started");
    let mut interior = exchange.interior();
    assert_eq!(interior.cells(0, [2, 3, 0], 5), [230.0, 231.0, 232.0, 233.0, 234.0]);
    interior.cells_mut(0, [1, 2, 1], 3).copy_from_slice(&[7.0; 3]);
    interior.progress().expect("progress");
    for (start, len) in [([0, 2, 1], 3), ([1, 2, 0], 3), ([1, 2, 2], 3), ([1, 3, 1], 1)] {
        let refused = catch_unwind(AssertUnwindSafe(|| interior.cells_mut(0, start, len).len()));
        assert!(refused.is_err(), "{start:?} {len}");
    }
    for (start, len) in [([3, 0, 0], 1), ([0, 0, 1], 5), ([0, 0, usize::MAX], 2)] {
        let refused = catch_unwind(AssertUnwindSafe(|| interior.cells(0, start, len).len()));
        assert!(refused.is_err(), "{start:?} {len}");
    }
    exchange.wait().expect("complete");
    let position = fields[0].position([1, 2, 2]).expect("an owned cell");
    assert_eq!(fields[0].as_slice()[position], 7.0);
}

#[test]
fn a_leaked_exchange_is_completed_before_its_field_is_seen() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 2, Stencil::Box, 2).expect("a plan");
    let mut fields = [numbered(0, 2), numbered(1, 2)];
    std::mem::forget(halo.start(&mut fields).expect("started"));
    check(&fields[0], 0, Stencil::Box, [true; 3]);
    std::mem::forget(halo.start(&mut fields).expect("started"));
    let [first, second] = fields;
    drop(first);
    let mut second = [second, numbered(0, 2)];
    halo.exchange(&mut second).expect("an exchange");
    check(&second[0], 1, Stencil::Box, [true; 3]);
    second[0].settle().expect("nothing to settle");
}

#[test]
fn a_dropped_exchange_is_complete() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Star, 1).expect("a plan");
    let mut fields = [numbered(0, 1)];
    drop(halo.start(&mut fields).expect("started"));
    check(&fields[0], 0, Stencil::Star, [true; 3]);
}

#[test]
fn borrowed_slices_are_complete_also_after_a_panic() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Box, 1).expect("a plan");
    let mut wanted = [numbered(0, 1)];
    let mut array = wanted[0].as_slice().to_vec();
    let start = array.clone();
    halo.exchange(&mut wanted).expect("an exchange");
    let sum = halo
        .exchange_slices_with(&mut [&mut array], |interior| {
            interior.cells(0, [0, 0, 0], 5).iter().sum::<f64>()
        })
        .expect("an exchange");
    assert_eq!((sum, array.as_slice()), (10.0, wanted[0].as_slice()));
    array.copy_from_slice(&start);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        halo.exchange_slices_with(&mut [&mut array], |_| panic!("in the computation"))
    }));
    assert!(panicked.is_err());
    assert_eq!(array, wanted[0].as_slice());
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_are_exchanged_where_they_are() {
    let (_turn, grid) = grid(&[true; 3]);
    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Box, 2).expect("a plan");
    let mut fields = [numbered(0, 1), numbered(1, 1)];
    let array = |field: &Field<f64, 3>| {
        ndarray::Array3::from_shape_vec(field.padded_shape(), field.as_slice().to_vec())
            .expect("the shape of its values")
    };
    let mut arrays = [array(&fields[0]), array(&fields[1])];
    let [a, b] = &mut arrays;
    halo.exchange_with(&mut [a.view_mut(), b.view_mut()], |_| ()).expect("an exchange");
    halo.exchange(&mut fields).expect("an exchange");
    for (array, field) in arrays.iter().zip(&fields) {
        assert_eq!(array.as_slice(), Some(field.as_slice()));
    }
    let [a, b] = &mut arrays;
    let wrong = [b.view_mut().reversed_axes(), a.view_mut().reversed_axes()];
    let error = halo.exchange_with(&mut { wrong }, |_| ()).expect_err("wrong shape");
    assert!(error.to_string().starts_with("views: views[0] has shape [7, 6, 5]"), "{error}");
    let mut cubes = [ndarray::Array3::<f64>::zeros((3, 3, 3)), ndarray::Array3::zeros((3, 3, 3))];
    let small = Halo::new(&grid, [1, 1, 1], 1, Stencil::Box, 2).expect("a plan");
    let [a, b] = &mut cubes;
    let turned = [a.view_mut(), b.view_mut().reversed_axes()];
    let error = small.exchange_with(&mut { turned }, |_| ()).expect_err("wrong order");
    assert!(error.to_string().starts_with("views: views[1] is not in standard layout"), "{error}");
}

#[test]
fn every_refusal_names_its_argument() {
    let (_turn, grid) = grid(&[true; 3]);
    let refused = |shape, width, fields| {
        Halo::<f64, 3>::new(&grid, shape, width, Stencil::Star, fields)
            .expect_err("must be refused")
            .to_string()
    };
    assert!(refused(SHAPE, 0, 1).starts_with("width: the width is 0"));
    assert!(refused(SHAPE, 4, 1).starts_with("width: the width is 4; it must be at most 3,"));
    assert!(refused([3, 0, 5], 1, 1).starts_with("shape:"));
    assert!(refused(SHAPE, 1, 0).starts_with("fields: the number of fields is 0"));
    let error = Halo::<f64, 2>::new(&grid, [4, 4], 1, Stencil::Star, 1).expect_err("2 of 3");
    let text = "cartesian: the number of dimensions is 3; it must be 2, as in the fields";
    assert_eq!(error.to_string(), text);

    let halo = Halo::new(&grid, SHAPE, 1, Stencil::Star, 2).expect("a plan");
    let error = halo.exchange(&mut []).expect_err("no field").to_string();
    assert_eq!(error, "fields: the number of fields is 0; the plan needs 2");
    let error = halo.exchange(&mut [numbered(0, 1), numbered(1, 2)]).expect_err("another width");
    assert!(error.to_string().starts_with("fields: fields[1] has"), "{error}");
    let mut short = [0.0; 7];
    let mut call = |n: usize| {
        let mut arrays: Vec<&mut [f64]> = short.chunks_mut(3).take(n).collect();
        halo.exchange_slices_with(&mut arrays, |_| ()).expect_err("too short").to_string()
    };
    assert!(call(2).starts_with("arrays: arrays[0] has length 3"));
    assert!(call(0).starts_with("fields: the number of fields is 0"));
}

#[test]
fn an_element_that_describes_itself_wrongly_is_refused() {
    #[derive(Clone, Copy)]
    #[repr(transparent)]
    struct Liar(f32);
    // SAFETY: `Liar` is a transparent wrapper of `f32`. All bits 0 are a valid `f32`, so they are a valid
    // `Liar`.
    unsafe impl bytemuck::Zeroable for Liar {}
    // SAFETY: `Liar` is a transparent wrapper of `f32`, and `f32` is `Pod`.
    unsafe impl bytemuck::Pod for Liar {}
    impl Element for Liar {
        fn datatype() -> Datatype {
            Datatype::named(Named::F64)
        }
    }
    let (_turn, grid) = grid(&[true; 3]);
    let error = Halo::<Liar, 3>::new(&grid, SHAPE, 1, Stencil::Star, 1).expect_err("8 of 4 bytes");
    assert!(error.to_string().starts_with("T::datatype: the datatype has extent 8"), "{error}");
}
