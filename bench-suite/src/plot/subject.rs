//! Turns every table of a record into the same rows, so that one picture of bandwidths (`bandwidth.rs`) and one of
//! ratios (`speedup.rs`) serve packing, messages, collectives, one-sided communication, the interposer and files.
//!
//! A [`Subject`] has [`Row`]s: the bandwidths of all competitors in one group (a layout, or a family of rows of
//! messages) at one size, in one part (a direction, a kind of memory, or a number of ranks). Its panels say which rows
//! make lines, and its sides say which competitors are compared. The words that describe groups come from the built-in
//! definitions.

use super::DDTBENCH;
use crate::competitor::{HAND, HAND_C, MEMCPY, TYPEPACK};
use crate::definition;
use crate::files::definition::{Calls, Direction};
use crate::files::report as files;
use crate::files::suite::is_peer;
use crate::measure::STEADY;
use crate::message::definition::{Definitions, Memory, family};
use crate::message::report::{BEHIND, Subject as Kind};
use crate::record::{Line, PEERS, Record, Table};
use std::collections::BTreeMap;

/// The bandwidth of one competitor in a row.
pub(super) struct Speed {
    pub(super) name: String,
    /// In 10^9 bytes per second.
    pub(super) speed: f64,
    pub(super) steady: bool,
}

/// One row of a record.
pub(super) struct Row {
    /// The layout, or the family of rows.
    pub(super) group: String,
    /// The direction, kind of memory, number of ranks or kind of calls.
    pub(super) part: String,
    /// The class of the row, which may be empty.
    class: String,
    /// The nominal number of bytes; `None` if the row has only one size.
    pub(super) size: Option<u64>,
    pub(super) speeds: Vec<Speed>,
}

impl Row {
    /// Returns the bandwidth of `competitor`.
    pub(super) fn speed(&self, competitor: &str) -> Option<&Speed> {
        self.speeds.iter().find(|speed| speed.name == competitor)
    }

    /// Returns the bandwidth of `own` divided by that of the fastest of `others`; `None` if one of the two is missing
    /// or unsteady.
    pub(super) fn ratio(&self, own: &str, others: &[String]) -> Option<f64> {
        let others = others.iter().filter_map(|name| self.speed(name));
        let best = others.max_by(|a, b| a.speed.total_cmp(&b.speed))?;
        let own = self.speed(own)?;
        (own.steady && best.steady).then_some(own.speed / best.speed)
    }
}

/// Lines of bandwidth against size in one coordinate system: the rows of some groups in one part.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) groups: Vec<String>,
    pub(super) part: String,
}

/// One column of ratios.
pub(super) struct Side {
    pub(super) title: String,
    /// Only rows of this part count; `None` if rows of all parts count.
    pub(super) part: Option<String>,
    pub(super) own: String,
    pub(super) others: Vec<String>,
}

/// The rows of one table, or of one direction of it, and how they are drawn.
pub(super) struct Subject {
    /// The name of the table in the record.
    pub(super) table: String,
    /// The file name of the picture of bandwidths; `None` if there is none.
    pub(super) bandwidth: Option<String>,
    /// The file name of the picture of ratios; `None` if there is none.
    pub(super) ratios: Option<String>,
    /// What the rows are, such as `packing`.
    pub(super) title: String,
    /// What a size is.
    pub(super) sizes: &'static str,
    /// What the groups are.
    pub(super) groups: &'static str,
    /// How a point of a line is made.
    pub(super) note: &'static str,
    pub(super) rows: Vec<Row>,
    /// The competitors, in the order in which they are drawn.
    pub(super) names: Vec<String>,
    pub(super) peers: Vec<String>,
    pub(super) panels: Vec<Panel>,
    pub(super) sides: Vec<Side>,
    texts: BTreeMap<String, String>,
}

impl Subject {
    /// Returns the description of a group; an empty text if the built-in definitions have no such group.
    pub(super) fn describe(&self, group: &str) -> &str {
        self.texts.get(group).map_or("", String::as_str)
    }

    /// Returns the groups in the order of the record.
    pub(super) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group.as_str()) {
                groups.push(&row.group);
            }
        }
        groups
    }
}

/// Returns the subjects for which `record` has rows.
pub(super) fn all(record: &Record) -> Vec<Subject> {
    let mut list = Vec::new();
    for direction in ["pack", "unpack"] {
        for name in [PEERS, DDTBENCH] {
            list.extend(record.table(name).map(|table| packing(table, direction)));
        }
    }
    for kind in [Kind::Messages, Kind::Collectives, Kind::OneSided, Kind::Interpose] {
        list.extend(record.table(kind.table()).map(|table| messages(table, kind)));
    }
    if let Some(run) = files::read(record) {
        list.extend(Direction::ALL.map(|direction| accesses(&run, direction)));
    }
    list.retain(|subject| !subject.rows.is_empty());
    list
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The classes of layouts, one panel each, and the titles of the panels.
const CLASSES: [(&str, &str); 4] = [
    ("plain", "other blocks and lists"),
    ("gapped", "structs with gaps"),
    ("bytes", "blocks of 1 and 2 bytes"),
    ("transpose", "columns one after the other"),
];

fn packing(table: &Table, direction: &str) -> Subject {
    let peers = owned(&table.peers());
    let mut names = owned(&[MEMCPY, HAND, HAND_C]);
    names.extend(peers.iter().cloned());
    names.push(TYPEPACK.to_owned());
    let is_reference = table.name == PEERS;
    let row = |line: Line<'_>| {
        let speed = |name: &&str| -> Option<Speed> {
            let spread = line.number(&format!("{name}_spread"));
            Some(Speed {
                name: (*name).to_owned(),
                speed: line.speed(name)?,
                steady: spread.is_some_and(|spread| spread <= STEADY),
            })
        };
        Row {
            group: line.text("layout").to_owned(),
            part: direction.to_owned(),
            class: line.text("class").to_owned(),
            size: line.text("size").parse().ok(),
            speeds: table.competitors().iter().filter_map(speed).collect(),
        }
    };
    let lines = table.lines().filter(|line| line.text("direction") == direction);
    let rows: Vec<Row> = lines.map(row).collect();
    let panels = CLASSES.iter().map(|(class, title)| Panel {
        title: (*title).to_owned(),
        groups: rows
            .iter()
            .filter(|row| row.class == *class)
            .map(|row| row.group.clone())
            .collect(),
        part: direction.to_owned(),
    });
    let side = |title: String, others: Vec<String>| Side {
        title,
        part: None,
        own: TYPEPACK.to_owned(),
        others,
    };
    let best = if peers.is_empty() { "no peers".to_owned() } else { peers.join(", ") };
    let hands = "over the best hand-written loop, compiled for this machine".to_owned();
    let set = if is_reference {
        definition::Definitions::reference()
    } else {
        definition::Definitions::ddtbench()
    };
    Subject {
        table: table.name.clone(),
        bandwidth: is_reference.then(|| format!("bandwidth-{direction}")),
        ratios: Some(format!("{}-{direction}", if is_reference { "speedup" } else { "ddtbench" })),
        title: format!(
            "{}, {}",
            if direction == "pack" { "Packing" } else { "Unpacking" },
            if is_reference { "one thread" } else { "layouts of DDTBench" }
        ),
        sizes: "packed bytes per call",
        groups: "layout",
        note: "Geometric means over the layouts named.",
        panels: panels.collect(),
        sides: vec![
            side(format!("over the best of {best}"), peers.clone()),
            side(hands, owned(&[HAND, HAND_C])),
        ],
        rows,
        names,
        peers,
        texts: set.layouts.into_iter().map(|layout| (layout.name, layout.text)).collect(),
    }
}

/// Returns the title of the pictures of messages and their relatives.
fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Messages => "Messages and halos of two ranks",
        Kind::Collectives => "Collective calls",
        Kind::OneSided => "One-sided communication",
        Kind::Interpose => "Messages and halos of other libraries behind typepack",
    }
}

/// Returns the words for a part of messages: a kind of memory or a number of ranks.
fn words(kind: Kind, part: &str) -> String {
    match (kind, part) {
        (Kind::Collectives, ranks) => format!("{ranks} ranks"),
        (Kind::OneSided, part) if part == Memory::User.name() => "user memory".to_owned(),
        (Kind::OneSided, _) => "allocated windows".to_owned(),
        (_, part) if part == Memory::User.name() => "user memory".to_owned(),
        _ => "MPI_Alloc_mem".to_owned(),
    }
}

fn messages(table: &Table, kind: Kind) -> Subject {
    let mut names: Vec<String> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    let mut last = ["", ""];
    for line in table.lines() {
        let key = [line.text("row"), line.text("memory")];
        let (name, size, ranks) = family(key[0]);
        let part = match (kind, ranks) {
            (Kind::Collectives, Some(ranks)) => ranks.to_string(),
            _ => key[1].to_owned(),
        };
        // In one-sided communication, the numbers of ranks are groups of their own.
        let group = match (kind, ranks) {
            (Kind::OneSided, Some(ranks)) => format!("{name}-x{ranks}"),
            _ => name.to_owned(),
        };
        if !parts.contains(&part) {
            parts.push(part.clone());
        }
        if last != key || rows.is_empty() {
            let class = line.text("class").to_owned();
            rows.push(Row { group, part, class, size, speeds: Vec::new() });
            last = key;
        }
        let (library, ns) = (line.text("library").to_owned(), line.number("ns"));
        if !names.contains(&library) {
            names.push(library.clone());
        }
        if let (Some(row), Some(ns)) = (rows.last_mut(), ns) {
            let bytes = line.number("bytes").unwrap_or(1.0);
            let steady = line.number("spread").is_some_and(|spread| spread <= STEADY);
            row.speeds.push(Speed { name: library, speed: bytes / ns, steady });
        }
    }
    let is_own = |name: &String| name.starts_with(TYPEPACK) || name.ends_with(BEHIND);
    let peers: Vec<String> = names.iter().filter(|name| !is_own(name)).cloned().collect();
    let sides: Vec<Side> = if kind == Kind::Interpose {
        let behind = names.iter().filter_map(|own| Some((own, own.strip_suffix(BEHIND)?)));
        let side = |(own, host): (&String, &str)| Side {
            title: format!("{host} behind typepack over {host} alone"),
            part: None,
            own: own.clone(),
            others: owned(&[host]),
        };
        behind.map(side).collect()
    } else {
        let own = names.iter().find(|name| is_own(name)).cloned().unwrap_or_default();
        let best = if peers.is_empty() { "no peers".to_owned() } else { peers.join(", ") };
        let side = |part: &String| Side {
            title: format!("{}, over the best of {best}", words(kind, part)),
            part: Some(part.clone()),
            own: own.clone(),
            others: peers.clone(),
        };
        parts.iter().map(side).collect()
    };
    let definitions = match kind {
        Kind::Messages => Definitions::messages(),
        Kind::Collectives => Definitions::collectives(),
        Kind::OneSided => Definitions::one_sided(),
        Kind::Interpose => Definitions::interpose(),
    };
    let mut texts = BTreeMap::new();
    for row in definitions.rows {
        let ranked = format!("{}-x{}", row.family, row.ranks);
        texts.insert(ranked, format!("{}, {} ranks", row.about, row.ranks));
        texts.insert(row.family, row.about);
    }
    let name = if kind == Kind::Messages { "messages" } else { kind.table() };
    let mut subject = Subject {
        table: table.name.clone(),
        bandwidth: Some(format!("bandwidth-{name}")),
        ratios: Some(format!("speedup-{name}")),
        title: title(kind).to_owned(),
        sizes: "bytes",
        groups: "row",
        note: "Bytes over the time of a row; medians of interleaved rounds.",
        rows,
        names,
        peers,
        panels: Vec::new(),
        sides,
        texts,
    };
    // Typepack comes last, so that its line is above the others.
    subject.names.sort_by_key(is_own);
    let panels = |group: &&str| {
        let title = |part: &String| format!("{group}, {}", words(kind, part));
        let panel = |part: &String| Panel {
            title: title(part),
            groups: owned(&[group]),
            part: part.clone(),
        };
        parts.iter().map(panel).collect::<Vec<Panel>>()
    };
    subject.panels = subject.groups().iter().flat_map(panels).collect();
    subject
}

fn accesses(run: &files::Run, direction: Direction) -> Subject {
    let row = |row: &crate::files::suite::Measured| {
        let speed = |name: &&str| {
            let best = row.figure(name)?.best()?;
            let (speed, steady) = (row.bytes as f64 / best.ns, best.spread <= STEADY);
            Some(Speed { name: (*name).to_owned(), speed, steady })
        };
        Row {
            group: row.calls.name().to_owned(),
            part: direction.name().to_owned(),
            class: row.class.clone(),
            size: row.block,
            speeds: run.competitors().iter().filter_map(speed).collect(),
        }
    };
    let chosen = |row: &&crate::files::suite::Measured| {
        row.class != "cold" && row.direction == direction && row.block.is_some()
    };
    let panel = |calls: Calls| Panel {
        title: calls.name().to_owned(),
        groups: owned(&[calls.name()]),
        part: direction.name().to_owned(),
    };
    let names = owned(&run.competitors());
    Subject {
        table: files::FILES.to_owned(),
        bandwidth: Some(format!("io-{}", direction.name())),
        ratios: None,
        title: format!("Two ranks {} one file", direction.name()),
        sizes: "bytes of a block",
        groups: "row",
        note: "The best of interleaved turns.",
        rows: run.rows.iter().filter(chosen).map(row).collect(),
        peers: names.iter().filter(|name| is_peer(name)).cloned().collect(),
        names,
        panels: Calls::ALL.map(panel).into(),
        sides: Vec::new(),
        texts: BTreeMap::new(),
    }
}
