//! Checks that `include/mpi.h` is what the tables generate, that it compiles as C and as C++ without a
//! warning, and that its constants and functions have the values and types in the tables.
//!
//! With `TYPEPACK_BLESS=1`, the first test rewrites the file instead of comparing it.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use typepack_capi_tables::{Constant, Function, Tables, bindings, cxx, header};
use typepack_test_support::skipped::skipped;

fn include() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
}

#[test]
fn the_file_is_what_the_tables_say() {
    let Tables { functions, constants, callbacks, compat, .. } = Tables::read();
    let made = header(&functions, &constants, &callbacks, &compat);
    typepack_test_support::blessed::blessed(&include().join("mpi.h"), &made);
}

#[test]
fn the_file_for_cxx_is_what_the_tables_say() {
    let Tables { functions, constants, compat, fortran, methods, .. } = Tables::read();
    let made = cxx(&methods, &functions, &constants, &compat, &fortran);
    typepack_test_support::blessed::blessed(&include().join("mpicxx.h"), &made);
}

#[test]
fn the_bindings_for_rust_are_what_the_tables_say() {
    let Tables { functions, constants, callbacks, .. } = Tables::read();
    let made = bindings(&functions, &constants, &callbacks);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("sys/src/abi.rs");
    typepack_test_support::blessed::blessed(&file, &made);
}

/// Compiles a source text against `include/mpi.h`.
fn compile(compiler: &str, options: &[&str], name: &str, source: &str) {
    compile_with(include(), compiler, options, name, source);
}

/// Compiles a source text against the headers in a directory. If the compiler fails, the test fails and shows
/// the compiler's output.
fn compile_with(include: &Path, compiler: &str, options: &[&str], name: &str, source: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(name);
    std::fs::write(&file, source).expect("a source");
    let output = Command::new(compiler)
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-c", "-o", "/dev/null", "-I"])
        .arg(include)
        .arg(&file)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(
        output.status.success(),
        "{compiler} {options:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn it_compiles_without_a_warning() {
    let source = "#include <mpi.h>\nint main(void) { return MPI_SUCCESS; }\n";
    for standard in ["-std=c99", "-std=c11", "-std=gnu17"] {
        compile("cc", &[standard, "-pedantic"], "plain.c", source);
        compile("cc", &[standard, "-pedantic", "-DTYPEPACK_NO_COMPAT"], "plain_abi.c", source);
    }
    for standard in ["-std=c++11", "-std=c++20"] {
        compile("c++", &[standard, "-pedantic"], "plain.cpp", source);
    }
}

/// The C++ functions of MPI-2.2 compile without a warning by every compiler and standard, also without the names outside
/// the ABI, and beside a program's own names.
#[test]
fn the_file_for_cxx_compiles_without_a_warning() {
    let source = "#define VERSION \"1\"\n#include <cstdio>\n#include <mpi.h>\n#include <unistd.h>\n\
                  int main() { return MPI::SEEK_SET == SEEK_SET ? MPI::COMM_WORLD.Get_rank() : 0; }\n";
    for compiler in ["c++", "clang++"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            skipped(format!("{compiler} is missing"));
            continue;
        }
        for standard in ["-std=c++98", "-std=c++11", "-std=c++17", "-std=c++20"] {
            let options =
                [standard, "-pedantic", "-Wshadow", "-Woverloaded-virtual", "-DTYPEPACK_CXX"];
            compile(compiler, &options, "plain_cxx.cpp", source);
        }
        let options = ["-std=c++98", "-DTYPEPACK_CXX", "-DTYPEPACK_NO_COMPAT"];
        compile(compiler, &options, "plain_cxx.cpp", source);
    }
}

/// Returns C source with static assertions about `header`. The source asserts that every constant has the
/// value in the table, and that every function except those in `lacking` has the type in the table.
fn assertions(header: &str, lacking: &[&str]) -> String {
    let mut source = format!("#include <stdint.h>\n#include <{header}>\n");
    let tables = Tables::read();
    for Constant { name, value, .. } in tables.constants {
        let _ = writeln!(
            source,
            "_Static_assert((long long)(intptr_t){name} == {value}LL, \"{name}\");"
        );
    }
    let there = |function: &Function| !lacking.contains(&function.name.as_str());
    for function in tables.functions.into_iter().filter(there) {
        let list: Vec<String> = function.parameters.iter().map(|p| p.c_type.clone()).collect();
        let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
        for prefix in ["", "P"] {
            let _ = writeln!(
                source,
                "_Static_assert(__builtin_types_compatible_p(__typeof__(&{prefix}{0}), \
                 {1} (*)({list})), \"{0}\");",
                function.name, function.returns
            );
        }
    }
    source.push_str(
        "_Static_assert(sizeof(MPI_Status) == 32 && _Alignof(MPI_Status) == 4, \"status\");\n\
         _Static_assert(sizeof(MPI_Comm) == 8 && sizeof(MPI_Aint) == 8, \"widths\");\n",
    );
    source
}

#[test]
fn values_and_types_are_those_of_the_tables() {
    compile("cc", &["-std=gnu11"], "values.c", &assertions("mpi.h", &[]));
}

/// Checks that the header in the Python wheel of MPICH 5.0.2 has the values and types in the tables. If the
/// wheel has not been fetched, the test is skipped.
#[test]
fn the_header_of_mpich_says_the_same() {
    let mpich = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mpich/include");
    if !mpich.join("mpi_abi.h").exists() {
        skipped("MPICH is not fetched: scripts/setup --tests");
        return;
    }
    let source = assertions("mpi_abi.h", &["MPI_Psend_init_c", "MPI_Precv_init_c"]);
    compile_with(&mpich, "cc", &["-std=gnu11"], "mpich_values.c", &source);
}
