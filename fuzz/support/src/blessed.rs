//! Compares a file in the repository with the text that a test makes (golden files, generated pages),
//! and rewrites the file on demand.
//!
//! `TYPEPACK_BLESS=1 cargo test …` writes the text into the file; read the diff before you commit it. A
//! snapshot library is unsuitable for two reasons. A golden file here contains inputs and comments as
//! well as outputs. And a snapshot library calls cargo, but some tests run without cargo (under an
//! emulator).

use std::path::Path;

/// Panics unless the file at `path` contains exactly `made`. If `TYPEPACK_BLESS` is set, writes `made`
/// to the file first.
pub fn blessed(path: &Path, made: &str) {
    if std::env::var_os("TYPEPACK_BLESS").is_some() {
        std::fs::write(path, made).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    if wanted == made {
        return;
    }
    let same = wanted.lines().zip(made.lines()).take_while(|(wanted, made)| wanted == made).count();
    let line = |text: &str| text.lines().nth(same).map_or("the end".into(), |l| format!("{l:?}"));
    panic!(
        "{}:{}: the test makes {} here, but the file has {}; if the change is intended, write the \
         file with TYPEPACK_BLESS=1",
        path.display(),
        same + 1,
        line(made),
        line(&wanted)
    );
}
