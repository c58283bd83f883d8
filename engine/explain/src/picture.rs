//! Chooses the content of a drawing: the rows of memory, the columns, and the basic elements in each cell.
//!
//! `pieces.rs` finds the basic elements and their positions; `terminal.rs` and `svg.rs` draw the picture.
//! Each row shows the memory of one stride of the type, so that repeated parts line up vertically. Two
//! rules keep a drawing small. If there are many rows, only the first and the last ones are drawn. If
//! many adjacent columns look alike, only those at the two ends are drawn.

use crate::pieces::{Counts, Piece, Shape, block, pieces, shape};
use std::ops::Range;
use typepack_engine::inspect::{self, Constructor};
use typepack_engine::{Datatype, Named, Order};

/// Maximum number of cells in a row. A longer row is drawn with parts left out, and cut if it is still
/// too long.
const WIDTH: i128 = 64;
/// Maximum number of rows of a drawing that is not abridged.
const ROWS: i128 = 20;
/// Number of rows that an abridged drawing shows at the start of the data (`FIRST`) and at its end
/// (`LAST`).
const FIRST: i128 = 9;
const LAST: i128 = 3;
/// Minimum number of cells that are drawn at each end of a stretch whose middle is left out. The number
/// is rounded up to whole basic elements.
const ENDS: i128 = 3;
/// Maximum number of pieces (see [`Piece`]) in one drawing.
const PIECES: usize = 1 << 14;
/// The drawing numbers the basic elements, in packed order, only if there are at most this many.
const NUMBERED: i128 = 400;
/// Maximum width of a row with numbers, in characters. Numbers need wider cells; beyond this width the
/// numbers are left out.
pub(crate) const NUMBERS: i128 = 120;
/// The drawing marks the end of every extent if the count is at most this. Otherwise it marks only the end
/// of the first extent.
const MARKED: u64 = 8;

/// One line of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// A row of memory that begins at this byte.
    Row(i128),
    /// Stands for this number of rows that are left out.
    Skipped(i128),
    /// Separates two planes of a subarray.
    Plane,
}

/// One column of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Slot {
    /// A cell that begins at this byte of the row.
    Cell(i128),
    /// Stands for cells that are left out. The first of them begins at this byte of the row.
    Skip(i128),
    /// Room for the mark of an extent that ends at this byte of a row. Only some rows have a mark in
    /// this column.
    Mark(i128),
}

/// A basic element that has bytes in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cover {
    pub(crate) named: Named,
    /// The element's number in packed order.
    pub(crate) order: i128,
    /// The position of the element's first byte.
    pub(crate) at: i128,
}

/// A layout, ready to be drawn.
pub(crate) struct Picture {
    /// Number of bytes that a cell stands for.
    pub(crate) cell: i128,
    pub(crate) lines: Vec<Line>,
    pub(crate) slots: Vec<Slot>,
    /// The basic types of the drawing. The index of a type selects its colour.
    pub(crate) types: Vec<Named>,
    /// True if there are few enough basic elements to number them.
    pub(crate) numbered: bool,
    /// True if the drawing contains all data of the rows that it shows.
    pub(crate) complete: bool,
    pub(crate) overlaps: bool,
    pub(crate) gaps: bool,
    /// True if the rows are too long for the drawing, even with parts left out, so their ends are cut off.
    crowded: bool,
    /// Number of bytes that a row stands for.
    pitch: i128,
    /// The range from the first byte to the last byte that is data or lies within an extent.
    memory: Range<i128>,
    /// The ends of extents. Each entry holds the first byte of a row, and the offset within that row at
    /// which an extent ends.
    marks: Vec<(i128, i128)>,
    pieces: Vec<Piece>,
    /// In the picture of a file: the number, in packed order, of the first basic element of each rank.
    /// Otherwise empty.
    ranks: Vec<i128>,
}

impl Picture {
    /// Returns the picture of a file, or `None` if there is no data. `ty` has the data of all ranks, one
    /// rank after another, and `ranks` has the number of the first basic element of each rank.
    pub(crate) fn of_ranks(ty: &Datatype, ranks: Vec<i128>) -> Option<Self> {
        Some(Self { ranks, ..Self::new(ty, 1)? })
    }

    /// Returns the picture of `count` elements, or `None` if there is no data.
    pub(crate) fn new(ty: &Datatype, count: u64) -> Option<Self> {
        if ty.size() == 0 || count == 0 {
            return None;
        }
        let memory = Memory::new(ty, count);
        let unit = i128::from(smallest(ty));
        let (pitch, plane) = pitch(ty, count, unit);
        if let Some(pitch) = pitch
            && let Some(picture) = memory.wrapped(pitch, plane)
        {
            return Some(picture);
        }
        // Without a suitable stride, the drawing has a single row if that is short enough. Otherwise
        // each row covers 32 of the smallest basic elements. If the basic elements are numbered but a
        // single row has no room for the numbers, the drawing gets several rows instead: without a
        // stride, nothing but the numbers shows the packed order.
        let one = memory.wrapped(memory.high - memory.low, None);
        if one.as_ref().is_some_and(|one| one.numbered && one.width() > NUMBERS) {
            let rows = memory.wrapped(32 * unit, None);
            let whole = |rows: &Picture| {
                rows.width() <= NUMBERS
                    && rows.lines.iter().all(|line| matches!(line, Line::Row(_)))
            };
            if let Some(rows) = rows.filter(whole) {
                return Some(rows);
            }
        }
        one.or_else(|| memory.wrapped(32 * unit, None)).or_else(|| memory.cut(32 * unit, None))
    }

    /// Returns the basic elements that have bytes in the cell that begins at byte `at` of the row at `row`,
    /// in packed order.
    pub(crate) fn covers(&self, row: i128, at: i128) -> Vec<Cover> {
        let cell = row + at..row + at + self.cell;
        let mut covers = Vec::new();
        for piece in &self.pieces {
            if piece.at < cell.end && piece.end() > cell.start {
                let size = i128::from(piece.named.size());
                let index = ((cell.start - piece.at).max(0)) / size;
                let (order, at) = (piece.first + index, piece.at + index * size);
                covers.push(Cover { named: piece.named, order, at });
            }
        }
        covers.sort_by_key(|cover| cover.order);
        covers
    }

    /// Returns true if the cell lies between the first and the last byte of data and extents. The first
    /// row may begin before that range, and the last row may end after it.
    pub(crate) fn within(&self, row: i128, at: i128) -> bool {
        self.memory.contains(&(row + at))
    }

    /// Returns true if an extent ends at byte `at` of the row that begins at `row`.
    pub(crate) fn ends(&self, row: i128, at: i128) -> bool {
        self.marks.contains(&(row, at))
    }

    /// Returns the number of ranks in the picture of a file, and otherwise `None`.
    pub(crate) fn ranks(&self) -> Option<usize> {
        (!self.ranks.is_empty()).then_some(self.ranks.len())
    }

    /// Returns the rank whose data has the basic element with number `order`.
    fn rank(&self, order: i128) -> usize {
        self.ranks.partition_point(|&first| first <= order).saturating_sub(1)
    }

    /// Returns the index of the colour of a basic element: that of its rank in the picture of a file, and
    /// otherwise that of its type.
    pub(crate) fn colour(&self, cover: &Cover) -> usize {
        match self.ranks() {
            Some(_) => self.rank(cover.order),
            None => self.types.iter().position(|&t| t == cover.named).unwrap_or(0),
        }
    }

    /// Returns the number that the drawing shows for a basic element: that in packed order. In the picture
    /// of a file, each rank counts from 0.
    pub(crate) fn number(&self, order: i128) -> i128 {
        order - self.ranks.get(self.rank(order)).unwrap_or(&0)
    }

    /// Returns the legend's texts: one for each colour, one for the mark of an extent's end, and one for the
    /// numbers.
    pub(crate) fn legend(&self) -> (Vec<String>, &'static str, &'static str) {
        match self.ranks() {
            Some(ranks) => (
                (0..ranks).map(|rank| format!("rank {rank}")).collect(),
                "end of the last filetype",
                "numbers: position in the view of the rank",
            ),
            None => (
                self.types.iter().map(|named| inspect::word(*named)).collect(),
                "end of extent",
                "numbers: packed order",
            ),
        }
    }

    /// Returns the number of bytes that a row stands for.
    pub(crate) fn pitch(&self) -> i128 {
        self.pitch
    }

    /// Returns the number of cells of the smallest basic element.
    pub(crate) fn narrowest(&self) -> i128 {
        let cells = self.types.iter().map(|t| i128::from(t.size()) / self.cell);
        cells.min().unwrap_or(1).max(1)
    }

    /// Returns the number of characters that each cell needs to show the numbers.
    pub(crate) fn digits(&self) -> i128 {
        let digits = self.largest_number().to_string().len() as i128;
        ((digits + self.narrowest()) / self.narrowest()).max(1)
    }

    /// Returns the width of a row with numbers, in characters.
    pub(crate) fn width(&self) -> i128 {
        self.slots.len() as i128 * self.digits()
    }

    /// Returns the largest number of a basic element in the drawing.
    pub(crate) fn largest_number(&self) -> i128 {
        let last = |piece: &Piece| {
            // A piece of a file may have data of several ranks.
            let last = piece.first + piece.count - 1;
            let ends = self.ranks.iter().map(|first| first - 1);
            let ends = ends.filter(|end| (piece.first..last).contains(end));
            ends.chain([last]).map(|order| self.number(order)).max().unwrap_or(0)
        };
        self.pieces.iter().map(last).max().unwrap_or(0)
    }
}

/// The memory that a drawing shows.
struct Memory<'a> {
    ty: &'a Datatype,
    count: u64,
    counts: Counts,
    /// The range that contains all data and all extents: `low` is its first byte, and `high` is one past
    /// its last byte.
    low: i128,
    high: i128,
    /// The range of the data alone, without bounds.
    data: Range<i128>,
    /// The ends of the extents that are marked.
    ends: Vec<i128>,
}

impl<'a> Memory<'a> {
    fn new(ty: &'a Datatype, count: u64) -> Self {
        let wide = i128::from;
        let last = (i128::from(count) - 1) * wide(ty.extent());
        let (before, after) = (last.min(0), last.max(0));
        let data = wide(ty.true_lb()) + before..wide(ty.true_ub()) + after;
        let (lb, ub) = (wide(ty.lb()), wide(ty.ub()));
        // A bound may lie far away from the data (absolute addresses, huge strides). `rows` leaves out the
        // memory between the bound and the data.
        let low = data.start.min(lb.min(ub) + before);
        let high = data.end.max(lb.max(ub) + after);
        let marked = if count <= MARKED { count } else { 1 };
        let ends = (0..marked).map(|i| ub + i128::from(i) * wide(ty.extent())).collect();
        Self { ty, count, counts: Counts::new(ty), low, high, data, ends }
    }

    fn wrapped(&self, pitch: i128, plane: Option<i128>) -> Option<Picture> {
        self.cut(pitch, plane).filter(|picture| !picture.crowded)
    }

    /// Makes the picture with rows of `pitch` bytes. If the rows have too many cells, they are
    /// truncated and the picture is marked as crowded.
    fn cut(&self, pitch: i128, plane: Option<i128>) -> Option<Picture> {
        let base = if plane.is_some() { 0 } else { self.low };
        let row_of = |at: i128| (at - base).div_euclid(pitch);
        let mut rows = self.rows(row_of(self.low)..row_of(self.high - 1) + 1, row_of);
        let (mut found, mut complete) = (Vec::new(), true);
        let mut previous = None;
        for &row in &rows {
            let start = base + row * pitch;
            let room = PIECES / rows.len();
            let window = start..start + pitch;
            let (mut more, all) = pieces(self.ty, self.count, &self.counts, &window, room);
            // A piece that spans several rows is found in each of these rows; keep it once.
            if previous == Some(row - 1) {
                more.retain(|piece| piece.at >= start || !found.contains(piece));
            }
            previous = Some(row);
            complete &= all;
            found.extend(more);
        }
        if rows.len() as i128 > ROWS / 2 {
            // If rows are left out anyway, leave out the rows without data as well.
            let (first, last) = (rows[0], rows[rows.len() - 1]);
            let abridged = last - first + 1 > rows.len() as i128;
            rows.retain(|&row| {
                let (start, end) = (base + row * pitch, base + (row + 1) * pitch);
                let holds = |piece: &Piece| piece.at < end && piece.end() > start;
                let bound = row == first
                    || row == last
                    || self.ends.iter().any(|&end| row_of(end - 1) == row);
                !abridged || bound || found.iter().any(holds)
            });
        }
        let inside = |at: i128| (at - base).rem_euclid(pitch);
        let mut cell = pitch;
        let mut types: Vec<Named> = Vec::new();
        for piece in &found {
            cell = gcd(gcd(cell, piece.at - base), i128::from(piece.named.size()));
            if !types.contains(&piece.named) {
                types.push(piece.named);
            }
        }
        let marks: Vec<(i128, i128)> = self
            .ends
            .iter()
            .map(|&end| {
                // An extent that ends exactly between two rows gets its mark at the end of the upper
                // row.
                let row = base + row_of(end - 1) * pitch;
                (row, end - row)
            })
            .filter(|(row, _)| rows.contains(&row_of(*row)))
            .collect();
        for (_, at) in &marks {
            cell = gcd(cell, *at);
        }
        let mut cuts = vec![0, pitch];
        cuts.extend(found.iter().flat_map(|piece| [inside(piece.at), inside(piece.end())]));
        let mut edges: Vec<i128> = marks.iter().map(|(_, at)| *at).collect();
        edges.sort_unstable();
        edges.dedup();
        cuts.extend(&edges);
        cuts.sort_unstable();
        cuts.dedup();
        let (slots, crowded) = slots(&cuts, &edges, cell, &types, pitch);
        let lines = lines(&rows, base, pitch, plane);
        let elements = self.counts.of(self.ty).saturating_mul(i128::from(self.count));
        let mut picture = Picture {
            cell,
            lines,
            slots,
            types,
            numbered: elements <= NUMBERED,
            complete: complete && !crowded,
            overlaps: false,
            gaps: false,
            crowded,
            pitch,
            memory: self.low..self.high,
            marks,
            pieces: found,
            ranks: Vec::new(),
        };
        for line in &picture.lines {
            let Line::Row(row) = line else { continue };
            for slot in &picture.slots {
                let Slot::Cell(at) = slot else { continue };
                let covers = picture.covers(*row, *at).len();
                picture.overlaps |= covers > 1;
                picture.gaps |= covers == 0 && picture.within(*row, *at);
            }
        }
        Some(picture)
    }

    /// Chooses which of `rows` to draw. Returns all of them if there are at most [`ROWS`]. Otherwise
    /// returns the first and the last row, the rows at the start and at the end of the data, and those in
    /// which a marked extent ends.
    fn rows(&self, rows: Range<i128>, row_of: impl Fn(i128) -> i128) -> Vec<i128> {
        if rows.end - rows.start <= ROWS {
            return rows.collect();
        }
        let (first, last) = (row_of(self.data.start), row_of(self.data.end - 1));
        let mut chosen: Vec<i128> =
            (first..first + FIRST).chain(last - LAST + 1..last + 1).collect();
        chosen.extend([rows.start, rows.end - 1]);
        chosen.extend(self.ends.iter().map(|&end| row_of(end - 1)));
        chosen.retain(|row| rows.contains(row));
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the lines of the chosen rows, with a line for each group of rows that are left out, and a line
/// between two planes of `plane` bytes.
fn lines(rows: &[i128], base: i128, pitch: i128, plane: Option<i128>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (i, &row) in rows.iter().enumerate() {
        if let Some(before) = i.checked_sub(1).map(|i| rows[i]) {
            match row - before - 1 {
                0 => {
                    let ends = plane.is_some_and(|plane| (row * pitch).rem_euclid(plane) == 0);
                    lines.extend(ends.then_some(Line::Plane));
                }
                skipped => lines.push(Line::Skipped(skipped)),
            }
        }
        lines.push(Line::Row(base + row * pitch));
    }
    lines
}

/// Returns the columns, and true if the rows are too long for the drawing (crowded). `cuts` holds the
/// offsets within a row at which the content of any row changes, and `marks` the offsets at which extents
/// end. Between two offsets in `cuts`, every row looks uniform, so the columns in the middle may be left
/// out. If too many columns remain, the function truncates the rows and returns true.
fn slots(
    cuts: &[i128],
    marks: &[i128],
    cell: i128,
    types: &[Named],
    pitch: i128,
) -> (Vec<Slot>, bool) {
    let longest = types.iter().map(|t| i128::from(t.size()) / cell).max().unwrap_or(1).max(1);
    let ends = (ENDS + longest - 1) / longest * longest;
    let short = pitch / cell <= WIDTH;
    let mut slots = Vec::new();
    for pair in cuts.windows(2) {
        let (start, cells) = (pair[0], (pair[1] - pair[0]) / cell);
        let cell_at = |i: i128| Slot::Cell(start + i * cell);
        if short || cells <= 2 * ends + longest {
            slots.extend((0..cells).map(cell_at));
        } else {
            slots.extend((0..ends).map(cell_at));
            slots.push(Slot::Skip(start + ends * cell));
            slots.extend((cells - ends..cells).map(cell_at));
        }
        if marks.contains(&pair[1]) {
            slots.push(Slot::Mark(pair[1]));
        }
        if slots.len() as i128 > WIDTH + 8 {
            slots.truncate(WIDTH as usize);
            slots.push(Slot::Skip(start));
            return (slots, true);
        }
    }
    (slots, false)
}

/// Returns the size of the smallest basic type in `ty`, in bytes.
fn smallest(ty: &Datatype) -> u32 {
    let mut seen = std::collections::HashSet::new();
    let (mut pending, mut size) = (vec![ty], u32::MAX);
    while let Some(ty) = pending.pop() {
        if ty.size() == 0 || !seen.insert(inspect::address(ty)) {
            continue;
        }
        if let Some(named) = ty.as_named() {
            let members = named.members().map(|m| m.map(|(_, member)| member.size()));
            size = size.min(members.map_or(named.size(), |[a, b]| a.min(b)));
        }
        let distinct = inspect::children(ty).chunk_by(Datatype::is_same);
        pending.extend(distinct.map(|copies| &copies[0]));
    }
    size
}

/// Returns the length of a row and the length of a plane, in bytes. The length of a row is `None` if the
/// type has no stride that leaves gaps; the length of a plane is `None` if the drawing marks no planes.
///
/// The rows of a subarray are the rows of its array. For other types, the function collects the strides
/// of the type and, inside it, of the parts with the most data. It takes the longest stride that is at
/// most `WIDTH` times `unit`, the size of the smallest basic element. If all strides are longer, it takes
/// the shortest one.
fn pitch(ty: &Datatype, count: u64, unit: i128) -> (Option<i128>, Option<i128>) {
    let mut candidates: Vec<i128> = Vec::new();
    if count > 1 {
        candidates.extend(stride(ty.extent().into(), i128::from(ty.true_extent())));
    }
    let mut at = ty;
    loop {
        if let Constructor::Subarray { sizes, order, old, .. } = inspect::constructor(at)
            && sizes.len() > 1
        {
            // `length(d)` is the size of dimension `d`, where dimension 0 varies fastest in memory.
            let length = |d: usize| {
                i128::from(sizes[if order == Order::C { sizes.len() - 1 - d } else { d }])
            };
            let row = length(0) * i128::from(old.extent());
            if row > 0 {
                let plane = (sizes.len() > 2).then(|| row * length(1));
                // Planes are marked only if all strides outside the subarray are multiples of its row
                // length, the subarray begins at the start of the type, and no data lies below 0.
                // Otherwise the marks would appear between the wrong rows.
                let plain = candidates.iter().all(|c| c % row == 0) && at.lb() == ty.lb();
                return (Some(row), plane.filter(|_| plain && ty.true_lb() >= 0));
            }
        }
        let next = match shape(at) {
            Shape::Leaf(_) => break,
            Shape::Grid { levels, child, .. } => {
                for (i, &(count, step)) in levels.iter().enumerate() {
                    let inner =
                        levels[i + 1..].iter().map(|(n, s)| (n - 1) * s.abs()).sum::<i128>();
                    if count > 1 {
                        let span = inner + i128::from(child.true_extent());
                        candidates.extend(stride(step, span));
                    }
                }
                Some(child)
            }
            Shape::List(length) => (0..length.min(1 << 16))
                .filter_map(|i| block(at, i))
                .filter(|(copies, _, _)| *copies > 0)
                .max_by_key(|(copies, _, child)| copies * i128::from(child.size()))
                .map(|(_, _, child)| child),
        };
        match next {
            Some(child) if child.size() > 0 => at = child,
            _ => break,
        }
    }
    let fitting = candidates.iter().copied().filter(|c| *c <= WIDTH * unit).max();
    (fitting.or_else(|| candidates.iter().copied().min()), None)
}

/// Returns the absolute value of `step` if steps of this size leave a gap after each part of `span`
/// bytes. Rows that are wrapped at any other stride do not show the repetition.
fn stride(step: i128, span: i128) -> Option<i128> {
    (step.abs() > span).then_some(step.abs())
}
