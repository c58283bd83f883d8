//! Compares the values of `runtime/capi/abi/mpich.csv` with those that a C program has from MPICH's `mpi.h`.

use crate::programs::{PEER, compile, run};
use std::fmt::Write;
use std::process::Command;
use typepack_capi_tables::Tables;

#[test]
fn the_values_are_those_of_the_header() {
    let Some(peer) = PEER.get() else { return };
    let tables = Tables::read();
    let mut source = String::from("#include <mpi.h>\n#include <stdio.h>\nint main(void)\n{\n");
    for (name, _) in &tables.mpich {
        let _ = writeln!(source, "    printf(\"{name} %lld\\n\", (long long)({name}));");
    }
    source.push_str(
        "    MPI_Status *s = 0;\n    printf(\"status %d %d %d %d\\n\", (int)sizeof *s, (int)(long)&s->MPI_SOURCE, \
         (int)(long)&s->MPI_TAG, (int)(long)&s->MPI_ERROR);\n    return 0;\n}\n",
    );
    let file = compile::folder().join("values.c");
    std::fs::write(&file, source).expect("a file");
    let exe = compile::program(peer, "values", &file, &["-w"]);
    let text = run(&mut Command::new(exe));
    let mut lines = text.lines();
    for (name, value) in &tables.mpich {
        let line = lines.next().expect("a line");
        let printed: i64 = line[name.len()..].trim().parse().expect("a number");
        // Handles are printed as integers with a sign.
        assert_eq!(printed as i32, *value as i32, "{line}");
        assert!(line.starts_with(name.as_str()), "{line}");
    }
    assert_eq!(lines.next(), Some("status 20 8 12 16"));
}
