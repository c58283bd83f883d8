//! Turns every table of a record into subjects, so that one picture of bandwidths (`bandwidth.rs`) and one of
//! ratios (`speedup.rs`) serve packing, messages, collectives, one-sided communication, the interposer and files.
//!
//! In the rows of a [`Subject`], the name is that of a group (a layout, or a family of rows of messages), the size is
//! the one of the picture, and the part is a direction, a kind of memory, or a number of ranks. The panels of a subject
//! say which rows make lines, and its sides say which competitors are compared. The words that describe groups come
//! from the built-in definitions.

use crate::definition;
use crate::files::definition::{Calls, Direction};
use crate::files::suite::{LOOPS, is_peer};
use crate::message::definition::{Definitions, Memory, family};
use crate::message::report::BEHIND;
use crate::record::Record;
use crate::row::kind::Kind;
use crate::row::report::read;
use crate::row::{HAND, HAND_C, MEMCPY, OWN, Row, TYPEPACK};
use std::collections::BTreeMap;

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
            if !groups.contains(&row.name.as_str()) {
                groups.push(&row.name);
            }
        }
        groups
    }
}

/// Returns the subjects for which `record` has rows.
pub(super) fn all(record: &Record) -> Vec<Subject> {
    let mut list = Vec::new();
    let rows = |kind: Kind| record.table(kind.table()).map(read);
    for direction in ["pack", "unpack"] {
        for kind in [Kind::Packing, Kind::Ddtbench] {
            list.extend(rows(kind).map(|rows| packing(rows, kind, direction)));
        }
    }
    for kind in [Kind::Messages, Kind::Collectives, Kind::OneSided, Kind::Interpose, Kind::Fortran]
    {
        list.extend(rows(kind).map(|rows| messages(rows, kind)));
    }
    if let Some(rows) = rows(Kind::Files) {
        list.extend(Direction::ALL.map(|direction| accesses(&rows, direction)));
    }
    list.retain(|subject| !subject.rows.is_empty());
    list
}

/// Returns the names of all competitors of `rows`, in the order in which they occur.
fn competitors(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in rows.iter().flat_map(|row| &row.figures) {
        if !names.contains(&figure.competitor) {
            names.push(figure.competitor.clone());
        }
    }
    names
}

/// Returns the words "the best of" with the names of the peers.
fn best_of(peers: &[String]) -> String {
    let names = if peers.is_empty() { "no peers".to_owned() } else { peers.join(", ") };
    format!("over the best of {names}")
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

fn packing(mut rows: Vec<Row>, kind: Kind, direction: &str) -> Subject {
    let mut peers = competitors(&rows);
    peers.retain(|name| !OWN.contains(&name.as_str()));
    let mut names = owned(&[MEMCPY, HAND, HAND_C]);
    names.extend(peers.iter().cloned());
    names.push(TYPEPACK.to_owned());
    let is_reference = kind == Kind::Packing;
    rows.retain(|row| row.part == direction);
    let panels = CLASSES.iter().map(|(class, title)| Panel {
        title: (*title).to_owned(),
        groups: rows.iter().filter(|row| row.class == *class).map(|row| row.name.clone()).collect(),
        part: direction.to_owned(),
    });
    let side = |title: String, others: Vec<String>| Side {
        title,
        part: None,
        own: TYPEPACK.to_owned(),
        others,
    };
    let hands = "over the best hand-written loop, compiled for this machine".to_owned();
    let set = if is_reference {
        definition::Definitions::reference()
    } else {
        definition::Definitions::ddtbench()
    };
    Subject {
        table: kind.table().to_owned(),
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
        sides: vec![side(best_of(&peers), peers.clone()), side(hands, owned(&[HAND, HAND_C]))],
        rows,
        names,
        peers,
        texts: set.layouts.into_iter().map(|layout| (layout.name, layout.text)).collect(),
    }
}

/// Returns the title of the pictures of messages and their relatives.
fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Collectives => "Collective calls",
        Kind::OneSided => "One-sided communication",
        Kind::Interpose => "Messages and halos of other libraries behind typepack",
        Kind::Fortran => "Array sections of Fortran",
        _ => "Messages and halos of two ranks",
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

fn messages(mut rows: Vec<Row>, kind: Kind) -> Subject {
    let names = competitors(&rows);
    let mut parts: Vec<String> = Vec::new();
    for row in &mut rows {
        let (name, size, ranks) = family(&row.name);
        // In one-sided communication, the numbers of ranks are groups of their own.
        let group = match (kind, ranks) {
            (Kind::OneSided, Some(ranks)) => format!("{name}-x{ranks}"),
            _ => name.to_owned(),
        };
        if let (Kind::Collectives, Some(ranks)) = (kind, ranks) {
            row.part = ranks.to_string();
        }
        (row.name, row.size) = (group, size);
        if !parts.contains(&row.part) {
            parts.push(row.part.clone());
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
        let side = |part: &String| Side {
            title: format!("{}, {}", words(kind, part), best_of(&peers)),
            part: Some(part.clone()),
            own: own.clone(),
            others: peers.clone(),
        };
        parts.iter().map(side).collect()
    };
    let mut texts = BTreeMap::new();
    for row in Definitions::of(kind).rows {
        let ranked = format!("{}-x{}", row.family, row.ranks);
        texts.insert(ranked, format!("{}, {} ranks", row.about, row.ranks));
        texts.insert(row.family, row.about);
    }
    let name = if kind == Kind::Messages { "messages" } else { kind.table() };
    let mut subject = Subject {
        table: kind.table().to_owned(),
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

fn accesses(all: &[Row], direction: Direction) -> Subject {
    let mut names = competitors(all);
    let is_loop = |name: &String| LOOPS.iter().any(|(known, _)| known == name);
    // Typepack comes first, and the loops come last.
    names.sort_by_key(|name| (is_loop(name), name != TYPEPACK));
    let mut rows: Vec<Row> = Vec::new();
    for row in all.iter().filter(|row| row.class != "cold" && row.size.is_some()) {
        if let Some(calls) = row.part.strip_prefix(&format!("{}-", direction.name())) {
            let (name, part) = (calls.to_owned(), direction.name().to_owned());
            let figures = row.figures.iter().filter(|figure| !figure.over).cloned().collect();
            rows.push(Row { name, part, figures, ..row.clone() });
        }
    }
    let panel = |calls: Calls| Panel {
        title: calls.name().to_owned(),
        groups: owned(&[calls.name()]),
        part: direction.name().to_owned(),
    };
    Subject {
        table: Kind::Files.table().to_owned(),
        bandwidth: Some(format!("io-{}", direction.name())),
        ratios: None,
        title: format!("Two ranks {} one file", direction.name()),
        sizes: "bytes of a block",
        groups: "row",
        note: "The best of interleaved turns.",
        rows,
        peers: names.iter().filter(|name| is_peer(name)).cloned().collect(),
        names,
        panels: Calls::ALL.map(panel).into(),
        sides: Vec::new(),
        texts: BTreeMap::new(),
    }
}
