//! Reads the definitions of the rows and bars of messages, collectives, one-sided communication and the interposer:
//! `definitions/message.toml`, `collective.toml`, `one-sided.toml`, `interpose.toml`, `fortran.toml` and `regret.toml`, or
//! a file of the same form.
//!
//! `suite.rs` measures the [`Definition`]s, and `../row/bar.rs` compares the results with the [`Bar`]s. Only the C
//! program (`message/layout.c`, `halo.c`, `collective.c`, `window.c`) checks the words of a row, such as
//! `blocks 8 64 100`.

use crate::definition::{Blocks, Element, rows_and_bars};
use crate::row::bar::Bar;
use crate::row::kind::Kind;
use crate::row::{HAND, IN_C};
use serde::Deserialize;

const MESSAGES: &str = include_str!("../../definitions/message.toml");
const REGRET: &str = include_str!("../../definitions/regret.toml");
const COLLECTIVES: &str = include_str!("../../definitions/collective.toml");
const ONE_SIDED: &str = include_str!("../../definitions/one-sided.toml");
const INTERPOSE: &str = include_str!("../../definitions/interpose.toml");
const FORTRAN: &str = include_str!("../../definitions/fortran.toml");
/// The largest number of ranks of a row. `message/shared.c` has the same limit.
const MOST_RANKS: usize = 16;
/// The largest number of messages of a burst. `message/burst.c` has the same limit.
const MOST_MESSAGES: u32 = 1024;
/// The largest size of a row, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The rows and bars of a definitions file.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// The rows in the order of the file. If one entry of the file has several sizes, its rows are
    /// consecutive, in the order of these sizes.
    pub rows: Vec<Definition>,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One row to measure. Its buffers can be in user memory or in memory of `MPI_Alloc_mem`.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The name of the row, such as `d1s8-64K`. It contains the size if the entry of the file has sizes.
    pub name: String,
    /// The name of the entry of the file, without a size and a number of ranks: that of [`family`].
    pub family: String,
    /// A human-readable description of the family.
    pub about: String,
    /// The row's class. The bars (required limits) of this class apply to the row. May be empty.
    pub class: String,
    /// A human-readable description: that of the family, and what the name of the row adds.
    pub text: String,
    /// True if the row is part of a quick run.
    pub quick: bool,
    /// The number of ranks.
    pub ranks: usize,
    /// The only kind of memory with which the row is measured; `None` if the row has both kinds.
    pub memory: Option<Memory>,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Message { layout: String, way: Way },
    Burst(String),
    Halo(String),
    Collective { operation: String, bytes: u64 },
    Window(String),
}

/// How a message is made, and what else a row measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// From C.
    #[default]
    Plain,
    /// From C; the row also has the time of one `MPI_Pack`.
    Pack,
    /// From Fortran, sent and received as an array section.
    Sections,
    /// Only the send is a call from Fortran; the row also has the time of the same in C.
    OverC,
    /// No message: one `MPI_Pack` of an array section; the row also has the time of an array assignment.
    Assignment,
}

impl Way {
    /// Returns the word for the C program (`message/pingpong.c`).
    fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Pack => "pack",
            Self::Sections => "sections",
            Self::OverC => "over-c",
            Self::Assignment => "assignment",
        }
    }
}

/// The kind of memory of the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// User memory: memory that the program has mapped itself.
    User,
    /// Memory that `MPI_Alloc_mem` returns.
    Alloc,
}

impl Memory {
    /// Returns the name of this kind of memory in rows and in the lines for the C program.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Alloc => "alloc",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowDefinition {
    name: String,
    #[serde(default)]
    class: String,
    /// In the description, `{layout}` stands for the words that describe the blocks of the layout. If there is no
    /// description, these words are the description.
    #[serde(default = "layout")]
    text: String,
    layout: Option<String>,
    burst: Option<u32>,
    halo: Option<String>,
    collective: Option<String>,
    window: Option<String>,
    memory: Option<Memory>,
    #[serde(default)]
    ranks: Vec<usize>,
    #[serde(default)]
    sizes: Vec<String>,
    unit: Option<u64>,
    quick: Option<Quick>,
    #[serde(default)]
    pack: bool,
    /// The way of a message from Fortran; needs a layout.
    section: Option<Way>,
}

/// The last words of a halo of array sections; `message/halo.c` has them, too.
const SECTIONS: &str = " sections";
/// The place of the words that describe the layout in the description of a row.
const LAYOUT: &str = "{layout}";

fn layout() -> String {
    LAYOUT.to_owned()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Quick {
    All(bool),
    Sizes(Vec<String>),
}

impl RowDefinition {
    /// Returns the way of a message.
    fn way(&self) -> Way {
        self.section.unwrap_or(if self.pack { Way::Pack } else { Way::Plain })
    }

    /// Returns the description of the entry.
    fn about(&self) -> Result<String, String> {
        if !self.text.contains(LAYOUT) {
            return Ok(self.text.clone());
        }
        let words = self.layout.as_deref().or(self.window.as_deref()).unwrap_or("");
        let mut words = words.split_whitespace().skip_while(|word| *word != "blocks").skip(1);
        let mut number = || words.next()?.parse::<u64>().ok().filter(|bytes| *bytes > 0);
        match (number(), number()) {
            (Some(block), Some(stride)) => {
                let blocks = Blocks { block, stride, element: Element::of(block, stride) };
                Ok(self.text.replace(LAYOUT, &blocks.describe()))
            }
            _ => Err("text is missing; only a layout of blocks describes itself".to_owned()),
        }
    }

    fn is_quick(&self, size: &str) -> bool {
        match &self.quick {
            None => false,
            Some(Quick::All(all)) => *all,
            Some(Quick::Sizes(list)) => list.iter().any(|quick| quick == size),
        }
    }
}

impl Definitions {
    /// Returns the built-in rows and bars of `kind`, a kind of measurement between ranks.
    ///
    /// # Panics
    ///
    /// Panics if the definitions have faults. A test reads the files.
    pub fn of(kind: Kind) -> Self {
        let text = match kind {
            Kind::Collectives => COLLECTIVES,
            Kind::OneSided => ONE_SIDED,
            Kind::Interpose => INTERPOSE,
            Kind::Fortran => FORTRAN,
            _ => MESSAGES,
        };
        Self::parse(text).expect("the built-in definitions must be valid")
    }

    /// Returns the built-in rows of `typepack-bench regret messages`: those of `definitions/regret.toml`.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/regret.toml` has faults. A test reads the file.
    pub fn regret() -> Self {
        Self::parse(REGRET).expect("definitions/regret.toml must be valid")
    }

    /// Reads the text of a definitions file.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the text is not valid TOML or if an entry has a fault. The message
    /// names the line, the row or the bar.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rows, bars) = rows_and_bars(
            text,
            |entry: &RowDefinition| &entry.name,
            rows_of,
            |row: &Definition| &row.name,
        )?;
        for bar in &bars {
            if !rows.iter().any(|row| row.class == bar.class) {
                return Err(format!("bar {}: no row has class {}", bar.text, bar.class));
            }
        }
        Ok(Self { rows, bars: bars.into_iter().flat_map(Bar::parts).collect() })
    }
}

fn rows_of(definition: &RowDefinition) -> Result<Vec<Definition>, String> {
    let about = definition.about()?;
    let row = |name: String, quick: bool, what: What| Definition {
        name,
        family: definition.name.clone(),
        about: about.clone(),
        class: definition.class.clone(),
        text: about.clone(),
        quick,
        ranks: 2,
        memory: definition.memory,
        what,
    };
    if let Some(operation) = &definition.collective {
        return collectives_of(definition, row, operation);
    }
    if let Some(messages) = definition.burst {
        return bursts_of(definition, row, messages);
    }
    if let Some(operation) = &definition.window {
        return windows_of(definition, row, operation);
    }
    if !definition.ranks.is_empty() {
        return Err("ranks is given, but only a collective and a window may have ranks".to_owned());
    }
    if definition.section.is_some() && (definition.layout.is_none() || definition.pack) {
        return Err("a row with section needs a layout, and must not have pack".to_owned());
    }
    let is_quick = |size: &String| definition.is_quick(size);
    let whole = matches!(definition.quick, Some(Quick::All(true)));
    let name = definition.name.clone();
    match (&definition.layout, &definition.halo) {
        (None, Some(halo)) if definition.sizes.is_empty() && !definition.pack => {
            Ok(vec![row(name, whole, What::Halo(words("halo", halo)?))])
        }
        (Some(layout), None) if definition.sizes.is_empty() => {
            let layout = words("layout", layout)?;
            if layout.contains('{') {
                return Err("the layout contains {n}, so it needs sizes".to_owned());
            }
            Ok(vec![row(name, whole, What::Message { layout, way: definition.way() })])
        }
        (Some(layout), None) => {
            let layout = words("layout", layout)?;
            if !layout.contains("{n}") {
                return Err("sizes is given, so the layout must contain {n}".to_owned());
            }
            let one = |size: &String| {
                let layout = sized(definition, &layout, size)?;
                let what = What::Message { layout, way: definition.way() };
                Ok(row(format!("{name}-{size}"), is_quick(size), what))
            };
            definition.sizes.iter().map(one).collect()
        }
        (None, Some(_)) => {
            let name = if definition.pack { "pack" } else { "sizes" };
            Err(format!("a row with a halo must not have {name}"))
        }
        (Some(_), Some(_)) => {
            Err("both layout and halo are given; a row must have exactly one of them".to_owned())
        }
        (None, None) => {
            Err("a row must have one of layout, halo, burst, collective and window".to_owned())
        }
    }
}

/// Returns `words` with the number of units of `size` in the place of `{n}`.
fn sized(definition: &RowDefinition, words: &str, size: &str) -> Result<String, String> {
    let unit = definition.unit.unwrap_or(1).max(1);
    match bytes(size)? / unit {
        0 => Err(format!("size {size} is smaller than one unit of {unit} bytes")),
        count => Ok(words.replace("{n}", &count.to_string())),
    }
}

/// Makes a row for each combination of a size and a number of ranks, which may both be absent. If there are numbers of
/// ranks, the name and the class of each row contain the number.
fn windows_of(
    definition: &RowDefinition,
    made: impl Fn(String, bool, What) -> Definition,
    operation: &str,
) -> Result<Vec<Definition>, String> {
    let others = [
        ("layout", definition.layout.is_some()),
        ("halo", definition.halo.is_some()),
        ("pack", definition.pack),
    ];
    if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
        return Err(format!("the window operation \"{operation}\" must not have {name}"));
    }
    let operation = words("window", operation)?;
    if operation.contains("{n}") == definition.sizes.is_empty() {
        return Err("window must contain {n} if sizes is given, and only then".to_owned());
    }
    let mut sizes = vec![(String::new(), operation.clone(), definition.is_quick(""))];
    if !definition.sizes.is_empty() {
        let one = |size: &String| {
            let words = sized(definition, &operation, size)?;
            Ok((format!("-{size}"), words, definition.is_quick(size)))
        };
        sizes = definition.sizes.iter().map(one).collect::<Result<_, String>>()?;
    }
    let mut rows = Vec::new();
    for (size, words, quick) in sizes {
        let mut row = |ranks: usize, suffix: String| {
            let name = format!("{}{size}{suffix}", definition.name);
            let class = format!("{}{suffix}", definition.class);
            rows.push(Definition {
                class,
                ranks,
                ..made(name, quick, What::Window(words.clone()))
            });
        };
        if definition.ranks.is_empty() {
            row(2, String::new());
        }
        for &ranks in &definition.ranks {
            if !(2..=MOST_RANKS).contains(&ranks) {
                return Err(format!("ranks = {ranks} is not between 2 and {MOST_RANKS}"));
            }
            row(ranks, format!("-x{ranks}"));
        }
    }
    Ok(rows)
}

/// Makes a row of bursts of `messages` messages for each size of a message.
fn bursts_of(
    definition: &RowDefinition,
    made: impl Fn(String, bool, What) -> Definition,
    messages: u32,
) -> Result<Vec<Definition>, String> {
    let others = [
        ("layout", definition.layout.is_some()),
        ("halo", definition.halo.is_some()),
        ("pack", definition.pack),
        ("ranks", !definition.ranks.is_empty()),
    ];
    if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
        return Err(format!("a burst must not have {name}"));
    }
    if !(1..=MOST_MESSAGES).contains(&messages) {
        return Err(format!("burst = {messages} is not between 1 and {MOST_MESSAGES}"));
    }
    if definition.sizes.is_empty() {
        return Err("a burst needs sizes".to_owned());
    }
    let one = |size: &String| {
        let what = What::Burst(format!("{messages} {}", bytes(size)?));
        let row = made(format!("{}-{size}", definition.name), definition.is_quick(size), what);
        let about = format!("{messages} {}", row.about);
        Ok(Definition { text: format!("{about} of {size}"), about, ..row })
    };
    definition.sizes.iter().map(one).collect()
}

/// Makes a row for each combination of a size and a number of ranks. If there are no sizes, makes a row of
/// 0 bytes for each number of ranks. The name and the class of each row contain the number of ranks.
fn collectives_of(
    definition: &RowDefinition,
    made: impl Fn(String, bool, What) -> Definition,
    operation: &str,
) -> Result<Vec<Definition>, String> {
    let others = [
        ("layout", definition.layout.is_some()),
        ("halo", definition.halo.is_some()),
        ("pack", definition.pack),
    ];
    if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
        return Err(format!("the collective \"{operation}\" must not have {name}"));
    }
    if operation.is_empty() || !operation.bytes().all(|b| b.is_ascii_lowercase()) {
        return Err(format!(
            "collective is \"{operation}\"; it must be one or more lowercase letters (a-z)"
        ));
    }
    let mut rows = Vec::new();
    for &ranks in &definition.ranks {
        if !(2..=MOST_RANKS).contains(&ranks) {
            return Err(format!("ranks = {ranks} is not between 2 and {MOST_RANKS}"));
        }
        let mut row = |size: Option<&String>, bytes: u64| {
            let size_name = size.map_or(String::new(), |size| format!("-{size}"));
            let name = format!("{}{size_name}-x{ranks}", definition.name);
            let quick = definition.is_quick(size.map_or("", String::as_str));
            let what = What::Collective { operation: operation.to_owned(), bytes };
            let row = made(name, quick, what);
            rows.push(Definition {
                class: format!("{}-x{ranks}", definition.class),
                text: format!("{}, {ranks} ranks", row.about),
                ranks,
                ..row
            });
        };
        if definition.sizes.is_empty() {
            row(None, 0);
        }
        for size in &definition.sizes {
            match bytes(size)? {
                bytes if bytes.is_multiple_of(8) => row(Some(size), bytes),
                _ => return Err(format!("size {size} is not a multiple of 8 bytes")),
            }
        }
    }
    if rows.is_empty() {
        return Err(format!("the collective \"{operation}\" needs ranks"));
    }
    Ok(rows)
}

/// Returns `text`, the words of the key `key`, which is `layout` or `halo`. Checks that they are one line, because
/// `session.rs` sends them to the C program as a part of a line.
fn words(key: &str, text: &str) -> Result<String, String> {
    let sound = !text.is_empty() && text.len() < 1000 && !text.contains(char::is_control);
    if sound {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{key} has {} bytes; it must be one line of 1 to 999 bytes without control \
             characters",
            text.len()
        ))
    }
}

/// Splits the name of a row. Returns the name of its family, its size in bytes if the name has one, and its number of
/// ranks if the name has one.
pub fn family(name: &str) -> (&str, Option<u64>, Option<usize>) {
    let (rest, ranks) = match name.rsplit_once("-x") {
        Some((rest, ranks)) if ranks.parse::<usize>().is_ok() => (rest, ranks.parse().ok()),
        _ => (name, None),
    };
    match rest.rsplit_once('-') {
        Some((family, size)) if bytes(size).is_ok() => (family, bytes(size).ok(), ranks),
        _ => (rest, None, ranks),
    }
}

/// Returns the number of bytes of a size such as `8B`, `64K` or `1M`.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match &text[digits..] {
        "B" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return Err(format!("{text} is not a size such as 8B, 64K or 1M")),
    };
    let bytes = text[..digits].parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    match bytes {
        Some(bytes) if (1..=MOST_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!("{text} is not between 1 and {MOST_BYTES} bytes")),
    }
}

impl Definition {
    /// Returns the line that tells the C program to prepare this row.
    pub fn command(&self, memory: Memory) -> String {
        match &self.what {
            What::Message { layout, way } => {
                format!("row pingpong {} {} {layout}", memory.name(), way.word())
            }
            What::Burst(words) => format!("row burst {} {words}", memory.name()),
            What::Halo(words) => format!("row halo {} {words}", memory.name()),
            What::Window(words) => format!("row window {} {words}", memory.name()),
            What::Collective { operation, bytes } => {
                format!("row collective {} {operation} {bytes}", memory.name())
            }
        }
    }

    /// Returns the name of the competitor whose time the job of typepack measures in the same turn, or `None` if there is
    /// none.
    pub fn beside(&self) -> Option<&'static str> {
        match &self.what {
            What::Message { way: Way::OverC, .. } => Some(IN_C),
            What::Message { way: Way::Assignment, .. } => Some(HAND),
            What::Halo(words) if words.ends_with(SECTIONS) => Some(HAND),
            _ => None,
        }
    }

    /// Returns true if the data of a message is one run of memory.
    pub fn is_contiguous(&self) -> bool {
        matches!(&self.what, What::Message { layout, .. } if layout.starts_with("contig "))
    }

    /// Returns the number of bytes of a message that the last part of the row's name gives, as in `contig-64K`.
    pub fn message_bytes(&self) -> Option<u64> {
        match &self.what {
            What::Message { .. } => bytes(self.name.rsplit('-').next()?).ok(),
            _ => None,
        }
    }

    /// Returns the name of the row's collective operation, or `None` if the row has none.
    pub fn collective(&self) -> Option<&str> {
        match &self.what {
            What::Collective { operation, .. } => Some(operation),
            _ => None,
        }
    }

    /// Returns the number of bytes of each rank in the row's collective operation, or `None` if the row has none.
    pub fn collective_bytes(&self) -> Option<u64> {
        match self.what {
            What::Collective { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// Returns true if `pattern` is `name`, or some consecutive parts of it. Dashes separate the parts.
pub(crate) fn matches(name: &str, pattern: &str) -> bool {
    !pattern.is_empty() && format!("-{name}-").contains(&format!("-{pattern}-"))
}

#[cfg(test)]
mod tests {
    use super::{Definitions, Kind, LAYOUT, Memory, family, matches};

    #[test]
    fn the_built_in_rows_are_sound() {
        let all = Definitions::of(Kind::Messages);
        let row = |name: &str| all.rows.iter().find(|r| r.name == name).expect(name).clone();
        assert_eq!(row("contig-8B").command(Memory::User), "row pingpong user plain contig 8");
        assert_eq!(
            row("d1s8-64K").command(Memory::Alloc),
            "row pingpong alloc plain blocks 8 64 8192"
        );
        assert_eq!(row("burst-4K").command(Memory::User), "row burst user 32 4096");
        assert_eq!(row("halo-128").command(Memory::User), "row halo user double 128 mixed");
        assert!(row("xface-128").command(Memory::User).contains(" pack face 128 0"));
        assert!(row("d1s8-64K").quick && !row("d1s8-4M").quick && !row("halo-256").quick);
        // A quick run has rows for every bar except the bar of the class `cells`.
        for bar in &all.bars {
            let quick = all.rows.iter().any(|r| r.class == bar.class && r.quick);
            assert!(quick || bar.class == "cells", "{}", bar.text);
        }
    }

    #[test]
    fn collectives_have_a_row_for_each_number_of_ranks() {
        let all = Definitions::of(Kind::Collectives);
        let row = |name: &str| all.rows.iter().find(|r| r.name == name).expect(name).clone();
        let allreduce = row("allreduce-8B-x8");
        assert_eq!((allreduce.ranks, allreduce.class.as_str()), (8, "collective-x8"));
        assert_eq!(allreduce.command(Memory::User), "row collective user allreduce 8");
        assert_eq!(row("barrier-x2").command(Memory::Alloc), "row collective alloc barrier 0");
        for name in ["barrier", "allreduce-8B", "bcast-1M", "alltoall-64K"] {
            assert!(row(&format!("{name}-x2")).quick && row(&format!("{name}-x8")).quick, "{name}");
        }
    }

    #[test]
    fn rows_of_windows_have_sizes_and_numbers_of_ranks() {
        let all = Definitions::of(Kind::OneSided);
        let row = |name: &str| all.rows.iter().find(|r| r.name == name).expect(name).clone();
        assert_eq!(row("put-8B").command(Memory::Alloc), "row window alloc put contig 8");
        assert_eq!(row("get-struct-64K").command(Memory::User), "row window user get struct 5041");
        let lock = row("lock-x8");
        assert_eq!((lock.ranks, lock.class.as_str()), (8, "lock-x8"));
        assert_eq!(lock.command(Memory::User), "row window user lock");
        assert_eq!(row("halo-128-shared").memory, Some(Memory::Alloc));
        // A quick run has rows for every bar.
        for bar in &all.bars {
            assert!(all.rows.iter().any(|r| r.class == bar.class && r.quick), "{}", bar.text);
        }
    }

    #[test]
    fn rows_of_the_interposer_have_bars() {
        let all = Definitions::of(Kind::Interpose);
        let row = |name: &str| all.rows.iter().find(|r| r.name == name).expect(name).clone();
        assert_eq!(
            row("b1s2-64K").command(Memory::User),
            "row pingpong user plain blocks 1 2 65536"
        );
        assert_eq!(
            row("column-16").command(Memory::User),
            "row pingpong user plain columns 512 1032 16"
        );
        for row in &all.rows {
            assert!(all.bars.iter().any(|bar| bar.class == row.class), "{}", row.name);
        }
        for bar in &all.bars {
            assert!(all.rows.iter().any(|r| r.class == bar.class && r.quick), "{}", bar.text);
        }
    }

    #[test]
    fn rows_of_fortran_have_bars_and_other_ways() {
        let all = Definitions::of(Kind::Fortran);
        let row = |name: &str| all.rows.iter().find(|r| r.name == name).expect(name).clone();
        let call = row("call-8B");
        assert_eq!(call.command(Memory::User), "row pingpong user over-c contig 8");
        assert_eq!((call.beside(), row("halo-128").beside()), (Some("c"), Some("hand")));
        assert_eq!((row("d1s2-64K").beside(), row("pack-d1s2-16K").beside()), (None, Some("hand")));
        for row in &all.rows {
            assert!(all.bars.iter().any(|bar| bar.class == row.class), "{}", row.name);
        }
        for bar in &all.bars {
            assert!(all.rows.iter().any(|r| r.class == bar.class && r.quick), "{}", bar.text);
        }
    }

    #[test]
    fn names_have_families_and_families_have_descriptions() {
        let all = [
            Definitions::of(Kind::Messages),
            Definitions::of(Kind::Collectives),
            Definitions::of(Kind::OneSided),
            Definitions::of(Kind::Interpose),
            Definitions::of(Kind::Fortran),
            Definitions::regret(),
        ];
        for row in all.iter().flat_map(|all| &all.rows) {
            let (name, _, ranks) = family(&row.name);
            assert_eq!(name, row.family, "{}", row.name);
            assert!(ranks.is_none_or(|ranks| ranks == row.ranks), "{}", row.name);
            assert!(!row.about.is_empty() && !row.about.contains(LAYOUT), "{}", row.about);
        }
        // A family has one description in a file, because the tables name the family once.
        for rows in all.iter().map(|all| &all.rows) {
            for row in rows {
                let other = rows.iter().find(|other| other.family == row.family).expect("itself");
                assert_eq!(other.about, row.about, "{}", row.name);
            }
        }
        assert_eq!(family("bcast-64K-x8"), ("bcast", Some(65536), Some(8)));
        assert_eq!(family("halo-128-remote"), ("halo-128-remote", None, None));
        let row = |name: &str| all[0].rows.iter().find(|row| row.name == name).expect(name);
        assert_eq!(row("d3s7-64K").about, "3 doubles of every 7 (24-byte blocks, stride 56)");
        let put = all[2].rows.iter().find(|row| row.family == "put-d1s8").expect("a row");
        assert_eq!(put.about, "put of 1 double of every 8 (8-byte blocks, stride 64)");
        let missing = "[[row]]\nname = \"a\"\nlayout = \"struct 3\"";
        assert!(Definitions::parse(missing).expect_err("no text").contains("text is missing"));
    }

    #[test]
    fn patterns_are_parts_of_names() {
        let all = Definitions::of(Kind::Messages);
        let count = |pattern| all.rows.iter().filter(|row| matches(&row.name, pattern)).count();
        assert_eq!(count("8B"), 1);
        assert_eq!(count("d1s8-64K"), 1);
        assert!(count("64K") >= 6 && count("halo") == 7 && count("halo-128") == 2);
        assert_eq!((count("8"), count(""), count("2K"), count("4K")), (0, 0, 0, 1));
    }

    #[test]
    fn faults_name_the_row() {
        let fault = |text: &str| Definitions::parse(text).expect_err(text);
        let row = |more: &str| fault(&format!("[[row]]\nname = \"a\"\ntext = \"b\"\n{more}"));
        assert_eq!(
            row("layout = \"contig {n}\"\nsizes = [\"8\"]"),
            "row a: 8 is not a size such as 8B, 64K or 1M"
        );
        assert!(row("layout = \"contig {n}\"").contains("needs sizes"));
        assert!(row("layout = \"contig 8\"\nsizes = [\"8B\"]").contains("{n}"));
        assert!(row("halo = \"a\"\nlayout = \"b\"").contains("both layout and halo are given"));
        assert!(row("halo = \"a\\nquit\"").contains("must be one line"));
        assert!(row("layout = \"contig {n}\"\nsizes = [\"8B\"]\nunit = 16").contains("unit"));
        assert!(
            row("layout = \"contig {n}\"\nsizes = [\"8B\", \"8B\"]")
                .contains("two rows have the name a-8B")
        );
        assert!(row("collective = \"scan\"").contains("needs ranks"));
        assert!(
            row("collective = \"scan\"\nranks = [1]").contains("ranks = 1 is not between 2 and 16")
        );
        let odd = "collective = \"scan\"\nranks = [2]\nsizes = [\"9B\"]";
        assert!(row(odd).contains("size 9B is not a multiple of 8 bytes"));
        assert!(
            row("halo = \"a\"\nranks = [2]")
                .contains("only a collective and a window may have ranks")
        );
        assert!(row("window = \"put contig 8\"\nsizes = [\"8B\"]").contains("{n}"));
        assert!(row("window = \"lock\"\nranks = [99]").contains("ranks = 99 is not between"));
        assert!(row("window = \"lock\"\nhalo = \"a\"").contains("must not have halo"));
        assert!(row("burst = 32").contains("a burst needs sizes"));
        assert!(row("burst = 0\nsizes = [\"8B\"]").contains("burst = 0 is not between 1 and 1024"));
        assert!(row("burst = 32\nhalo = \"a\"").contains("a burst must not have halo"));
        assert!(row("layut = \"b\"").starts_with("line 4: unknown field"));
    }
}
