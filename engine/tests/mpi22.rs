//! Tests examples from MPI-2.2 with the numbers that the standard gives. The examples are in sections
//! 4.1.12 and 4.1.13 (addresses, decoding), 4.2 (pack and unpack), 13.4 (data access) and 16.3.6 (types
//! of other languages). If an example sends data, the test packs at the sender and unpacks at the
//! receiver. `decode.rs` tests the table of section 4.1.13. README.md lists all examples.

use typepack_engine::analysis::Answer;
use typepack_engine::signature::Signature;
use typepack_engine::{
    Binding, Combiner, DEFAULT_ARGUMENT, Datatype, Distribution, Named, Order, Plan, pack_at,
    pack_at_raw, pack_range, pack_raw, typemap, unpack, unpack_at,
};

fn named(named: Named) -> Datatype {
    Datatype::named(named)
}

fn plan(n: Named) -> Plan {
    named(n).commit().unwrap()
}

fn address<T>(of: &T) -> i64 {
    (&raw const *of).addr() as i64
}

/// Checks that a program can print any type by decoding it (MPI-2.2 section 4.1.13). Such a program
/// must know every combiner.
#[test]
fn a_printing_program_decodes_to_the_leaves() {
    fn print(ty: &Datatype, out: &mut String) {
        let name = ty.combiner().name().expect("every combiner has a name in the standard");
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

/// Checks a type of absolute addresses with `MPI_BOTTOM` (MPI-2.2 section 4.1.12 and example 4.22).
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
    // The provenance of memory must be exposed before the memory is accessed by an absolute address.
    let _ = ((&raw const i).expose_provenance(), a.as_ptr().expose_provenance());
    // SAFETY: the origin is address 0, so the type's data is `i` and `a[0..3]`, which are alive and
    // readable. `buffer` is a separate variable with room for `size` bytes.
    unsafe { pack_raw(&plan, 1, bottom, 0..size, buffer.as_mut_ptr()) };
    // The standard says: "Unpack i", "unpack a[0]...a[i-1]".
    assert_eq!(buffer[..4], i.to_ne_bytes());
    for (n, bytes) in buffer[4..16].chunks(4).enumerate() {
        assert_eq!(bytes, a[n].to_ne_bytes());
    }
}

/// Checks MPI-2.2 example 16.16. A type with the absolute address of the Fortran array `REAL R(5)`
/// follows a count in a struct: "the message sent contains an int count of 5, followed by the 5 REAL
/// entries".
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
    // SAFETY: the origin is address 0, so the type's data is `count` and `r`, which are alive and
    // readable. `packed` is a separate variable with room for 24 bytes.
    unsafe { pack_raw(&plan, 1, std::ptr::with_exposed_provenance(0), 0..24, packed.as_mut_ptr()) };
    assert_eq!(packed[..4], count.to_ne_bytes());
    assert_eq!(packed[4..], *r.map(f32::to_ne_bytes).as_flattened());
}

/// Checks the formulas of MPI-2.2 section 13.4.1: `elements(X)` is the number of predefined datatypes
/// in the typemap of X, and a file pointer advances by `elements(datatype) * count / elements(etype)`.
#[test]
fn elements_move_a_file_pointer() {
    let etype = Datatype::contiguous(2, &named(Named::INT)).unwrap();
    let datatype = Datatype::vector(3, 2, 5, &named(Named::INT)).unwrap();
    let (old, count) = (7, 4);
    assert_eq!(old + datatype.elements() * count / etype.elements(), 7 + 6 * 4 / 2);
}

/// Checks section 4.1.12, rule 3: if `v` is the address of a variable, `v + i` is a valid address
/// within that variable. So displacements relative to `MPI_BOTTOM` and displacements relative to the
/// variable must select the same bytes.
#[test]
fn absolute_and_relative_displacements_agree() {
    let array = [1.5f64, 2.5, 3.5, 4.5, 5.5];
    let v = address(&array);
    let absolute = Datatype::hindexed(&[2, 1], &[v + 24, v], &named(Named::DOUBLE)).unwrap();
    let relative = Datatype::hindexed(&[2, 1], &[24, 0], &named(Named::DOUBLE)).unwrap();
    let (mut one, mut other) = ([0; 24], [0; 24]);
    let _ = array.as_ptr().expose_provenance();
    // SAFETY: with the origin at address 0, or at `array`, the types' data is members 3, 4 and 0 of
    // `array`, which is alive and readable. The two destinations are separate variables with room
    // for 24 bytes each.
    unsafe {
        let bottom = std::ptr::with_exposed_provenance(0);
        pack_raw(&absolute.commit().unwrap(), 1, bottom, 0..24, one.as_mut_ptr());
        let buf = array.as_ptr().cast();
        pack_raw(&relative.commit().unwrap(), 1, buf, 0..24, other.as_mut_ptr());
    }
    assert_eq!(one, other);
    assert_eq!(one, *[4.5f64, 5.5, 1.5].map(f64::to_ne_bytes).as_flattened());
}

/// Checks the program of section 4.1.13, in which the arrays have `LARGE` = 1000 entries, for a type of
/// every combiner in the section. The envelope must state the lengths of the arrays, and the contents
/// must fill exactly these lengths.
#[test]
fn arrays_of_1000_are_large_enough() {
    const LARGE: usize = 1000;
    let int = named(Named::INT);
    let types = [int.clone(), named(Named::DOUBLE)];
    let count = 2;
    let darray = {
        let (how, arguments) = ([Distribution::Block, Distribution::Cyclic], [DEFAULT_ARGUMENT; 2]);
        Datatype::darray(6, 1, &[8, 9], &how, &arguments, &[2, 3], Order::Fortran, &int)
    };
    let fortran = Binding::Fortran;
    // The expected lengths ni, na and nd, from the formulas in the standard.
    let made = [
        (Ok(int.dup()), (0, 0, 1)),
        (Datatype::contiguous(7, &int), (1, 0, 1)),
        (Datatype::vector(2, 3, 4, &int), (3, 0, 1)),
        (Datatype::hvector(2, 3, 40, &int), (2, 1, 1)),
        (Datatype::type_hvector(2, 3, 40, &int, fortran), (2, 1, 1)),
        (Datatype::indexed(&[1, 2], &[3, 4], &int), (2 * count + 1, 0, 1)),
        (Datatype::hindexed(&[1, 2], &[3, 40], &int), (count + 1, count, 1)),
        (Datatype::type_hindexed(&[1, 2], &[3, 40], &int, fortran), (count + 1, count, 1)),
        (Datatype::indexed_block(5, &[3, 40], &int), (count + 2, 0, 1)),
        (Datatype::structured(&[1, 2], &[3, 40], &types), (count + 1, count, count)),
        (Datatype::type_struct(&[1, 2], &[3, 40], &types, fortran), (count + 1, count, count)),
        (Datatype::subarray(&[8, 8], &[4, 2], &[2, 4], Order::C, &int), (3 * count + 2, 0, 1)),
        (darray, (4 * count + 4, 0, 1)),
        (Datatype::f90_real(Some(6), Some(37)), (2, 0, 0)),
        (Datatype::f90_complex(Some(6), Some(37)), (2, 0, 0)),
        (Datatype::f90_integer(9), (1, 0, 0)),
    ];
    for (ty, sizes) in made {
        let ty = ty.unwrap();
        let e = ty.envelope();
        let (ni, na, nd) = (e.integers, e.addresses, e.datatypes);
        assert_eq!((ni, na, nd), sizes, "{}", e.combiner);
        assert!(ni <= LARGE && na <= LARGE && nd <= LARGE);
        let contents = ty.contents().unwrap();
        let found = (contents.integers.len(), contents.addresses.len(), contents.datatypes.len());
        assert_eq!(found, sizes, "{}", e.combiner);
    }
    assert_eq!(int.combiner(), Combiner::NAMED);
    assert!(int.contents().is_err(), "a named type returned contents");
}

/// Checks the rationale of section 4.1.13: a duplicate of a predefined type differs from that type,
/// whereas a predefined type that decoding returns compares equal to the original.
#[test]
fn predefined_types_come_back_as_themselves() {
    let (int, dup) = (named(Named::INT), named(Named::INT).dup());
    assert!(int.is_predefined() && !dup.is_predefined());
    assert!(dup.contents().unwrap().datatypes[0].is_same(&int));
}

/// Checks section 4.2: "a message can be received in several parts, where the receive operation done
/// on a later part may depend on the content of a former part".
#[test]
fn a_later_part_depends_on_a_former_one() {
    // The packing unit contains messages. Each begins with two numbers, a kind and a count, followed
    // by that many ints or doubles.
    let (int, double) = (plan(Named::INT), plan(Named::DOUBLE));
    let (mut unit, mut end) = (vec![0; 64], 0);
    pack_at(&int, 2, &[2i32, 3], &mut unit, &mut end).unwrap();
    pack_at(&double, 3, &[0.5, 1.5, 2.5], &mut unit, &mut end).unwrap();
    pack_at(&int, 4, &[1i32, 2, 70, 80], &mut unit, &mut end).unwrap();
    let (mut position, mut seen) = (0, String::new());
    while position < end {
        let mut head = [0i32; 2];
        unpack_at(&int, 2, &unit, &mut position, &mut head).unwrap();
        let count = head[1] as u64;
        if head[0] == 1 {
            let mut part = vec![0i32; head[1] as usize];
            unpack_at(&int, count, &unit, &mut position, &mut part).unwrap();
            seen += &format!("{part:?} ");
        } else {
            let mut part = vec![0f64; head[1] as usize];
            unpack_at(&double, count, &unit, &mut position, &mut part).unwrap();
            seen += &format!("{part:?} ");
        }
    }
    assert_eq!((seen.as_str(), position, end), ("[0.5, 1.5, 2.5] [70, 80] ", 48, 48));
}

/// Checks section 4.2: one call packs two columns of a matrix, and two calls unpack them, one column
/// each.
#[test]
fn a_message_in_parts() {
    let column = Datatype::vector(4, 1, 3, &named(Named::INT)).unwrap().commit().unwrap();
    let matrix: Vec<i32> = (0..24).collect();
    let (mut whole, mut position) = ([0; 32], 0);
    let resized = Datatype::resized(0, 4, column.datatype().unwrap()).unwrap().commit().unwrap();
    pack_at(&resized, 2, &matrix, &mut whole, &mut position).unwrap();
    for (j, part) in whole.chunks(16).enumerate() {
        let mut one = [0; 16];
        pack_range(&column, 1, &matrix[j..], 0, 0..16, &mut one).unwrap();
        assert_eq!(part, one);
    }
    let (mut back, mut position) = ([-1; 12], 0);
    unpack_at(&column, 1, &whole, &mut position, &mut back).unwrap();
    assert_eq!(position, 16);
    unpack_at(&column, 1, &whole, &mut position, &mut back[1..]).unwrap();
    assert_eq!((position, back), (32, [0, 1, -1, 3, 4, -1, 6, 7, -1, 9, 10, -1]));
}

/// Checks section 4.2: a packing unit holds "the equivalent information that would have been stored in
/// a message by one send call with a send buffer that is the concatenation of the individual send
/// buffers". So a packing unit can be received with any datatype, and any message can be received as
/// `MPI_PACKED`.
#[test]
fn a_unit_is_the_message_of_the_concatenation() {
    let (ints, doubles) = ([1i32, 2, 3, 4], [0.25f64, 0.5]);
    let pairs = Datatype::vector(2, 1, 2, &named(Named::INT)).unwrap();
    let (mut unit, mut position) = ([0; 24], 0);
    pack_at(&pairs.commit().unwrap(), 1, &ints, &mut unit, &mut position).unwrap();
    pack_at(&plan(Named::DOUBLE), 2, &doubles, &mut unit, &mut position).unwrap();
    let base = address(&ints);
    let types = [pairs, named(Named::DOUBLE)];
    let all = Datatype::structured(&[1, 2], &[base, address(&doubles)], &types).unwrap();
    let mut message = [0; 24];
    let _ = (ints.as_ptr().expose_provenance(), doubles.as_ptr().expose_provenance());
    let bottom = std::ptr::with_exposed_provenance(0);
    // SAFETY: the origin is address 0, so the type's data is parts of `ints` and all of `doubles`,
    // which are alive and readable. `message` is a separate variable with room for 24 bytes.
    unsafe { pack_raw(&all.commit().unwrap(), 1, bottom, 0..24, message.as_mut_ptr()) };
    assert_eq!((position, unit), (24, message));

    let packed = Signature::of(&named(Named::PACKED)).unwrap();
    let sent = Signature::of(&all).unwrap();
    assert!(
        packed.matches(24, &sent, 1).unwrap().is_ok(),
        "a receive with a datatype refused packed data"
    );
    assert!(
        sent.matches(1, &packed, 24).unwrap().is_ok(),
        "a receive of packed data refused a datatype"
    );
    assert!(sent.matches(1, &packed, 23).unwrap().is_err());
}

/// Checks section 4.2, advice on `MPI_UNPACK`: the count is the number of elements to unpack, and the
/// position advances by the size of the message. `MPI_PACK_SIZE` returns an upper bound on that
/// advance; here the two are equal.
#[test]
fn positions_grow_by_the_pack_size() {
    let types = [Named::CHAR, Named::INT, Named::DOUBLE].map(named);
    let ty = Datatype::structured(&[1; 3], &[0, 4, 8], &types).unwrap().commit().unwrap();
    let memory = [0u64; 20];
    for count in 0..=10 {
        let size = ty.packed_bytes(count).unwrap();
        assert_eq!(size, 13 * count);
        let (mut unit, mut position) = (vec![0; 8 + size as usize], 8);
        pack_at(&ty, count, &memory, &mut unit, &mut position).unwrap();
        assert_eq!(position as u64, 8 + size);
        let (mut back, mut position) = ([0u64; 20], 8);
        unpack_at(&ty, count, &unit, &mut position, &mut back).unwrap();
        assert_eq!(position as u64, 8 + size);
    }
}

/// Checks example 4.21: two calls pack `i` and `j` into a buffer of 1000 bytes. The data is sent as
/// `MPI_PACKED` and received as two ints.
#[test]
fn example_4_21() {
    let int = plan(Named::INT);
    let (i, j, mut buff, mut position) = ([5i32], [-6i32], [0; 1000], 0);
    pack_at(&int, 1, &i, &mut buff, &mut position).unwrap();
    pack_at(&int, 1, &j, &mut buff, &mut position).unwrap();
    assert_eq!(position, 8);
    let message = &buff[..position];
    let mut a = [0i32; 2];
    assert_eq!(unpack(&int, 2, message, &mut a).unwrap(), 8);
    assert_eq!(a, [5, -6]);
}

/// Checks example 4.22: one call packs `i` and then `a[0] ... a[i-1]`, with a type of absolute
/// addresses from `MPI_BOTTOM`, and two calls unpack them. A send with the same type must carry the
/// same bytes.
#[test]
fn example_4_22() {
    let i = 4i32;
    let a: Vec<f32> = (0..1000).map(|x| x as f32 + 0.5).collect();
    let disp = [address(&i), address(&a[0])];
    let types = [Named::INT, Named::FLOAT].map(named);
    let newtype = Datatype::type_struct(&[1, i64::from(i)], &disp, &types, Binding::C).unwrap();
    let newtype = newtype.commit().unwrap();
    let _ = ((&raw const i).expose_provenance(), a.as_ptr().expose_provenance());
    let bottom = std::ptr::with_exposed_provenance(0);
    let (mut buff, mut position) = ([0u8; 1000], 0);
    // SAFETY: the origin is address 0, so the type's data is `i` and `a[0..4]`, which are alive and
    // readable. `buff` is a separate variable and has 1000 bytes, as the call states.
    unsafe { pack_at_raw(&newtype, 1, bottom, buff.as_mut_ptr(), 1000, &mut position).unwrap() };
    assert_eq!(position, 20);
    let mut message = [0; 20];
    // SAFETY: the origin is address 0, so the type's data is `i` and `a[0..4]`, which are alive and
    // readable. `message` is a separate variable with room for the 20 packed bytes.
    unsafe { pack_raw(&newtype, 1, bottom, 0..20, message.as_mut_ptr()) };
    assert_eq!(buff[..20], message);

    let (mut n, mut b, mut position) = ([0i32], [0f32; 1000], 0);
    unpack_at(&plan(Named::INT), 1, &buff, &mut position, &mut n).unwrap();
    unpack_at(&plan(Named::FLOAT), n[0] as u64, &buff, &mut position, &mut b).unwrap();
    assert_eq!((n[0], position), (4, 20));
    assert_eq!((&b[..4], b[4]), (&a[..4], 0.0));
}

/// Checks example 4.23: each process packs a count, and then that many characters, into a buffer whose
/// length is exactly the sum of the pack sizes. The root gathers the packing units one after another
/// and concatenates the characters.
#[test]
fn example_4_23() {
    let (int, char) = (plan(Named::INT), plan(Named::CHAR));
    let strings: Vec<String> = (0..64).map(|rank| "typepack "[..rank % 10].to_owned()).collect();
    let units: Vec<Vec<u8>> = strings
        .iter()
        .map(|chr| {
            let count = chr.len() as u64;
            let k = int.packed_bytes(1).unwrap() + char.packed_bytes(count).unwrap();
            let (mut lbuf, mut position) = (vec![0; k as usize], 0);
            pack_at(&int, 1, &[count as i32], &mut lbuf, &mut position).unwrap();
            pack_at(&char, count, chr.as_bytes(), &mut lbuf, &mut position).unwrap();
            assert_eq!(position, 4 + chr.len());
            lbuf.truncate(position);
            lbuf
        })
        .collect();
    let mut displs = vec![0];
    for unit in &units {
        displs.push(displs.last().unwrap() + unit.len());
    }
    let rbuf = units.concat();
    let totalcount = displs[64];
    assert_eq!(rbuf.len(), totalcount);
    let mut cbuf = vec![0u8; totalcount];
    let mut concat_pos = 0;
    for start in &displs[..64] {
        let (mut count, mut position) = ([0i32], 0);
        unpack_at(&int, 1, &rbuf[*start..], &mut position, &mut count).unwrap();
        let room = &mut cbuf[concat_pos..];
        unpack_at(&char, count[0] as u64, &rbuf[*start..], &mut position, room).unwrap();
        concat_pos += count[0] as usize;
    }
    assert_eq!(cbuf[..concat_pos], *strings.concat().as_bytes());
}

/// Checks section 13.4.1, data access conventions. The signature of the datatype must equal that of
/// some number of copies of the etype. A datatype that overlaps itself must not be used for reading.
/// `MPI_GET_COUNT` and `MPI_GET_ELEMENTS` return how much was accessed.
#[test]
fn what_a_file_access_asks_of_its_datatype() {
    let (int, double) = (named(Named::INT), named(Named::DOUBLE));
    let etype = Datatype::structured(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
    let copies =
        |ty: &Datatype| Signature::of(ty).unwrap().copies_of(&Signature::of(&etype).unwrap());
    assert_eq!(copies(&Datatype::vector(3, 2, 4, &etype).unwrap()), Some(6));
    let spread = Datatype::structured(&[1, 1], &[100, 0], &[int.clone(), double.clone()]).unwrap();
    assert_eq!(copies(&spread), Some(1), "other displacements were refused");
    assert_eq!(copies(&int), None);
    assert_eq!(copies(&Datatype::structured(&[1, 1], &[0, 8], &[double, int]).unwrap()), None);
    let twice = Datatype::hvector(2, 1, 0, &etype).unwrap().commit().unwrap();
    assert_eq!((twice.overlaps(1), etype.commit().unwrap().overlaps(3)), (Answer::Yes, Answer::No));
    // A read reaches the end of the file after one and a half elements, so the number of whole
    // elements is undefined.
    assert_eq!((etype.get_count(16), etype.get_elements(16)), (None, Some(3)));
    assert_eq!((etype.get_count(24), etype.get_elements(24)), (Some(2), Some(4)));
}

/// Checks section 13.4, first page: a copy of a datatype, such as the one that `MPI_FILE_GET_VIEW`
/// returns, has the same typemap as the original.
#[test]
fn a_view_returns_types_with_equal_typemaps() {
    let filetype = Datatype::vector(3, 2, 5, &named(Named::FLOAT)).unwrap();
    let returned = filetype.dup();
    assert_eq!(typemap::typemap(&returned), typemap::typemap(&filetype));
    assert_eq!((returned.lb(), returned.extent()), (filetype.lb(), filetype.extent()));
}

/// Checks section 16.3.6, "Datatypes": an accessor returns the same value, whichever language made the
/// type. A type that the MPI-1 call from Fortran made differs from the type of the C call only in its
/// combiner.
#[test]
fn types_are_the_same_in_all_languages() {
    let int = named(Named::INTEGER);
    let [c, fortran] = [Binding::C, Binding::Fortran]
        .map(|binding| Datatype::type_hindexed(&[2, 1], &[0, 40], &int, binding).unwrap());
    assert_eq!((c.lb(), c.extent(), c.size()), (fortran.lb(), fortran.extent(), fortran.size()));
    assert_eq!(typemap::typemap(&c), typemap::typemap(&fortran));
    assert_eq!(c.combiner(), Combiner::HINDEXED);
    assert_eq!(fortran.combiner(), Combiner::HINDEXED_INTEGER);
    let program = |ty: &Datatype| ty.commit().unwrap().program().to_string();
    assert_eq!(program(&c), program(&fortran));
}
