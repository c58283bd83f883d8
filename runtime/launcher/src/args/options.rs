//! The table of `mpiexec`'s options: their names, values and help texts.
//!
//! `mod.rs` finds options in this table and stores their effects. `help` makes the help text from the table,
//! and a test compares the manual page with the table. Users of MPICH and of Open MPI write options in
//! different forms. Therefore every option may have one dash or two, and `--name=value` means `--name value`.

use std::fmt::Write;

/// Identifies an option, whichever of its names the user writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    Ranks,
    Directory,
    Path,
    Env,
    EnvList,
    EnvNone,
    EnvAll,
    Genv,
    GenvList,
    GenvNone,
    GenvAll,
    Export,
    ConfigFile,
    Hosts,
    HostFile,
    Universe,
    InitialErrhandler,
    Label,
    OutPattern,
    ErrPattern,
    ExitCodes,
    Timeout,
    KillAfter,
    NoCleanup,
    Bind,
    /// An option whose name ends in a value of [`Id::Bind`].
    BindAs,
    Map,
    ReportBindings,
    PerNode,
    /// How ranks are started. Only the value `fork` has a meaning on one machine.
    Launcher,
    Quiet,
    /// An option of the MPI standard whose value is a word. mpiexec accepts the option, but it has no
    /// effect.
    IgnoredWord,
    /// An option of another launcher that has no effect here. mpiexec names it in one line.
    Ignored,
    Help,
    Version,
    Info,
}

/// One option: a row of the table.
#[derive(Debug)]
pub struct Entry {
    /// Which option this is.
    pub id: Id,
    /// The names of the option, without dashes.
    pub names: &'static [&'static str],
    /// The names of the values that must follow the option, as the help text shows them.
    pub values: &'static [&'static str],
    /// The option's description in the help text.
    pub help: &'static str,
}

/// A group of options that have a common heading in the help text.
#[derive(Debug)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The options.
    pub entries: &'static [Entry],
}

const fn entry(
    id: Id,
    names: &'static [&'static str],
    values: &'static [&'static str],
    help: &'static str,
) -> Entry {
    Entry { id, names, values, help }
}

/// All options.
pub const GROUPS: [Group; 6] = [
    Group {
        title: "for each program (before it; programs are separated by ':')",
        entries: &[
            entry(
                Id::Ranks,
                &["n", "np"],
                &["N"],
                "number of ranks (also -n4); without it, a single program gets a rank per usable core",
            ),
            entry(Id::Directory, &["wdir", "wd"], &["DIR"], "working directory of the ranks"),
            entry(
                Id::Path,
                &["path"],
                &["DIRS"],
                "directories to search for the program (default: PATH)",
            ),
            entry(Id::Env, &["env"], &["NAME", "VALUE"], "set a variable"),
            entry(
                Id::Export,
                &["x"],
                &["NAME[=VALUE]"],
                "set a variable, or pass on mpiexec's value",
            ),
            entry(Id::EnvList, &["envlist"], &["NAMES"], "pass on only these variables of mpiexec"),
            entry(Id::EnvNone, &["envnone"], &[], "pass on no variables of mpiexec"),
            entry(Id::EnvAll, &["envall"], &[], "pass on all variables of mpiexec (default)"),
            entry(
                Id::Hosts,
                &["host", "hosts", "H"],
                &["NAMES"],
                "machines to run on: only this machine is allowed",
            ),
        ],
    },
    Group {
        title: "for the job",
        entries: &[
            entry(
                Id::ConfigFile,
                &["configfile"],
                &["FILE"],
                "read the programs from a file: one per line, with its options",
            ),
            entry(Id::Genv, &["genv"], &["NAME", "VALUE"], "set a variable for all programs"),
            entry(Id::GenvList, &["genvlist"], &["NAMES"], "like -envlist, for all programs"),
            entry(Id::GenvNone, &["genvnone"], &[], "like -envnone, for all programs"),
            entry(Id::GenvAll, &["genvall"], &[], "like -envall, for all programs"),
            entry(
                Id::HostFile,
                &["f", "hostfile", "machinefile"],
                &["FILE"],
                "file with machines to run on: only this machine is allowed",
            ),
            entry(Id::Universe, &["usize"], &["N"], "value of MPI_UNIVERSE_SIZE"),
            entry(
                Id::InitialErrhandler,
                &["initial-errhandler"],
                &["NAME"],
                "mpi_errors_are_fatal (default), mpi_errors_abort, mpi_errors_return",
            ),
            entry(
                Id::Timeout,
                &["timeout"],
                &["SECONDS"],
                "end the job after this time, with exit code 124; 0: no limit",
            ),
            entry(
                Id::KillAfter,
                &["kill-after"],
                &["SECONDS"],
                "time from SIGTERM to SIGKILL (default 0.2 after a failure, else 2)",
            ),
            entry(
                Id::NoCleanup,
                &["disable-auto-cleanup"],
                &[],
                "after a failure, the other ranks go on; MPI_Abort still ends the job",
            ),
            entry(
                Id::Launcher,
                &["launcher", "bootstrap"],
                &["NAME"],
                "how ranks are started: always by fork on one machine",
            ),
        ],
    },
    Group {
        title: "output",
        entries: &[
            entry(
                Id::Label,
                &["l", "prepend-rank", "tag-output"],
                &[],
                "put \"[rank] \" before every line of output",
            ),
            entry(
                Id::OutPattern,
                &["outfile-pattern"],
                &["FILE"],
                "write standard output to files; %r is the rank, %h the machine",
            ),
            entry(
                Id::ErrPattern,
                &["errfile-pattern"],
                &["FILE"],
                "write standard error to files; %r is the rank, %h the machine",
            ),
            entry(
                Id::ExitCodes,
                &["print-all-exitcodes"],
                &[],
                "print the exit code of each rank at the end",
            ),
        ],
    },
    Group {
        title: "placement",
        entries: &[
            entry(
                Id::Bind,
                &["bind-to"],
                &["WHAT"],
                "core (default: one rank per core, if there are enough), hwthread, l2cache, l3cache, \
                 numa, socket, none; core:N, hwthread:N: N of them for each rank; user:LIST: the CPUs \
                 of each rank, such as user:0,1,2+3",
            ),
            entry(
                Id::BindAs,
                &["bind-to-core", "bind-to-socket", "bind-to-none"],
                &[],
                "the same as -bind-to core, socket, none",
            ),
            entry(
                Id::Map,
                &["map-by"],
                &["WHAT"],
                "core, hwthread, slot, node: in order; l2cache, l3cache, numa, socket: round-robin; \
                 ppr:N:WHAT: N ranks for each part, which sets the number of ranks, too; default: one \
                 block of ranks per NUMA node; WHAT:PE=N: N cores for each rank",
            ),
            entry(Id::ReportBindings, &["report-bindings"], &[], "print the CPUs of each rank"),
            entry(
                Id::PerNode,
                &["ppn", "perhost", "npernode", "N"],
                &["N"],
                "ranks per machine: the number of ranks if there is no -n",
            ),
            entry(Id::IgnoredWord, &["soft", "arch"], &["WORD"], "no effect"),
        ],
    },
    Group {
        title: "of other launchers (no effect here; one line names them)",
        entries: &[
            entry(
                Id::Ignored,
                &["mca", "gmca", "omca", "prtemca", "pmixmca"],
                &["NAME", "VALUE"],
                "settings of Open MPI",
            ),
            entry(
                Id::Ignored,
                &["rank-by", "display", "tune", "am", "prefix"],
                &["WORD"],
                "of Open MPI",
            ),
            entry(
                Id::Ignored,
                &[
                    "v",
                    "verbose",
                    "display-map",
                    "display-allocation",
                    "display-topo",
                    "nolocal",
                    "nooversubscribe",
                    "oversubscribe",
                    "allow-run-as-root",
                ],
                &[],
                "of Open MPI; more ranks than cores and ranks of root are always allowed",
            ),
            entry(Id::Ignored, &["iface", "rmk"], &["WORD"], "of MPICH"),
            entry(Id::Ignored, &["disable-hostname-propagation"], &[], "of MPICH"),
            entry(
                Id::Quiet,
                &["q", "quiet"],
                &[],
                "do not print that line (also TYPEPACK_QUIET=1)",
            ),
        ],
    },
    Group {
        title: "about mpiexec",
        entries: &[
            entry(Id::Help, &["h", "help"], &[], "print this text"),
            entry(Id::Version, &["version", "V"], &[], "print the version"),
            entry(Id::Info, &["info"], &[], "print version, paths, and the CPUs of the machine"),
        ],
    },
];

/// Finds the option that `text` names. Returns the option and the value after a `=` in `text`, if there is
/// one. Returns `None` if there is no such option, or if `text` has a `=` and the option does not take
/// exactly one value.
pub fn find(text: &str) -> Option<(&'static Entry, Option<&str>)> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let entries = || GROUPS.iter().flat_map(|group| group.entries);
    if let Some(entry) = entries().find(|entry| entry.names.contains(&name)) {
        return Some((entry, None));
    }
    // A number may follow `-n` and `-np` in the same word.
    let digits = name.strip_prefix("np").or_else(|| name.strip_prefix('n'));
    if let Some(digits) = digits.filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit())) {
        return Some((entries().find(|entry| entry.id == Id::Ranks)?, Some(digits)));
    }
    let (name, value) = name.split_once('=')?;
    let entry = entries().find(|entry| entry.values.len() == 1 && entry.names.contains(&name))?;
    Some((entry, Some(value)))
}

/// Returns the option whose name differs least from the unknown option `text`, with its dashes. Returns `None` if no
/// name is similar.
pub fn nearest(text: &str) -> Option<String> {
    let wrong = text.trim_start_matches('-').split('=').next()?;
    let names = GROUPS.iter().flat_map(|group| group.entries).flat_map(|entry| entry.names);
    let (changes, name) = names
        .filter(|name| name.len() > 2)
        .map(|name| (distance(wrong, name), name))
        .min_by_key(|(changes, _)| *changes)?;
    // Half of the letters may be wrong, because two letters in the wrong order count as two.
    (changes * 2 <= wrong.len().min(name.len()) && changes <= 3).then(|| dashed(name))
}

/// Returns how many letters must be inserted, removed or replaced to change `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[j + 1];
            row[j + 1] = changed.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Returns the text of `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "\
Starts programs as the ranks of one job on this machine, and watches them.

usage: mpiexec [options] [-n N] program [arguments...]
       mpiexec [options] -n N program [arguments...] : -n N program [arguments...] ...
",
    );
    for group in &GROUPS {
        let _infallible = write!(text, "\n{}:\n", group.title);
        for entry in group.entries {
            let names: Vec<String> = entry.names.iter().map(|name| dashed(name)).collect();
            let values = entry.values.iter().map(|value| format!(" {value}")).collect::<String>();
            let left = format!("{}{values}", names.join(", "));
            // If the names take up too much space, start the description on the next line.
            let gap = if left.len() > 22 { format!("\n{:26}", "") } else { String::new() };
            let left = wrapped(&left, 96, "\n  ");
            let help = wrapped(entry.help, 72, &format!("\n{:26}", ""));
            let _infallible =
                writeln!(text, "  {left:<22}{}{gap}{help}", if gap.is_empty() { "  " } else { "" });
        }
    }
    text.push_str(
        "
Standard input goes to rank 0. Output is forwarded line by line. If a rank fails, mpiexec ends the
other ranks, prints one line that names the rank and the reason, and exits with the code of that
rank (128 + signal if a signal ended it). Ctrl-C ends the job after a grace period of 2 seconds
(-kill-after), a second Ctrl-C ends it at once.

The variable TYPEPACK_BIND is the default for --bind-to, MPIEXEC_TIMEOUT the default for -timeout.

examples:
  mpiexec -n 2 ./halo
  mpiexec -n 1 ./master : -n 4 -wdir /tmp ./worker
  mpiexec -n 4 -l sh -c 'echo rank $TYPEPACK_RANK of $TYPEPACK_SIZE'
",
    );
    text
}

/// Returns the name with its usual dashes. Options of MPICH and of the MPI standard have one dash, and
/// options of Open MPI with more than one letter have two.
fn dashed(name: &str) -> String {
    let two = name.len() > 1
        && [
            "hostfile",
            "tag-output",
            "bind-to",
            "map-by",
            "report-bindings",
            "bind-to-core",
            "bind-to-socket",
            "bind-to-none",
            "mca",
            "gmca",
            "omca",
            "prtemca",
            "pmixmca",
            "rank-by",
            "display",
            "tune",
            "am",
            "prefix",
            "verbose",
            "display-map",
            "display-allocation",
            "display-topo",
            "nolocal",
            "nooversubscribe",
            "quiet",
            "npernode",
            "oversubscribe",
            "allow-run-as-root",
            "help",
            "version",
        ]
        .contains(&name);
    format!("{}{name}", if two { "--" } else { "-" })
}

/// Breaks `text` into lines of at most `width` bytes, and puts `separator` between the lines.
fn wrapped(text: &str, width: usize, separator: &str) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        if used > 0 && used + 1 + word.len() > width {
            out.push_str(separator);
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += word.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_found_in_any_spelling() {
        for text in ["-np", "--np"] {
            assert_eq!(find(text).map(|(entry, value)| (entry.id, value)), Some((Id::Ranks, None)));
        }
        let found = find("--bind-to=core").map(|(entry, value)| (entry.id, value));
        assert_eq!(found, Some((Id::Bind, Some("core"))));
        for text in ["np", "---np", "-", "--", "-l=x", "-env=A", "-nn", "", "-nx2"] {
            assert!(find(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_number_may_be_attached() {
        for (text, number) in
            [("-n2", "2"), ("--np4", "4"), ("-np16", "16"), ("-n=3", "3"), ("-n2x", "2x")]
        {
            let found = find(text).map(|(entry, value)| (entry.id, value));
            assert_eq!(found, Some((Id::Ranks, Some(number))), "{text}");
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        for (text, name) in [
            ("--bind-too", "--bind-to"),
            ("-bindto=core", "--bind-to"),
            ("--timout", "-timeout"),
            ("-wdri", "-wdir"),
            ("--report-binding", "--report-bindings"),
            ("--mpby", "--map-by"),
        ] {
            assert_eq!(nearest(text).as_deref(), Some(name), "{text}");
        }
        for text in ["--frobnicate", "-", "--", "-z", "--xyz"] {
            assert_eq!(nearest(text), None, "{text}");
        }
    }

    #[test]
    fn no_name_means_two_things() {
        let mut seen = BTreeSet::new();
        for name in GROUPS.iter().flat_map(|g| g.entries).flat_map(|e| e.names) {
            assert!(seen.insert(name), "{name}");
        }
    }

    #[test]
    fn the_help_text_has_every_option_and_fits_a_terminal() {
        let help = help();
        for name in GROUPS.iter().flat_map(|g| g.entries).flat_map(|e| e.names) {
            assert!(help.contains(&format!("-{name}")), "{name}");
        }
        for line in help.lines() {
            assert!(line.len() <= 100, "{line}");
        }
    }

    /// Checks that the manual page describes exactly the options of the table.
    #[test]
    fn the_manual_page_has_every_option_and_no_other() {
        let page = include_str!("../../../guide/mpiexec.1.md");
        let described: BTreeSet<&str> = page
            .lines()
            .filter(|line| line.starts_with("**-"))
            .flat_map(|line| line.split("**"))
            .filter(|word| word.starts_with('-'))
            .map(|word| word.trim_start_matches('-'))
            .collect();
        let known: BTreeSet<&str> =
            GROUPS.iter().flat_map(|g| g.entries).flat_map(|e| e.names).copied().collect();
        assert_eq!(described, known);
    }
}
