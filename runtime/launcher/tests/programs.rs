//! Tests of jobs with several programs, of options for one program (directory, search path, variables), and
//! of options for the whole job (variables, files, time limit, placement).

use std::fs;
use std::path::PathBuf;

use crate::harness::{mpiexec, run, shell, start};
use typepack_test_support::script::executable;
use typepack_test_support::skipped::skipped;

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Makes a new directory for a test, and returns its path without symbolic links.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("the directory is made");
    path.canonicalize().expect("the directory has a path")
}

#[test]
fn several_programs_are_one_job() {
    let say = "echo $0 $TYPEPACK_RANK/$TYPEPACK_SIZE $TYPEPACK_APPNUM $MPI_LOCALRANKID";
    let words = ["-n", "1", "sh", "-c", say, "a", ":", "-n", "2", "sh", "-c", say, "b"];
    let done = run(mpiexec(&words));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert_eq!(sorted(&done.out), ["a 0/3 0 0", "b 1/3 1 1", "b 2/3 1 2"]);
}

#[test]
fn the_program_that_failed_is_named() {
    let folder = scratch("bad-second");
    let path = folder.join("bad");
    executable(&path, "#!/no/such/interpreter\n");
    let bad = path.to_str().expect("the path is UTF-8");
    let done = run(mpiexec(&["-n", "2", "sleep", "300", ":", "-n", "1", bad]));
    fs::remove_dir_all(&folder).expect("the directory is removed");
    assert_eq!((done.code, done.left.len()), (127, 0), "{done:?}");
    assert!(done.err.starts_with(&format!("mpiexec: program: '{bad}' cannot be run")), "{done:?}");
}

#[test]
fn working_directories() {
    let folder = scratch("wdir");
    executable(&folder.join("script"), "pwd; echo $PWD\n");
    let name = folder.to_str().expect("the path is UTF-8");
    let done = run(mpiexec(&["-n", "1", "-wdir", name, "./script", ":", "-n", "1", "pwd"]));
    let here = std::env::current_dir().expect("there is a current directory");
    let here = here.to_str().expect("the path is UTF-8");
    let mut wanted = [name, name, here];
    wanted.sort_unstable();
    assert_eq!(sorted(&done.out), wanted, "{done:?}");
    // A relative directory must start from the directory in which mpiexec was started.
    let mut command = mpiexec(&["-n", "1", "--wd", ".", "./script"]);
    command.current_dir(&folder);
    assert_eq!(run(command).out, format!("{name}\n{name}\n"));
    let done = run(mpiexec(&["-n", "1", "-path", name, "script"]));
    assert_eq!(done.code, 0, "{done:?}");
    fs::remove_dir_all(&folder).expect("the directory is removed");
}

#[test]
fn variables() {
    let say = "echo $0 [$A] [$B] [$C] [$HOME]";
    let words = [
        &["-genv", "A", "1", "-genvlist", "C,PATH"][..],
        &["-n", "1", "-env", "B", "2", "/bin/sh", "-c", say, "x"],
        &[":", "-n", "1", "-x", "A=3", "-x", "B", "-envall", "/bin/sh", "-c", say, "y"],
    ]
    .concat();
    let mut command = mpiexec(&words);
    command.env("B", "ours").env("C", "c").env("HOME", "/h");
    let done = run(command);
    assert_eq!(sorted(&done.out), ["x [1] [2] [c] []", "y [3] [ours] [c] [/h]"], "{done:?}");
}

/// Checks that a job started by a rank of another job does not inherit the outer job's universe size and
/// initial error handler.
#[test]
fn what_a_job_is_told_ends_with_it() {
    let say = "echo ${TYPEPACK_UNIVERSE_SIZE-none} ${TYPEPACK_INITIAL_ERRHANDLER-none}";
    let words = ["-usize", "7", "-initial-errhandler", "mpi_errors_return", "-n", "1"];
    let done = run(mpiexec(&[&words[..], &["sh", "-c", say]].concat()));
    assert_eq!(done.out, "7 mpi_errors_return\n", "{done:?}");
    let inner = [env!("CARGO_BIN_EXE_mpiexec"), "-n", "1", "sh", "-c", say];
    let done = run(mpiexec(&[&words[..], &inner].concat()));
    assert_eq!(done.out, "none none\n", "{done:?}");
}

#[test]
fn output_in_files() {
    let folder = scratch("files");
    let pattern = |name: &str| folder.join(name).to_str().expect("the path is UTF-8").to_owned();
    fs::write(pattern("out.1"), "of a former run").expect("the file is written");
    let (out, err) = (pattern("out.%r"), pattern("err"));
    let words = ["-n", "2", "-outfile-pattern", &out, "-errfile-pattern", &err];
    let say = "echo out $TYPEPACK_RANK; echo err >&2";
    let done = run(mpiexec(&[&words[..], &["sh", "-c", say]].concat()));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "{done:?}");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    assert_eq!([read("out.0"), read("out.1"), read("err")], ["out 0\n", "out 1\n", "err\nerr\n"]);
    fs::remove_dir_all(&folder).expect("the directory is removed");
    let done = run(mpiexec(&["-n", "2", "-outfile-pattern", "/no/such/%r", "true"]));
    assert_eq!((done.code, done.left.len()), (1, 0), "{done:?}");
    assert!(done.err.contains("cannot write '/no/such/0'"), "{done:?}");
}

#[test]
fn a_file_of_programs() {
    let folder = scratch("config");
    let file = folder.join("job");
    let say = "sh -c 'echo $0 $TYPEPACK_RANK of $TYPEPACK_SIZE'";
    fs::write(&file, format!("# two\n-n 1 {say} a\n\n-n 1 \\\n{say} b\n"))
        .expect("the file is written");
    let done = run(mpiexec(&["-l", "-configfile", file.to_str().expect("the path is UTF-8")]));
    fs::remove_dir_all(&folder).expect("the directory is removed");
    assert_eq!(sorted(&done.out), ["[0] a 0 of 2", "[1] b 1 of 2"], "{done:?}");
}

#[test]
fn time_is_limited() {
    let done = run(mpiexec(&["-n", "2", "-timeout", "0.2", "sleep", "300"]));
    assert_eq!((done.code, done.left.len()), (124, 0), "{done:?}");
    assert_eq!(done.err, "mpiexec: the job exceeded its time limit of 0.2 s\n");
    let mut command = shell(1, "trap '' TERM; while :; do sleep 0.05; done");
    command.env("MPIEXEC_TIMEOUT", "0.2");
    let done = run(command);
    assert_eq!((done.code, done.left.len()), (124, 0), "{done:?}");
    let done = run(mpiexec(&["-n", "1", "-timeout", "300", "true"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

#[test]
fn all_exit_codes() {
    // Rank 1 does not fail before rank 0 has begun to ignore SIGTERM, so SIGKILL ends rank 0.
    let folder = scratch("codes");
    let file = folder.join("deaf");
    let deaf = "trap '' TERM; : >$0; sleep 300";
    let fails = "until [ -e $0 ]; do sleep 0.01; done; exit 3";
    let file = file.to_str().expect("the path is UTF-8");
    let words = ["-n", "1", "-print-all-exitcodes", "sh", "-c", deaf, file];
    let words = [&words[..], &[":", "-n", "1", "sh", "-c", fails, file]].concat();
    let done = run(mpiexec(&words));
    fs::remove_dir_all(&folder).expect("the directory is removed");
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.ends_with("mpiexec: exit codes: 137,3\n"), "{done:?}");
    let done = run(mpiexec(&["-n", "3", "-print-all-exitcodes", "true"]));
    assert_eq!((done.code, done.err.as_str()), (0, "mpiexec: exit codes: 0,0,0\n"));
}

#[test]
fn larger_parts_of_the_machine() {
    // mpiexec must bind any number of ranks to packages or to NUMA nodes, even if other jobs hold cores.
    for what in ["socket", "numa"] {
        let mut words = vec!["-n", "5", "--bind-to", what, "--map-by", what, "--report-bindings"];
        words.extend(["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]);
        let done = run(mpiexec(&words));
        assert_eq!(done.code, 0, "{done:?}");
        let places: Vec<&str> = sorted(&done.err)
            .into_iter()
            .filter_map(|l| l.split_once("bound to cpu "))
            .map(|p| p.1)
            .collect();
        assert_eq!(places.len(), 5, "{done:?}");
        let masks: Vec<&str> =
            done.out.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        for mask in masks {
            let bound = |place: &&str| *place == mask || place.starts_with(&format!("{mask}, "));
            assert!(places.iter().any(bound), "{mask}: {done:?}");
        }
    }
}

/// Returns the number that `mpiexec -info` prints before a word.
fn counted(word: &str) -> usize {
    let done = run(mpiexec(&["-info"]));
    let line = done.out.lines().find(|line| line.contains("usable CPUs:")).expect("the line");
    let words: Vec<&str> = line.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|found| *found == word).expect("the word");
    words[at - 1].parse().expect("a number")
}

#[test]
fn the_number_of_ranks_without_n() {
    let quota = std::thread::available_parallelism().expect("this process may run").get();
    let (cores, packages) = (counted("cores"), counted("packages").max(1));
    for (words, ranks) in [
        (&[][..], cores.min(quota)),
        (&["-n3"], 3),
        (&["-np4"], 4),
        (&["-ppn", "2"], 2),
        (&["--map-by", "ppr:3:node"], 3),
        (&["--map-by", "ppr:1:core"], cores),
        (&["--map-by", "ppr:2:socket"], 2 * packages),
    ] {
        let done = run(mpiexec(&[words, &["sh", "-c", "echo rank of $TYPEPACK_SIZE"]].concat()));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{words:?}: {done:?}");
        let line = format!("rank of {ranks}");
        assert_eq!(done.out.lines().filter(|found| *found == line).count(), ranks, "{done:?}");
    }
}

#[test]
fn cpus_of_the_users_choice() {
    const MASK: &str = "grep Cpus_allowed_list /proc/self/status";
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = mask.and_then(|mask| mask.trim().split([',', '-']).next()).expect("a CPU");
    let list = format!("user:{first}");
    let done = run(mpiexec(&["-n", "2", "--bind-to", &list, "sh", "-c", MASK]));
    let line = format!("Cpus_allowed_list:\t{first}");
    assert_eq!(done.out.lines().collect::<Vec<_>>(), [line.as_str(); 2], "{done:?}");
    let done = run(mpiexec(&["-n", "1", "-bind-to", "user:0+1000", "true"]));
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.starts_with("mpiexec: --bind-to: CPU 1000 is not usable (usable: "),
        "{done:?}"
    );
    // Two cores for one rank. If there are too few free cores, the rank is not bound, and a line says so.
    for words in [["--map-by", "slot:PE=2"], ["-bind-to", "core:2"]] {
        let words = [&words[..], &["-n", "1", "--report-bindings", "true"]].concat();
        let done = run(mpiexec(&words));
        let bound = done.err.strip_prefix("mpiexec: rank 0 bound to cpu ");
        let wide = bound.is_some_and(|cpus| cpus.contains(['-', ',']));
        let crowded = done.err.contains("ranks are not bound: ");
        assert!(done.code == 0 && (wide || crowded), "{done:?}");
    }
}

#[test]
fn options_of_other_launchers_are_named_once() {
    let words = ["--mca", "btl", "self", "--map-by", ":OVERSUBSCRIBE", "-v", "-v"];
    let run_with = |words: &[&str]| run(mpiexec(&[words, &["-n", "2", "true"]].concat()));
    let line = "mpiexec: no effect here: --mca btl, --map-by :OVERSUBSCRIBE, -v (-q or \
                TYPEPACK_QUIET=1 hides this line)\n";
    let done = run_with(&words);
    assert_eq!((done.code, done.err.as_str()), (0, line));
    let done = run_with(&[&words[..], &["-q"]].concat());
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let mut quiet = mpiexec(&[&words[..], &["-n", "2", "true"]].concat());
    quiet.env("TYPEPACK_QUIET", "1");
    assert_eq!(run(quiet).err, "");
    assert_eq!(run_with(&["-launcher", "fork"]).err, "");
}

/// Checks that hwloc prints nothing of its own where `/sys` is hidden, and that ranks are placed all the same. The ranks
/// find no trace of that in their environment.
#[test]
fn a_machine_without_sys() {
    let hidden = "mount --make-rprivate / && mount -t tmpfs none /sys || exit 77; exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", hidden, "sh", env!("CARGO_BIN_EXE_mpiexec"), "-n", "1", "env"]);
    let done = run(command);
    if done.code == 77 || done.out.is_empty() && done.err.contains("unshare") {
        skipped("this process may not mount file systems");
        return;
    }
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(!done.out.contains("HWLOC"), "{done:?}");
}

#[test]
fn input_goes_to_the_first_rank_of_the_first_program() {
    let words = ["-n", "1", "cat", ":", "-n", "1", "sh", "-c", "cat | wc -c"];
    let mut command = mpiexec(&words);
    command.stdin(std::process::Stdio::piped());
    let mut job = start(command);
    let mut stdin = job.child.stdin.take().expect("the input is a pipe");
    std::io::Write::write_all(&mut stdin, b"line\n").expect("the input is written");
    drop(stdin);
    let done = job.finish();
    assert_eq!(sorted(&done.out), ["0", "line"], "{done:?}");
}
