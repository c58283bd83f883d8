//! Compares the programs of known types after each pass with the text files in `golden/`.
//!
//! A golden file consists of cases. The line `== TITLE` begins a case. Each line `= TYPE` in a case
//! contains a type expression; below it is the type's loop program after every pass that changed the
//! program. All types of one case describe the same layout, so their final programs must be equal,
//! including displacements and extent. `ddtbench.csv` lists the layouts of DDTBench, and
//! `golden/ddtbench.rs` turns them into expressions. The file `ddtbench.programs` contains their final
//! programs.
//!
//! `TYPEPACK_BLESS=1 cargo test -p typepack-engine --test engine golden::` rewrites the programs in these files.
//! The command still fails if the types of one case have different programs, or if the number of runs
//! or of bytes of a layout is wrong.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use typepack_engine::analysis::Facts;
use typepack_engine::text::parse;
use typepack_engine::{Datatype, inspect};
use typepack_test_support::blessed::blessed;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Returns the name of each step of a commit, and the text of the program after that step.
fn steps(ty: &Datatype) -> Vec<(String, String)> {
    let mut steps = Vec::new();
    inspect::steps(ty, |step, program| steps.push((step.to_owned(), program.to_string()))).unwrap();
    steps
}

/// Returns the text of a golden file for these steps: the program after each step that changed it.
fn trace(steps: &[(String, String)]) -> String {
    let (mut out, mut last) = (String::new(), "");
    for (step, program) in steps {
        if program != last {
            writeln!(out, "after {step}").unwrap();
            for line in program.lines() {
                writeln!(out, "  {line}").unwrap();
            }
        }
        last = program;
    }
    out
}

#[test]
fn every_pass_does_what_it_did_and_equal_layouts_meet() {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "golden"));
    paths.sort();
    let (mut types, mut apart) = (0, String::new());
    for path in &paths {
        let wanted = fs::read_to_string(path).unwrap();
        let mut found = String::new();
        // The text of the first type of the current case, and the final program of that type.
        let mut meeting: Option<(String, String)> = None;
        let mut title = "";
        for line in wanted.lines() {
            if line.is_empty() || line.starts_with('#') {
                writeln!(found, "{line}").unwrap();
            } else if let Some(case) = line.strip_prefix("== ") {
                (title, meeting) = (case, None);
                writeln!(found, "{line}").unwrap();
            } else if let Some(text) = line.strip_prefix("= ") {
                types += 1;
                let ty = parse(text).unwrap_or_else(|e| panic!("{title}: {e}"));
                let steps = steps(&ty);
                write!(found, "{line}\n{}", trace(&steps)).unwrap();
                let program = steps.last().unwrap().1.clone();
                match &meeting {
                    None => meeting = Some((text.to_owned(), program)),
                    Some((first, met)) if *met != program => {
                        writeln!(apart, "{title}:\n{first}\n{met}{text}\n{program}").unwrap();
                    }
                    Some(_) => {}
                }
            }
        }
        blessed(path, &found);
    }
    assert!(apart.is_empty(), "types that describe one layout have different programs:\n{apart}");
    assert!(types >= 40, "{types} types in {} files", paths.len());
}

#[test]
fn ddtbench_has_its_runs_its_bytes_and_its_programs() {
    let text = fs::read_to_string(folder().join("ddtbench.csv")).unwrap();
    let rows = crate::ddtbench::rows(&text);
    assert_eq!(rows.len(), 90);
    let (mut found, mut programs) = (String::new(), BTreeMap::new());
    for crate::ddtbench::Row { name, expression, runs, bytes } in rows {
        let ty = parse(&expression).unwrap_or_else(|e| panic!("{name}: {e}"));
        let plan = ty.commit().unwrap();
        let facts = Facts::of(&plan);
        assert_eq!((facts.runs, facts.bytes), (runs, bytes), "{name}");
        let program = steps(&ty).pop().unwrap().1;
        write!(found, "== {name}\n{program}").unwrap();
        programs.insert(name, program);
    }
    blessed(&folder().join("ddtbench.programs"), &found);
    // The extent of a vector ends with its data, whereas the extent of a subarray is that of its array.
    // So the two programs may differ only in their extents.
    let data = |program: &str| program.split_once('\n').map(|(_, data)| data.to_owned());
    let mut pairs = 0;
    for (name, program) in &programs {
        if let Some(stem) = name.strip_suffix("_vec") {
            assert_eq!(data(program), data(&programs[format!("{stem}_sa").as_str()]), "{stem}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 8);
}
