//! Compares reports and drawings of small types with expected texts. Also checks that hostile types (huge,
//! deep or irregular) get short reports.
//!
//! The drawings in `golden/drawings.txt` were checked by hand; `TYPEPACK_BLESS=1 cargo test -p
//! typepack-explain` rewrites the file.

#[path = "../../tests/golden/ddtbench.rs"]
mod ddtbench;

use std::fmt::Write;
use std::path::Path;
use typepack_engine::text::parse;
use typepack_engine::{Datatype, Named};
use typepack_explain as explain;

fn advised(text: &str, count: u64) -> Vec<String> {
    explain::advice(&parse(text).unwrap().commit().unwrap(), count)
}

#[test]
fn drawings_are_as_looked_at() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/drawings.txt");
    let wanted = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for case in wanted.lines().filter_map(|line| line.strip_prefix("== ")) {
        let (text, count) = case.rsplit_once(" x ").unwrap();
        let ty = parse(text).unwrap();
        let drawing = explain::drawing(&ty, count.parse().unwrap(), false);
        write!(found, "== {case}\n{drawing}").unwrap();
    }
    typepack_test_support::blessed::blessed(&path, &found);
}

/// Parses views such as `0 vector(2, 1, 4, int); 4 int`: displacements and filetypes.
fn views(text: &str) -> Vec<(u64, Datatype)> {
    let view = |view: &str| {
        let (displacement, filetype) = view.trim().split_once(' ').unwrap();
        (displacement.parse().unwrap(), parse(filetype).unwrap())
    };
    text.split(';').map(view).collect()
}

#[test]
fn file_views_are_as_looked_at() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/file_views.txt");
    let wanted = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for case in wanted.lines().filter_map(|line| line.strip_prefix("== ")) {
        let (text, count) = case.rsplit_once(" x ").unwrap();
        let ranks = explain::FileRanks::new(&views(text), count.parse().unwrap()).unwrap();
        write!(found, "== {case}\n{}", ranks.report(false).unwrap()).unwrap();
    }
    typepack_test_support::blessed::blessed(&path, &found);
}

/// Compares the table and the coverage with a naive walk over the type maps.
#[test]
fn file_views_are_counted() {
    for (text, count) in [
        ("0 vector(3, 2, 4, int); 8 vector(3, 2, 4, int)", 1),
        ("0 resized(0, 12, int); 4 resized(0, 12, int); 8 resized(0, 12, int)", 5),
        ("7 int; 100 vector(2, 1, 3, double); 3 byte", 2),
        ("0 contiguous(5, int); 4 contiguous(2, int); 8 contiguous(9, byte)", 1),
        ("0 int; 0 int; 0 int", 1),
        ("3 resized(0, 8, vector(2, 1, 5, int)); 40 resized(0, 0, vector(2, 1, 5, int))", 4),
        ("5 contiguous(0, int); 9 short", 3),
    ] {
        let views = views(text);
        let mut uses = std::collections::BTreeMap::new();
        let report = explain::FileRanks::new(&views, count).unwrap().report(false).unwrap();
        for (rank, (displacement, filetype)) in views.iter().enumerate() {
            let mut own = Vec::new();
            for copy in 0..count as i64 {
                for entry in typepack_engine::typemap::typemap(filetype) {
                    let at = *displacement as i64 + copy * filetype.extent() + entry.offset;
                    own.extend(at..at + i64::from(entry.named.size()));
                }
            }
            own.iter().for_each(|&at| *uses.entry(at).or_insert(0) += 1);
            let row: Vec<&str> = report.lines().nth(2 + rank).unwrap().split_whitespace().collect();
            let pieces = (0..own.len()).filter(|&i| i == 0 || own[i] != own[i - 1] + 1).count();
            let ends = [own.iter().min(), own.iter().max()]
                .map(|end| end.map_or_else(|| "-".to_owned(), |at| at.to_string()));
            let wanted = [
                rank.to_string(),
                displacement.to_string(),
                own.len().to_string(),
                pieces.to_string(),
                ends[0].clone(),
                ends[1].clone(),
            ];
            assert_eq!(row[..6], wanted, "{text}\n{report}");
        }
        let (low, high) = (uses.first_key_value().unwrap().0, uses.last_key_value().unwrap().0);
        let bytes = high - low + 1;
        let holes = bytes - uses.len() as i64;
        let shared = uses.values().filter(|&&uses| uses > 1).count();
        let wanted = if holes == 0 && shared == 0 {
            format!("each of the {bytes} bytes belongs to exactly one rank")
        } else {
            format!("of {bytes} bytes, {holes} belong to no rank and {shared} to several views")
        };
        assert_eq!(report.lines().last().unwrap().trim(), wanted, "{text}");
    }
}

#[test]
fn file_views_are_drawn_in_little_space_or_refused() {
    let far = views(&format!("0 vector(1_000_000_000, 1, 3, double); {} double", 1u64 << 62));
    let ranks = explain::FileRanks::new(&far, 1).unwrap();
    let report = ranks.report(false).unwrap();
    assert!(report.len() < 10_000 && report.contains("> 1048576"), "{report}");
    assert!(report.contains("more than 1048576 pieces"), "{report}");
    assert!(ranks.svg().len() < 100_000);
    let many = vec![(0, parse("int").unwrap()); 100];
    let report = explain::FileRanks::new(&many, 1).unwrap().report(false).unwrap();
    assert!(report.contains("z rank 51") && !report.contains("rank 52"), "{report}");
    for text in ["0 hindexed([1, 1], [8, 0], int)", "0 hindexed([1], [-4], int)"] {
        assert!(explain::FileRanks::new(&views(text), 1).is_err(), "{text}");
    }
    assert!(explain::FileRanks::new(&views("9223372036854775807 byte"), 1).is_err());
    assert!(explain::FileRanks::new(&views("0 short"), u64::MAX).is_err());
    let none = explain::FileRanks::new(&[], 1).unwrap();
    assert!(none.report(false).unwrap().contains("no data") && none.svg().contains("no data"));
}

#[test]
fn an_svg_of_a_file_has_a_colour_for_each_rank() {
    let text = "0 resized(0, 12, int); 4 resized(0, 12, int); 4 resized(0, 12, int)";
    let svg = explain::FileRanks::new(&views(text), 3).unwrap().svg();
    for name in ["rank 0", "rank 1", "rank 2", "overlap", "hole", "end of the last filetype"] {
        assert_eq!(svg.matches(&format!(">{name}<")).count(), 1, "{name}");
    }
    // The ranks 1 and 2 have the same bytes.
    for (number, times) in [("0", 1), ("1", 1), ("2", 1), ("0,0", 1), ("1,1", 1), ("2,2", 1)] {
        assert_eq!(
            svg.matches(&format!("class=\"n\">{number}<")).count(),
            times,
            "{number}\n{svg}"
        );
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let ty = parse("struct([1, 1], [0, 4], [char, int])").unwrap();
    assert_eq!(
        explain::drawing(&ty, 1, true),
        "   0  \u{1b}[38;5;16;48;5;117m0\u{1b}[0m \u{1b}[38;5;250m· · · \u{1b}[0m\u{1b}[38;5;16;48;5;\
         215m1      \u{1b}[0m ┊\n\u{1b}[38;5;16;48;5;117m \u{1b}[0m char   \u{1b}[38;5;16;48;5;215m \
         \u{1b}[0m int   \u{1b}[38;5;250m·\u{1b}[0m gap   ┊ end of extent\none cell = 1 B, numbers: \
         packed order\n"
    );
}

#[test]
fn signatures_are_run_length_encoded() {
    for (text, wanted) in [
        ("double", "double"),
        ("vector(3, 2, 4, contiguous(5, double))", "30 x double"),
        ("struct([1, 2, 3], [0, 8, 40], [int, int, char])", "3 x int, 3 x char"),
        ("contiguous(4, double_int)", "4 x (double, int)"),
        ("contiguous(2, 2int)", "4 x int"),
        ("struct([1, 0, 2], [0, 0, 8], [int, char, short_int])", "int, 2 x (short, int)"),
        ("contiguous(0, int)", "empty"),
    ] {
        assert_eq!(explain::signature(&parse(text).unwrap()), wanted, "{text}");
    }
}

#[test]
fn blocks_are_counted_without_expanding() {
    let blocks = |text: &str| explain::blocks(&parse(text).unwrap().commit().unwrap());
    assert_eq!(
        blocks("vector(3, 2, 4, double)"),
        "runs       3\nbytes      16 each\n\
         density    60.0 % of the true extent, holes 40.0 %\n"
    );
    assert_eq!(
        blocks("indexed([3, 1, 2], [8, 0, 3], int)"),
        "runs       3\nbytes      4 to 12, mean 8.0\n\
         density    54.5 % of the true extent, holes 45.5 %\n"
    );
    assert_eq!(
        blocks("contiguous(3, int)"),
        "runs       1 for any count: elements continue each other\n\
         density    100.0 % of the true extent, holes 0.0 %\n"
    );
    assert!(blocks("hvector(3, 2, 4, int)").contains("150.0 % of the true extent: bytes are used"));
    assert_eq!(blocks("contiguous(0, int)"), "no data\n");
    assert!(
        blocks("contiguous(1_000_000_000*8, resized(0, 8, int))").starts_with("runs       8000")
    );
}

/// Checks that the report of every DDTBench layout states the number of runs that `ddtbench.csv`
/// gives for that layout.
#[test]
fn runs_of_ddtbench_are_told() {
    let csv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/ddtbench.csv");
    let csv = std::fs::read_to_string(csv).unwrap();
    let rows = ddtbench::rows(&csv);
    assert_eq!(rows.len(), 90);
    for ddtbench::Row { name, expression, runs, bytes } in rows {
        let plan = parse(&expression).unwrap().commit().unwrap();
        assert_eq!(plan.element_bytes(), bytes, "{name}");
        let blocks = explain::blocks(&plan);
        let told = blocks.split_whitespace().nth(1).map(|word| word.trim_end_matches(','));
        assert_eq!(told, Some(runs.to_string().as_str()), "{name}: {blocks}");
    }
}

#[test]
fn passes_are_told_step_by_step() {
    let ty = parse("hvector(2, 1, 64, vector(2, 2, 4, double))").unwrap();
    let steps = explain::explain_passes(&ty).unwrap();
    assert_eq!(steps[0].0, "lower");
    assert_eq!(
        steps[0].1,
        "elements 1 x 112\n  loop 2 x 64 @0\n    loop 2 x 32 @0\n      block 16 @0\n"
    );
    assert_eq!(steps.last().unwrap().1, ty.commit().unwrap().program().to_string());
    assert!(
        explain::passes(&ty)
            .unwrap()
            .contains("after fold\n  elements 1 x 112\n    loop 4 x 32 @0\n")
    );
}

#[test]
fn advice_fits_the_type() {
    let cases: [(&str, u64, &[&str]); 14] = [
        ("vector(3, 2, 4, double)", 1, &[]),
        (
            "resized(0, 8, vector(3, 1, 4, double))",
            2,
            &[
                "the extent 8 is smaller than the true extent 72: elements interleave; that is right for \
               columns of a matrix",
            ],
        ),
        (
            "resized(0, 8, contiguous(3, double))",
            1,
            &[
                "the extent 8 is smaller than the true extent 24: with a count above 1 elements overlap, \
               so they may be sent, but must not be received; resized(0, 24, …) separates them",
            ],
        ),
        ("resized(0, 0, int)", 4, &["the extent is 0: all elements lie on top of each other"]),
        ("resized(0, -8, int)", 1, &["the extent is -8: each element lies below the one before"]),
        (
            "hvector(3, 4, 12, int)",
            1,
            &[
                "one element uses some bytes more than once: it may be sent, but must not be received",
            ],
        ),
        (
            "struct([1, 1], [0, 8], [vector(2, 1, 4, double), int])",
            1,
            &[
                "members 0 and 1 of the struct interleave in memory; if that is not intended, check \
               displacements[1] and the members' extents",
            ],
        ),
        (
            "vector(3, 2, 2, double)",
            1,
            &[
                "this type is contiguous memory: contiguous(6, double), or double with a count, describes \
               the same memory",
            ],
        ),
        (
            "contiguous(2, struct([1, 1], [0, 4], [hvector(3, 1, 8, int), hvector(3, 1, 8, int)]))",
            1,
            &[
                "members 0 and 1 of the struct interleave in memory; if that is not intended, check \
               displacements[1] and the members' extents",
            ],
        ),
        (
            "struct([1, 1], [0, 4], [int, float])",
            1,
            &["the type has no holes: it is one run of memory and moves at the speed of memcpy"],
        ),
        (
            "indexed_block(2, [0, 4, 8, 12], int)",
            1,
            &[
                "the 4 blocks are equally long and equally far apart: a vector or hvector describes them \
               with three numbers",
            ],
        ),
        (
            "indexed_block(2, [5, 9, 13, 17], int)",
            1,
            &[
                "the 4 blocks are equally long and equally far apart: a vector or hvector describes them \
               with three numbers, if the buffer begins at the first block",
            ],
        ),
        (
            "indexed([32 x 1, 2], [0..64 step 2, 66], int)",
            1,
            &[
                "33 blocks of unequal length are copied one by one; one kernel copies all blocks of an \
               indexed_block, which have equal lengths",
            ],
        ),
        (
            "vector(64, 1, 64, double)",
            1,
            &[
                "64 runs of 8 bytes: each costs a cache line; neighbouring columns share the lines: send \
               them together, as a larger blocklength or as resized(0, 8, vector(64, 1, 64, double)) \
               with a count",
            ],
        ),
    ];
    for (text, count, wanted) in cases {
        assert_eq!(advised(text, count), wanted, "{text}");
    }
    for plain in [
        "double",
        "contiguous(7, double)",
        "struct([1, 1], [0, 8], [int, double])",
        // No vector could describe these types, and they already have a kernel, so there is nothing to
        // advise.
        "indexed([1, 2, 3, 4], [0, 4, 9, 20], int)",
        "indexed_block(2, [0..60 step 3, 100], int)",
    ] {
        assert_eq!(advised(plain, 1), [""; 0], "{plain}");
    }
}

#[test]
fn an_svg_has_every_element_and_balances() {
    let ty = parse("struct([1, 1, 2], [0, 4, 8], [char, int, short])").unwrap();
    let svg = explain::svg(&ty, 2);
    for number in 0..8 {
        assert_eq!(svg.matches(&format!("class=\"n\">{number}<")).count(), 1, "{number}");
    }
    for legend in ["char", "int", "short", "hole", "end of extent"] {
        assert!(svg.contains(&format!(">{legend}<")), "{legend}");
    }
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(!svg.contains(">overlap<"));
    assert!(explain::svg(&parse("hvector(2, 2, 4, int)").unwrap(), 1).contains(">overlap<"));
    assert!(explain::svg(&parse("contiguous(0, int)").unwrap(), 1).contains("no data"));
}

/// Checks that types with far more data than a drawing or a text can show get short reports.
#[test]
fn hostile_types_are_explained_in_little_space() {
    let mut gapped = parse("resized(0, 2, byte)").unwrap();
    for _ in 0..60 {
        gapped = Datatype::contiguous(2, &gapped).unwrap();
    }
    let mut doubling = Datatype::named(Named::BYTE);
    for level in 0..50 {
        let far = 3i64 << level;
        doubling = Datatype::structured(&[1, 1], &[0, far], &[doubling.clone(), doubling]).unwrap();
    }
    // The signature of this type doubles at every level, so it is far too long for a report.
    let mut unlike = Datatype::named(Named::CHAR);
    for level in 0..50 {
        let between = [Named::INT, Named::SHORT][level % 2];
        let places = [0, 2i64 << level, 5i64 << level];
        let types = [unlike.clone(), Datatype::named(between), unlike];
        unlike = Datatype::structured(&[1; 3], &places, &types).unwrap();
    }
    let mut tower = Datatype::named(Named::INT);
    for _ in 0..50_000 {
        tower = Datatype::contiguous(1, &tower).unwrap();
        tower = Datatype::resized(0, 8, &tower).unwrap();
    }
    let scattered: Vec<i64> = (0..100_000).map(|i| i * 7919 % 100_003).collect();
    let scattered =
        Datatype::indexed_block(1, &scattered, &Datatype::named(Named::DOUBLE)).unwrap();
    let edge =
        parse("hindexed([1, 1], [-9223372036854775808 + 100, 0], resized(0, 1, byte))").unwrap();
    for ty in [&gapped, &doubling, &unlike, &tower, &scattered, &edge] {
        for count in [1, 1000] {
            let options = explain::Options { count, ..Default::default() };
            let report = explain::report(ty, &options).unwrap();
            assert!(report.len() < 60_000, "{}", report.len());
            let layout = report.split("\nLayout\n").nth(1).unwrap().split("\nProgram\n").next();
            assert!(layout.unwrap().lines().count() < 60, "{}", layout.unwrap());
            assert!(layout.unwrap().lines().all(|line| line.chars().count() < 250));
            assert!(explain::svg(ty, count).len() < 500_000);
        }
    }
}

#[test]
fn a_report_has_its_sections_in_order() {
    let report = explain::report(&parse("vector(3, 2, 4, double)").unwrap(), &Default::default());
    let report = report.unwrap();
    let titles: Vec<&str> =
        report.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase())).collect();
    assert_eq!(
        titles,
        [
            "Tree",
            "Bounds (bytes)",
            "Signature",
            "Blocks",
            "Layout",
            "Program",
            "Passes",
            "Execution"
        ]
    );
}

/// Checks the drawing of a list without a stride. Only the numbers show the order of such a list,
/// so the drawing must use several rows, which leave room for the numbers.
#[test]
fn an_unordered_list_is_numbered() {
    let ty = parse("indexed_block(1, [5, 3, 9, 1, 0, 77, 44, 200, 13, 8, 90, 91, 92], float)");
    let drawing = explain::drawing(&ty.unwrap(), 1, false);
    let numbers = drawing.lines().nth(1).unwrap();
    let order: Vec<&str> = numbers.split_whitespace().collect();
    assert_eq!(order, ["4", "3", "1", "0", "9", "2", "8"], "{drawing}");
    assert!(drawing.ends_with("numbers: packed order\n"), "{drawing}");
}
