//! Checks that the check finds import cycles. Each small tree of sources here has one import against
//! the order of layers, and each import is written in a different way. The check must report every one
//! of them.

use super::order::check;
use super::source::Sources;

fn faults(layers: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let sources: Sources =
        files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    let layers: Vec<String> = layers.iter().map(|layer| layer.to_string()).collect();
    check("", &sources, &layers).faults
}

/// The order of layers in these small trees.
const ORDER: [&str; 3] = ["low/", "high/", "lib.rs"];

/// Checks that a crate has exactly one fault, in line `line` of `low/part.rs`, and that the message says
/// that the imported name lives in `high/`. `low` is the text of `low/part.rs`; `more` has further
/// files, which replace files of the same name.
#[track_caller]
fn caught(line: usize, low: &str, more: &[(&str, &str)]) {
    let mut files = vec![
        ("lib.rs", "mod high;\nmod low;\npub use high::room::{Deep, deep};\n"),
        ("low/mod.rs", "mod part;\npub use part::*;\npub struct Floor;\n"),
        ("low/part.rs", low),
        ("high/mod.rs", "pub mod room;\npub fn top() -> crate::low::Floor { crate::low::Floor }\n"),
        ("high/room.rs", "#[derive(Default)]\npub struct Deep;\npub fn deep() {}\n"),
    ];
    for (path, text) in more {
        files.retain(|(other, _)| other != path);
        files.push((path, text));
    }
    let faults = faults(&ORDER, &files);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let at = format!("low/part.rs:{line}: ");
    assert!(faults[0].starts_with(&at) && faults[0].contains("lives in high/"), "{}", faults[0]);
}

/// Checks that a crate with the text `low` in `low/part.rs` has no fault.
#[track_caller]
fn passes(low: &str) {
    let files = [
        ("lib.rs", "mod high;\nmod low;\npub use high::Deep;\n"),
        ("low/mod.rs", "mod part;\npub use part::*;\npub struct Floor;\nfn list() {}\n"),
        ("low/part.rs", low),
        (
            "high/mod.rs",
            "use crate::low::Floor;\npub struct Deep(Floor);\npub fn deep() { crate::low::Floor; }\n",
        ),
    ];
    assert_eq!(faults(&ORDER, &files), Vec::<String>::new());
}

#[test]
fn imports_of_the_own_layer_and_of_lower_ones_pass() {
    passes(
        "use super::Floor;\nuse std::fmt;\nuse serde::Deep;\npub fn f(deep: u8) -> u8 { super::list(); deep }\n",
    );
}

#[test]
fn a_direct_import() {
    caught(2, "use std::fmt;\nuse crate::high::room::Deep;\n", &[]);
}

#[test]
fn a_nested_tree() {
    caught(1, "use crate::{low::Floor, high::{room::{self}}};\n", &[]);
    caught(1, "use crate::{low::Floor, high::top as bottom};\n", &[]);
}

#[test]
fn through_super_super() {
    caught(1, "use super::super::high::room::deep;\n", &[]);
    caught(2, "pub fn f() {\n    super::super::high::top();\n}\n", &[]);
    caught(2, "mod inner {\n    use super::super::super::high::top;\n}\n", &[]);
}

#[test]
fn through_an_inline_path() {
    caught(1, "pub fn f(_: crate::high::room::Deep) {}\n", &[]);
    caught(3, "pub fn f() {\n    let _ = 1;\n    crate::high::room::deep();\n}\n", &[]);
    caught(
        1,
        "pub trait T { type A; }\nimpl T for u8 { type A = Vec<u8>; }\n"
            .replace("Vec<u8>", "Vec<crate::high::room::Deep>")
            .replacen('\n', " ", 1)
            .as_str(),
        &[],
    );
    caught(1, "pub fn f() -> u8 { <crate::high::room::Deep as Into<u8>>::into(todo!()) }\n", &[]);
}

#[test]
fn inside_a_function() {
    caught(2, "pub fn f() {\n    use crate::high::top;\n}\n", &[]);
}

#[test]
fn in_what_a_macro_is_given() {
    caught(1, "pub fn f() { assert!(1 < 2, \"{:?}\", crate::high::top()); }\n", &[]);
    caught(
        2,
        "thread_local! {\n    static X: crate::high::room::Deep = const { todo!() };\n}\n",
        &[],
    );
    caught(2, "make! {\n    use crate::{low::Floor, high::top};\n}\n", &[]);
}

#[test]
fn in_what_a_macro_writes() {
    caught(2, "macro_rules! m {\n    () => { $crate::high::top() };\n}\n", &[]);
}

#[test]
fn a_macro_by_its_name() {
    let high = "pub mod room;\nmacro_rules! loud { () => {} }\npub(crate) use loud;\n";
    caught(
        1,
        "crate::high::loud!();\n",
        &[("high/mod.rs", high), ("lib.rs", "mod high;\nmod low;\n")],
    );
    // Here `#[macro_use]` makes the macro usable without a path.
    let root = "#[macro_use]\nmod high;\nmod low;\n";
    caught(1, "pub fn f() { loud!() }\n", &[("high/mod.rs", high), ("lib.rs", root)]);
}

#[test]
fn through_a_re_export_of_the_crate() {
    caught(1, "use crate::Deep;\n", &[]);
    caught(1, "pub fn f() { crate::deep() }\n", &[]);
}

#[test]
fn through_a_re_export_of_a_folder() {
    let high = "mod room;\npub use self::room::Deep as Renamed;\n";
    caught(
        1,
        "use crate::high::Renamed;\n",
        &[("high/mod.rs", high), ("lib.rs", "mod high;\nmod low;\n")],
    );
}

#[test]
fn through_a_glob() {
    caught(1, "use crate::high::room::*;\n", &[]);
    // The declaration `use super::*` alone does not show an import from an upper layer. Only the use of
    // `Deep` shows it.
    let lib = "mod high;\nmod low;\npub use high::room::*;\n";
    let files = [
        ("lib.rs", lib),
        ("low/mod.rs", "use super::*;\npub fn f() -> Deep { todo!() }\n"),
        ("high/mod.rs", "pub mod room;\n"),
        ("high/room.rs", "pub struct Deep;\n"),
    ];
    let faults = faults(&ORDER, &files);
    assert!(
        faults.iter().any(|fault| fault.starts_with("low/mod.rs:2: `Deep`: lives in high/room.rs")),
        "{faults:#?}"
    );
}

#[test]
fn through_a_module_that_was_imported() {
    // The `use` declaration is one fault; the use of a name through the imported module is another
    // fault.
    let low = "use crate::high;\npub fn f() { high::room::deep() }\n";
    let files = [
        ("lib.rs", "mod high;\nmod low;\n"),
        ("low/mod.rs", low),
        ("high/mod.rs", "pub mod room;\n"),
        ("high/room.rs", "pub fn deep() {}\n"),
    ];
    let faults = faults(&ORDER, &files);
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(
        faults[0].starts_with("low/mod.rs:1: ") && faults[0].contains("high/mod.rs"),
        "{}",
        faults[0]
    );
    assert!(
        faults[1].starts_with("low/mod.rs:2: ") && faults[1].contains("high/room.rs"),
        "{}",
        faults[1]
    );
}

#[test]
fn a_method_from_another_room() {
    // The type is defined in the lower layer; one of its `impl` blocks is in the upper layer.
    let files = |low: &str| {
        let files = [
            ("lib.rs", "mod high;\nmod low;\n".to_owned()),
            (
                "low/mod.rs",
                format!("pub struct Floor {{ inner: Box<Inner> }}\npub struct Inner;\n{low}"),
            ),
            (
                "high/mod.rs",
                "use crate::low::*;\nimpl Floor { pub fn up() {} pub fn far(&self) {} }\n\
                 impl Inner { pub fn deep(&self) {} }\n"
                    .to_owned(),
            ),
        ];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        faults(&ORDER, &files)
    };
    for low in [
        "fn f() { Floor::up() }\n",
        "impl Floor { fn f(&self) { self.far() } }\n",
        "impl Floor { fn f() { Self::up() } }\n",
        "impl Floor { fn f(&self) { self.inner.deep() } }\n",
        "fn f(floor: &Floor) { floor.far() }\n",
        "impl Floor { fn g(&self) -> &Inner { &self.inner } fn f(&self) { self.g().deep() } }\n",
        "fn f(floor: &Floor) { let inner = &floor.inner; inner.deep() }\n",
    ] {
        let faults = files(low);
        assert_eq!(faults.len(), 1, "{low}: {faults:#?}");
        assert!(faults[0].starts_with("low/mod.rs:3: "), "{}", faults[0]);
    }
    assert_eq!(files("fn f(floor: u8) { floor.far() }\n"), Vec::<String>::new());
}

#[test]
fn tests_are_exempt() {
    passes("#[cfg(test)]\nmod tests {\n    use crate::high::deep;\n}\n");
    passes("#[cfg(all(test, unix))]\nuse crate::high::deep;\n");
    passes("#[test]\nfn f() { crate::high::deep() }\n");
    caught(2, "#[cfg(any(test, unix))]\nuse crate::high::top;\n", &[]);
    let files = [
        ("lib.rs", "mod high;\n#[cfg(test)]\nmod low;\n"),
        ("low/mod.rs", "use crate::high::f;\nmod more;\n"),
        ("low/more.rs", "use crate::high::f;\n"),
        ("high/mod.rs", "pub fn f() {}\n"),
    ];
    assert_eq!(faults(&ORDER, &files), Vec::<String>::new());
}

#[test]
fn a_file_of_its_own_within_a_folder_has_the_finer_place() {
    let files = [
        ("lib.rs", "mod room;\n"),
        ("room/mod.rs", "mod first;\nmod second;\n"),
        ("room/first.rs", "use super::second::f;\n"),
        ("room/second.rs", "pub fn f() {}\n"),
    ];
    assert_eq!(faults(&["room/", "lib.rs"], &files), Vec::<String>::new());
    let finer = faults(&["room/first.rs", "room/", "lib.rs"], &files);
    assert_eq!(finer.len(), 1, "{finer:#?}");
}

#[test]
fn a_file_without_a_place() {
    let files = [("lib.rs", "mod room;\n"), ("room.rs", "\n")];
    assert_eq!(
        faults(&["lib.rs"], &files),
        ["room.rs: this file has no place in the list of layers"]
    );
}

#[test]
fn an_entry_without_a_file() {
    let found = faults(&["room/", "lib.rs"], &[("lib.rs", "\n")]);
    assert_eq!(found, ["room/: this entry of the list of layers has no file"]);
}

#[test]
fn a_file_that_no_module_declares() {
    let files = [("lib.rs", "mod gone;\n"), ("room.rs", "\n")];
    let found = faults(&["room.rs", "lib.rs"], &files);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].contains("no `mod` declaration") && found[1].contains("no such file"),
        "{found:#?}"
    );
}

#[test]
fn programs_beside_the_library_and_shared_files() {
    let files = [
        ("main.rs", "mod room;\nfn main() { room::f() }\n"),
        (
            "bin/tool.rs",
            "#[path = \"../shared/mod.rs\"]\nmod shared;\nfn main() { shared::part::f() }\n",
        ),
        ("shared/mod.rs", "pub mod part;\n"),
        ("shared/part.rs", "pub fn f() {}\n"),
        ("room.rs", "pub fn f() { crate::main() }\n"),
    ];
    let found = faults(&["room.rs", "shared/", "main.rs", "bin/"], &files);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("room.rs:1: `crate::main`: lives in main.rs"), "{}", found[0]);
}
