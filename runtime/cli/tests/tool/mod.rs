//! Runs the built `typepack` program under the built `mpiexec`, for the tests in this folder. A process that
//! does not end by its deadline is killed, and the test fails.

#![allow(dead_code, reason = "each test program uses a part of these functions")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

pub const DEADLINE: Duration = Duration::from_secs(240);

/// Builds `mpiexec` into the folder of the `typepack` program, and returns that folder. The variable `TEST_BUILT` means that
/// the script which runs this test has already built `mpiexec`.
pub fn bin() -> &'static Path {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_typepack")).parent().expect("a folder");
        if std::env::var_os("TEST_BUILT").is_some() {
            assert!(folder.join("mpiexec").exists(), "{} has no mpiexec", folder.display());
            return folder.to_owned();
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "-p", "typepack-launcher"]);
        build.arg("--target-dir").arg(folder.parent().expect("the target folder"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo starts").success(), "mpiexec was not built");
        folder.to_owned()
    })
}

pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(command: &mut Command) -> Outcome {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut text = Vec::new();
            from.read_to_end(&mut text).expect("a readable pipe");
            String::from_utf8(text).expect("text")
        })
    }
    let stdout = reader(child.stdout.take().expect("a pipe"));
    let stderr = reader(child.stderr.take().expect("a pipe"));
    let code = wait(&mut child, command);
    let stdout = stdout.join().expect("the reader ends");
    Outcome { code, stdout, stderr: stderr.join().expect("the reader ends") }
}

pub fn wait(child: &mut Child, command: &Command) -> Option<i32> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if Instant::now() > end {
            child.kill().expect("killed");
            panic!("{command:?} did not end within {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs `typepack` with the arguments `words` under `mpiexec` on `ranks` ranks, or without `mpiexec` if
/// `ranks` is 0.
pub fn typepack(ranks: usize, words: &str, variables: &[(&str, &str)]) -> Outcome {
    let tool = env!("CARGO_BIN_EXE_typepack");
    let mut command = if ranks == 0 {
        Command::new(tool)
    } else {
        let mut command = Command::new(bin().join("mpiexec"));
        command.args(["-n", &ranks.to_string(), tool]);
        command
    };
    command.args(words.split_whitespace()).env_remove("TYPEPACK_JIT");
    command.envs(variables.iter().copied());
    run(&mut command)
}

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("typepack-tool-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure to remove the folder is ignored, because a folder that is left behind does no harm.
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the lines that the ranks wrote on stderr. Leaves out the line in which `mpiexec` reports the rank
/// that ended the job.
pub fn said(outcome: &Outcome) -> String {
    let own = outcome.stderr.lines().filter(|line| !line.starts_with("mpiexec: rank "));
    own.map(|line| format!("{line}\n")).collect()
}

/// Checks that the command with the arguments `words` prints exactly the line `line` on stderr, prints
/// nothing on stdout, and ends with the exit code `code`.
pub fn refused(ranks: usize, words: &str, line: &str, code: i32) {
    let outcome = typepack(ranks, words, &[]);
    let what = format!("{ranks} ranks, {words}");
    assert_eq!(said(&outcome), format!("{line}\n"), "{what}");
    assert_eq!(outcome.stdout, "", "{what}");
    assert_eq!(outcome.code, Some(code), "{what}");
}

/// Runs `typepack halo --verify`, checks that the result is verified, and returns the checksum.
pub fn verified(ranks: usize, options: &str, variables: &[(&str, &str)]) -> String {
    let outcome = typepack(ranks, &format!("halo {options} --verify"), variables);
    let what = format!("{ranks} ranks, {options}, {variables:?}");
    assert_eq!(outcome.code, Some(0), "{what}: {}", outcome.stderr);
    assert_eq!(outcome.stderr, "", "{what}");
    assert!(outcome.stdout.contains("verified: bit for bit equal"), "{what}: {}", outcome.stdout);
    let checksum = outcome.stdout.lines().find_map(|line| line.strip_prefix("checksum: "));
    checksum.expect("a checksum").to_owned()
}
