//! Tests the text form: accepted texts, refused texts with their errors, and the parsing of printed
//! types. Also checks that mutated texts never make the parser panic.

use typepack_engine::text::{abridge, parse, print};
use typepack_engine::{Datatype, typemap};

/// Texts that the parser accepts, each with the text that `print` returns for the parsed type.
const ACCEPTED: &[(&str, &str)] = &[
    ("double", "double"),
    ("MPI_DOUBLE", "double"),
    ("Mpi_Long_Double_Int", "long_double_int"),
    ("f64", "double"),
    ("u8", "uint8_t"),
    ("2int", "2int"),
    ("bool", "c_bool"),
    (" # nothing\n int # more\n;", "int"),
    ("vector(128, 1, 1024, double)", "vector(128, 1, 1024, double)"),
    ("MPI_Type_create_hvector(2, 3, -8*2, char)", "hvector(2, 3, -16, char)"),
    (
        "subarray([130,130,130], [128,128,1], [1,1,1], C, f64)",
        "subarray([3 x 130], [128, 128, 1], [3 x 1], C, double)",
    ),
    ("subarray([4], [2], [1], mpi_order_fortran, int)", "subarray([4], [2], [1], Fortran, int)"),
    (
        "struct([1,1,1], [0,4,8], [char, int, double])",
        "struct([3 x 1], [0, 4, 8], [char, int, double])",
    ),
    ("struct([], [], [])", "struct([], [], [])"),
    ("struct([2x1], [0,8], [2 x 2int,])", "struct([1, 1], [0, 8], [2 x 2int])"),
    (
        "struct([3 x 1], 
      [0,8,16], [2 x double, MPI_INT])",
        "struct([3 x 1], [0, 8, 16], [2 x double, int])",
    ),
    ("hindexed([1, 2], [16, 0], short)", "hindexed([1, 2], [16, 0], short)"),
    ("indexed_block(2, [7, 0, 3], int)", "indexed_block(2, [7, 0, 3], int)"),
    ("hindexed_block(2, [0..100 step 3], int)", "hindexed_block(2, [0..100 step 3], int)"),
    ("indexed([1000 x 3], [0..4000 step 4], int)", "indexed([1000 x 3], [0..3997 step 4], int)"),
    (
        "indexed_block(1, [5, 9..5 step -1, 7, 7], int)",
        "indexed_block(1, [5, 9..5 step -1, 7, 7], int)",
    ),
    ("resized(0, 16, dup(int))", "resized(0, 16, dup(int))"),
    (
        "darray(4, 1, [8, 9], [BLOCK, cyclic], [default, 2], [2, 2], C, double)",
        "darray(4, 1, [8, 9], [block, cyclic], [default, 2], [2, 2], C, double)",
    ),
    (
        "darray(2, 0, [6, 4], [none, block], [2 x default], [1, 2], Fortran, dup(int))",
        "darray(2, 0, [6, 4], [none, block], [default, default], [1, 2], Fortran, dup(int))",
    ),
    (
        "darray(4, 3, [4, 4], [2 x block], [2 x default], [2, 2], C, int)",
        "darray(4, 3, [4, 4], [block, block], [default, default], [2, 2], C, int)",
    ),
    ("f90_real(15, undefined)", "f90_real(15, undefined)"),
    ("MPI_Type_create_f90_complex(6, 30)", "f90_complex(6, 30)"),
    ("contiguous(2, f90_integer(9))", "contiguous(2, f90_integer(9))"),
    ("value_index(int64_t, int)", "value_index(int64_t, int)"),
    ("value_index(double, int)", "double_int"),
    (
        "struct([3 x 1], [-8, 0, 24], [lb, int, MPI_UB])",
        "struct([3 x 1], [-8, 0, 24], [lb, int, ub])",
    ),
    ("a = dup(int); contiguous(3, a)", "contiguous(3, dup(int))"),
    (
        "a = dup(int); b = struct([1,1,1], [0,8,16], [a, int, a]); struct([1, 1], [0, 64], [2 x b])",
        "t1 = dup(int); struct([1, 1], [0, 64], [2 x struct([3 x 1], [0, 8, 16], [t1, int, t1])])",
    ),
];

#[test]
fn accepted_texts_print_as_expected_and_read_back() {
    for (text, printed) in ACCEPTED {
        let ty = parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
        assert_eq!(print(&ty), *printed);
        let back = parse(printed).unwrap();
        assert_eq!(print(&back), *printed);
        assert_eq!(typemap::typemap(&back), typemap::typemap(&ty), "{printed}");
        assert_eq!(format!("{back:?}"), format!("{ty:?}"), "{printed}");
    }
}

#[test]
fn refused_texts_say_what_was_expected_where() {
    for (text, message) in [
        ("", "1:1: expected a type, found the end of the text"),
        ("()", "1:1: expected a type, found `(`"),
        ("\u{0}", "1:1: expected a type, found `\\0`"),
        ("bouble", "1:1: `bouble` is not a type; did you mean `double`?"),
        ("quaternion", "1:1: `quaternion` is not a type"),
        ("vectr(1, 2, 3, int)", "1:1: `vectr` is not a constructor; did you mean `vector`?"),
        ("vector", "1:1: `vector` needs arguments: (count, blocklength, stride, old)"),
        ("int int", "1:5: expected the end of the text, found `int`"),
        ("vector(128 1)", "1:12: expected `,` and then `blocklength`, found `1`"),
        ("vector(1, 2, int)", "1:14: expected a number for `stride`, found `int`"),
        ("vector(1, 2, 3, 4)", "1:17: `4` is not a type"),
        (
            "contiguous(1, int, 3)",
            "1:18: expected `)` after the 2 arguments of contiguous, found `,`",
        ),
        ("subarray([4], [2], [1], 0, int)", "1:25: expected C or Fortran for `order`, found `0`"),
        ("struct([1], [0], int)", "1:18: expected `[` and the types, found `int`"),
        ("struct([1], [0], [int int])", "1:23: expected `,` or `]`, found `int`"),
        ("struct([1], [0], [2 int])", "1:21: expected `x` after the number of copies, found `int`"),
        (
            "struct([1], [0], [1",
            "1:20: expected `x` after the number of copies, found the end of the text",
        ),
        ("indexed_block(1, 3, int)", "1:18: expected `[` and the displacements, found `3`"),
        ("a = int", "1:8: expected `;` after the binding, found the end of the text"),
        ("a = int; a = int; a", "1:10: `a` is already bound"),
        ("int = char; int", "1:1: `int` is the name of a basic type"),
        ("x = int; x", "1:1: `x` is reserved for copies in lists"),
        (
            "9a = int; int",
            "1:1: `9a` is not a name: a name consists of letters, digits and `_`, and must not \
             begin with a digit",
        ),
        (
            "f90_integer(5000000000)",
            "1:13: f90_integer: range: 5000000000 does not fit in a signed 32-bit integer",
        ),
        (
            "f90_real(undefined, 99999)",
            "1:21: f90_real: range: no kind has a decimal exponent range of 99999; it must be at \
             most 4931",
        ),
        (
            "value_index(byte, int)",
            "1:13: value_index: value: MPI has no pair type of byte and int",
        ),
        (
            "contiguous(2, lb)",
            "1:15: contiguous: old: MPI_LB is a bound marker of MPI-1; only dup and type_struct accept bound markers",
        ),
        (
            "darray(4, 4, [8], [block], [default], [4], C, int)",
            "1:11: darray: rank: 4 is not between 0 and 3",
        ),
        (
            "darray(4, 1, [8], [3], [default], [4], C, int)",
            "1:20: expected none or block or cyclic for `distributions`",
        ),
        ("contiguous(-1, int)", "1:12: contiguous: count: -1 is negative"),
        ("vector(1, 2 - 4, 0, int)", "1:11: vector: blocklength: -2 is negative"),
        (
            "dup(indexed([1, 1], [0], int))",
            "1:21: indexed: displacements: 1 entry, but blocklengths has 2 entries",
        ),
        (
            "struct([1], [0], [2 x int])",
            "1:18: struct: types: 2 entries, but blocklengths has 1 entry",
        ),
        (
            "contiguous(9223372036854775807, double)",
            "1:12: contiguous: count: 9223372036854775807: an element would have a \
             displacement of 73786976294838206448 bytes, which does not fit in a signed 64-bit integer",
        ),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert_eq!(error, message, "{text}");
    }
}

#[test]
fn refusals_carry_the_engines_error() {
    let error = parse("contiguous(-1, int)").unwrap_err();
    assert_eq!(error.refusal().unwrap().argument(), "count");
    assert_eq!(error.span(), 11..13);
    assert!(parse("contiguous(").unwrap_err().refusal().is_none());
}

#[test]
fn a_hundred_thousand_levels_read_and_print() {
    const DEPTH: usize = 100_000;
    let text = format!("{}int{}", "dup(".repeat(DEPTH), ")".repeat(DEPTH));
    let ty = parse(&text).unwrap();
    assert_eq!(print(&ty), text);
    assert!(abridge(&ty).len() < 100);
    let open = "struct([1],[0],[".repeat(DEPTH);
    assert!(parse(&open).is_err());
    assert!(parse(&"(".repeat(DEPTH)).is_err());
}

#[test]
fn shared_types_are_printed_once_and_stay_shared() {
    let mut ty = Datatype::named(typepack_engine::Named::BYTE);
    for level in 0..50 {
        let far = 3i64 << level;
        let other = ty.dup();
        ty = Datatype::structured(&[1, 1, 1], &[0, far, 1], &[ty.clone(), other, ty]).unwrap();
        if level == 30 {
            break;
        }
    }
    let text = print(&ty);
    assert!(text.len() < 5000, "{}", text.len());
    let back = parse(&text).unwrap();
    assert_eq!((print(&back), back.size()), (text, ty.size()));
}

#[test]
fn long_arrays_are_abridged_for_people_only() {
    let displacements: Vec<i64> = (0..1000).map(|i| i * i % 977).collect();
    let ty =
        Datatype::indexed_block(1, &displacements, &Datatype::named(typepack_engine::Named::INT))
            .unwrap();
    assert_eq!(abridge(&ty), "indexed_block(1, [0, 1, 4, 9, 16, 25, … 1000 in all], int)");
    let back = parse(&print(&ty)).unwrap();
    assert_eq!(typemap::typemap(&back), typemap::typemap(&ty));
    let types = vec![back.dup(), ty.clone(), back.dup(), ty.dup(), ty.dup(), ty.dup(), ty.dup()];
    let wide = Datatype::structured(&[1; 7], &[0; 7], &types).unwrap();
    assert!(abridge(&wide).ends_with("… 7 in all])"), "{}", abridge(&wide));
}

/// Checks that mutations of accepted texts give a type or an error, and never a panic.
#[test]
fn no_text_makes_the_parser_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    const PIECES: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "=",
        "x",
        "..",
        "step",
        "-",
        "*",
        "+",
        "#",
        "\n",
        " ",
        "0",
        "99999999999999999999",
        "9223372036854775807",
        "C",
        "dup(",
        "struct([",
        "é",
        "\u{0}",
        "int",
        "2int",
        "resized(",
        "_",
        "[3 x 1]",
        "a = int;",
    ];
    let mut accepted = 0;
    for round in 0..30_000 {
        let mut bytes = ACCEPTED[round % ACCEPTED.len()].0.as_bytes().to_vec();
        for _ in 0..=random(4) {
            let at = random(bytes.len() + 1);
            match random(4) {
                0 if at < bytes.len() => bytes[at] = random(256) as u8,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                _ => drop(bytes.splice(at..at, PIECES[random(PIECES.len())].bytes())),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match parse(&text) {
            Ok(ty) => {
                accepted += 1;
                let printed = print(&ty);
                assert_eq!(print(&parse(&printed).unwrap()), printed, "{text}");
                let _ = abridge(&ty);
            }
            Err(error) => {
                let rendered = error.render(&text);
                assert!(rendered.starts_with(&error.to_string()), "{text}");
                assert!(text.get(error.span()).is_some(), "{text}");
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}
