//! Runs the programs in `cxx/`, which use the C++ functions of MPI-2.2 (`include/mpicxx.h`). Each is compiled as C++98,
//! and those whose templates matter as C++20, too, without a warning.

use crate::program::{cxx, library};
use std::path::{Path, PathBuf};
use std::process::Command;

fn sources(names: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cxx");
    names.iter().map(|name| folder.join(format!("{name}.cc"))).collect()
}

/// The programs that are compiled with both standards.
const WITH_BOTH: [&str; 3] = ["errors", "communicators", "generalized"];

/// Compiles a program and runs it alone and as jobs.
fn run(names: &[&str]) {
    let name = names[0];
    for (standard, sizes) in [("c++98", &[0, 1, 2, 3][..]), ("c++20", &[2])] {
        if standard != "c++98" && !WITH_BOTH.contains(&name) {
            continue;
        }
        let exe = cxx(&format!("{name}-{standard}"), standard, &sources(names));
        for &size in sizes {
            let mut command = match size {
                0 => Command::new(&exe),
                _ => {
                    let mut command = Command::new(crate::job::mpiexec());
                    command.args(["-n", &size.to_string()]).arg(&exe);
                    command
                }
            };
            // The programs write their files where they run.
            command.env("LD_LIBRARY_PATH", library()).current_dir(library());
            let output = crate::job::run(command, name, &[]);
            let ended = output.status;
            assert!(
                ended.success(),
                "{name}, {size} ranks: {ended}\n{}",
                crate::job::text(&output)
            );
        }
    }
}

macro_rules! programs {
    ($($name:ident: $names:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(&$names);
            }
        )*
    };
}

programs! {
    founding: ["founding"];
    messages: ["messages"];
    types: ["types"];
    collectives: ["collectives"];
    communicators: ["communicators"];
    attributes: ["attributes"];
    windows: ["windows"];
    files: ["files"];
    errors: ["errors"];
    generalized: ["generalized", "elsewhere"];
}
