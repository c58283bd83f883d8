//! Runs the body of a test as the ranks of a real job.
//!
//! A test calls [`ranks`] with the name of the test. In the test runner, this call starts `mpiexec` with the
//! test binary and this name. All processes of the job have a special environment variable, the mark. In a
//! process with the mark, the same call runs the body of the test. If a job runs for longer than its time
//! limit (five minutes by default), it is killed, and the test fails.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use typepack::Communicator;

const MARK: &str = "JOB_TEST";
const LIMIT: Duration = Duration::from_secs(300);

/// Returns the time limit of a job. The variable `JOB_TEST_MINUTES` sets another limit, in minutes.
fn limit() -> Duration {
    let minutes = std::env::var("JOB_TEST_MINUTES").ok().and_then(|text| text.parse::<u64>().ok());
    minutes.map_or(LIMIT, |minutes| Duration::from_secs(60 * minutes))
}

/// Returns the path of the launcher (`mpiexec`) of this build, and builds the launcher first if necessary.
pub fn mpiexec() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let exe = std::env::current_exe().expect("the test binary's path");
        // The path of this binary is target/PROFILE/deps/TEST.
        let profile = exe.ancestors().nth(2).expect("a profile directory");
        let path = profile.join("mpiexec");
        if std::env::var_os("TEST_BUILT").is_some() {
            // This variable means that the script which runs this test has already built the launcher.
            assert!(path.exists(), "{} is missing", path.display());
            return path;
        }
        // Build the launcher even if the file exists, because a launcher of an older build refuses the
        // ranks of this build. Build the whole workspace: a build of the package alone would use other
        // features and compile everything again.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--workspace", "--bin", "mpiexec"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(path.exists(), "{} is missing after the build: {built:?}", path.display());
        path
    })
    .clone()
}

/// Returns whether this process is a rank that must run the body of a test.
pub fn is_rank() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Returns the command line that runs test `name` of the caller's file as a rank. The file is a module of the test program.
#[track_caller]
pub fn body(name: &str) -> Vec<String> {
    let exe = std::env::current_exe().expect("the test binary's path");
    let exe = exe.to_str().expect("a path in UTF-8").to_owned();
    let file = PathBuf::from(std::panic::Location::caller().file());
    let module = file.file_stem().expect("the name of a file").to_str().expect("text");
    let name = &format!("{module}::{name}");
    [exe.as_str(), "--exact", name, "--nocapture", "--test-threads=1"].map(String::from).to_vec()
}

/// Runs a command with the mark and the variables `env` in its environment, and returns the output. Kills
/// the command if it exceeds the time limit.
pub fn run(mut command: Command, name: &str, env: &[(&str, &str)]) -> Output {
    command.env(MARK, name).envs(env.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the job starts");
    let guard = Deadline::new(&child);
    let output = child.wait_with_output().expect("the job's output");
    guard.passed(name, &output);
    output
}

/// Kills a process if it exceeds the time limit. The ranks of a killed `mpiexec` end with it.
struct Deadline {
    done: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Deadline {
    fn new(child: &Child) -> Self {
        let pid = child.id().to_string();
        let (done, wait) = std::sync::mpsc::channel();
        let start = Instant::now();
        let thread = std::thread::spawn(move || {
            if wait.recv_timeout(limit().saturating_sub(start.elapsed())).is_ok() {
                return false;
            }
            // The sender is dropped only after it has sent a message. So an error can only mean that the time
            // limit has passed.
            Command::new("kill").args(["-KILL", &pid]).status().is_ok()
        });
        Self { done, thread }
    }

    fn passed(self, name: &str, output: &Output) {
        // If the time limit has passed, the thread has ended and this `send` fails. In this case the result
        // of the thread is true, and the assertion below fails.
        let _ = self.done.send(());
        let killed = self.thread.join().expect("the deadline's thread");
        assert!(!killed, "{name}: the job did not end within {:?}\n{}", limit(), text(output));
    }
}

/// Returns standard output and standard error of a process as one text.
pub fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}\n{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Runs `body` as `size` ranks under `mpiexec`. `name` is the name of the test in the caller's file.
#[track_caller]
pub fn ranks(size: usize, name: &str, body: impl FnOnce(&Communicator)) {
    ranks_with(size, name, &[], body);
}

/// Runs `as_rank` as `size` ranks under `mpiexec`, with the variables `env` in their environment. Returns the output
/// of the ranks; in a rank, nothing.
#[track_caller]
pub fn ranks_with(
    size: usize,
    name: &str,
    env: &[(&str, &str)],
    as_rank: impl FnOnce(&Communicator),
) -> String {
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        assert_eq!(world.size(), size);
        as_rank(&world);
        return String::new();
    }
    let mut command = Command::new(mpiexec());
    command.args(["-n", &size.to_string()]).args(body(name));
    let output = run(command, name, env);
    assert!(output.status.success(), "{name}: {}\n{}", output.status, text(&output));
    // If the binary has no test of this name, a rank runs nothing and still succeeds. So count the tests
    // that have passed.
    let output = text(&output);
    let passed = output.matches("1 passed").count();
    assert_eq!(passed, size, "{name}: not every rank ran the test\n{output}");
    output
}
