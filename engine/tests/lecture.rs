//! Tests the examples of E. Gabriel's lecture "MPI derived datatypes", slide by slide, with the numbers
//! of the slides. If an example sends data, the test packs at the sender and unpacks at the receiver.
//! `mpi22.rs` tests examples from MPI-2.2. README.md lists all examples.

use std::mem::offset_of;
use typepack_engine::analysis::Answer;
use typepack_engine::iov::Iov;
use typepack_engine::signature::Signature;
use typepack_engine::{
    Binding, Combiner, Datatype, Distribution, Named, Order, pack, pack_raw, typemap, unpack,
    unpack_raw,
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

/// Checks the slide "Type map vs. type signature" with its type {(char, 0), (int, 8), (double, 16)}.
/// The slide's displacements are arbitrary; a C compiler would place the int at 4 and the double at 8.
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

/// Checks the slide "Our previous example looks like follows": the displacements are differences of
/// addresses.
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
    // SAFETY: `data` has the layout of one element of the plan, and all its data is readable. `packed`
    // is a separate variable with room for the 13 packed bytes, so the two do not overlap.
    unsafe { pack_raw(&plan, 1, (&raw const data).cast(), 0..13, packed.as_mut_ptr()) };
    assert_eq!(packed[0], data.a);
    assert_eq!(packed[1..5], data.b.to_ne_bytes());
    assert_eq!(packed[5..], data.c.to_ne_bytes());
}

/// Checks the slides on contiguous, vector (count 3, block length 2, stride 3), hvector and indexed
/// (blocks of 2, 1 and 4 elements at 0, 3 and 5).
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

/// Checks the slide "Example using MPI_Type_vector": the type is a column of an 8 x 8 matrix, and the
/// buffer address selects which column.
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

/// Checks the slide on subarrays: sizes 8 x 8, subsizes 4 x 2, starts 2 and 4.
#[test]
fn the_subarray_of_the_slide() {
    let double = named(Named::DOUBLE);
    let ty = Datatype::subarray(&[8, 8], &[4, 2], &[2, 4], Order::C, &double).unwrap();
    let elements: Vec<i64> = offsets(&ty).iter().map(|at| at / 8).collect();
    assert_eq!(elements, [20, 21, 28, 29, 36, 37, 44, 45]);
    assert_eq!((ty.lb(), ty.extent(), ty.size()), (0, 512, 64));
}

/// Checks the slides from "A problem with the specification up to now" to "Correct description of the
/// structure would be". A type describes two of the four members of a struct, and several elements of
/// the type are sent.
#[test]
fn two_members_of_many_structs_need_the_markers() {
    let (b, c) = (offset_of!(Longer, b) as i64, offset_of!(Longer, c) as i64);
    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let simple =
        Datatype::type_struct(&[1, 1], &[b, c], &[int.clone(), double.clone()], Binding::C)
            .unwrap();
    // With this extent, the second element begins in the middle of a struct, so only the first element
    // is correct.
    assert_eq!((simple.lb(), simple.extent()), (4, 16));
    assert_ne!(simple.extent() as usize, size_of::<Longer>());

    let types = [named(Named::LB), int, double, named(Named::UB)];
    let places = [0, b, c, size_of::<Longer>() as i64];
    let ty = Datatype::type_struct(&[1; 4], &places, &types, Binding::C).unwrap();
    // The slide says: "extent := upper bound - lower bound", "size = amount of bytes really
    // transferred".
    assert_eq!((ty.lb(), ty.ub(), ty.extent(), ty.size()), (0, 24, 24, 12));
    // The slide says: "The true extent: gaps at the beginning and at the end are removed."
    assert_eq!((ty.true_lb(), ty.true_extent()), (4, 12));

    let data: Vec<Longer> =
        (0..5).map(|i| Longer { a: 7, b: i, c: f64::from(i) / 4.0, d: 1.0 }).collect();
    let plan = ty.commit().unwrap();
    let mut packed = vec![0; 60];
    // SAFETY: the five elements begin one struct apart, and `data` holds five structs and is readable.
    // `packed` has room for the 60 packed bytes and is a separate allocation.
    unsafe { pack_raw(&plan, 5, data.as_ptr().cast(), 0..60, packed.as_mut_ptr()) };
    let mut back = [Longer::default(); 5];
    // SAFETY: the five elements begin one struct apart, and `back` holds five structs and is writable.
    // `packed` holds the 60 packed bytes and is a separate allocation.
    unsafe { unpack_raw(&plan, 5, back.as_mut_ptr().cast(), 0..60, packed.as_ptr()) };
    for (i, (from, to)) in data.iter().zip(&back).enumerate() {
        assert_eq!(packed[12 * i..12 * i + 4], from.b.to_ne_bytes());
        assert_eq!((to.a, to.b, to.c, to.d), (0, from.b, from.c, 0.0));
    }
}

/// Checks that bound markers are sticky (slides "The MPI-2 view of the same problem"). A marker inside
/// another type still has its effect, the lowest `lb` and the highest `ub` win, and only `resized`
/// removes markers.
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

    // Data outside the markers does not move the bounds, but a marker further out does.
    let types = [int.clone(), first.clone(), int.clone()];
    let wide = Datatype::structured(&[1; 3], &[-100, 0, 100], &types).unwrap();
    assert_eq!((bounds(&wide), wide.true_lb(), wide.true_ub()), ((-3, 6, 9, 12), -100, 104));
    let types = [first.clone(), lb.clone(), ub.clone(), lb, ub];
    let places = [0, 2, 5, -20, 30];
    let outer = Datatype::type_struct(&[1; 5], &places, &types, Binding::C).unwrap();
    assert_eq!(bounds(&outer), (-20, 30, 50, 4));
    let inner = Datatype::type_struct(&[1; 3], &places[..3], &types[..3], Binding::C).unwrap();
    assert_eq!(bounds(&inner), (-3, 6, 9, 4));
    // A marker with block length 0 has no effect.
    let none = Datatype::type_struct(&[1, 0, 0], &places[..3], &types[..3], Binding::C).unwrap();
    assert_eq!(bounds(&none), (-3, 6, 9, 4));

    let erased = Datatype::resized(0, 4, &outer).unwrap();
    assert_eq!(bounds(&erased), (0, 4, 4, 4));
    assert_eq!(bounds(&Datatype::contiguous(3, &erased).unwrap()), (0, 12, 12, 12));
}

/// Checks types with only one marker. The data determines the other bound, with the padding of a
/// struct. If there is no data, the other bound is at the position of the marker.
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

/// Checks the slide "Examples using MPI_Type_get_contents": the positions of the arguments of struct
/// and contiguous in the contents.
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

/// Checks the slide "Derived Datatype examples": a column and a row of a matrix, in C and in Fortran.
/// In the same memory, the column of the C matrix is a row of the Fortran matrix, and vice versa.
#[test]
fn columns_and_rows_in_c_and_in_fortran() {
    let double = named(Named::DOUBLE);
    let matrix: Vec<f64> = (0..20).map(f64::from).collect();
    let line = Datatype::contiguous(5, &double).unwrap().commit().unwrap();
    let across = Datatype::vector(4, 1, 5, &double).unwrap().commit().unwrap();
    let values = |plan: &typepack_engine::Plan, at: usize| {
        let mut packed = vec![0; plan.element_bytes() as usize];
        pack(plan, 1, &matrix[at..], &mut packed).unwrap();
        packed.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    // In C, the matrix has 4 rows and 5 columns, and the types select row 2 and column 3. In Fortran,
    // the same memory has 5 rows and 4 columns, and the types select column 2 and row 3.
    assert_eq!(values(&line, 5 * 2), [10.0, 11.0, 12.0, 13.0, 14.0]);
    assert_eq!(values(&across, 3), [3.0, 8.0, 13.0, 18.0]);
    let box_of = |sizes: [i64; 2], subsizes: [i64; 2], starts: [i64; 2], order| {
        let ty = Datatype::subarray(&sizes, &subsizes, &starts, order, &double).unwrap();
        values(&ty.commit().unwrap(), 0)
    };
    assert_eq!(box_of([4, 5], [1, 5], [2, 0], Order::C), values(&line, 10));
    assert_eq!(box_of([4, 5], [4, 1], [0, 3], Order::C), values(&across, 3));
    assert_eq!(box_of([5, 4], [5, 1], [0, 2], Order::Fortran), values(&line, 10));
    assert_eq!(box_of([5, 4], [1, 4], [3, 0], Order::Fortran), values(&across, 3));
}

/// Checks the slide "How to describe noncontiguous data structures": the list of `<address, size>`
/// pairs that a list-I/O interface needs. The gaps lie between the members.
#[test]
fn a_struct_as_a_list_of_addresses_and_sizes() {
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    for (gap1, gap2) in [(4, 8), (8, 16)] {
        let ty = Datatype::structured(&[1; 3], &[0, gap1, gap2], &types).unwrap();
        let iov = Iov::new(&ty.commit().unwrap());
        let runs: Vec<_> = iov.runs(1, 0).unwrap().map(|run| (run.offset, run.bytes)).collect();
        // The runs <baseaddr + gap1, sizeof(int)> and <baseaddr + gap2, sizeof(double)> touch if the
        // members are at 4 and 8. In that case, the passes join them into one run.
        let apart = vec![(0, 1), (gap1, 4), (gap2, 8)];
        assert_eq!(runs, if gap1 == 4 { vec![(0, 1), (4, 12)] } else { apart });
    }
}

/// Checks the slide "...or in MPI terminology...": with equal lists, `MPI_Type_struct` and
/// `MPI_Type_create_struct` make equal types.
#[test]
fn the_two_struct_calls_are_one() {
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    let old = Datatype::type_struct(&[1; 3], &[0, 4, 8], &types, Binding::C).unwrap();
    let new = Datatype::structured(&[1; 3], &[0, 4, 8], &types).unwrap();
    assert_eq!(typemap::typemap(&old), typemap::typemap(&new));
    assert_eq!((old.lb(), old.extent(), old.combiner()), (new.lb(), new.extent(), new.combiner()));
}

/// Checks the slide "MPI_Type_struct/MPI_Type_create_struct": "displacements are not required to be
/// positive, distinct or in increasing order".
#[test]
fn displacements_of_any_kind() {
    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let types = [int.clone(), double, int.clone(), int];
    let ty = Datatype::structured(&[1; 4], &[8, -8, 4, 8], &types).unwrap();
    assert_eq!(offsets(&ty), [8, -8, 4, 8]);
    assert_eq!((ty.lb(), ty.true_extent(), ty.size()), (-8, 20, 20));
    let plan = ty.commit().unwrap();
    let memory = [1u32, 2, 3, 4, 5];
    let mut packed = [0; 20];
    typepack_engine::pack_range(&plan, 1, &memory, 8, 0..20, &mut packed).unwrap();
    let words: Vec<u32> =
        packed.chunks(4).map(|b| u32::from_ne_bytes(b.try_into().unwrap())).collect();
    assert_eq!(words, [5, 1, 2, 4, 5]);
    // The int at displacement 8 occurs twice, so the type may be sent, but must not be received.
    assert_eq!(plan.overlaps(1), Answer::Yes);
}

/// Checks the slide "Type map vs. Type signature". Signatures match if they are equal once all counts
/// are expanded. A receive buffer must not overlap itself. A message need not fill the receive buffer.
#[test]
fn matching_by_the_signature_with_the_counts_unrolled() {
    let members = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    let mystruct = Datatype::structured(&[1; 3], &[0, 8, 16], &members).unwrap();
    let signature = |ty: &Datatype| Signature::of(ty).unwrap();
    let list: Vec<(String, u64)> = signature(&mystruct)
        .runs(1)
        .unwrap()
        .map(|run| (run.basic.to_string(), run.elements))
        .collect();
    assert_eq!(list.iter().map(|(_, n)| n).sum::<u64>(), 3);
    assert_eq!(list.len(), 3, "{list:?}");

    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let ints = Datatype::vector(3, 2, 3, &int).unwrap();
    let matches = |send: &Datatype, n: u64, recv: &Datatype, m: u64| {
        signature(send).matches(n, &signature(recv), m).unwrap().is_ok()
    };
    assert!(matches(&ints, 2, &int, 12) && matches(&int, 12, &ints, 2));
    assert!(matches(&int, 5, &ints, 1), "a message that does not fill the buffer was refused");
    assert!(!matches(&int, 13, &ints, 2), "a message that is too long was accepted");
    assert!(!matches(&int, 1, &double, 1));
    let packed_members = Datatype::structured(&[1; 3], &[0, 1, 5], &members).unwrap();
    assert!(matches(&mystruct, 7, &packed_members, 7), "other displacements were refused");

    let overlapping = Datatype::hvector(3, 2, 4, &int).unwrap();
    assert_eq!(overlapping.commit().unwrap().overlaps(1), Answer::Yes);
    assert_eq!(ints.commit().unwrap().overlaps(2), Answer::No);
}

/// Checks the slide on contiguous: `int myvec[4]` is sent as one element. In a contiguous type, each
/// element begins where the extent of the element before it ends. The extent includes a gap at the end
/// of an element.
#[test]
fn contiguous_of_a_named_and_of_a_derived_type() {
    let (int, mut packed, mut back) = (named(Named::INT), [0; 16], [0i32; 4]);
    let myvec = [11, 12, 13, 14];
    let four = Datatype::contiguous(4, &int).unwrap().commit().unwrap();
    assert!(four.is_contiguous());
    pack(&four, 1, &myvec, &mut packed).unwrap();
    unpack(&four, 1, &packed, &mut back).unwrap();
    assert_eq!(back, myvec);

    let types = [Named::DOUBLE, Named::CHAR].map(named);
    let padded = Datatype::structured(&[1, 1], &[0, 8], &types).unwrap();
    let three = Datatype::contiguous(3, &padded).unwrap();
    assert_eq!(offsets(&three), [0, 8, 16, 24, 32, 40]);
    assert_eq!((padded.extent(), three.extent()), (16, 48));
}

/// Checks the slide "...simple description..." and the slide after it: with the simple type, only the
/// first of five elements is correct.
#[test]
fn without_markers_only_the_first_element_is_right() {
    let (b, c) = (offset_of!(Longer, b) as i64, offset_of!(Longer, c) as i64);
    let types = [Named::INT, Named::DOUBLE].map(named);
    let simple = Datatype::structured(&[1, 1], &[b, c], &types).unwrap().commit().unwrap();
    // The test keeps the five structs as bytes, because the wrong elements also read padding, and the
    // padding of a `Longer` is uninitialized.
    let mut data = [[0u64; 3]; 5];
    for (i, one) in data.iter_mut().enumerate() {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(one);
        bytes[b as usize..][..4].copy_from_slice(&(100 + i as i32).to_ne_bytes());
        bytes[c as usize..][..8].copy_from_slice(&(i as f64 + 0.25).to_ne_bytes());
    }
    let mut packed = vec![0; 60];
    pack(&simple, 5, data.as_flattened(), &mut packed).unwrap();
    let right = |i: usize| {
        let part = &packed[12 * i..12 * i + 12];
        part[..4] == (100 + i as i32).to_ne_bytes() && part[4..] == (i as f64 + 0.25).to_ne_bytes()
    };
    assert_eq!([0, 1, 2, 3, 4].map(right), [true, false, false, false, false]);
}

/// Checks the slide "Duplicating a datatype": the duplicate is a separate type with equal properties,
/// and its commit gives an equal plan.
#[test]
fn a_duplicate_commits_to_the_same() {
    let ty = Datatype::vector(3, 2, 3, &named(Named::INT)).unwrap();
    let copy = ty.dup();
    assert!(!copy.is_same(&ty));
    assert_eq!(copy.combiner(), Combiner::DUP);
    assert!(copy.contents().unwrap().datatypes[0].is_same(&ty));
    assert_eq!(typemap::typemap(&copy), typemap::typemap(&ty));
    let program = |ty: &Datatype| ty.commit().unwrap().program().to_string();
    assert_eq!(program(&copy), program(&ty));
    drop(ty);
    assert_eq!(copy.commit().unwrap().packed_bytes(1).unwrap(), 24);
}

/// Checks the slide "More datatype constructors": indexed_block is "a further simplification of
/// MPI_Type_indexed", and darray describes HPF distributions. `darray.rs` tests all distributions.
#[test]
fn indexed_block_and_darray() {
    let int = named(Named::INT);
    let block = Datatype::indexed_block(2, &[5, 0, 9], &int).unwrap();
    let indexed = Datatype::indexed(&[2, 2, 2], &[5, 0, 9], &int).unwrap();
    assert_eq!(typemap::typemap(&block), typemap::typemap(&indexed));
    let program = |ty: &Datatype| ty.commit().unwrap().program().to_string();
    assert_eq!(program(&block), program(&indexed));
    let share = |rank| {
        let (dealt, processes) = ([Distribution::Cyclic], [3]);
        let ty = Datatype::darray(3, rank, &[8], &dealt, &[2], &processes, Order::C, &int).unwrap();
        offsets(&ty).iter().map(|at| at / 4).collect::<Vec<_>>()
    };
    assert_eq!([share(0), share(1), share(2)], [vec![0, 1, 6, 7], vec![2, 3], vec![4, 5]]);
}

/// Checks the slides "MPI_Type_get_envelope" and "MPI_Type_get_contents": the combiners and the sizes
/// of the arrays. Also checks that the first datatype returned for the struct is an equivalent copy, and that
/// a predefined datatype returns no contents.
#[test]
fn envelopes_of_the_slides() {
    let int = named(Named::INT);
    let vector = Datatype::vector(3, 2, 3, &int).unwrap();
    let indexed = Datatype::indexed(&[2, 1, 4], &[0, 3, 5], &int).unwrap();
    let types = [vector.clone(), indexed.clone()];
    let all = [
        (int.clone(), Combiner::NAMED, (0, 0, 0)),
        (Datatype::contiguous(4, &int).unwrap(), Combiner::CONTIGUOUS, (1, 0, 1)),
        (vector.clone(), Combiner::VECTOR, (3, 0, 1)),
        (indexed, Combiner::INDEXED, (7, 0, 1)),
        (Datatype::structured(&[1, 1], &[0, 99], &types).unwrap(), Combiner::STRUCT, (3, 2, 2)),
    ];
    for (ty, combiner, sizes) in &all {
        let e = ty.envelope();
        assert_eq!((e.combiner, (e.integers, e.addresses, e.datatypes)), (*combiner, *sizes));
    }
    assert!(int.contents().is_err(), "a predefined datatype returned contents");
    let returned = all[4].0.contents().unwrap().datatypes;
    assert_eq!(typemap::typemap(&returned[0]), typemap::typemap(&vector));
    assert_eq!(returned[0].combiner(), Combiner::VECTOR);
}
