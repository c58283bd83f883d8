//! Runs `typepack run` as a user would and checks what the command sees, and which obstacles are explained.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typepack"));
    for name in ["LD_PRELOAD", "TYPEPACK_INTERPOSE", "TYPEPACK_REPORT"] {
        command.env_remove(name);
    }
    command.arg("run").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Compiles the text of a C program or library.
    fn compiled(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let (from, to) = (self.0.join(format!("{name}.c")), self.0.join(name));
        std::fs::write(&from, source).unwrap();
        let done = Command::new("cc").arg(&from).arg("-o").arg(&to).args(flags).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        to.to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A library that does nothing, in place of the real one, which not every build has.
fn library(scratch: &Scratch) -> String {
    scratch.compiled("liblibrary.so", "typedef int nothing;\n", &["-shared", "-fPIC"])
}

#[test]
fn the_command_gets_the_variables() {
    let scratch = Scratch::new("run-variables");
    let library = library(&scratch);
    let print = "echo $LD_PRELOAD-$TYPEPACK_INTERPOSE-$TYPEPACK_REPORT; exit 7";
    for (options, wanted) in [
        (&[][..], format!("{library}--\n")),
        (&["--all"], format!("{library}-all-\n")),
        (&["--report", "--all"], format!("{library}-all-1\n")),
    ] {
        let words = [&["--library", &library], options, &["--", "sh", "-c", print]].concat();
        let done = run(&words);
        assert_eq!((text(&done.stdout), text(&done.stderr)), (wanted, String::new()));
        // The exit code is that of the command.
        assert_eq!(done.status.code(), Some(7));
    }
}

#[test]
fn what_keeps_the_library_from_working_is_explained() {
    let scratch = Scratch::new("run-obstacles");
    let library = library(&scratch);
    let explained = |words: &[&str]| {
        let done = run(&[&["--library", &library, "--"], words].concat());
        (done.status.code(), text(&done.stderr))
    };
    // A program of another ABI.
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.12"];
    let native = scratch.compiled("libnative.so", "int MPI_Init(void) { return 0; }\n", &flags);
    let source = "int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n";
    let folder = format!("-Wl,-rpath,{}", scratch.0.display());
    let program = scratch.compiled("native", source, &[&native, &folder]);
    std::fs::rename(&native, scratch.0.join("libmpi.so.12")).unwrap();
    let (code, line) = explained(&["env", "-", &program]);
    assert_eq!(code, Some(0), "{line}");
    assert!(line.starts_with(&format!("typepack: run: {program}: ")), "{line}");
    assert!(line.contains("libmpi.so.12") && line.contains("standard ABI"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    // The same program with a shim, which may be for that library.
    let shim = scratch.0.join("libtypepack_shim.so");
    std::fs::copy(&library, &shim).unwrap();
    let done = run(&["--library", shim.to_str().unwrap(), "--", &program]);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
    // A program of the ABI.
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1"];
    let abi = scratch.compiled("libabi.so", "int MPI_Init(void) { return 0; }\n", &flags);
    let program = scratch.compiled("abi", source, &[&abi, &folder]);
    std::fs::rename(&abi, scratch.0.join("libmpi_abi.so.1")).unwrap();
    assert_eq!(explained(&[&program]), (Some(0), String::new()));
    let done = run(&["--library", shim.to_str().unwrap(), "--", &program]);
    assert!(text(&done.stderr).contains("needs no shim"), "{done:?}");
    // A static program, if the machine has the static C library.
    let both = format!("int MPI_Init(void) {{ return 0; }}\n{source}");
    if Path::new("/usr/lib/x86_64-linux-gnu/libc.a").exists() {
        let program = scratch.compiled("static", &both, &["-static"]);
        let (_, line) = explained(&[&program]);
        assert!(line.contains("linked statically"), "{line}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let scratch = Scratch::new("run-arguments");
    let library = library(&scratch);
    let cases: [(&[&str], i32, &str); 3] = [
        (&["--library", "/no/such", "--", "true"], 2, "typepack: run: --library /no/such: "),
        (&["--library", &library, "--", "/no/such"], 1, "typepack: run: /no/such: "),
        (&["--library", &library], 2, "typepack: "),
    ];
    for (words, code, start) in cases {
        let done = run(words);
        assert_eq!(done.status.code(), Some(code), "{words:?}: {done:?}");
        let line = text(&done.stderr);
        assert!(line.starts_with(start) && line.lines().count() == 1, "{words:?}: {line}");
    }
}
