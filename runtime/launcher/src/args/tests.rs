//! Tests of the parser. The tests in the folder `tests/` check what the options do.

use super::*;

/// A machine with 2 packages of 2 NUMA nodes with 4 cores, of which a container may use 6.
fn parts(level: Option<Level>) -> usize {
    match level {
        None => 6,
        Some(Level::Thread) => 32,
        Some(Level::Core) => 16,
        Some(Level::Package) => 2,
        Some(_) => 4,
    }
}

fn run(line: &str) -> Result<Request, String> {
    let here = Surroundings { bind: None, timeout: None, host: "here", parts };
    parse(line.split_whitespace().map(OsString::from), here)
}

fn job(line: &str) -> Job {
    match run(line) {
        Ok(Request::Run(job)) => *job,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn options_end_at_the_program() {
    let job = job("-n 4 -l prog -n 7 --help -x");
    assert_eq!((job.ranks(), job.label, job.bind), (4, true, Bind::To(Level::Core)));
    assert_eq!(job.apps[0].program, "prog");
    assert_eq!(job.apps[0].arguments, ["-n", "7", "--help", "-x"]);
}

#[test]
fn options_of_both_families() {
    let odd = job("-np 2 --bind-to none --report-bindings -- -odd-name");
    assert_eq!((odd.ranks(), odd.bind, odd.report_bindings), (2, Bind::None, true));
    assert_eq!(odd.apps[0].program, "-odd-name");
    for line in ["--help", "-n 2 -h", "-help"] {
        assert_eq!(run(line), Ok(Request::Help));
    }
    for line in ["--version", "-version", "-V"] {
        assert_eq!(run(line), Ok(Request::Version));
    }
    assert_eq!(run("-info"), Ok(Request::Info));
    let line = "--n 3 -prepend-rank -print-all-exitcodes -ppn 2 --oversubscribe -soft 1:3 \
                --allow-run-as-root -host localhost,here:2 -usize 8 -bind-to numa --map-by=socket \
                -initial-errhandler MPI_ERRORS_RETURN -outfile-pattern o.%r p";
    let job = job(line);
    assert!(job.label && job.exit_codes);
    assert_eq!((job.ranks(), job.universe), (3, Some(8)));
    assert_eq!((job.bind, job.map), (Bind::To(Level::Numa), Map::InTurn(Level::Package)));
    assert_eq!(job.errhandler, Some("mpi_errors_return"));
    assert_eq!(job.files, [Some("o.%r".into()), None]);
}

#[test]
fn several_programs() {
    let job = job("-genv G 1 -n 1 -wdir /a m x : -l -n 3 -path /b w : -n 2 -env A=1 m");
    let apps: Vec<_> = job.apps.iter().map(|app| (app.ranks, app.program.to_str())).collect();
    assert_eq!(apps, [(1, Some("m")), (3, Some("w")), (2, Some("m"))]);
    assert!(job.label);
    assert_eq!(job.apps[0].arguments, ["x"]);
    assert_eq!(job.apps[0].directory.as_deref(), Some(std::path::Path::new("/a")));
    assert_eq!((&job.apps[1].directory, job.apps[1].path.as_deref()), (&None, Some("/b".as_ref())));
    let of: Vec<_> = (0..6).map(|rank| job.app_of(rank)).collect();
    assert_eq!(of, [0, 1, 1, 1, 2, 2]);
}

#[test]
fn variables() {
    let line = "-genvlist A,B -genv C c -n 1 -env D d -env E=e=1 -x F=f -x G -envnone p";
    let job = job(line);
    let text = |set: &[(OsString, Option<OsString>)]| -> Vec<String> {
        set.iter().map(|(name, value)| format!("{name:?}={value:?}").replace('"', "")).collect()
    };
    assert_eq!(text(&job.environment.set), ["C=Some(c)"]);
    let set = text(&job.apps[0].environment.set);
    assert_eq!(set, ["D=Some(d)", "E=Some(e=1)", "F=Some(f)", "G=None"]);
    let wanted = Inherit::Only(["A", "B"].map(OsString::from).into());
    assert_eq!(job.environment.inherit, Some(wanted));
    assert_eq!(job.apps[0].environment.inherit, Some(Inherit::Only(BTreeSet::new())));
}

#[test]
fn the_surroundings_are_defaults_only() {
    let parse = |line: &str, bind, timeout| {
        let surroundings = Surroundings { bind, timeout, host: "here", parts };
        match parse(line.split(' ').map(OsString::from), surroundings) {
            Ok(Request::Run(job)) => Ok((job.bind, job.timeout.map(|t| t.as_millis()))),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    let core = Bind::To(Level::Core);
    assert_eq!(parse("-n 1 p", Some("none"), Some("2")), Ok((Bind::None, Some(2000))));
    let line = "-n 1 --bind-to=core -timeout 0.5 p";
    assert_eq!(parse(line, Some("none"), Some("9")), Ok((core.clone(), Some(500))));
    assert_eq!(parse("-n 1 -timeout 0 p", None, Some("9")), Ok((core, None)));
    let error = parse("-n 1 p", Some("moon"), None).expect_err("refused");
    assert!(error.starts_with("TYPEPACK_BIND: 'moon'"), "{error}");
    let error = parse("-n 1 p", None, Some("soon")).expect_err("refused");
    assert!(error.starts_with("MPIEXEC_TIMEOUT: 'soon'"), "{error}");
}

#[test]
fn bad_input_names_the_argument() {
    for (line, start) in [
        ("", "program: "),
        ("-q", "program: "),
        ("-n", "-n: "),
        ("-n 0 p", "-n: 0 "),
        ("-n -3 p", "-n: -3 "),
        ("-np x p", "-np: 'x' "),
        ("-n 2.5 p", "-n: '2.5' "),
        ("-n 99999999999999999999 p", "-n: 99999999999999999999 ranks are too many"),
        ("-n -99999999999999999999 p", "-n: '-99999999999999999999' "),
        ("-n 1000000 p", "-n: 1000000 ranks are too many"),
        ("-n 2 -n 3 p", "-n: the number of ranks is given twice"),
        ("-n 2", "program: "),
        ("-n 2 --", "program: "),
        ("-n 2 --frobnicate p", "--frobnicate: unknown option"),
        ("-n 2 --bind-too core p", "--bind-too: unknown option; did you mean --bind-to? ("),
        ("-n2 -n3 p", "-n3: the number of ranks is given twice"),
        ("-n2x p", "-n2x: '2x' "),
        ("-n 2 --frobnicate=3 p", "--frobnicate=3: unknown option"),
        ("-n 2 -l=3 p", "-l=3: unknown option"),
        ("-n 2 -host a p", "-host: 'a' is not this machine"),
        ("-n 2 -f /no/such p", "-f: '/no/such': "),
        ("-n 2 --bind-to", "--bind-to: WHAT is missing"),
        ("-n 2 --bind-to moon p", "--bind-to: 'moon' "),
        ("-n 2 --bind-to core:always p", "--bind-to: 'core:always' "),
        ("-n 2 --bind-to numa:2 p", "--bind-to: 'numa:2' "),
        ("-n 2 --bind-to core:0 p", "--bind-to: 'core:0' "),
        ("-n 2 --bind-to user: p", "--bind-to: 'user:' "),
        ("-n 2 --bind-to user:0,x p", "--bind-to: 'user:0,x' "),
        ("-n 2 --bind-to user:3-1 p", "--bind-to: 'user:3-1' "),
        ("-n 2 --map-by ppr:2 p", "--map-by: 'ppr:2' "),
        ("-n 2 --map-by ppr:0:node p", "--map-by: 'ppr:0:node' "),
        ("-n 2 --map-by ppr:2:moon p", "--map-by: 'ppr:2:moon' "),
        ("-n 2 --map-by core:PE=0 p", "--map-by: 'core:PE=0' "),
        ("--map-by ppr:4096:socket p", "-n: 8192 ranks are too many"),
        ("-n 2 -genv A", "-genv: VALUE is missing"),
        ("-n 2 -env =a p", "-env: the name of the variable is empty"),
        ("-n 2 -usize 0 p", "-usize: '0' "),
        ("-n 2 -ppn few p", "-ppn: 'few' "),
        ("-n 2 -timeout soon p", "-timeout: 'soon' "),
        ("-n 2 -timeout -1 p", "-timeout: '-1' "),
        ("-n 2 -timeout NaN p", "-timeout: 'NaN' "),
        ("-n 2 --mca btl", "--mca: VALUE is missing"),
        ("-n 2 -kill-after soon p", "-kill-after: 'soon' "),
        ("-n 2 -kill-after -1 p", "-kill-after: '-1' "),
        ("-n 2 -kill-after NaN p", "-kill-after: 'NaN' "),
        ("-n 2 -kill-after 86401 p", "-kill-after: '86401' "),
        ("-n 2 -initial-errhandler none p", "-initial-errhandler: 'none' "),
        ("-n 2 p : q", "-n: "),
        ("-n 2 p :", "program: "),
        (": -n 2 p", "':': there is no program"),
        ("-n 4000 p : -n 100 q", "-n: 4100 ranks are too many"),
        ("-configfile /no/such", "-configfile: '/no/such': "),
        ("-configfile /dev/null", "-configfile: '/dev/null': the file contains no program"),
        ("-n 1 -configfile /dev/null", "-configfile: all programs"),
    ] {
        let error = run(line).expect_err(line);
        assert!(error.starts_with(start), "{line}: {error}");
        assert!(!error.contains('\n'), "{line}: {error}");
    }
}

#[test]
fn the_number_of_ranks_may_follow_from_other_options() {
    for (line, ranks) in [
        ("p", 6),
        ("-n2 p", 2),
        ("-np4 p", 4),
        ("-ppn 3 p", 3),
        ("-ppn 3 -n 5 p", 5),
        ("--map-by ppr:3:node p", 3),
        ("--map-by ppr:3:socket p", 6),
        ("--map-by ppr:2:numa:PE=2 p", 8),
        ("--map-by ppr:1:core p", 16),
        ("--map-by ppr:2:numa -n 3 p", 3),
        ("-n 2 p : -n3 q", 5),
    ] {
        assert_eq!(job(line).ranks(), ranks, "{line}");
    }
}

#[test]
fn places_of_ranks() {
    let of = |line: &str| {
        let job = job(line);
        (job.bind, job.map, job.width)
    };
    let core = || Bind::To(Level::Core);
    assert_eq!(of("-n 1 -bind-to core:2 p"), (core(), Map::Blocks, 2));
    assert_eq!(of("-n 1 --map-by slot:PE=4 p"), (core(), Map::Fill, 4));
    assert_eq!(
        of("-n 1 --map-by socket:pe=4,OVERSUBSCRIBE p"),
        (core(), Map::InTurn(Level::Package), 4)
    );
    assert_eq!(of("-n 1 --bind-to hwthread:2 p").0, Bind::To(Level::Thread));
    let per = Map::PerPart { level: Some(Level::Numa), ranks: 2 };
    assert_eq!(of("--map-by ppr:2:numa p"), (core(), per, 1));
    let listed = Bind::Listed(vec![vec![0], vec![1], vec![2, 3], vec![4, 5, 6]]);
    assert_eq!(of("-n 1 --bind-to user:0,1,3+2,4-6 p").0, listed);
    assert_eq!(of("-n 1 --bind-to-core p").0, core());
    assert_eq!(of("-n 1 -bind-to-none p").0, Bind::None);
}

#[test]
fn options_of_other_launchers_are_named() {
    let line = "-n 2 --mca btl self --mca pml ucx --mca btl self -v --map-by core:OVERSUBSCRIBE --rank-by slot \
                --display-map -iface eth0 -launcher ssh --allow-run-as-root p";
    let ignored = [
        "--mca btl",
        "--mca pml",
        "-v",
        "--map-by :OVERSUBSCRIBE",
        "--rank-by",
        "--display-map",
        "-iface",
        "-launcher ssh",
        "--allow-run-as-root",
    ];
    let read = job(line);
    assert_eq!((read.ignored, read.quiet), (ignored.map(String::from).into(), false));
    let read = job("-q -launcher fork -disable-auto-cleanup -n 2 p");
    assert_eq!((read.ignored.len(), read.quiet, read.goes_on), (0, true, true));
}
