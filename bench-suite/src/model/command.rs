//! The arguments of `typepack-bench model`, and the function that runs the command and returns the text for the
//! terminal.

use super::compare::{self, Pair};
use super::geometry::Halo;
use super::measure;
use super::predict::{Case, Network, Overlap, strong_edge};
use super::rates::Rates;
use super::report;
use crate::message::arguments::{Fault, PREFIX};
use crate::message::command::behind;
use crate::message::library::Library;
use crate::row::TYPEPACK;
use std::path::{Path, PathBuf};

/// The arguments of `typepack-bench model`.
#[derive(clap::Args)]
pub struct ModelArguments {
    /// Number of elements along one edge of the cube of each rank, whatever the number of ranks. By default 128.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    edge: Option<u64>,
    /// Number of elements along one edge of the cube that all ranks share, instead of --edge.
    #[arg(long, value_name = "N", conflicts_with = "edge",
          value_parser = clap::value_parser!(u64).range(1..=200_000))]
    total: Option<u64>,
    /// Number of layers of a face.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=64))]
    width: u64,
    /// Number of bytes of an element.
    #[arg(long, value_name = "BYTES", default_value_t = 8,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    element: u64,
    /// Number of arrays whose faces travel in one message.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    fields: u64,
    /// Numbers of ranks, separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,4096,10000,32768,100000",
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    ranks: Vec<u64>,
    /// The greatest number of ranks on one host, which share its network.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    ranks_per_host: u64,
    /// Bandwidth of a host's network in each direction, in Gbit/s. Necessary unless --compare is given.
    #[arg(long, value_name = "GBIT", allow_negative_numbers = true, value_parser = positive,
          required_unless_present = "compare")]
    bandwidth: Option<f64>,
    /// Latency of the network from rank to rank, in microseconds.
    #[arg(long, value_name = "US", allow_negative_numbers = true, default_value = "2", value_parser = not_negative)]
    latency: f64,
    /// Time of the CPU for one message at each end without packing, in microseconds.
    #[arg(long, value_name = "US", allow_negative_numbers = true, default_value = "0.5", value_parser = not_negative)]
    overhead: f64,
    /// Bandwidth of messages between ranks of one host, in GB/s (the CPU copies them).
    #[arg(long, value_name = "GB", allow_negative_numbers = true, default_value = "5", value_parser = positive)]
    local_bandwidth: f64,
    /// Latency of messages between ranks of one host, in microseconds.
    #[arg(long, value_name = "US", allow_negative_numbers = true, default_value = "0.5", value_parser = not_negative)]
    local_latency: f64,
    /// What happens at the same time: the network moves a face while the rank packs or unpacks another one (for
    /// networks that move data by themselves), or nothing (for libraries that send only while the rank waits).
    #[arg(long, value_enum, default_value = "faces")]
    overlap: Overlap,
    /// Time of computing per iteration, in milliseconds. With --total, the time of the first number of ranks: for the
    /// others, it is in proportion to the elements of a rank.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, default_value = "0", value_parser = not_negative)]
    compute: f64,
    /// Number of reductions of a few bytes per iteration.
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    reductions: u32,
    /// The folder of an installed host library with the standard ABI, such as target/peers/mpich. The command measures
    /// how fast the host packs, alone and behind typepack's interposer.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host_rate", "typepack_rate"])]
    host: Option<PathBuf>,
    /// The folder of an installed typepack, whose interposer is measured (`scripts/install --prefix DIR`).
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
    /// How fast the host packs and unpacks the faces in x, y and z, in GB/s, instead of --host: three numbers separated
    /// by commas, or one for all faces.
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_delimiter = ',', value_parser = positive)]
    host_rate: Vec<f64>,
    /// How fast typepack does it.
    #[arg(long, value_name = "GB", allow_negative_numbers = true, value_delimiter = ',', value_parser = positive)]
    typepack_rate: Vec<f64>,
    /// Take the times of packing from messages, instead of --host: two files with the output of
    /// bench-suite/model/halo.c on two hosts, of the host library alone and behind the interposer. The time of packing
    /// is what a message of a face takes longer than a contiguous one. This is more exact than --host, because a
    /// library need not pack a message as its MPI_Pack does.
    #[arg(long, num_args = 2, value_names = ["ALONE", "BEHIND"],
          conflicts_with_all = ["host", "host_rate", "typepack_rate"])]
    messages: Vec<PathBuf>,
    /// Predict nothing for other ranks, but compare predictions with measured exchanges: two files as those of
    /// --messages. May be repeated. bench-suite/model/check.sh makes such files.
    #[arg(long, num_args = 2, value_names = ["ALONE", "BEHIND"])]
    compare: Vec<PathBuf>,
}

fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value <= 1e9 => Ok(value),
        _ => Err("it must be a number, at most 1e9".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    number(text)
        .ok()
        .filter(|value| *value >= 1e-6)
        .ok_or_else(|| "it must be a number from 1e-6 to 1e9".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value = number(text).ok().filter(|value| *value >= 0.0);
    value.ok_or_else(|| "it must be a number from 0 to 1e9".to_owned())
}

/// Runs the command and returns the text for the terminal. Calls `progress` with the number of the current measurement
/// and the number of all.
///
/// # Errors
///
/// Returns a [`Fault`] if the arguments are wrong or if a measurement fails.
pub fn run(
    arguments: &ModelArguments,
    progress: impl FnMut(usize, usize),
) -> Result<String, Fault> {
    if !arguments.compare.is_empty() {
        return compared(&arguments.compare);
    }
    // clap has checked that the bandwidth is there.
    let Some(bandwidth) = arguments.bandwidth else {
        return Err(Fault::Usage("--bandwidth is missing".to_owned()));
    };
    let edge = |ranks: u64| match (arguments.total, arguments.edge) {
        (Some(total), _) => strong_edge(total, ranks),
        (None, edge) => edge.unwrap_or(128),
    };
    let edges: Vec<u64> = arguments.ranks.iter().map(|ranks| edge(*ranks)).collect();
    for (edge, ranks) in edges.iter().zip(&arguments.ranks) {
        if *edge < arguments.width {
            return Err(Fault::Usage(format!(
                "--width {}: on {ranks} ranks, the edge of a rank's cube is {edge}; the width must not be greater",
                arguments.width
            )));
        }
    }
    let (least, greatest) = (edges.iter().min(), edges.iter().max());
    let (&least, &greatest) = (least.unwrap_or(&1), greatest.unwrap_or(&1));
    let halo = Halo {
        edge: greatest,
        width: arguments.width,
        element: arguments.element,
        fields: arguments.fields,
    };
    // The search for the edge from which packing matters looks at small cubes too.
    let least = if arguments.total.is_none() { 1 } else { least };
    let (rates, sources) = rates(arguments, &halo, least, progress)?;
    let network = Network {
        bandwidth: bandwidth / 8.0,
        latency: 1e3 * arguments.latency,
        overhead: 1e3 * arguments.overhead,
        local_bandwidth: arguments.local_bandwidth,
        local_latency: 1e3 * arguments.local_latency,
    };
    let first = super::geometry::real(edges.first().copied().unwrap_or(1));
    let cases: Vec<(u64, Case)> = arguments
        .ranks
        .iter()
        .zip(edges)
        .map(|(ranks, edge)| {
            let case = Case {
                halo: Halo { edge, ..halo },
                network,
                per_host: arguments.ranks_per_host,
                overlap: arguments.overlap,
                rates: rates.clone(),
                compute: 1e6 * arguments.compute * (super::geometry::real(edge) / first).powi(3),
                reductions: f64::from(arguments.reductions),
            };
            (*ranks, case)
        })
        .collect();
    Ok(report::text(&cases, &sources))
}

/// Returns the rates of the host and of typepack, and says where they come from.
fn rates(
    arguments: &ModelArguments,
    halo: &Halo,
    least: u64,
    progress: impl FnMut(usize, usize),
) -> Result<([Rates; 2], String), Fault> {
    if let [alone, behind] = &arguments.messages[..] {
        let pair = pair("--messages", [alone, behind])?;
        let measured = pair.halo();
        if (Halo { edge: measured.edge, ..*halo }) != measured {
            return Err(Fault::Usage(format!(
                "--messages {}: the messages have --width {} --element {} --fields {}; the halo must have the same",
                alone.display(),
                measured.width,
                measured.element,
                measured.fields
            )));
        }
        let sources = format!(
            "what messages of faces of edge {} take longer than contiguous ones, in proportion to the bytes",
            measured.edge
        );
        return Ok((pair.rates(), sources));
    }
    let Some(path) = &arguments.host else {
        let host = three("--host-rate", &arguments.host_rate)?;
        let ours = three("--typepack-rate", &arguments.typepack_rate)?;
        return Ok(([host, ours], "at the given rates".to_owned()));
    };
    let name = path.file_name().map_or("host".to_owned(), |name| name.to_string_lossy().into());
    let named = |option: &str, path: &Path, line: String| {
        Fault::Usage(format!("{option} {}: {line}", path.display()))
    };
    let mut host = Library::at(&name, path).map_err(|line| named("--host", path, line))?;
    if !host.prefix.join("lib/libmpi_abi.so.1").exists() || !host.is_peer() {
        let line = "it is no other MPI library with the standard ABI (lib/libmpi_abi.so.1)";
        return Err(named("--host", path, line.to_owned()));
    }
    host.standard = true;
    let typepack = Library::at(TYPEPACK, &arguments.prefix)
        .map_err(|line| named("--prefix", &arguments.prefix, line))?;
    let behind = behind(&host, &typepack)?;
    let edges = measure::edges(halo.width, least, halo.edge);
    let rates = measure::measure([&host, &behind], &typepack, halo, &edges, progress);
    let rates = rates.map_err(Fault::Failed)?;
    let edges: Vec<String> = edges.iter().map(u64::to_string).collect();
    Ok((rates, format!("MPI_Pack and MPI_Unpack of {name}, measured at edges {}", edges.join(" "))))
}

/// Returns the rates of an option.
fn three(option: &str, rates: &[f64]) -> Result<Rates, Fault> {
    match *rates {
        [x, y, z] => Ok(Rates::Given([x, y, z])),
        [all] => Ok(Rates::Given([all; 3])),
        [] => Err(Fault::Usage(format!(
            "{option} is missing; give the rates of packing, or --messages, or --host to measure the rates"
        ))),
        _ => Err(Fault::Usage(format!(
            "{option}: there are {} numbers; there must be one, or three (x, y, z)",
            rates.len()
        ))),
    }
}

/// Reads the two files of an option.
fn pair(option: &str, files: [&Path; 2]) -> Result<Pair, Fault> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|e| Fault::Usage(format!("{option} {}: {e}", path.display())))
    };
    let name = files[0].file_stem().unwrap_or_default().to_string_lossy();
    Pair::new(&name, [&read(files[0])?, &read(files[1])?]).map_err(|line| {
        let [alone, behind] = files.map(Path::display);
        Fault::Usage(format!("{option} {alone} {behind}: {line}"))
    })
}

/// Compares the pairs of files.
fn compared(files: &[PathBuf]) -> Result<String, Fault> {
    let pairs: Result<Vec<Pair>, Fault> =
        files.chunks_exact(2).map(|files| pair("--compare", [&files[0], &files[1]])).collect();
    Ok(compare::text(&pairs?))
}
