//! What the passes make of descriptions: equal layouts meet in one program, and no program is
//! larger than its description.

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
    let mut displacements: Vec<i64> = (0..30).map(|i| 3 * i).collect();
    displacements.push(200);
    let ty = Datatype::indexed_block(1, &displacements, &Datatype::named(Named::INT)).unwrap();
    assert_eq!(
        program(&ty),
        "elements 1 x 804\n  seq 2 @0\n    loop 30 x 12 @0\n      block 4 @0\n    block 4 @800\n"
    );
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
    // The same with structs that use their child twice: shared, not expanded.
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
