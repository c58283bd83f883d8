//! Checks that the launcher is linked with the job crate, but with no code of the engine or of the code
//! generator.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the names of all packages that cargo needs to build and test `mpiexec`. Cargo takes them from the
/// lock file, without network access.
fn packages() -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}"]);
    tree.args(["--package", "typepack-launcher", "--edges", "normal,build,dev"]);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let lines = String::from_utf8(output.stdout).expect("the output is UTF-8");
    lines.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn the_launcher_depends_on_the_job_crate_and_no_code_generator() {
    let packages = packages();
    assert!(packages.contains("typepack-job") && packages.contains("hwlocality"), "{packages:?}");
    let ours = packages.iter().filter(|name| name.starts_with("typepack"));
    assert_eq!(
        ours.collect::<Vec<_>>(),
        ["typepack-job", "typepack-launcher", "typepack-test-support"]
    );
    let unwanted: Vec<_> = packages.iter().filter(|name| name.contains("cranelift")).collect();
    assert!(unwanted.is_empty(), "{unwanted:?}");
}

/// Checks the compiled program itself, whatever the manifests say: no name of the code generator or of the
/// engine may occur in it.
#[test]
fn the_program_holds_no_code_generator() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_mpiexec")).expect("the program can be read");
    let holds = |name: &str| memchr::memmem::find(&program, name.as_bytes()).is_some();
    assert!(holds("typepack_job"), "the program has no symbol names, so this test cannot work");
    for name in ["cranelift_codegen", "typepack_engine", "typepack_jit"] {
        assert!(!holds(name), "{name}");
    }
}
