//! Files in the repository that a test makes: goldens, generated pages. One way to compare and to
//! rewrite them for every crate of the workspace.
//!
//! `TYPEPACK_BLESS=1 cargo test …` writes what was made; read the difference before committing it.
//! Not a snapshot library: a golden file here holds inputs and comments beside the outputs, and tests
//! run where there is no cargo (under an emulator), which such a library calls.

use std::path::Path;

/// Panics unless the file at `path` is what was `made`; under `TYPEPACK_BLESS` writes it first.
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
        "{}:{}: {} instead of {}; if that is meant, write the file with TYPEPACK_BLESS=1",
        path.display(),
        same + 1,
        line(made),
        line(&wanted)
    );
}
