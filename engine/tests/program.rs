//! Tests the programs of types after the passes. Types with equal layouts must have equal programs,
//! and no program may be larger than the description of its type.

use typepack_engine::kernel::Direction;
use typepack_engine::{Datatype, Named, Order};

fn program(ty: &Datatype) -> String {
    ty.commit().unwrap().program().to_string()
}

#[test]
fn descriptions_of_one_layout_meet() {
    let double = Datatype::named(Named::DOUBLE);
    let row = Datatype::contiguous(3, &double).unwrap();
    let layouts = [
        Datatype::subarray(&[4, 10], &[4, 3], &[0, 0], Order::C, &double).unwrap(),
        Datatype::subarray(&[10, 4], &[3, 4], &[0, 0], Order::Fortran, &double).unwrap(),
        Datatype::vector(4, 3, 10, &double).unwrap(),
        Datatype::hvector(4, 1, 80, &row).unwrap(),
        Datatype::indexed(&[3; 4], &[0, 10, 20, 30], &double).unwrap(),
        Datatype::hindexed(&[1, 2, 0, 3, 3, 3], &[0, 8, 7, 80, 160, 240], &double).unwrap(),
        Datatype::indexed_block(3, &[0, 10, 20, 30], &double).unwrap(),
        Datatype::structured(&[3; 4], &[0, 80, 160, 240], &[(); 4].map(|()| double.clone()))
            .unwrap(),
    ];
    for ty in layouts {
        let ty = Datatype::resized(0, 1000, &ty).unwrap();
        assert_eq!(program(&ty), "elements 1 x 1000\n  loop 4 x 80 @0\n    block 24 @0\n");
    }
}

#[test]
fn loops_that_go_on_in_the_next_part_join() {
    let double = Datatype::named(Named::DOUBLE);
    let two = Datatype::hvector(2, 1, 80, &double).unwrap();
    let five = Datatype::hvector(5, 1, 80, &double).unwrap();
    let parts = [double.clone(), two.clone(), five, double];
    let ty = Datatype::structured(&[1; 4], &[0, 80, 240, 640], &parts).unwrap();
    let ty = Datatype::resized(0, 1000, &ty).unwrap();
    assert_eq!(program(&ty), "elements 1 x 1000\n  loop 9 x 80 @0\n    block 8 @0\n");
}

#[test]
fn a_nearly_regular_table_is_a_loop_and_a_remainder() {
    let mut displacements: Vec<i64> = (0..40).map(|i| 3 * i).collect();
    displacements.push(200);
    let ty = Datatype::indexed_block(1, &displacements, &Datatype::named(Named::INT)).unwrap();
    assert_eq!(
        program(&ty),
        "elements 1 x 804\n  seq 2 @0\n    loop 40 x 12 @0\n      block 4 @0\n    block 4 @800\n"
    );
}

#[test]
fn a_short_loop_beside_a_block_is_a_window() {
    let int = Datatype::named(Named::INT);
    let row = Datatype::hvector(15, 1, 20, &int).unwrap();
    let ty = Datatype::structured(&[1, 1], &[0, 292], &[row, int]).unwrap();
    let runs: String = (0..15).chain([0]).map(|_| "block 4 @").collect();
    let plan = ty.commit().unwrap();
    assert_eq!(plan.program().to_string().matches("block 4 @").collect::<String>(), runs);
    assert_eq!(plan.nests().len(), 1);
    // The `char` at 5 touches the second block of the loop, which is at 4. So the passes unroll the
    // loop and join these two blocks. An earlier version executed the loop and the `char` one after
    // the other.
    let char = Datatype::named(Named::CHAR);
    let two = Datatype::vector(2, 1, 4, &char).unwrap();
    let three = Datatype::structured(&[1, 1], &[0, 5], &[two, char]).unwrap();
    let list = Datatype::indexed_block(1, &[0, 3, 8, 10], &three).unwrap();
    assert_eq!(
        program(&list),
        "elements 1 x 66\n  table i32 x 6 [0 3 8 10] @0\n    seq 2 @0\n      block 1 @0\n      \
         block 2 @4\n"
    );
}

#[test]
fn a_list_of_unequal_rows_is_a_table_while_that_is_short() {
    let gapped = Datatype::resized(0, 12, &Datatype::named(Named::INT)).unwrap();
    let rows = |lengths: &[i64]| {
        let places: Vec<i64> = lengths.iter().zip(0..).map(|(_, i)| i * 100).collect();
        Datatype::indexed(lengths, &places, &gapped).unwrap().commit().unwrap()
    };
    let listed = |lengths: &[i64]| !rows(lengths).program().to_string().contains("ragged");
    assert_eq!(
        rows(&[1, 4, 2]).program().to_string(),
        "elements 1 x 2424\n  table i32 x 12 [0 100 101 102 103 200 201] @0\n    block 4 @0\n"
    );
    assert!(listed(&[1, 15]) && !listed(&[1, 16]));
    let long: Vec<i64> = (0..5461).map(|i| i % 3 + 1).collect();
    assert!(listed(&long[..4000]) && !listed(&long));
    // The positions are not multiples of the extent of 3 bytes, so the entries of the table count
    // single bytes.
    let three = Datatype::resized(0, 3, &Datatype::named(Named::CHAR)).unwrap();
    let odd = Datatype::hindexed(&[1, 3, 2], &[1, 10, 40], &three).unwrap();
    assert!(program(&odd).contains("table i32 x 1 [1 10 13 16 40 43]"), "{}", program(&odd));
}

#[test]
fn elements_that_continue_each_other_are_one_loop() {
    let double = Datatype::named(Named::DOUBLE);
    let column = Datatype::vector(4, 1, 3, &double).unwrap();
    let next = Datatype::resized(0, 96, &column).unwrap();
    assert_eq!(program(&next), "elements 4 x 24\n  block 8 @0\n");
    let congruent = Datatype::hvector(5, 1, 96, &column).unwrap();
    let congruent = Datatype::resized(0, 5 * 96, &congruent).unwrap();
    assert_eq!(program(&congruent), "elements 20 x 24\n  block 8 @0\n");
    let dense = Datatype::contiguous(7, &double).unwrap().commit().unwrap();
    assert!(dense.is_contiguous());
    assert_eq!(dense.kernel_name(Direction::Pack), "memcpy");
}

#[test]
fn a_type_of_2_to_the_60_elements_is_a_handful_of_nodes() {
    let mut ty = Datatype::resized(0, 2, &Datatype::named(Named::BYTE)).unwrap();
    for _ in 0..60 {
        ty = Datatype::contiguous(2, &ty).unwrap();
    }
    assert_eq!(ty.size(), 1 << 60);
    assert_eq!(program(&ty).lines().count(), 2);
    // Each of these structs uses its child twice. The program must share the nodes and not expand
    // them.
    let mut ty = Datatype::named(Named::BYTE);
    for level in 0..50 {
        let far = 3i64 << level;
        ty = Datatype::structured(&[1, 1], &[0, far], &[ty.clone(), ty]).unwrap();
    }
    assert!(ty.commit().unwrap().program().nodes().len() < 200);
}

#[test]
fn a_tower_of_100_000_levels_commits() {
    let mut ty = Datatype::named(Named::INT);
    for _ in 0..50_000 {
        ty = Datatype::contiguous(1, &ty).unwrap();
        ty = Datatype::resized(0, 8, &ty).unwrap();
    }
    assert_eq!(program(&ty), "elements 1 x 8\n  block 4 @0\n");
}
