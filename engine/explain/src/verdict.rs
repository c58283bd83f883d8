//! Says in one sentence how a type is packed, and whether that is fast.
//!
//! The words come from the names of the plan's executors, the same names that `passes.rs` prints and that
//! `typepack halo` shows for each face.

use std::fmt::Write;
use typepack_engine::Plan;

/// Returns a sentence such as `packed by the AVX-512 kernel for structs with gaps, from 104 bytes on (shorter calls: a
/// compiled kernel): fast`.
pub fn verdict(plan: &Plan) -> String {
    if plan.element_bytes() == 0 {
        return "nothing to pack: the type has no data".into();
    }
    if plan.is_contiguous() {
        return "one run of memory: copied by one memcpy, as fast as this machine copies".into();
    }
    let mut ways: Vec<String> = Vec::new();
    let mut is_slow = plan.nests().len() == 0;
    for (_, _, [pack, _]) in plan.executors() {
        is_slow |= pack == "interpreter";
        let way = words(&pack);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    let way = match &ways[..] {
        [] => name("interpreter"),
        [way] => way.clone(),
        [first, second] => format!("{first}, and by {second}"),
        [first, rest @ ..] => format!("{first}, and in other parts by {} other ways", rest.len()),
    };
    let speed = if is_slow { "slow, run by run" } else { "fast" };
    format!("packed by {way}: {speed}")
}

/// Returns the words for the text of an executor: one name, `NAME up to N B, NAME`, or `NAME from N B, NAME from N B`.
fn words(executor: &str) -> String {
    if let Some((short, rest)) = executor.split_once(" up to ")
        && let Some((most, long)) = rest.split_once(" B, ")
        && let Ok(most) = most.parse::<u64>()
    {
        return format!(
            "{}, from {} bytes on (shorter calls: {})",
            name(long),
            most + 1,
            name(short)
        );
    }
    let parts: Vec<_> =
        executor.split(" B, ").filter_map(|part| part.split_once(" from ")).collect();
    let Some((last, first)) = parts.split_last() else { return name(executor) };
    let mut text = format!("{}, from {} bytes on", name(last.0), last.1.trim_end_matches(" B"));
    if let Some((short, _)) = first.first() {
        let _ = write!(text, " (shorter calls: {})", name(short));
    }
    text
}

/// Returns the words for the name of one executor.
fn name(executor: &str) -> String {
    let mut parts = executor.split(' ');
    if parts.next() != Some("leaf") {
        return match executor {
            "rows" => "one memcpy per row".into(),
            "interpreter" => "the interpreter".into(),
            _ => "a compiled kernel".into(),
        };
    }
    let kind = match parts.next() {
        Some("tile") => "interleaved columns",
        Some("row") => "blocks of one length",
        Some("runs") => "short patterns of runs",
        Some("window") => "structs with gaps and short strides",
        Some("shuffle") => "structs with gaps",
        _ => "runs",
    };
    let isa = match parts.next() {
        Some("avx512") => "AVX-512",
        Some("avx2") => "AVX2",
        Some("sse4") => "SSE4",
        _ => "portable",
    };
    format!("the {isa} kernel for {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::{Datatype, Settings, Strategy};

    #[test]
    fn names_become_sentences() {
        for (executor, wanted) in [
            ("rows", "one memcpy per row"),
            ("pack loop loop b8", "a compiled kernel"),
            ("leaf row avx2", "the AVX2 kernel for blocks of one length"),
            (
                "pack loop w(0+1 4+12) up to 103 B, leaf window avx512",
                "the AVX-512 kernel for structs with gaps and short strides, from 104 bytes on (shorter calls: a \
                 compiled kernel)",
            ),
            (
                "pack loop b8 from 0 B, leaf row sse4 from 8192 B",
                "the SSE4 kernel for blocks of one length, from 8192 bytes on (shorter calls: a compiled kernel)",
            ),
        ] {
            assert_eq!(words(executor), wanted, "{executor}");
        }
    }

    #[test]
    fn a_type_has_one_sentence() {
        let said = |text: &str, strategy| {
            let ty: Datatype = text.parse().unwrap();
            verdict(&ty.commit_with(&Settings { strategy, ..Settings::default() }).unwrap())
        };
        assert!(said("contiguous(4, int)", None).ends_with("as fast as this machine copies"));
        assert!(said("contiguous(0, int)", None).starts_with("nothing to pack"));
        let ty = "vector(1000, 1, 2, double)";
        let slow = "packed by the interpreter: slow, run by run";
        assert_eq!(said(ty, Some(Strategy::Interpreter)), slow);
        let leaf = said(ty, Some(Strategy::Leaf));
        assert!(leaf.starts_with("packed by the ") && leaf.ends_with(": fast"), "{leaf}");
    }
}
