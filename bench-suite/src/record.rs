//! Reads a dated record: a CSV file that `scripts/bench` has written.
//!
//! Most tables of a record come from `row/report.rs`, the others from `summary.rs`, `message/report.rs`,
//! `guidelines/report.rs` and `commit/row.rs`. `plot/` draws a record, and `results/` writes `RESULTS.md`
//! from all records. A record has comment lines about the machine and then tables. A comment line
//! `# typepack-bench NAME` names the table that follows; if the first table has no such line, it is the
//! table of `peers`. The code finds columns by their names, so that it can also read older records, which have
//! fewer columns.

/// The name of the table of `typepack-bench peers`. The first table has this name if no comment line names
/// it.
pub const PEERS: &str = "peers";
/// The text with which a comment line begins if it names a table.
const TITLE: &str = "# typepack-bench ";

/// A record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The comment lines about the machine, without the `# ` at their beginning.
    pub machine: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
}

/// One table of a record.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name that the comment line before the table states, such as `pingpong` or `storm`; [`PEERS`] if
    /// there is no such line.
    pub name: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    header: &'a [String],
    fields: &'a [String],
}

/// An error message of one line that says what is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(String);

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// Returns an error with a line number if a row has more or fewer fields than the header of its table.
    /// Returns an error if the text has no rows.
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
                    let line = format!(
                        "line {number} has {found} fields, but the table {} has {wanted} columns",
                        table.name
                    );
                    return Err(RecordError(line));
                }
                table.rows.push(fields);
            }
        }
        if record.tables.iter().all(|table| table.rows.is_empty()) {
            return Err(RecordError("the record has no rows".to_owned()));
        }
        Ok(record)
    }

    /// Returns the value of the comment line `# KEY: value` for `key`; `None` if the record has no such
    /// line.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.machine.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
    }

    /// Returns the table with the name `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl Table {
    /// Returns the rows.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> + Clone {
        self.rows.iter().map(|fields| Line { header: &self.header, fields })
    }
}

impl<'a> Line<'a> {
    /// Returns the field in `column`; an empty string if the table has no such column.
    pub fn text(&self, column: &str) -> &'a str {
        let place = self.header.iter().position(|name| name == column);
        place.map_or("", |place| self.fields[place].as_str())
    }

    /// Returns the number in `column`; `None` if the field is not a positive number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)
    }
}

/// Splits a line of a CSV file into its fields. A quoted field may contain commas, but no quotes.
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
    fn tables_are_found_by_name() {
        let record = Record::parse(TEXT).expect("a record");
        assert_eq!(record.machine, ["cpu: some"]);
        assert_eq!((record.fact("cpu"), record.fact("date")), (Some("some"), None));
        let peers = record.table(PEERS).expect("the first table");
        assert_eq!(peers.lines().next().expect("a row").text("executor"), "x, y");
        assert_eq!(record.table("commit").expect("a table").lines().count(), 1);
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| Record::parse(text).expect_err(text).to_string();
        assert_eq!(
            error(&format!("{TEXT}c,1,2\n")),
            "line 9 has 3 fields, but the table commit has 2 columns"
        );
        assert_eq!(error(""), "the record has no rows");
        assert_eq!(error("no record at all"), "the record has no rows");
    }
}
