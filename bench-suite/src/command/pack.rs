//! `typepack-bench pack`: measures the nine layouts of `definitions/pack.toml` in one thread, without
//! peers. With `--isa`, it judges the instruction sets of this machine instead.

use super::{
    Directions, Failure, Format, QUICK_MOST_BYTES, chosen, definitions, failed, list, load,
    parse_size, peers, print_out, progress, usage,
};
use std::path::{Path, PathBuf};
use typepack_bench::builds::{self, pack::Work};
use typepack_bench::competitor::generators;
use typepack_bench::competitor::hand::Hands;
use typepack_bench::definition::{Definitions, LayoutDefinition};
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::measure::measure;
use typepack_bench::peer::{Face, Peer};
use typepack_bench::prepare::Bench;
use typepack_bench::row::report::{csv, json, size_text};
use typepack_bench::row::{JIT, Row, Sides};
use typepack_bench::suite::Effort;
use typepack_bench::{face, levels, pin, report, storm, suite, summary};
use typepack_engine::{Isa, ParseIsaError};

#[derive(clap::Args)]
pub(crate) struct PackArguments {
    /// Names of the layouts to measure, separated by commas; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    layout: Vec<String>,
    /// Packed bytes per call, such as 1000, 16K or 4MiB, separated by commas; by default the sizes in the
    /// definitions.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = parse_size)]
    size: Vec<u64>,
    /// The direction to measure.
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Number of rounds. In each round, the competitors take turns.
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// The C library of typepack (libmpi_abi.so.1). A second table compares its calls with the Rust
    /// calls. By default the library in target/prefix, if it exists.
    #[arg(long, value_name = "LIBRARY")]
    face: Option<PathBuf>,
    /// The C library of another build. The run compares MPI_Pack and MPI_Unpack of the --face library
    /// with those of this library, and measures nothing else. Without --layout and --definitions, it adds
    /// the reference layouts and the storm (a new type every ten uses) to the layouts of `pack`.
    #[arg(long, value_name = "LIBRARY", conflicts_with_all = ["check", "format"])]
    against: Option<PathBuf>,
    /// Judge an instruction set instead: portable, sse4, avx2, avx512, or all (each set that this machine has).
    /// May be repeated. The layouts are those of definitions/isa.toml. Typepack uses this set, and the
    /// hand loops are compiled for the same set. Peers in the folder of --peers take part as they are.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = IsaChoice::parse,
          conflicts_with_all = ["face", "against", "check"])]
    isa: Vec<IsaChoice>,
    /// The folder into which `scripts/bench peers` has put the peers. Only with --isa.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// Compare the rows with the bars of the definitions; the verdicts go to stderr.
    #[arg(long)]
    check: bool,
    /// With --check, fail if a steady row misses a bar.
    #[arg(long, requires = "check")]
    strict: bool,
    /// Read the layouts, sizes and bars from this TOML file instead of using the built-in ones.
    #[arg(long, value_name = "FILE")]
    definitions: Option<PathBuf>,
    /// Print the names of the layouts and measure nothing.
    #[arg(long)]
    list: bool,
}

/// A value of `--isa`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsaChoice {
    /// Every set that this machine has.
    All,
    One(Isa),
}

impl IsaChoice {
    fn parse(text: &str) -> Result<Self, ParseIsaError> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// The path at which `scripts/bench` installs the C library of this build.
const USUAL: &str = "target/prefix/lib/libmpi_abi.so.1";

/// Runs the command.
pub(crate) fn pack(arguments: &PackArguments) -> Result<(), Failure> {
    let built_in = if arguments.isa.is_empty() { Definitions::built_in } else { Definitions::isa };
    let definitions = definitions(arguments.definitions.as_deref(), built_in)?;
    let layouts = chosen(&definitions, &arguments.layout)?;
    if arguments.list {
        return list(&layouts);
    }
    let sizes = if arguments.size.is_empty() { &definitions.sizes } else { &arguments.size };
    let directions = arguments.direction.list();
    if !arguments.isa.is_empty() {
        return judge(arguments, &layouts, sizes);
    }
    if let Some(base) = &arguments.against {
        return compare(arguments, base, &layouts, sizes);
    }
    let rounds = usize::from(arguments.rounds);
    // Open the library of --face before the first row is measured, so that a wrong path is reported at once and
    // not after minutes.
    let face = open_face(arguments)?;
    let mut work = Vec::new();
    for definition in &layouts {
        for &size in sizes {
            let layout = Layout::new(definition, size).map_err(|e| usage(e.to_string()))?;
            work.push((size, layout));
        }
    }
    let load = load(1);
    let longest = layouts.iter().map(|layout| layout.name.chars().count()).max().unwrap_or(0);
    let table = report::Table::new(longest);
    if arguments.format == Format::Table {
        list(&layouts)?;
        print_out(&format!("\n{}", table.header()))?;
    }
    let jits = generators();
    let (total, mut rows) = (work.len() * directions.len(), Vec::new());
    for (size, layout) in work {
        let mut bench = Bench::new(layout, &jits).map_err(failed)?;
        for &direction in directions {
            progress(rows.len() + 1, total);
            let row = measure(&mut bench, size, direction, rounds);
            progress(0, 0);
            if arguments.format == Format::Table {
                print_out(&table.row(&row))?;
            }
            rows.push(row);
        }
    }
    match arguments.format {
        Format::Table => print_out(&format!("{}{load}\n", table.footer(&rows)))?,
        Format::Csv | Format::Json => {
            print_out(&match arguments.format {
                Format::Csv => csv(&rows),
                _ => json(&rows).map_err(|e| failed(e.to_string()))?,
            })?;
            eprintln!("{load}");
        }
    }
    if let Some(face) = face {
        let more = face::rows(face, &layouts, directions, rounds).map_err(failed)?;
        print_out(&format!("\n{}", face::table(&more)))?;
    }
    if arguments.check { check(&definitions, &rows, arguments.strict) } else { Ok(()) }
}

/// Judges those instruction sets of `--isa` that this machine has, one after the other. Prints the rows and
/// the verdicts of each.
fn judge(
    arguments: &PackArguments,
    layouts: &[&LayoutDefinition],
    sizes: &[u64],
) -> Result<(), Failure> {
    let all = arguments.isa.contains(&IsaChoice::All);
    let wanted =
        |isa: &Isa| isa.is_available() && (all || arguments.isa.contains(&IsaChoice::One(*isa)));
    let load = load(1);
    let mut faults: Vec<String> = pin::pin().err().into_iter().collect();
    let mut sessions = peers::sessions(&[], &arguments.peers, &mut faults)?;
    let mut judged = Vec::new();
    for isa in Isa::ALL.into_iter().filter(wanted) {
        let march = levels::march(isa);
        let hands =
            Hands::at_level(march).map_err(|line| failed(format!("--isa {isa}: {line}")))?;
        let mut work = Vec::new();
        for definition in layouts {
            for size in sizes_of(definition, sizes) {
                let layout = Layout::new(definition, size).map_err(|e| usage(e.to_string()))?;
                work.push((size, layout));
            }
        }
        let rounds = usize::from(arguments.rounds);
        let effort = Effort { rounds, repeats: 2, memory: 300 << 20, isa: Some(isa) };
        let directions = arguments.direction.list();
        let mut suite = suite::run(work, directions, &mut sessions, &hands, &effort, progress);
        progress(0, 0);
        suite.faults.splice(0..0, faults.drain(..));
        judged.push((isa, suite));
    }
    let mut text = format!("{load}\n");
    for (isa, suite) in &judged {
        text += &levels::text(*isa, suite);
        print_out(&match arguments.format {
            Format::Table => format!("# {isa}\n{}\n", summary::table(suite)),
            Format::Csv => format!("# {isa}\n{}", summary::csv(suite)),
            Format::Json => json(suite).map_err(|e| failed(e.to_string()))?,
        })?;
    }
    match arguments.format {
        Format::Table => print_out(&text),
        Format::Csv | Format::Json => {
            eprint!("{text}");
            Ok(())
        }
    }
}

/// Measures the C libraries of this build and of the build `base` alternately, and prints their
/// comparison. Measures `layouts` at `sizes`. If the user has chosen neither layouts nor a definitions
/// file, also measures the reference layouts at the sizes of a quick run, and the storm (a new type every
/// ten uses).
fn compare(
    arguments: &PackArguments,
    base: &Path,
    layouts: &[&LayoutDefinition],
    sizes: &[u64],
) -> Result<(), Failure> {
    let peer = |name: &str, path: &Path| Peer { name: name.to_owned(), library: path.to_owned() };
    let own = arguments.face.as_deref().unwrap_or(Path::new(USUAL));
    let peers = [peer("this build", own), peer("other build", base)];
    let command = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let chosen = layouts.iter().flat_map(|layout| sizes.iter().map(|size| (*layout, *size)));
    let mut work: Vec<Work<'_>> = chosen.map(|(layout, size)| Work::Layout(layout, size)).collect();
    let reference = Definitions::reference();
    if arguments.layout.is_empty() && arguments.definitions.is_none() {
        for layout in &reference.layouts {
            let sizes = sizes_of(layout, &reference.quick).into_iter();
            let small = sizes.filter(|size| *size <= QUICK_MOST_BYTES);
            work.extend(small.map(|size| Work::Layout(layout, size)));
        }
        work.extend((0..storm::LAYOUTS.len()).map(Work::Storm));
    }
    let load = load(1);
    let mut faults: Vec<String> = pin::pin().err().into_iter().collect();
    let rounds = usize::from(arguments.rounds);
    let compared =
        builds::pack::run(peers, &command, &work, arguments.direction.list(), rounds, progress);
    progress(0, 0);
    let (rows, more) = compared.map_err(failed)?;
    faults.extend(more);
    print_out(&builds::text("this build", &base.display().to_string(), &rows))?;
    print_out(&format!("{load}\n"))?;
    faults.iter().try_for_each(|line| print_out(&format!("not measured: {line}\n")))
}

/// Opens the C library of `--face`, or else the library at [`USUAL`] if it exists. If the format is not
/// `table`, opens no library, and returns an error if the user has given `--face`: the rows of the other
/// formats compare bandwidths, whereas the rows of the C library compare times.
fn open_face(arguments: &PackArguments) -> Result<Option<Face>, Failure> {
    if arguments.format != Format::Table {
        return match arguments.face {
            Some(_) => Err(usage("--face is allowed only with --format table".to_owned())),
            None => Ok(None),
        };
    }
    let path = arguments.face.as_deref().unwrap_or(Path::new(USUAL));
    if arguments.face.is_none() && !path.exists() {
        return Ok(None);
    }
    Face::open(path).map(Some).map_err(|line| usage(format!("--face {line}")))
}

fn check(definitions: &Definitions, rows: &[Row], strict: bool) -> Result<(), Failure> {
    let [mut misses, mut unsteady, mut verdicts] = [0; 3];
    for bar in &definitions.bars {
        for row in rows.iter().filter(|row| bar.applies(row)) {
            // The bars of these layouts limit the compiled kernels.
            let Some(ratio) = bar.against.of(row, Sides { own: JIT, peers: &[] }) else { continue };
            let keeps = bar.keeps(row, ratio.value);
            let word = match (ratio.steady, keeps) {
                (true, true) => "pass",
                (true, false) => "MISS",
                (false, true) => "pass~",
                (false, false) => "miss~",
            };
            let name = format!("{} {} {}", row.name, size_text(row.bytes), row.part);
            let (ratio, least, text) = (ratio.value, bar.bar.one(), &bar.text);
            eprintln!("{word:<6}{name:<26}{ratio:>6.2} (at least {least:.2})  {text}");
            verdicts += 1;
            misses += usize::from(word == "MISS");
            unsteady += usize::from(word.ends_with('~'));
        }
    }
    let line = format!(
        "{misses} of {verdicts} verdicts are misses; {unsteady} rows were too unsteady to decide"
    );
    if strict && misses > 0 {
        return Err(failed(line));
    }
    eprintln!("{line}");
    Ok(())
}
