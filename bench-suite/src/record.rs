//! A dated record read again: what `scripts/bench` has written as CSV.
//!
//! Between `suite_report.rs`, which prints the tables of a record, and `plot/`, which draws them. A
//! record is comment lines about the machine and one table after the other; each table but the
//! first begins with a comment line `# typepack-bench NAME`, the first one is that of `peers`.
//! Columns are found by name, so that records of earlier versions are read too.

use crate::competitor::{HAND, HAND_C, TYPEPACK};
use crate::measure::STEADY;

/// Name of the first table.
pub const PEERS: &str = "peers";
/// How the comment line before a table begins.
const TITLE: &str = "# typepack-bench ";
/// How the columns with bandwidths end.
const SPEED: &str = "_gb_per_s";
/// Columns with bandwidths that are not those of peers.
const OWN: [&str; 7] = ["memcpy", "interpreter", "leaf", "jit", TYPEPACK, HAND, HAND_C];

/// A record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The comment lines about the machine, without their marks.
    pub machine: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
}

/// One table of a record.
#[derive(Clone, Debug)]
pub struct Table {
    /// What has printed it.
    pub name: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    header: &'a [String],
    fields: &'a [String],
}

/// What is wrong with a record, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(String);

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A row with another number of fields than its header, and a record without rows of `peers`;
    /// with the line's number.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let mut record = Self::default();
        let mut title = Some(PEERS.to_owned());
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(name) = line.strip_prefix(TITLE) {
                title = Some(name.trim().to_owned());
            } else if let Some(fact) = line.strip_prefix("# ") {
                record.machine.push(fact.to_owned());
            } else if line.is_empty() || line.starts_with('#') {
            } else if let Some(name) = title.take() {
                record.tables.push(Table { name, header: fields(line), rows: Vec::new() });
            } else if let Some(table) = record.tables.last_mut() {
                let fields = fields(line);
                let (found, wanted) = (fields.len(), table.header.len());
                if found != wanted {
                    let name = &table.name;
                    let line = format!("line {number}: {found} fields; {name} has {wanted}");
                    return Err(RecordError(line));
                }
                table.rows.push(fields);
            }
        }
        match record.table(PEERS) {
            Some(table) if table.lines().any(|line| line.speed(TYPEPACK).is_some()) => Ok(record),
            _ => Err(RecordError("no rows of typepack-bench peers".to_owned())),
        }
    }

    /// The table `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl Table {
    /// The rows.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|fields| Line { header: &self.header, fields })
    }

    /// The peers, in the order of their columns.
    pub fn peers(&self) -> Vec<&str> {
        let columns = self.header.iter().filter_map(|column| column.strip_suffix(SPEED));
        columns.filter(|name| !OWN.contains(name)).collect()
    }
}

impl<'a> Line<'a> {
    /// The field of `column`; empty if there is none.
    pub fn text(&self, column: &str) -> &'a str {
        let place = self.header.iter().position(|name| name == column);
        place.map_or("", |place| self.fields[place].as_str())
    }

    /// The field of `column` as a positive number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)
    }

    /// The bandwidth of a competitor in 10^9 bytes per second.
    pub fn speed(&self, competitor: &str) -> Option<f64> {
        self.number(&format!("{competitor}{SPEED}"))
    }

    /// The name of the fastest of `competitors`.
    pub fn fastest<'n>(&self, competitors: &[&'n str]) -> Option<&'n str> {
        let with = competitors.iter().filter_map(|name| Some((*name, self.speed(name)?)));
        with.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    /// typepack's bandwidth over that of the fastest of `competitors`, where the rounds of both
    /// agree.
    pub fn ratio(&self, competitors: &[&str]) -> Option<f64> {
        let other = self.fastest(competitors)?;
        let steady =
            |name: &str| self.number(&format!("{name}_spread")).is_some_and(|s| s <= STEADY);
        let ratio = self.speed(TYPEPACK)? / self.speed(other)?;
        (steady(TYPEPACK) && steady(other)).then_some(ratio)
    }
}

/// The fields of a line; quoted ones hold no quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut list, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => list.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    list.push(field);
    list
}

#[cfg(test)]
mod tests {
    use super::{PEERS, Record};

    const TEXT: &str = "# cpu: some\nlayout,typepack_gb_per_s,typepack_spread,mine_gb_per_s,mine_spread,executor\n\
                        a,4,1.0,2,1.1,\"x, y\"\na,4,1.3,2,1.1,\nb,3,1.0,,,z\n\
                        # typepack-bench commit\nrow,value\nc,1\n";

    #[test]
    fn tables_are_told_apart() {
        let record = Record::parse(TEXT).expect("a record");
        assert_eq!(record.machine, ["cpu: some"]);
        let peers = record.table(PEERS).expect("the first table");
        assert_eq!(peers.peers(), ["mine"]);
        let ratios: Vec<Option<f64>> = peers.lines().map(|line| line.ratio(&["mine"])).collect();
        assert_eq!(ratios, [Some(2.0), None, None]);
        assert_eq!(peers.lines().next().expect("a row").text("executor"), "x, y");
        assert_eq!(record.table("commit").expect("a table").lines().count(), 1);
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| Record::parse(text).expect_err(text).to_string();
        assert_eq!(error(&format!("{TEXT}c,1,2\n")), "line 9: 3 fields; commit has 2");
        assert_eq!(error(""), "no rows of typepack-bench peers");
        assert_eq!(error("no record at all"), "no rows of typepack-bench peers");
    }
}
