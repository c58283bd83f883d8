//! Tests of the parser. The tests in the folder `tests/` check what the options do.

use super::*;

fn run(line: &str) -> Result<Request, String> {
    let here = Surroundings { host: "here", ..Surroundings::default() };
    parse(line.split_whitespace().map(OsString::from), here)
}

fn job(line: &str) -> Job {
    match run(line) {
        Ok(Request::Run(job)) => job,
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
    assert_eq!((job.bind, job.map), (Bind::To(Level::Numa), Map::InTurn(Level::Socket)));
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
        let surroundings = Surroundings { bind, timeout, host: "here" };
        match parse(line.split(' ').map(OsString::from), surroundings) {
            Ok(Request::Run(job)) => Ok((job.bind, job.timeout.map(|t| t.as_millis()))),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    let core = Bind::To(Level::Core);
    assert_eq!(parse("-n 1 p", Some("none"), Some("2")), Ok((Bind::None, Some(2000))));
    let line = "-n 1 --bind-to=core -timeout 0.5 p";
    assert_eq!(parse(line, Some("none"), Some("9")), Ok((core, Some(500))));
    assert_eq!(parse("-n 1 -timeout 0 p", None, Some("9")), Ok((core, None)));
    let error = parse("-n 1 p", Some("moon"), None).expect_err("refused");
    assert!(error.starts_with("TYPEPACK_BIND: 'moon'"), "{error}");
    let error = parse("-n 1 p", None, Some("soon")).expect_err("refused");
    assert!(error.starts_with("MPIEXEC_TIMEOUT: 'soon'"), "{error}");
}

#[test]
fn bad_input_names_the_argument() {
    for (line, start) in [
        ("", "-n: "),
        ("prog", "-n: "),
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
        ("-n 2 --frobnicate=3 p", "--frobnicate=3: unknown option"),
        ("-n 2 -l=3 p", "-l=3: unknown option"),
        ("-n 2 -host a p", "-host: 'a' is not this machine"),
        ("-n 2 -f /no/such p", "-f: '/no/such': "),
        ("-n 2 --bind-to", "--bind-to: WHAT is missing"),
        ("-n 2 --bind-to moon p", "--bind-to: 'moon' "),
        ("-n 2 --bind-to core:always p", "--bind-to: 'core:always' "),
        ("-n 2 --map-by ppr:2:socket p", "--map-by: 'ppr:2:socket' "),
        ("-n 2 -genv A", "-genv: VALUE is missing"),
        ("-n 2 -env =a p", "-env: the name of the variable is empty"),
        ("-n 2 -usize 0 p", "-usize: '0' "),
        ("-n 2 -ppn few p", "-ppn: 'few' "),
        ("-n 2 -timeout soon p", "-timeout: 'soon' "),
        ("-n 2 -kill-after soon p", "-kill-after: 'soon' "),
        ("-n 2 -kill-after -1 p", "-kill-after: '-1' "),
        ("-n 2 -kill-after NaN p", "-kill-after: 'NaN' "),
        ("-n 2 -kill-after 86401 p", "-kill-after: '86401' "),
        ("-n 2 -initial-errhandler none p", "-initial-errhandler: 'none' "),
        ("-n 2 p : q", "-n: "),
        ("-n 2 p :", "-n: "),
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
