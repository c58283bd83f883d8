//! Tests every rule that makes a constructor call erroneous. Each row contains a call and the
//! expected error: its kind, its MPI class, and its text, which names the argument and the value.

use typepack_engine::Distribution::{Block, Cyclic, None as Whole};
use typepack_engine::{
    Binding, Combiner, DEFAULT_ARGUMENT, Datatype, Distribution, Error, ErrorClass, ErrorKind,
    Form, Named, Order, TypeClass, UNDEFINED,
};

const ARGUMENT: ErrorKind = ErrorKind::Argument;
const COUNT: ErrorKind = ErrorKind::Count;
const OVERFLOW: ErrorKind = ErrorKind::Overflow;
const TYPE: ErrorKind = ErrorKind::Type;

fn int() -> Datatype {
    Datatype::named(Named::INT)
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind, text: &str) {
    let error = result.err().unwrap_or_else(|| panic!("not refused: {text}"));
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
    let class = match kind {
        ErrorKind::Argument => ErrorClass::ARG,
        ErrorKind::Count => ErrorClass::COUNT,
        ErrorKind::Type => ErrorClass::TYPE,
        _ => ErrorClass::VALUE_TOO_LARGE,
    };
    assert_eq!(error.class(), class);
}

#[test]
fn counts_and_lengths() {
    let t = int();
    refused(Datatype::contiguous(-1, &t), COUNT, "count: -1 is negative");
    refused(Datatype::vector(-2, 1, 1, &t), COUNT, "count: -2 is negative");
    refused(Datatype::vector(1, -3, 1, &t), COUNT, "blocklength: -3 is negative");
    refused(Datatype::hvector(-2, 1, 1, &t), COUNT, "count: -2 is negative");
    refused(Datatype::hvector(1, -3, 1, &t), COUNT, "blocklength: -3 is negative");
    let text = "blocklengths: entry 1 is -4, which is negative";
    refused(Datatype::indexed(&[0, -4], &[0, 0], &t), COUNT, text);
    refused(Datatype::hindexed(&[0, -4], &[0, 0], &t), COUNT, text);
    refused(Datatype::structured(&[0, -4], &[0, 0], &[t.clone(), t.clone()]), COUNT, text);
    let text = "displacements: 1 entry, but blocklengths has 2 entries";
    refused(Datatype::indexed(&[0, 1], &[0], &t), COUNT, text);
    refused(Datatype::hindexed(&[0, 1], &[0], &t), COUNT, text);
    refused(Datatype::structured(&[0, 1], &[0], &[t.clone(), t.clone()]), COUNT, text);
    let text = "types: 1 entry, but blocklengths has 2 entries";
    refused(Datatype::structured(&[0, 1], &[0, 0], std::slice::from_ref(&t)), COUNT, text);
    refused(Datatype::indexed_block(-5, &[0], &t), COUNT, "blocklength: -5 is negative");
    refused(Datatype::hindexed_block(-5, &[0], &t), COUNT, "blocklength: -5 is negative");
    let text = format!("count: {} is negative", i64::MIN);
    refused(Datatype::contiguous(i64::MIN, &t), COUNT, &text);
    // The constructor must refuse a negative `blocklength` even if the type would be empty.
    refused(Datatype::vector(0, -1, 0, &t), COUNT, "blocklength: -1 is negative");
    refused(Datatype::hvector(0, -1, 0, &t), COUNT, "blocklength: -1 is negative");
    refused(Datatype::indexed_block(-1, &[], &t), COUNT, "blocklength: -1 is negative");
    refused(Datatype::hindexed_block(-1, &[], &t), COUNT, "blocklength: -1 is negative");
    let text = "displacements: 2 entries, but blocklengths has 1 entry";
    refused(Datatype::indexed(&[1], &[0, 1], &t), COUNT, text);
    refused(Datatype::hindexed(&[1], &[0, 1], &t), COUNT, text);
    refused(Datatype::structured(&[1], &[0, 1], std::slice::from_ref(&t)), COUNT, text);
    let text = "types: 2 entries, but blocklengths has 1 entry";
    refused(Datatype::structured(&[1], &[0], &[t.clone(), t.clone()]), COUNT, text);
}

/// Checks that calls which look erroneous, but are not, succeed (MPI-5.0 section 5.1): zero counts
/// and lengths, any stride and displacement, negative and zero extents.
#[test]
fn what_is_not_refused() {
    let t = int();
    for empty in [
        Datatype::contiguous(0, &t),
        Datatype::vector(0, 0, 0, &t),
        Datatype::vector(5, 0, i64::MAX, &t),
        Datatype::hvector(0, 5, i64::MIN, &t),
        Datatype::indexed(&[], &[], &t),
        Datatype::indexed(&[0, 0], &[i64::MIN, i64::MAX], &t),
        Datatype::hindexed(&[0], &[-7], &t),
        Datatype::indexed_block(0, &[3, -3], &t),
        Datatype::hindexed_block(3, &[], &t),
        Datatype::structured(&[], &[], &[]),
        Datatype::structured(&[0], &[9], std::slice::from_ref(&t)),
        Datatype::resized(i64::MIN, 0, &Datatype::contiguous(0, &t).unwrap()),
    ] {
        assert_eq!(empty.unwrap().size(), 0);
    }
    for full in [
        Datatype::vector(3, 2, -7, &t),
        Datatype::hvector(3, 2, 0, &t),
        Datatype::hvector(3, 1, 3, &t),
        Datatype::hindexed(&[1, 1], &[1, 1], &t),
        Datatype::resized(99, -40, &t),
        Datatype::resized(-99, 0, &t),
    ] {
        assert!(full.unwrap().size() > 0);
    }
}

#[test]
fn sizes_and_places_beyond_64_bits() {
    let t = int();
    for huge in [
        Datatype::contiguous(i64::MAX, &t),
        Datatype::vector(i64::MAX, 1, i64::MAX, &t),
        Datatype::hvector(3, 1, i64::MAX, &t),
        Datatype::indexed(&[1, 1], &[0, i64::MAX], &t),
        Datatype::hindexed(&[i64::MAX], &[0], &t),
        Datatype::indexed_block(1, &[i64::MIN], &t),
        Datatype::hindexed_block(2, &[i64::MAX - 2], &t),
        Datatype::structured(&[1, 1], &[i64::MIN, i64::MAX - 8], &[t.clone(), t.clone()]),
        Datatype::subarray(&[i64::MAX], &[1], &[0], Order::C, &t),
        Datatype::resized(i64::MAX, 1, &t),
        Datatype::resized(i64::MIN, -1, &t),
    ] {
        assert_eq!(huge.unwrap_err().class(), ErrorClass::VALUE_TOO_LARGE);
    }
}

/// Checks the text of overflow errors. The error must name what makes the type too large: the argument
/// with the largest absolute value if the arguments are single numbers, or the entries of a list that
/// are too large or lie too far apart.
#[test]
fn overflow_names_argument_and_value() {
    const MAX: i64 = i64::MAX;
    let (t, byte) = (int(), Datatype::named(Named::BYTE));
    let pair = [t.clone(), t.clone()];
    for (huge, text) in [
        (Datatype::contiguous(MAX, &t), format!("count: {MAX}: ")),
        (Datatype::vector(MAX, 1, 2, &t), format!("count: {MAX}: ")),
        (Datatype::vector(2, MAX, 2, &t), format!("blocklength: {MAX}: ")),
        (Datatype::vector(2, 1, 1 - MAX, &t), format!("stride: {}: ", 1 - MAX)),
        (Datatype::hvector(3, 1, MAX, &t), format!("stride_bytes: {MAX}: ")),
        (Datatype::indexed(&[1, 1], &[0, MAX], &t), format!("displacements: entry 1 is {MAX}: ")),
        (Datatype::indexed(&[0, MAX], &[MAX, 0], &t), format!("blocklengths: entry 1 is {MAX}: ")),
        (Datatype::hindexed(&[MAX], &[0], &t), format!("blocklengths: entry 0 is {MAX}: ")),
        (
            Datatype::hindexed(&[1, 2], &[0, MAX - 4], &t),
            format!("displacements: entry 1 is {}: ", MAX - 4),
        ),
        (
            Datatype::hindexed(&[1, 1], &[-MAX, MAX - 1], &byte),
            format!("displacements: 2 entries from -{MAX} to {}: ", MAX - 1),
        ),
        (
            Datatype::hindexed(&[MAX; 3], &[0; 3], &byte),
            "displacements: 3 entries from 0 to 0: ".to_owned(),
        ),
        (
            Datatype::indexed_block(1, &[5, i64::MIN], &t),
            format!("displacements: entry 1 is {}: ", i64::MIN),
        ),
        (Datatype::indexed_block(MAX, &[0], &t), format!("blocklength: {MAX}: ")),
        (
            Datatype::hindexed_block(2, &[MAX - 2], &t),
            format!("displacements: entry 0 is {}: ", MAX - 2),
        ),
        (Datatype::hindexed_block(MAX, &[0], &t), format!("blocklength: {MAX}: ")),
        (
            Datatype::structured(&[1, 1], &[i64::MIN, MAX - 8], &pair),
            format!("displacements: 2 entries from {} to {}: ", i64::MIN, MAX - 8),
        ),
        (
            Datatype::structured(&[1, MAX], &[0; 2], &pair),
            format!("blocklengths: entry 1 is {MAX}: "),
        ),
        (Datatype::subarray(&[MAX], &[1], &[0], Order::C, &t), format!("sizes: [{MAX}]: ")),
        (
            Datatype::subarray(&[MAX, 2], &[1, 1], &[0, 0], Order::C, &t),
            format!("sizes: the product of [{MAX}, 2] does not fit in a signed 64-bit integer"),
        ),
        (
            Datatype::resized(MAX, 1, &t),
            format!("extent: lb {MAX} plus extent 1 does not fit in a signed 64-bit integer"),
        ),
        (Datatype::type_hvector(1 << 30, 1, MAX, &t, Binding::C), format!("stride_bytes: {MAX}: ")),
    ] {
        let error = huge.unwrap_err();
        assert_eq!(error.kind(), OVERFLOW);
        let found = error.to_string();
        assert!(
            found.starts_with(&text) && found.ends_with("does not fit in a signed 64-bit integer"),
            "{found} {text}"
        );
    }
}

#[test]
fn subarrays() {
    let t = int();
    let refuse = |sizes: &[i64], subsizes: &[i64], starts: &[i64], text: &str| {
        let ty = Datatype::subarray(sizes, subsizes, starts, Order::C, &t);
        refused(ty, ARGUMENT, text);
    };
    refuse(&[], &[], &[], "sizes: no dimensions are given; at least 1 is needed");
    refuse(&[4, 4], &[1], &[0, 0], "subsizes: 1 entry, but sizes has 2 entries");
    refuse(&[4, 4], &[1, 1], &[0], "starts: 1 entry, but sizes has 2 entries");
    refuse(&[4, 0], &[1, 1], &[0, 0], "sizes: dimension 1: 0 is less than 1");
    refuse(&[4], &[0], &[0], "subsizes: dimension 0: 0 is not between 1 and the size 4");
    refuse(&[4], &[5], &[0], "subsizes: dimension 0: 5 is not between 1 and the size 4");
    let text = "starts: dimension 0: -1 is not between 0 and 2 (size 4, subsize 2)";
    refuse(&[4], &[2], &[-1], text);
    let text = "starts: dimension 0: 3 is not between 0 and 2 (size 4, subsize 2)";
    refuse(&[4], &[2], &[3], text);
    // For C order and for Fortran order, the constructor must check every dimension, and the error must
    // number the dimensions as the caller does.
    refuse(&[4, 4, -1], &[1, 1, 1], &[0, 0, 0], "sizes: dimension 2: -1 is less than 1");
    let text = "subsizes: dimension 1: -2 is not between 1 and the size 4";
    refuse(&[4, 4, 4], &[1, -2, 1], &[0, 0, 0], text);
    let text = "starts: dimension 2: 4 is not between 0 and 3 (size 4, subsize 1)";
    for order in [Order::C, Order::Fortran] {
        let ty = Datatype::subarray(&[4, 4, 4], &[1, 1, 1], &[0, 0, 4], order, &t);
        refused(ty, ARGUMENT, text);
    }
    let text =
        format!("starts: dimension 0: {} is not between 0 and 0 (size 4, subsize 4)", i64::MAX);
    refuse(&[4], &[4], &[i64::MAX], &text);
    refuse(&[4], &[4, 4], &[0], "subsizes: 2 entries, but sizes has 1 entry");
    refuse(&[4], &[4], &[], "starts: 0 entries, but sizes has 1 entry");
    assert!(
        [Order::C, Order::Fortran].iter().all(|o| Order::from_abi_value(o.abi_value()) == Some(*o))
    );
    for value in [-1, 0, 1, 11, 13, 14, 16, i32::MIN] {
        assert_eq!(Order::from_abi_value(value), None, "order {value}");
    }
}

struct Call<'a> {
    size: i32,
    rank: i32,
    sizes: &'a [i64],
    distributions: &'a [Distribution],
    arguments: &'a [i32],
    processes: &'a [i32],
}

#[test]
fn distributed_arrays() {
    let good = || Call {
        size: 6,
        rank: 0,
        sizes: &[10, 10],
        distributions: &[Block, Cyclic],
        arguments: &[5, 2],
        processes: &[2, 3],
    };
    let make = |c: Call<'_>, old: &Datatype| {
        Datatype::darray(
            c.size,
            c.rank,
            c.sizes,
            c.distributions,
            c.arguments,
            c.processes,
            Order::C,
            old,
        )
    };
    let old = int();
    assert!(make(good(), &old).is_ok());
    let refuse = |call, text: &str| refused(make(call, &old), ARGUMENT, text);
    refuse(Call { sizes: &[], ..good() }, "sizes: no dimensions are given; at least 1 is needed");
    let text = "distributions: 1 entry, but sizes has 2 entries";
    refuse(Call { distributions: &[Block], ..good() }, text);
    refuse(Call { arguments: &[5], ..good() }, "arguments: 1 entry, but sizes has 2 entries");
    refuse(Call { processes: &[6], ..good() }, "processes: 1 entry, but sizes has 2 entries");
    refuse(Call { size: 0, ..good() }, "size: 0 is less than 1");
    refuse(Call { rank: -1, ..good() }, "rank: -1 is not between 0 and 5");
    refuse(Call { rank: 6, ..good() }, "rank: 6 is not between 0 and 5");
    refuse(Call { sizes: &[10, 0], ..good() }, "sizes: dimension 1: 0 is less than 1");
    let text = "processes: dimension 0: -2 is less than 1";
    refuse(Call { processes: &[-2, -3], ..good() }, text);
    let text = "processes: the grid [2, 2] does not have 6 processes";
    refuse(Call { processes: &[2, 2], ..good() }, text);
    let text = "processes: the grid [65536, 65536] does not have 6 processes";
    refuse(Call { arguments: &[5, 2], processes: &[1 << 16, 1 << 16], ..good() }, text);
    let text = "processes: dimension 0: 2, but a dimension that is not distributed needs 1";
    refuse(Call { distributions: &[Whole, Cyclic], ..good() }, text);
    refuse(Call { arguments: &[5, 0], ..good() }, "arguments: dimension 1: 0 is less than 1");
    refuse(
        Call { arguments: &[UNDEFINED, 2], ..good() },
        "arguments: dimension 0: -32766 is less than 1",
    );
    let text = "arguments: dimension 0: 2 blocks of 4 cannot hold 10 elements";
    refuse(Call { arguments: &[4, 2], ..good() }, text);
    refuse(Call { size: -6, ..good() }, "size: -6 is less than 1");
    refuse(Call { size: i32::MIN, rank: -1, ..good() }, "size: -2147483648 is less than 1");
    refuse(Call { rank: i32::MAX, ..good() }, "rank: 2147483647 is not between 0 and 5");
    refuse(Call { sizes: &[-10, 10], ..good() }, "sizes: dimension 0: -10 is less than 1");
    refuse(Call { arguments: &[-5, 2], ..good() }, "arguments: dimension 0: -5 is less than 1");
    refuse(Call { arguments: &[0, 2], ..good() }, "arguments: dimension 0: 0 is less than 1");
    refuse(Call { arguments: &[5, -2], ..good() }, "arguments: dimension 1: -2 is less than 1");
    refuse(Call { processes: &[2, 0], ..good() }, "processes: dimension 1: 0 is less than 1");
    let text = "processes: the grid [2, 3] does not have 7 processes";
    refuse(Call { size: 7, ..good() }, text);
    let text = "distributions: 3 entries, but sizes has 2 entries";
    refuse(Call { distributions: &[Block, Block, Block], ..good() }, text);
    // The argument of a dimension that is not distributed is ignored (MPI-5.0 section 5.1.4), so
    // all these values are allowed.
    for argument in [i32::MIN, -1, 0, 1, DEFAULT_ARGUMENT] {
        let whole = Call {
            distributions: &[Whole, Cyclic],
            arguments: &[argument, 2],
            processes: &[1, 6],
            ..good()
        };
        assert!(make(whole, &old).is_ok());
    }
    // A process with an empty share is allowed, and so is a block that is larger than its
    // dimension.
    let last = Call { rank: 5, arguments: &[9, 100], ..good() };
    assert_eq!(make(last, &old).unwrap().size(), 0);
    for value in [-1, 0, 12, 15, 19, i32::MAX] {
        assert_eq!(Distribution::from_abi_value(value), None, "distribution {value}");
    }
    let huge = Call { sizes: &[1 << 31, 1 << 31], arguments: &[DEFAULT_ARGUMENT, 2], ..good() };
    let text = "sizes: the size in bytes of an array of [2147483648, 2147483648] elements with an \
                extent of 4 bytes does not fit in a signed 64-bit integer";
    refused(make(huge, &old), OVERFLOW, text);
    let huge = Call { sizes: &[i64::MAX, 3], distributions: &[Cyclic, Cyclic], ..good() };
    assert_eq!(make(huge, &old).unwrap_err().kind(), OVERFLOW);
}

#[test]
fn fortran_kinds_classes_and_pairs() {
    let text = "precision: neither precision nor range is given; at least one is needed";
    refused(Datatype::f90_real(None, None), ARGUMENT, text);
    refused(Datatype::f90_complex(None, None), ARGUMENT, text);
    refused(Datatype::f90_real(Some(-1), None), ARGUMENT, "precision: -1 is negative");
    refused(
        Datatype::f90_real(Some(UNDEFINED), Some(1)),
        ARGUMENT,
        "precision: -32766 is negative",
    );
    refused(Datatype::f90_real(None, Some(-2)), ARGUMENT, "range: -2 is negative");
    let text = "precision: no kind has 34 decimal digits; at most 33 are possible";
    refused(Datatype::f90_real(Some(34), Some(1)), ARGUMENT, text);
    let text = "range: no kind has a decimal exponent range of 4932; it must be at most 4931";
    refused(Datatype::f90_complex(Some(3), Some(4932)), ARGUMENT, text);
    refused(Datatype::f90_complex(Some(-7), None), ARGUMENT, "precision: -7 is negative");
    refused(Datatype::f90_complex(None, Some(-8)), ARGUMENT, "range: -8 is negative");
    refused(Datatype::f90_real(Some(3), Some(UNDEFINED)), ARGUMENT, "range: -32766 is negative");
    let text = "precision: no kind has 2147483647 decimal digits; at most 33 are possible";
    refused(Datatype::f90_complex(Some(i32::MAX), None), ARGUMENT, text);
    let text = "range: no kind has a decimal exponent range of 2147483647; it must be at most 4931";
    refused(Datatype::f90_real(None, Some(i32::MAX)), ARGUMENT, text);
    assert!(Datatype::f90_real(Some(33), Some(4931)).is_ok());
    refused(Datatype::f90_integer(UNDEFINED), ARGUMENT, "range: -32766 is negative");
    refused(Datatype::f90_integer(-1), ARGUMENT, "range: -1 is negative");
    let text = "range: no kind holds integers of 39 decimal digits; at most 38 are possible";
    refused(Datatype::f90_integer(39), ARGUMENT, text);

    for class in [195, 191, 0, -1, i32::MIN] {
        let text = format!("class: {class} is not one of MPI_TYPECLASS_INTEGER, _REAL, _COMPLEX");
        refused(Datatype::match_size(TypeClass(class), 4), ARGUMENT, &text);
    }
    for (class, sizes) in [
        (TypeClass::INTEGER, "1, 2, 4, 8, 16"),
        (TypeClass::REAL, "2, 4, 8, 16"),
        (TypeClass::COMPLEX, "4, 8, 16, 32"),
    ] {
        for size in [-4, 0, 3, 64] {
            let text =
                format!("size: no type of this class has {size} bytes; the sizes are {sizes}");
            refused(Datatype::match_size(class, size), ARGUMENT, &text);
        }
    }
}

#[test]
fn bound_markers_go_into_the_struct_of_mpi_1_only() {
    let text = "is a bound marker of MPI-1; only dup and type_struct accept bound markers";
    for (marker, name) in [(Named::LB, "MPI_LB"), (Named::UB, "MPI_UB")] {
        let (marker, old) = (Datatype::named(marker), format!("old: {name} {text}"));
        for ty in [
            Datatype::contiguous(1, &marker),
            Datatype::vector(1, 1, 1, &marker),
            Datatype::hvector(1, 1, 1, &marker),
            Datatype::indexed(&[1], &[0], &marker),
            Datatype::hindexed(&[1], &[0], &marker),
            Datatype::indexed_block(1, &[0], &marker),
            Datatype::hindexed_block(1, &[0], &marker),
            Datatype::subarray(&[1], &[1], &[0], Order::C, &marker),
            Datatype::darray(1, 0, &[1], &[Block], &[1], &[1], Order::C, &marker),
            Datatype::resized(0, 4, &marker),
            Datatype::type_hvector(1, 1, 1, &marker, Binding::C),
            Datatype::type_hindexed(&[1], &[0], &marker, Binding::Fortran),
        ] {
            refused(ty, TYPE, &old);
        }
        let types = [int(), marker];
        let ty = Datatype::structured(&[1, 1], &[0, 0], &types);
        refused(ty, TYPE, &format!("types: {name} {text}"));
        assert!(Datatype::type_struct(&[1, 1], &[0, 0], &types, Binding::C).is_ok());
    }
}

#[test]
fn the_calls_of_mpi_1_have_int_counts() {
    let (t, large) = (int(), 1i64 << 31);
    let (c, fortran) = (Binding::C, Binding::Fortran);
    let fits = "2147483648 does not fit in an int; it must be at most 2147483647";
    let text = format!("count: {fits}");
    refused(Datatype::type_hvector(large, 1, 0, &t, c), OVERFLOW, &text);
    let text = format!("blocklength: {fits}");
    refused(Datatype::type_hvector(1, large, 0, &t, c), OVERFLOW, &text);
    let text = format!("blocklengths: {fits}");
    refused(Datatype::type_hindexed(&[large], &[0], &t, c), OVERFLOW, &text);
    refused(Datatype::type_struct(&[large], &[0], std::slice::from_ref(&t), c), OVERFLOW, &text);
    let one = std::slice::from_ref(&t);
    for binding in [c, fortran] {
        refused(Datatype::type_hvector(-1, 1, 0, &t, binding), COUNT, "count: -1 is negative");
        let text = "blocklength: -1 is negative";
        refused(Datatype::type_hvector(1, -1, 0, &t, binding), COUNT, text);
        let text = "blocklengths: entry 0 is -1, which is negative";
        refused(Datatype::type_hindexed(&[-1], &[0], &t, binding), COUNT, text);
        refused(Datatype::type_struct(&[-1], &[0], one, binding), COUNT, text);
        let text = "displacements: 0 entries, but blocklengths has 1 entry";
        refused(Datatype::type_hindexed(&[1], &[], &t, binding), COUNT, text);
        refused(Datatype::type_struct(&[1], &[], one, binding), COUNT, text);
        let text = "types: 0 entries, but blocklengths has 1 entry";
        refused(Datatype::type_struct(&[1], &[0], &[], binding), COUNT, text);
    }
    let fits = "2147483648 does not fit in a Fortran integer of 32 bits";
    let text = format!("stride_bytes: {fits}");
    refused(Datatype::type_hvector(2, 1, large, &t, fortran), OVERFLOW, &text);
    assert!(Datatype::type_hvector(2, 1, large, &t, c).is_ok());
    let text = format!("displacements: {fits}");
    refused(Datatype::type_hindexed(&[1], &[large], &t, fortran), OVERFLOW, &text);
    refused(
        Datatype::type_struct(&[1], &[large], std::slice::from_ref(&t), fortran),
        OVERFLOW,
        &text,
    );
}

#[test]
fn forms() {
    let large = Datatype::contiguous(1 << 31, &Datatype::named(Named::BYTE)).unwrap();
    let error = large.clone().with_form(Form::Int).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (OVERFLOW, "form"));
    let text = "form: this datatype has no Fortran form; only the constructors of MPI-1 have one";
    refused(large.with_form(Form::Fortran), ARGUMENT, text);
}

#[test]
fn contents() {
    for named in Named::all().chain([Named::LB, Named::UB]) {
        let text = format!("datatype: {named} is a named type and has no contents");
        refused(Datatype::named(named).contents(), TYPE, &text);
    }
    let t = [int(), int()];
    let refuse = |combiner, i: &[i32], a: &[i64], c: &[i64], d: usize, kind, text: &str| {
        refused(Datatype::from_contents(combiner, i, a, c, &t[..d]), kind, text);
    };
    let named = Combiner::NAMED;
    let text = "combiner: MPI_COMBINER_NAMED: no call makes a named type, so it has no contents";
    refuse(named, &[], &[], &[], 0, TYPE, text);
    refuse(
        Combiner(100),
        &[],
        &[],
        &[],
        0,
        ARGUMENT,
        "combiner: 100 is not the value of any combiner",
    );
    let needs = |argument: &str, length: u32, combiner: Combiner, expected: u64| {
        let entries = if length == 1 { "entry" } else { "entries" };
        format!("{argument}: {length} {entries}, but {combiner} needs {expected}")
    };
    let dup = Combiner::DUP;
    refuse(dup, &[1], &[], &[], 1, COUNT, &needs("integers", 1, dup, 0));
    refuse(dup, &[], &[], &[], 2, COUNT, &needs("datatypes", 2, dup, 1));
    let vector = Combiner::VECTOR;
    refuse(vector, &[1, 2], &[], &[], 1, COUNT, &needs("integers", 2, vector, 3));
    refuse(vector, &[1, 2, 3], &[4], &[], 1, COUNT, &needs("addresses", 1, vector, 0));
    refuse(vector, &[], &[], &[1, 2], 1, COUNT, &needs("large_counts", 2, vector, 3));
    refuse(vector, &[1, 2, 3], &[], &[], 0, COUNT, &needs("datatypes", 0, vector, 1));
    refuse(vector, &[-1, 2, 3], &[], &[], 1, COUNT, "count: -1 is negative");
    let indexed = Combiner::INDEXED;
    let text = "integers: 0 entries, but MPI_COMBINER_INDEXED needs at least 1";
    refuse(indexed, &[], &[], &[], 1, COUNT, text);
    refuse(
        indexed,
        &[-1],
        &[],
        &[],
        1,
        COUNT,
        "integers: entry 0 is -1, but a count must be between 0 and 2^60",
    );
    let text =
        format!("large_counts: entry 0 is {}, but a count must be between 0 and 2^60", i64::MAX);
    refuse(indexed, &[], &[], &[i64::MAX], 1, COUNT, &text);
    refuse(indexed, &[2, 1, 1, 0], &[], &[], 1, COUNT, &needs("integers", 4, indexed, 5));
    let block = Combiner::HINDEXED_BLOCK;
    refuse(block, &[2, 1], &[0], &[], 1, COUNT, &needs("addresses", 1, block, 2));
    let structure = Combiner::STRUCT;
    refuse(structure, &[1, 1], &[0], &[], 2, COUNT, &needs("datatypes", 2, structure, 1));
    let old = Combiner::STRUCT_INTEGER;
    refuse(old, &[], &[], &[1, 1, 0], 1, COUNT, &needs("large_counts", 3, old, 0));
    let subarray = Combiner::SUBARRAY;
    let text = "integers: 0 entries, but MPI_COMBINER_SUBARRAY needs at least 1, because entry 0 is \
                the number of dimensions";
    refuse(subarray, &[], &[], &[], 1, COUNT, text);
    let text = "integers: entry 0 is 0, but the number of dimensions must be at least 1";
    refuse(subarray, &[0, 12], &[], &[], 1, ARGUMENT, text);
    let text = "integers: entry 4 is 13, which is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN";
    refuse(subarray, &[1, 4, 2, 0, 13], &[], &[], 1, ARGUMENT, text);
    let text = needs("integers", 2, subarray, 6_442_450_943);
    refuse(subarray, &[i32::MAX, 12], &[], &[], 1, COUNT, &text);
    let darray = Combiner::DARRAY;
    let text = "integers: 2 entries, but MPI_COMBINER_DARRAY needs at least 3, because entry 2 is the \
                number of dimensions";
    refuse(darray, &[1, 0], &[], &[], 1, COUNT, text);
    let text = "integers: entry 4 is 15, which is not one of MPI_DISTRIBUTE_BLOCK, _CYCLIC, _NONE";
    refuse(darray, &[1, 0, 1, 9, 15, 19, 1, 12], &[], &[], 1, ARGUMENT, text);
    let text = "integers: entry 3 is 19, which is not one of MPI_DISTRIBUTE_BLOCK, _CYCLIC, _NONE";
    refuse(darray, &[1, 0, 1, 19, 19, 1, 12], &[], &[9], 1, ARGUMENT, text);
    let real = Combiner::F90_REAL;
    refuse(real, &[6], &[], &[], 0, COUNT, &needs("integers", 1, real, 2));
    refuse(real, &[6, 37], &[], &[], 1, COUNT, &needs("datatypes", 1, real, 0));
    let pair = Combiner::VALUE_INDEX;
    refuse(pair, &[], &[], &[], 1, COUNT, &needs("datatypes", 1, pair, 2));
    let types = [int(), Datatype::named(Named::FLOAT)];
    let error = Datatype::from_contents(pair, &[], &[], &[], &types).unwrap_err();
    assert_eq!((error.kind(), error.argument()), (TYPE, "datatypes"));
}
