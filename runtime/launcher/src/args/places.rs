//! Reads the values of `-bind-to` and `-map-by`: where ranks run, and in which order they get cores.
//!
//! `mod.rs` uses this file, and `placement.rs` carries out what the values say.

use typepack_job::shm::layout::{MAX_CPUS, MAX_RANKS};
use typepack_job::shm::topology::Level;

/// Returns the level of the machine's parts that the user calls `name`.
fn level(name: &str) -> Option<Level> {
    Some(match name {
        "hwthread" | "hwt" => Level::Thread,
        "core" => Level::Core,
        "l2cache" | "l2" => Level::L2,
        "l3cache" | "l3" => Level::L3,
        "numa" => Level::Numa,
        "socket" | "package" => Level::Package,
        _ => return None,
    })
}

/// The CPUs on which a rank may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// The CPUs of one part of the machine at this level. If the parts are threads or cores, each rank gets a
    /// part of its own, provided that there are enough parts. If the parts are larger, ranks may share a
    /// part, and a rank may run on all cores of its part.
    To(Level),
    /// The CPUs that the user names for each rank. The list is not empty. If there are more ranks than entries,
    /// the next rank gets the first entry again.
    Listed(Vec<Vec<usize>>),
    /// All CPUs: the ranks are not bound.
    None,
}

/// Modifiers that mpiexec accepts after a colon, although they have no effect: they say what to do if there are too few
/// cores, or how Open MPI numbers ranks and prints maps.
const MODIFIERS: [&str; 9] = [
    "overload-allowed",
    "if-supported",
    "oversubscribe",
    "nooversubscribe",
    "span",
    "display",
    "inherit",
    "noinherit",
    "nolocal",
];

/// A value of `-bind-to` or `-map-by`, split at its colons and commas.
struct Placing<'a> {
    /// The part before the first colon.
    name: &'a str,
    /// Number of cores or hardware threads of each rank, if the value says so.
    width: Option<usize>,
    /// The modifiers that have no effect.
    ignored: Vec<&'a str>,
}

impl<'a> Placing<'a> {
    /// Splits a value. `widths` are the beginnings of a modifier with the number of cores of each rank. Returns `None`
    /// if a modifier is unknown.
    fn split(value: &'a str, widths: &str) -> Option<Self> {
        let mut parts = value.split([':', ',']);
        let mut placing = Self { name: parts.next()?, width: None, ignored: Vec::new() };
        for part in parts {
            let lower = part.to_ascii_lowercase();
            if let Some(number) = lower.strip_prefix(widths).and_then(count) {
                placing.width = Some(number);
            } else if MODIFIERS.contains(&lower.as_str()) {
                placing.ignored.push(part);
            } else {
                return None;
            }
        }
        Some(placing)
    }
}

/// Parses a number of ranks or cores of a modifier.
fn count(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number| (1..=MAX_RANKS).contains(number))
}

/// Parses the list of CPUs of each rank: `0,1,2+3,4-7` has the CPUs of four ranks.
fn listed(list: &str) -> Option<Vec<Vec<usize>>> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|cpu| *cpu < MAX_CPUS);
    let range = |text: &str| -> Option<Vec<usize>> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then(|| (first..=last).collect())
    };
    let rank = |text: &str| -> Option<Vec<usize>> {
        let cpus: Option<Vec<_>> = text.split('+').map(range).collect();
        let mut cpus = cpus?.concat();
        cpus.sort_unstable();
        cpus.dedup();
        Some(cpus)
    };
    list.split(',').map(rank).collect()
}

impl Bind {
    /// Parses a value of `-bind-to`. Also returns the number of cores or hardware threads of each rank, and the
    /// modifiers that have no effect.
    pub(super) fn parse<'a>(
        what: &str,
        value: &'a str,
    ) -> Result<(Self, Option<usize>, Vec<&'a str>), String> {
        if let Some(list) = value.strip_prefix("user:") {
            return match listed(list) {
                Some(cpus) => Ok((Self::Listed(cpus), None, Vec::new())),
                None => Err(format!(
                    "{what}: '{value}' is not a list of CPUs below {MAX_CPUS}, such as user:0,1,2+3 or user:0-3,4-7"
                )),
            };
        }
        let placing = Placing::split(value, "");
        match placing.as_ref().map(|placing| (level(placing.name), placing)) {
            Some((Some(level), &Placing { width, ref ignored, .. }))
                if width.is_none() || level <= Level::Core =>
            {
                Ok((Self::To(level), width, ignored.clone()))
            }
            Some((None, &Placing { name: "none", width: None, ref ignored })) => {
                Ok((Self::None, None, ignored.clone()))
            }
            _ => Err(format!(
                "{what}: '{value}' is not one of none, hwthread, core, l2cache, l3cache, numa, socket, hwthread:N, \
                 core:N, user:LIST"
            )),
        }
    }
}

/// The order in which parts of the machine get ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Each NUMA node gets a block of consecutive ranks, in proportion to the number of its cores.
    Blocks,
    /// The cores (or hardware threads) get one rank each, in order. If ranks may share parts of the machine
    /// and there are more ranks than cores, the next rank goes to the first core again.
    Fill,
    /// Round-robin over the parts at this level: each part gets one rank in turn.
    InTurn(Level),
    /// Each part at this level gets `ranks` consecutive ranks. Without a level, the machine is the only part.
    PerPart {
        /// The level of the parts.
        level: Option<Level>,
        /// Number of ranks for each part.
        ranks: usize,
    },
}

impl Map {
    /// Parses a value of `-map-by`. Also returns the number of cores of each rank, and the modifiers that have no
    /// effect.
    pub(super) fn parse<'a>(
        what: &str,
        value: &'a str,
    ) -> Result<(Self, Option<usize>, Vec<&'a str>), String> {
        let wrong = || {
            format!(
                "{what}: '{value}' is not one of slot, node, core, hwthread, l2cache, l3cache, numa, socket, ppr:N:WHAT, \
                 WHAT:PE=N"
            )
        };
        let (each, rest) = match value.strip_prefix("ppr:") {
            Some(rest) => {
                let (number, rest) = rest.split_once(':').ok_or_else(wrong)?;
                (Some(count(number).ok_or_else(wrong)?), rest)
            }
            None => (None, value),
        };
        let placing = Placing::split(rest, "pe=").ok_or_else(wrong)?;
        let level = level(placing.name);
        let map = match (each, placing.name, level) {
            (Some(ranks), "node" | "slot", _) => Self::PerPart { level: None, ranks },
            (Some(ranks), _, Some(level)) => Self::PerPart { level: Some(level), ranks },
            // The value has only modifiers.
            (None, "", _) => Self::Blocks,
            (None, "slot" | "node", _) | (None, _, Some(Level::Thread | Level::Core)) => Self::Fill,
            (None, _, Some(level)) => Self::InTurn(level),
            _ => return Err(wrong()),
        };
        Ok((map, placing.width, placing.ignored))
    }
}
