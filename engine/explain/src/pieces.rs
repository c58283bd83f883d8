//! Finds the basic elements in a window of memory, without expanding the rest of the type.
//!
//! `picture.rs` and `advice.rs` use this file. A type has one of three shapes: a leaf, a grid of copies
//! of one type, or a list of blocks. For a grid, a division finds the iterations that reach into the
//! window, and the walk skips the others. So even for a type with 2^60 basic elements, the cost depends
//! only on the number of basic elements in the window, the lengths of the lists and the depth of the
//! type. The walk keeps its state on the heap and stops after [`STEPS`] steps.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use typepack_engine::inspect::{self, Constructor, strides};
use typepack_engine::{Datatype, Named};

/// Maximum number of steps. A walk that needs more returns an incomplete result.
const STEPS: usize = 1 << 22;

/// Basic elements of one named type, consecutive in memory and in packed order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Position of the first basic element, in bytes.
    pub(crate) at: i128,
    pub(crate) named: Named,
    /// Number of basic elements.
    pub(crate) count: i128,
    /// The first basic element's number in packed order.
    pub(crate) first: i128,
}

impl Piece {
    pub(crate) fn end(&self) -> i128 {
        self.at + self.count * i128::from(self.named.size())
    }
}

/// The way in which a type places its parts.
pub(crate) enum Shape<'a> {
    Leaf(Named),
    /// Copies of `child`. Each level is a count and a step in bytes, outermost first. The first copy is
    /// at byte `at`.
    Grid {
        at: i128,
        levels: Rc<[(i128, i128)]>,
        child: &'a Datatype,
    },
    /// A list with this number of blocks; [`block`] returns each of them.
    List(usize),
}

/// Returns the shape of a type. The products below cannot overflow, because the constructors have
/// checked them for every existing type.
pub(crate) fn shape(ty: &Datatype) -> Shape<'_> {
    let grid =
        |at, levels: &[(i128, i128)], child| Shape::Grid { at, levels: levels.into(), child };
    let wide = i128::from;
    match inspect::constructor(ty) {
        Constructor::Named(named) => Shape::Leaf(named),
        Constructor::Dup { old }
        | Constructor::Resized { old }
        | Constructor::Composite { layout: old } => grid(0, &[], old),
        Constructor::Contiguous { count, old } => {
            grid(0, &[(wide(count), wide(old.extent()))], old)
        }
        Constructor::Vector { count, blocklength, stride, old } => {
            let extent = wide(old.extent());
            let outer = (wide(count), wide(stride) * extent);
            grid(0, &[outer, (wide(blocklength), extent)], old)
        }
        Constructor::Hvector { count, blocklength, stride, old } => {
            let inner = (wide(blocklength), wide(old.extent()));
            grid(0, &[(wide(count), wide(stride)), inner], old)
        }
        Constructor::Indexed { displacements, .. }
        | Constructor::Hindexed { displacements, .. }
        | Constructor::IndexedBlock { displacements, .. }
        | Constructor::HindexedBlock { displacements, .. }
        | Constructor::Struct { displacements, .. } => Shape::List(displacements.len()),
        Constructor::Subarray { sizes, subsizes, starts, order, old } => {
            let dimensions = strides(sizes, order, old.extent());
            let (mut at, mut levels) = (0, Vec::with_capacity(sizes.len()));
            for (d, stride) in dimensions {
                at += wide(starts[d]) * stride;
                levels.push((wide(subsizes[d]), stride));
            }
            levels.reverse();
            grid(at, &levels, old)
        }
    }
}

/// Returns block `index` of a list type: the number of copies, the displacement in bytes, and the type
/// of the copies.
pub(crate) fn block(ty: &Datatype, index: usize) -> Option<(i128, i128, &Datatype)> {
    let (length, at, unit, old) = match inspect::constructor(ty) {
        Constructor::Indexed { blocklengths, displacements, old } => {
            (blocklengths.get(index), displacements.get(index), old.extent(), old)
        }
        Constructor::Hindexed { blocklengths, displacements, old } => {
            (blocklengths.get(index), displacements.get(index), 1, old)
        }
        Constructor::IndexedBlock { blocklength, displacements, old } => {
            (blocklength, displacements.get(index), old.extent(), old)
        }
        Constructor::HindexedBlock { blocklength, displacements, old } => {
            (blocklength, displacements.get(index), 1, old)
        }
        Constructor::Struct { blocklengths, displacements, types } => {
            (blocklengths.get(index), displacements.get(index), 1, &types[index])
        }
        _ => return None,
    };
    Some((i128::from(length), i128::from(at) * i128::from(unit), old))
}

/// The number of basic elements of a type, and of each type inside it.
pub(crate) struct Counts(HashMap<*const (), i128>);

impl Counts {
    pub(crate) fn new(ty: &Datatype) -> Self {
        let mut counts = Self(HashMap::new());
        let mut pending = vec![(ty, false)];
        while let Some((ty, entered)) = pending.pop() {
            if counts.0.contains_key(&inspect::address(ty)) {
                continue;
            }
            if !entered {
                pending.push((ty, true));
                let distinct = inspect::children(ty).chunk_by(Datatype::is_same);
                pending.extend(distinct.map(|copies| (&copies[0], false)));
                continue;
            }
            // A type has at most one basic element per byte of data, so the products and sums fit in
            // `i128`. Types without bytes are treated separately, because their counts of copies are
            // not limited by a size.
            let count = match shape(ty) {
                _ if ty.size() == 0 => 0,
                Shape::Leaf(named) => 1 + i128::from(named.members().is_some()),
                Shape::Grid { levels, child, .. } => {
                    levels.iter().map(|level| level.0).product::<i128>() * counts.of(child)
                }
                Shape::List(length) => (0..length)
                    .filter_map(|i| block(ty, i))
                    .map(|(copies, _, child)| copies * counts.of(child))
                    .sum(),
            };
            counts.0.insert(inspect::address(ty), count);
        }
        counts
    }

    /// Returns the number of basic elements of `ty`. `ty` is the type given to `new` or a type inside
    /// it.
    pub(crate) fn of(&self, ty: &Datatype) -> i128 {
        self.0.get(&inspect::address(ty)).copied().unwrap_or(0)
    }
}

enum Task<'a> {
    Type {
        ty: &'a Datatype,
        at: i128,
        first: i128,
    },
    Grid(Grid<'a>),
    /// Iterations `next..end` of level `depth` of the grid remain to be visited.
    Level {
        grid: Grid<'a>,
        next: i128,
        end: i128,
    },
    /// The blocks `next..length` of the list remain to be visited.
    List {
        ty: &'a Datatype,
        at: i128,
        first: i128,
        next: usize,
        length: usize,
    },
}

#[derive(Clone)]
struct Grid<'a> {
    levels: Rc<[(i128, i128)]>,
    /// Number of outer levels whose iteration is already chosen.
    depth: usize,
    child: &'a Datatype,
    at: i128,
    first: i128,
}

impl Grid<'_> {
    /// Returns the start and the end of the memory that all iterations of the levels from `depth` on
    /// cover, relative to `at`.
    fn span(&self, depth: usize) -> (i128, i128) {
        let (mut low, mut high) =
            (i128::from(self.child.true_lb()), i128::from(self.child.true_ub()));
        for (count, step) in &self.levels[depth..] {
            let reach = (count - 1) * step;
            low += reach.min(0);
            high += reach.max(0);
        }
        (low, high)
    }
}

/// Returns the pieces of `count` elements of `ty` that reach into `window`, in packed order, at most
/// `most` of them. The second result is true if these are all such pieces.
pub(crate) fn pieces(
    ty: &Datatype,
    count: u64,
    counts: &Counts,
    window: &Range<i128>,
    most: usize,
) -> (Vec<Piece>, bool) {
    let levels = Rc::new([(i128::from(count), i128::from(ty.extent()))]);
    let whole = Grid { levels, depth: 0, child: ty, at: 0, first: 0 };
    let mut out: Vec<Piece> = Vec::new();
    let mut pending = vec![Task::Grid(whole)];
    let mut steps = 0;
    while let Some(task) = pending.pop() {
        steps += 1;
        if steps > STEPS || out.len() > most {
            out.truncate(most);
            return (out, false);
        }
        match task {
            Task::Type { ty, at, first } => {
                let reach = at + i128::from(ty.true_lb())..at + i128::from(ty.true_ub());
                if ty.size() == 0 || reach.start >= window.end || reach.end <= window.start {
                    continue;
                }
                match shape(ty) {
                    Shape::Leaf(named) => match named.members() {
                        None => push(&mut out, Piece { at, named, count: 1, first }),
                        Some(members) => {
                            for ((offset, named), first) in members.into_iter().zip(first..) {
                                let at = at + i128::from(offset);
                                push(&mut out, Piece { at, named, count: 1, first });
                            }
                        }
                    },
                    Shape::Grid { at: offset, levels, child } => {
                        let at = at + offset;
                        pending.push(Task::Grid(Grid { levels, depth: 0, child, at, first }));
                    }
                    Shape::List(length) => {
                        pending.push(Task::List { ty, at, first, next: 0, length });
                    }
                }
            }
            Task::Grid(grid) => {
                let Some(&(count, step)) = grid.levels.get(grid.depth) else {
                    let Grid { child: ty, at, first, .. } = grid;
                    pending.push(Task::Type { ty, at, first });
                    continue;
                };
                let (low, high) = grid.span(grid.depth + 1);
                let (next, end) = reaching(count, step, grid.at + low, grid.at + high, window);
                let named = grid.child.as_named().filter(|named| named.members().is_none());
                let innermost = grid.depth + 1 == grid.levels.len();
                match named {
                    Some(named) if innermost && step == i128::from(named.size()) => {
                        if next < end {
                            let at = grid.at + next * step;
                            let first = grid.first + next;
                            push(&mut out, Piece { at, named, count: end - next, first });
                        }
                    }
                    _ => pending.push(Task::Level { grid, next, end }),
                }
            }
            Task::Level { grid, next, end } => {
                if next >= end {
                    continue;
                }
                let below: i128 = grid.levels[grid.depth + 1..].iter().map(|l| l.0).product();
                let step = grid.levels[grid.depth].1;
                let inner = Grid {
                    depth: grid.depth + 1,
                    at: grid.at + next * step,
                    first: grid.first + next * below * counts.of(grid.child),
                    ..grid.clone()
                };
                pending.push(Task::Level { grid, next: next + 1, end });
                pending.push(Task::Grid(inner));
            }
            Task::List { ty, at, mut first, next, length } => {
                // In most lists all blocks have one type. The number of basic elements of this type is
                // looked up once, not once per block.
                let mut known: Option<(&Datatype, i128)> = None;
                for index in next..length {
                    steps += 1;
                    let Some((copies, offset, child)) = block(ty, index) else { break };
                    let before = first;
                    let count = match known {
                        Some((ty, count)) if ty.is_same(child) => count,
                        _ => counts.of(child),
                    };
                    known = Some((child, count));
                    first += copies * count;
                    let at_block = at + offset;
                    let last = at_block + (copies - 1) * i128::from(child.extent());
                    let reaches = at_block.min(last) + i128::from(child.true_lb()) < window.end
                        && at_block.max(last) + i128::from(child.true_ub()) > window.start;
                    if copies > 0 && child.size() > 0 && reaches {
                        pending.push(Task::List { ty, at, first, next: index + 1, length });
                        let levels = Rc::new([(copies, i128::from(child.extent()))]);
                        let (at, first) = (at_block, before);
                        pending.push(Task::Grid(Grid { levels, depth: 0, child, at, first }));
                        break;
                    }
                }
            }
        }
    }
    (out, true)
}

/// Appends a piece. If the piece continues the last one, extends the last one instead.
fn push(out: &mut Vec<Piece>, piece: Piece) {
    match out.last_mut() {
        Some(last)
            if last.named == piece.named
                && last.end() == piece.at
                && last.first + last.count == piece.first =>
        {
            last.count += piece.count;
        }
        _ => out.push(piece),
    }
}

/// Returns the start and the end of the range of iterations `i` within `0..count` whose bytes overlap
/// `window`. The bytes of iteration 0 are `low..high`; each iteration is `step` bytes after the one before.
fn reaching(count: i128, step: i128, low: i128, high: i128, window: &Range<i128>) -> (i128, i128) {
    let meets = |i: i128| low + i * step < window.end && high + i * step > window.start;
    if step == 0 {
        return if meets(0) { (0, count) } else { (0, 0) };
    }
    // The range begins at the first `i` whose bytes reach past one edge of the window, and ends at the
    // first `i` whose bytes lie wholly past the other edge.
    let size = step.abs();
    let (from, to) = if step > 0 {
        ((window.start - high).div_euclid(size) + 1, (window.end - low - 1).div_euclid(size) + 1)
    } else {
        ((low - window.end).div_euclid(size) + 1, (high - window.start - 1).div_euclid(size) + 1)
    };
    (from.clamp(0, count), to.clamp(0, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::typemap::typemap;

    /// Returns the basic elements of the pieces one by one: position, type, number in packed order.
    fn expanded(pieces: &[Piece]) -> Vec<(i128, Named, i128)> {
        pieces
            .iter()
            .flat_map(|piece| {
                (0..piece.count).map(|i| {
                    let at = piece.at + i * i128::from(piece.named.size());
                    (at, piece.named, piece.first + i)
                })
            })
            .collect()
    }

    #[test]
    fn every_window_agrees_with_the_typemap() {
        for text in [
            "double",
            "short_int",
            "vector(3, 2, 4, int)",
            "vector(4, 1, -3, int)",
            "hvector(3, 2, 0, resized(0, -4, int))",
            "hindexed([1, 0, 3], [32, 7, -5], short)",
            "struct([2, 1], [0, 21], [short_int, vector(2, 1, 3, char)])",
            "subarray([4, 5, 6], [2, 2, 3], [1, 2, 1], Fortran, dup(short))",
            "resized(-8, 5, contiguous(3, float))",
            "darray(4, 1, [5, 7], [block, cyclic], [default, 2], [2, 2], C, short)",
            "darray(3, 2, [7, 2], [cyclic, none], [2, default], [3, 1], Fortran, int)",
            "value_index(long, short)",
            "struct([3 x 1], [-8, 0, 24], [lb, int, ub])",
        ] {
            let ty: Datatype = text.parse().unwrap();
            let counts = Counts::new(&ty);
            for count in [1, 3] {
                let mut all = Vec::new();
                for i in 0..count as i128 {
                    for entry in typemap(&ty) {
                        let at = i * i128::from(ty.extent()) + i128::from(entry.offset);
                        all.push((at, entry.named, all.len() as i128));
                    }
                }
                for start in -70..300 {
                    for length in [1, 5, 400] {
                        let window = start..start + length;
                        let touches = |at: i128, named: Named| {
                            at < window.end && at + i128::from(named.size()) > window.start
                        };
                        let wanted: Vec<_> =
                            all.iter().copied().filter(|e| touches(e.0, e.1)).collect();
                        let (found, complete) = pieces(&ty, count, &counts, &window, 10_000);
                        let found: Vec<_> =
                            expanded(&found).into_iter().filter(|e| touches(e.0, e.1)).collect();
                        assert!(complete);
                        assert_eq!(found, wanted, "{text} x {count}: {window:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_window_of_2_to_the_60_elements_is_cheap() {
        let mut ty: Datatype = "resized(0, 2, byte)".parse().unwrap();
        for _ in 0..60 {
            ty = Datatype::contiguous(2, &ty).unwrap();
        }
        let counts = Counts::new(&ty);
        assert_eq!(counts.of(&ty), 1 << 60);
        let (found, complete) = pieces(&ty, 1, &counts, &((1 << 60)..(1 << 60) + 4), 100);
        assert!(complete);
        let named = Named::BYTE;
        let piece = |at: i128| Piece { at, named, count: 1, first: at / 2 };
        assert_eq!(found, [piece(1 << 60), piece((1 << 60) + 2)]);
    }
}
