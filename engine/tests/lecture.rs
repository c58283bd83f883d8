//! The examples that the project's mission texts give on datatypes, addresses and decoding, with
//! their numbers: E. Gabriel's lecture "MPI derived datatypes" (by slide), MPI-2.2 sections 4.1.12,
//! 4.1.13 and 4.2, MPI-2.2 section 16.3.6, MPI-2.2 section 13.4.

use std::mem::offset_of;
use typepack_engine::{
    Binding, Combiner, Datatype, Named, Order, pack, pack_range, pack_raw, typemap, unpack_raw,
};

fn named(named: Named) -> Datatype {
    Datatype::named(named)
}

fn offsets(ty: &Datatype) -> Vec<i64> {
    typemap::typemap(ty).iter().map(|entry| entry.offset).collect()
}

fn address<T>(of: &T) -> i64 {
    (&raw const *of).addr() as i64
}

#[repr(C)]
struct MyStruct {
    a: u8,
    b: i32,
    c: f64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Longer {
    a: u8,
    b: i32,
    c: f64,
    d: f32,
}

/// Slide "Type map vs. type signature": {(char, 0), (int, 8), (double, 16)}. The places are
/// illustrative; a C compiler has the int at 4 and the double at 8.
#[test]
fn mystruct_as_the_lecture_and_as_a_compiler_places_it() {
    let types = [Named::CHAR, Named::INT, Named::DOUBLE];
    for (places, extent) in [([0, 8, 16], 24), ([0, 4, 8], 16)] {
        let ty = Datatype::structured(&[1; 3], &places, &types.map(named)).unwrap();
        assert_eq!(offsets(&ty), places);
        assert_eq!((ty.size(), ty.lb(), ty.extent(), ty.elements()), (13, 0, extent, 3));
        let signature: Vec<Named> = typemap::typemap(&ty).iter().map(|e| e.named).collect();
        assert_eq!(signature, types);
    }
}

/// Slide "Our previous example looks like follows": displacements are differences of addresses.
#[test]
fn displacements_by_address() {
    let data = MyStruct { a: b'x', b: -5, c: 2.5 };
    let base = address(&data);
    let places = [0, address(&data.b) - base, address(&data.c) - base];
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    let ty = Datatype::type_struct(&[1; 3], &places, &types, Binding::C).unwrap();
    assert_eq!(ty.extent() as usize, size_of::<MyStruct>());
    let plan = ty.commit().unwrap();
    let mut packed = [0; 13];
    // SAFETY: one element of the struct's own layout, at its address; 13 bytes of packed data.
    unsafe { pack_raw(&plan, 1, (&raw const data).cast(), 0..13, packed.as_mut_ptr()) };
    assert_eq!(packed[0], data.a);
    assert_eq!(packed[1..5], data.b.to_ne_bytes());
    assert_eq!(packed[5..], data.c.to_ne_bytes());
}

/// Slides on contiguous, vector (count 3, block length 2, stride 3), hvector and indexed (blocks of
/// 2, 1 and 4 at 0, 3 and 5).
#[test]
fn constructors_of_the_slides() {
    let int = named(Named::INT);
    let elements = |ty: &Datatype| offsets(ty).iter().map(|at| at / 4).collect::<Vec<_>>();
    assert_eq!(elements(&Datatype::contiguous(4, &int).unwrap()), [0, 1, 2, 3]);
    let vector = Datatype::vector(3, 2, 3, &int).unwrap();
    assert_eq!(elements(&vector), [0, 1, 3, 4, 6, 7]);
    let hvector = Datatype::type_hvector(3, 2, 12, &int, Binding::C).unwrap();
    assert_eq!(elements(&hvector), elements(&vector));
    let indexed = Datatype::indexed(&[2, 1, 4], &[0, 3, 5], &int).unwrap();
    assert_eq!(elements(&indexed), [0, 1, 3, 5, 6, 7, 8]);
    let bytes = Datatype::type_hindexed(&[2, 1, 4], &[0, 12, 20], &int, Binding::C).unwrap();
    assert_eq!(elements(&bytes), elements(&indexed));
}

/// Slide "Example using MPI_Type_vector": a column of an 8 x 8 matrix; which one depends on the
/// pointer.
#[test]
fn any_column_of_a_matrix() {
    let column = Datatype::vector(8, 1, 8, &named(Named::DOUBLE)).unwrap().commit().unwrap();
    let matrix: Vec<f64> = (0..64).map(f64::from).collect();
    for j in 0..8 {
        let mut packed = [0; 64];
        pack(&column, 1, &matrix[j..], &mut packed).unwrap();
        let values: Vec<f64> = (0..8).map(|i| matrix[8 * i + j]).collect();
        assert_eq!(packed[..], *values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>());
    }
}

/// Slide on subarrays: sizes 8 x 8, subsizes 4 x 2, starts 2, 4.
#[test]
fn the_subarray_of_the_slide() {
    let double = named(Named::DOUBLE);
    let ty = Datatype::subarray(&[8, 8], &[4, 2], &[2, 4], Order::C, &double).unwrap();
    let elements: Vec<i64> = offsets(&ty).iter().map(|at| at / 8).collect();
    assert_eq!(elements, [20, 21, 28, 29, 36, 37, 44, 45]);
    assert_eq!((ty.lb(), ty.extent(), ty.size()), (0, 512, 64));
}

/// Slides "A problem with the specification up to now" to "Correct description of the structure
/// would be": two members of a struct of four, several elements of it.
#[test]
fn two_members_of_many_structs_need_the_markers() {
    let (b, c) = (offset_of!(Longer, b) as i64, offset_of!(Longer, c) as i64);
    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let simple =
        Datatype::type_struct(&[1, 1], &[b, c], &[int.clone(), double.clone()], Binding::C)
            .unwrap();
    // The next element begins in the middle of a struct: only the first one is right.
    assert_eq!((simple.lb(), simple.extent()), (4, 16));
    assert_ne!(simple.extent() as usize, size_of::<Longer>());

    let types = [named(Named::LB), int, double, named(Named::UB)];
    let places = [0, b, c, size_of::<Longer>() as i64];
    let ty = Datatype::type_struct(&[1; 4], &places, &types, Binding::C).unwrap();
    // "extent := upper bound - lower bound", "size = amount of bytes really transferred".
    assert_eq!((ty.lb(), ty.ub(), ty.extent(), ty.size()), (0, 24, 24, 12));
    // "The true extent: gaps at the beginning and at the end are removed."
    assert_eq!((ty.true_lb(), ty.true_extent()), (4, 12));

    let data: Vec<Longer> =
        (0..5).map(|i| Longer { a: 7, b: i, c: f64::from(i) / 4.0, d: 1.0 }).collect();
    let plan = ty.commit().unwrap();
    let mut packed = vec![0; 60];
    // SAFETY: five elements one struct apart, all in the vector; 60 bytes of packed data.
    unsafe { pack_raw(&plan, 5, data.as_ptr().cast(), 0..60, packed.as_mut_ptr()) };
    let mut back = [Longer::default(); 5];
    // SAFETY: as above, written this time.
    unsafe { unpack_raw(&plan, 5, back.as_mut_ptr().cast(), 0..60, packed.as_ptr()) };
    for (i, (from, to)) in data.iter().zip(&back).enumerate() {
        assert_eq!(packed[12 * i..12 * i + 4], from.b.to_ne_bytes());
        assert_eq!((to.a, to.b, to.c, to.d), (0, from.b, from.c, 0.0));
    }
}

/// The markers are sticky (slides "The MPI-2 view of the same problem"): they act from inside other
/// types, the extreme ones win, there is no way to erase them but `resized`.
#[test]
fn markers_are_sticky() {
    let (lb, int, ub) = (named(Named::LB), named(Named::INT), named(Named::UB));
    let types = [lb.clone(), int.clone(), ub.clone()];
    let first = Datatype::type_struct(&[1; 3], &[-3, 0, 6], &types, Binding::C).unwrap();
    let bounds = |ty: &Datatype| (ty.lb(), ty.ub(), ty.extent(), ty.size());
    assert_eq!(bounds(&first), (-3, 6, 9, 4));
    assert_eq!(offsets(&first), [0]);
    let two = Datatype::contiguous(2, &first).unwrap();
    assert_eq!((bounds(&two), offsets(&two)), ((-3, 15, 18, 8), vec![0, 9]));

    // Data outside does not move them; only one that lies further out does.
    let types = [int.clone(), first.clone(), int.clone()];
    let wide = Datatype::structured(&[1; 3], &[-100, 0, 100], &types).unwrap();
    assert_eq!((bounds(&wide), wide.true_lb(), wide.true_ub()), ((-3, 6, 9, 12), -100, 104));
    let types = [first.clone(), lb.clone(), ub.clone(), lb, ub];
    let places = [0, 2, 5, -20, 30];
    let outer = Datatype::type_struct(&[1; 5], &places, &types, Binding::C).unwrap();
    assert_eq!(bounds(&outer), (-20, 30, 50, 4));
    let inner = Datatype::type_struct(&[1; 3], &places[..3], &types[..3], Binding::C).unwrap();
    assert_eq!(bounds(&inner), (-3, 6, 9, 4));
    // A block length of 0 is no marker.
    let none = Datatype::type_struct(&[1, 0, 0], &places[..3], &types[..3], Binding::C).unwrap();
    assert_eq!(bounds(&none), (-3, 6, 9, 4));

    let erased = Datatype::resized(0, 4, &outer).unwrap();
    assert_eq!(bounds(&erased), (0, 4, 4, 4));
    assert_eq!(bounds(&Datatype::contiguous(3, &erased).unwrap()), (0, 12, 12, 12));
}

/// One marker alone: the data decide the other side, with the padding of a struct; without data the
/// other bound is in the same place.
#[test]
fn one_marker() {
    let (lb, int, ub) = (named(Named::LB), named(Named::INT), named(Named::UB));
    let of = |places: &[i64], types: &[Datatype]| {
        let ones = vec![1; types.len()];
        let ty = Datatype::type_struct(&ones, places, types, Binding::C).unwrap();
        (ty.lb(), ty.ub(), ty.true_lb(), ty.true_ub())
    };
    assert_eq!(of(&[-8, 0], &[lb.clone(), int.clone()]), (-8, 4, 0, 4));
    assert_eq!(of(&[-3, 0], &[lb.clone(), int.clone()]), (-3, 5, 0, 4));
    assert_eq!(of(&[9, 0], &[ub.clone(), int]), (0, 9, 0, 4));
    for at in [-5, 5] {
        assert_eq!(of(&[at], std::slice::from_ref(&lb)), (at, at, 0, 0));
        assert_eq!(of(&[at], std::slice::from_ref(&ub)), (at, at, 0, 0));
    }
    assert_eq!(of(&[5, 11], &[lb.clone(), ub.clone()]), (5, 11, 0, 0));
    for marker in [lb, ub] {
        assert_eq!((marker.size(), marker.extent(), marker.elements()), (0, 0, 0));
        assert!(offsets(&marker).is_empty());
        assert!(marker.commit().unwrap().packed_bytes(3).unwrap() == 0);
        assert_eq!(marker.dup().size(), 0);
    }
}

/// Slide "Examples using MPI_Type_get_contents": where struct and contiguous put their arguments.
#[test]
fn contents_of_the_slides() {
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    let ty = Datatype::type_struct(&[1, 2, 3], &[0, 4, 16], &types, Binding::C).unwrap();
    let e = ty.envelope();
    assert_eq!(e.combiner, Combiner::STRUCT);
    assert_eq!((e.integers, e.addresses, e.datatypes), (4, 3, 3));
    let contents = ty.contents().unwrap();
    let count = contents.integers[0] as usize;
    assert_eq!((count, &contents.integers[1..=count]), (3, &[1, 2, 3][..]));
    assert_eq!(contents.addresses[..count], [0, 4, 16]);
    assert!(contents.datatypes.iter().zip(&types).all(|(a, b)| a.is_same(b)));

    let contents = Datatype::contiguous(4, &types[1]).unwrap().contents().unwrap();
    assert_eq!((contents.integers[0], contents.datatypes[0].as_named()), (4, Some(Named::INT)));
}

/// MPI-2.2 section 4.1.13 (the end of its program is the mission text on packing): a program that
/// prints a type by decoding it knows every combiner.
#[test]
fn a_printing_program_decodes_to_the_leaves() {
    fn print(ty: &Datatype, out: &mut String) {
        let name = ty.combiner().name().expect("a combiner of the standard");
        if let Some(named) = ty.as_named() {
            return out.push_str(named.name());
        }
        let contents = ty.contents().unwrap();
        out.push_str(&name["MPI_COMBINER_".len()..].to_lowercase());
        out.push_str(&format!("{:?}{:?}(", contents.integers, contents.addresses));
        for (i, ty) in contents.datatypes.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            print(ty, out);
        }
        out.push(')');
    }
    let column = Datatype::vector(8, 1, 8, &named(Named::DOUBLE)).unwrap();
    let ty = Datatype::structured(&[1, 2], &[0, 64], &[column.dup(), named(Named::INT)]).unwrap();
    let mut text = String::new();
    print(&ty, &mut text);
    assert_eq!(text, "struct[2, 1, 2][0, 64](dup[][](vector[8, 1, 8][](MPI_DOUBLE)), MPI_INT)");
}

/// MPI-2.2 section 4.1.12 and example 4.22: a type of absolute addresses, used from `MPI_BOTTOM`.
#[test]
fn absolute_addresses_from_bottom() {
    let i = 3i32;
    let a: Vec<f32> = (0..1000).map(|x| x as f32 / 2.0).collect();
    let places = [address(&i), address(&a[0])];
    let types = [Named::INT, Named::FLOAT].map(named);
    let ty = Datatype::type_struct(&[1, i64::from(i)], &places, &types, Binding::C).unwrap();
    let plan = ty.commit().unwrap();
    let mut buffer = [0; 1000];
    let size = plan.packed_bytes(1).unwrap();
    assert_eq!(size, 4 + 4 * 3);
    let bottom = std::ptr::with_exposed_provenance(0);
    // What is reached from address 0 has to be exposed.
    let _ = ((&raw const i).expose_provenance(), a.as_ptr().expose_provenance());
    // SAFETY: with the origin at address 0 the type covers `i` and `a[0..3]`, both alive.
    unsafe { pack_raw(&plan, 1, bottom, 0..size, buffer.as_mut_ptr()) };
    // "Unpack i", "unpack a[0]...a[i-1]".
    assert_eq!(buffer[..4], i.to_ne_bytes());
    for (n, bytes) in buffer[4..16].chunks(4).enumerate() {
        assert_eq!(bytes, a[n].to_ne_bytes());
    }
}

/// MPI-2.2 example 16.16: the absolute type of a Fortran array `REAL R(5)`, in a struct behind a
/// count: "the message sent contains an int count of 5, followed by the 5 REAL entries".
#[test]
fn a_type_from_another_language() {
    let (count, r) = (5i32, [1.0f32, 2.0, 3.0, 4.0, 5.0]);
    let array = Datatype::structured(&[5], &[address(&r)], &[named(Named::REAL)]).unwrap();
    let types = [named(Named::INT), array];
    let ty = Datatype::structured(&[1, 1], &[address(&count), 0], &types).unwrap();
    assert_eq!((ty.size(), ty.elements()), (24, 6));
    let plan = ty.commit().unwrap();
    let _ = ((&raw const count).expose_provenance(), r.as_ptr().expose_provenance());
    let mut packed = [0; 24];
    // SAFETY: with the origin at address 0 the type covers `count` and `r`, both alive.
    unsafe { pack_raw(&plan, 1, std::ptr::with_exposed_provenance(0), 0..24, packed.as_mut_ptr()) };
    assert_eq!(packed[..4], count.to_ne_bytes());
    assert_eq!(packed[4..], *r.map(f32::to_ne_bytes).as_flattened());
}

/// MPI-2.2 section 13.4.1: `elements(X)` is the number of predefined datatypes in the typemap of X,
/// and a file pointer moves by `elements(datatype) * count / elements(etype)`.
#[test]
fn elements_move_a_file_pointer() {
    let etype = Datatype::contiguous(2, &named(Named::INT)).unwrap();
    let datatype = Datatype::vector(3, 2, 5, &named(Named::INT)).unwrap();
    let (old, count) = (7, 4);
    assert_eq!(old + datatype.elements() * count / etype.elements(), 7 + 6 * 4 / 2);
}

/// MPI-2.2 section 4.2: "a message can be received in several parts": a vector unpacked count by
/// count is what one call packs.
#[test]
fn a_message_in_parts() {
    let column = Datatype::vector(4, 1, 3, &named(Named::INT)).unwrap().commit().unwrap();
    let matrix: Vec<i32> = (0..24).collect();
    let mut whole = [0; 32];
    let resized = Datatype::resized(0, 4, column.datatype()).unwrap().commit().unwrap();
    pack(&resized, 2, &matrix, &mut whole).unwrap();
    for (j, part) in whole.chunks(16).enumerate() {
        let mut one = [0; 16];
        pack_range(&column, 1, &matrix[j..], 0, 0..16, &mut one).unwrap();
        assert_eq!(part, one);
    }
}
