//! Runs the checks of the engine that `properties.rs` does not run, on random types and pairs: fused
//! copy, decoding, wire form, text form, packing in parts, signatures, file views; and hints of files.
//!
//! The streams are fixed. `FUZZ_CASES` scales the numbers of cases (in percent of the default numbers),
//! and `FUZZ_SEED` selects other streams.

use arbitrary::Unstructured;
use std::io::Write;
use typepack_fuzz::{
    Case, CopyChecker, Effort, Executors, HintChecker, Mode, Pair, SegmentChecker, Stream,
    ViewChecker, WireChecker, decode_rebuild, hints, shrink, signature, text,
};

const SEED: u64 = 0x726f_6f6d_735f_7631;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// Prints a line directly to standard error, which the test harness does not capture. So the figures
/// are always visible.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr");
}

/// Calls `run` once per case, with random bytes for the case, a mode, and a stream for the check's own
/// choices. `room` is the number of the check. It changes the seed, so that each check gets random
/// numbers of its own. Returns the number of cases.
fn each(room: u64, cases: u64, mut run: impl FnMut(&mut Unstructured<'_>, Mode, Stream)) -> u64 {
    let cases = cases * number("FUZZ_CASES", 100) / 100;
    let seed = number("FUZZ_SEED", SEED) ^ room;
    for index in 0..cases {
        let bytes = Stream::new(seed, index).bytes(2000);
        let mode = [Mode::Any, Mode::Regular, Mode::Tiny][index as usize % 3];
        run(&mut Unstructured::new(&bytes), mode, Stream::new(!seed, index));
    }
    cases
}

fn cases(
    name: &str,
    room: u64,
    cases: u64,
    mut check: impl FnMut(&Case, &mut Stream) -> Result<(), String>,
) {
    let done = each(room, cases, |u, mode, stream| {
        let case = Case::generate(u, mode).expect("enough bytes");
        if let Err(reason) = check(&case, &mut stream.clone()) {
            // Each candidate gets a copy of the same stream, so the check makes the same choices for
            // each.
            let small = shrink(&case, |case| check(case, &mut stream.clone()).is_err());
            let small_reason = check(&small, &mut stream.clone()).err().unwrap_or_default();
            panic!("{case}\n  {reason}\nshrunk to:\n  {small}\n  {small_reason}");
        }
    });
    say(&format!("{name}: {done} cases"));
}

#[test]
fn fused_copies_agree() {
    let mut checker = CopyChecker::new(Executors::All);
    let mut ranges = 0;
    let pairs = each(1, 6000, |u, mode, _| {
        let pair = Pair::generate(u, mode).expect("enough bytes");
        match checker.check(&pair, Effort::Quick) {
            Ok(copied) => ranges += copied,
            Err(reason) => panic!("{pair}\n  {reason}"),
        }
    });
    let by = checker.pairs;
    say(&format!(
        "fused copy: {pairs} pairs, {} with a kernel of the pair, {} more with gaps on both sides, \
         {ranges} ranges",
        by.kernel, by.other
    ));
    assert!(by.kernel * 2 > by.other, "kernels hardly ran");
}

#[test]
fn decoded_types_rebuild() {
    cases("decode_rebuild", 2, 12_000, |case, _| decode_rebuild::check(case));
}

#[test]
fn wire_forms_agree_and_hostile_bytes_are_harmless() {
    let mut checker = WireChecker::new();
    let mut sum = [0; 3];
    cases("wire", 3, 5000, |case, stream| {
        let fates = checker.check(case, stream, 20)?;
        for (sum, fate) in sum.iter_mut().zip([fates.refused, fates.large, fates.executed]) {
            *sum += fate;
        }
        Ok(())
    });
    say(&format!("wire mutations: {} refused, {} large, {} executed", sum[0], sum[1], sum[2]));
    assert!(sum[2] > 0, "no mutated layout was executed");
}

#[test]
fn texts_read_back_and_mutations_are_harmless() {
    let mut types = 0;
    cases("text", 4, 8000, |case, stream| {
        types += text::check(case, stream, 20)?;
        Ok(())
    });
    say(&format!("text mutations: {types} were types"));
    assert!(types > 0, "no mutated text was a type");
}

#[test]
fn partitions_agree() {
    let checker = SegmentChecker::new(Executors::All);
    let mut parts = 0;
    cases("segments", 5, 4000, |case, stream| {
        parts += checker.check(case, stream, 3)?;
        Ok(())
    });
    say(&format!("segments: {parts} parts"));
}

#[test]
fn file_views_agree() {
    let mut checker = ViewChecker::new(Executors::All);
    each(7, 2000, |u, mode, mut stream| {
        let memory = Case::generate(u, mode).expect("enough bytes");
        let file = Case::generate(u, mode).expect("enough bytes");
        if let Err(reason) = checker.check(&memory, &file, &mut stream, 4) {
            panic!("{memory}\n{file}\n  {reason}");
        }
    });
    let [views, refused, copies] = checker.counts;
    say(&format!("file views: {views} made, {refused} filetypes refused, {copies} copies"));
    assert!(copies > 20 && refused > 20, "the views were hardly used");
}

#[test]
fn hints_are_those_of_the_model() {
    let mut checker = HintChecker::new().expect("a job of one rank");
    let (mut given, mut opened) = (0, 0);
    let lists = each(8, 3000, |u, _, mut stream| {
        let hints = hints::draw(u).expect("enough bytes");
        let open = stream.below(16) == 0;
        (given, opened) = (given + hints.len(), opened + u64::from(open));
        if let Err(reason) = checker.check(&hints, open) {
            panic!("{hints:?}\n  {reason}");
        }
    });
    say(&format!("hints: {lists} lists with {given} hints, {opened} new files"));
    assert!(opened * 32 > lists, "hardly any file was opened");
}

#[test]
fn signatures_agree_with_lists() {
    let pairs = each(6, 6000, |u, mode, mut stream| {
        let pair = Pair::generate(u, mode).expect("enough bytes");
        let other = Case::generate(u, Mode::Tiny).expect("enough bytes");
        if let Err(reason) = signature::check(&pair, &other, &mut stream) {
            panic!("{pair}\nother: {other}\n  {reason}");
        }
    });
    say(&format!("signatures: {pairs} pairs"));
}
