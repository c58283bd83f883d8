//! Computes what the standard says about a datatype, naively and without the engine.
//!
//! `check.rs` compares the engine's bounds, its typemap and every packed byte with this model. The
//! model takes only the table of named types from the engine. It deliberately expands a type to one
//! entry per basic element, because this method is simple enough to be obviously right.
//!
//! Sources: MPI-5.0 section 5.1 for the type map of each constructor, and sections 5.1.6 and 5.1.7 for
//! lower bound, upper bound and extent. A type made by `resized` has explicit bounds, and a type that
//! contains such types takes its own bounds from them alone. A marker of MPI-1 (MPI-1.1 section 3.12.3)
//! sets only one bound explicitly, so the model computes the lower and the upper bound separately. For
//! a distributed array, the model computes which process owns each element of the array.

use crate::recipe::{Block, Dimension, F90, Recipe, Spread, StructCall, is_marker};
use typepack_engine::{DEFAULT_ARGUMENT, Distribution, Named, Order};

/// Type map and bounds of a recipe. All positions are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Displacement and named type of each entry, in type map order. A pair type has two entries.
    pub entries: Vec<(i64, Named)>,
    /// Lower bound.
    pub lb: i64,
    /// Upper bound.
    pub ub: i64,
    /// For the lower and the upper bound: true if `resized`, `subarray`, `darray` or a marker sets the
    /// bound, in this type or in a part of it.
    pub explicit: (bool, bool),
    /// Number of nodes that a naive walk over the tree visits. The walk enters every copy of a type,
    /// even of an empty type, which adds nothing to the type map. So a walk over nested empty types
    /// could take hours, although their type map is empty.
    pub visits: u64,
}

/// One copy of a type: its position in bytes, and the model of the type.
type Place<'a> = (i64, &'a Model);

impl Model {
    /// Computes the model of `recipe`. Returns `None` if a number does not fit in an `i64`, if the type
    /// map would have more than `most` entries, or if the MPI call would refuse the arguments.
    pub fn of(recipe: &Recipe, most: usize) -> Option<Model> {
        let children: Option<Vec<Model>> =
            recipe.children().into_iter().map(|child| Model::of(child, most)).collect();
        Model::compose(recipe, &children?, most)
    }

    /// Computes the model of `recipe` from `children`, the models of its element types. Returns `None`
    /// in the same cases as [`Model::of`].
    pub fn compose(recipe: &Recipe, children: &[Model], most: usize) -> Option<Model> {
        let element = children.first();
        let takes_markers = match recipe {
            Recipe::Struct { call, .. } => *call != StructCall::Create,
            _ => false,
        };
        if !takes_markers && recipe.children().into_iter().any(is_marker) {
            return None;
        }
        let unit = |bytes: bool, old: &Model| if bytes { 1 } else { old.extent() };
        match recipe {
            Recipe::Named(named) => Some(Model::named(*named)),
            Recipe::Contiguous { count, .. } => {
                let old = element?;
                blocks(&[Block { blocklength: *count, displacement: 0 }], 1, old, most)
            }
            Recipe::Vector { bytes, count, blocklength, stride, .. } => {
                let old = element?;
                if *count > 0 && *blocklength > 0 && *count > most as i64 {
                    return None;
                }
                let list: Option<Vec<Block>> = (0..if *blocklength == 0 { 0 } else { *count })
                    .map(|i| {
                        let displacement = i.checked_mul(*stride)?;
                        Some(Block { blocklength: *blocklength, displacement })
                    })
                    .collect();
                blocks(&list?, unit(*bytes, old), old, most)
            }
            Recipe::Indexed { bytes, blocks: list, .. } => {
                let old = element?;
                blocks(list, unit(*bytes, old), old, most)
            }
            Recipe::IndexedBlock { bytes, blocklength, displacements, .. } => {
                let old = element?;
                let list: Vec<Block> = displacements
                    .iter()
                    .map(|&displacement| Block { blocklength: *blocklength, displacement })
                    .collect();
                blocks(&list, unit(*bytes, old), old, most)
            }
            Recipe::F90(kind) => f90(*kind).map(Model::named),
            Recipe::ValueIndex { value, index } => Some(value_index(*value, *index)),
            Recipe::Struct { members, .. } => {
                let mut places = Vec::new();
                for ((block, _), old) in members.iter().zip(children) {
                    run(*block, 1, old, most, &mut places)?;
                }
                let mut model = union(&places, most)?;
                if !model.explicit.1 && !model.entries.is_empty() {
                    let align = model.entries.iter().map(|(_, n)| i64::from(n.align())).max();
                    let extent = model.extent();
                    let rest = extent.rem_euclid(align.unwrap_or(1));
                    if rest != 0 {
                        model.ub = model.ub.checked_add(align.unwrap_or(1) - rest)?;
                    }
                }
                Some(model)
            }
            Recipe::Subarray { order, dimensions, .. } => {
                subarray(*order, dimensions, element?, most)
            }
            Recipe::Darray { order, rank, dimensions, .. } => {
                darray(*order, *rank, dimensions, element?, most)
            }
            Recipe::Resized { lb, extent, .. } => {
                let Model { entries, visits, .. } = element?.clone();
                Some(Model {
                    entries,
                    lb: *lb,
                    ub: lb.checked_add(*extent)?,
                    explicit: (true, true),
                    visits,
                })
            }
            Recipe::Dup { .. } => element.cloned(),
        }
    }

    fn named(named: Named) -> Model {
        let entries = match named.members() {
            Some(members) => members.map(|(offset, n)| (i64::from(offset), n)).to_vec(),
            None if named.is_marker() => Vec::new(),
            None => vec![(0, named)],
        };
        let explicit = (named == Named::LB, named == Named::UB);
        Model { entries, lb: 0, ub: i64::from(named.extent()), explicit, visits: 1 }
    }

    /// Returns the number of bytes of data.
    pub fn size(&self) -> i64 {
        self.entries.iter().map(|(_, named)| i64::from(named.size())).sum()
    }

    /// Returns the distance between consecutive elements.
    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// Returns the offset of the first byte of data; 0 if there is no data.
    pub fn true_lb(&self) -> i64 {
        self.entries.iter().map(|(offset, _)| *offset).min().unwrap_or(0)
    }

    /// Returns the offset one past the last byte of data; 0 if there is no data.
    pub fn true_ub(&self) -> i64 {
        self.entries.iter().map(|(offset, n)| offset + i64::from(n.size())).max().unwrap_or(0)
    }

    /// Returns the range of bytes that `count` elements touch: the first byte, and one past the last
    /// byte. Both are 0 if the elements touch nothing. Returns `None` if a number does not fit in an
    /// `i64`.
    pub fn touched(&self, count: u64) -> Option<(i64, i64)> {
        if count == 0 || self.entries.is_empty() {
            return Some((0, 0));
        }
        let shift = self.extent().checked_mul(i64::try_from(count - 1).ok()?)?;
        let low = self.true_lb().checked_add(shift.min(0))?;
        Some((low, self.true_ub().checked_add(shift.max(0))?))
    }

    /// Returns the memory address of every packed byte of `count` elements, relative to the origin.
    pub fn addresses(&self, count: u64) -> Vec<i64> {
        let mut addresses = Vec::new();
        for element in 0..count as i64 {
            for (offset, named) in &self.entries {
                let start = element * self.extent() + offset;
                addresses.extend(start..start + i64::from(named.size()));
            }
        }
        addresses
    }
}

/// Adds to `places` the copies of `old` that make up `block`, whose displacement is in units of `unit`
/// bytes. Returns `None` if a block has more than `most` copies, if `places` already has more than
/// `most` entries, or if a position does not fit in an `i64`.
fn run<'a>(
    block: Block,
    unit: i64,
    old: &'a Model,
    most: usize,
    places: &mut Vec<Place<'a>>,
) -> Option<()> {
    let start = block.displacement.checked_mul(unit)?;
    if block.blocklength > most as i64 || places.len() > most {
        return None;
    }
    for i in 0..block.blocklength {
        places.push((start.checked_add(i.checked_mul(old.extent())?)?, old));
    }
    Some(())
}

fn blocks(list: &[Block], unit: i64, old: &Model, most: usize) -> Option<Model> {
    let mut places = Vec::new();
    for block in list {
        run(*block, unit, old, most, &mut places)?;
    }
    union(&places, most)
}

/// Returns the model of a type that consists of copies of other types, in the given order. The lower and
/// the upper bound are computed separately. If a bound is explicit in some copies, only these copies
/// determine the bound. Otherwise every copy with data helps to determine the bound. If no copy
/// determines one of the two bounds, this bound gets the position of the other one. If no copy
/// determines either bound, both are 0.
fn union(places: &[Place<'_>], most: usize) -> Option<Model> {
    let mut entries = Vec::new();
    for (start, old) in places {
        for (offset, named) in &old.entries {
            entries.push((start.checked_add(*offset)?, *named));
        }
        if entries.len() > most {
            return None;
        }
    }
    let any = |side: fn(&Model) -> bool| places.iter().any(|(_, old)| side(old));
    let explicit = (any(|old| old.explicit.0), any(|old| old.explicit.1));
    let (mut lower, mut upper) = (None::<i64>, None::<i64>);
    for (start, old) in places {
        let data = !old.entries.is_empty();
        if if explicit.0 { old.explicit.0 } else { data } {
            let lb = start.checked_add(old.lb)?;
            lower = Some(lower.map_or(lb, |low| low.min(lb)));
        }
        if if explicit.1 { old.explicit.1 } else { data } {
            let ub = start.checked_add(old.ub)?;
            upper = Some(upper.map_or(ub, |high| high.max(ub)));
        }
    }
    let lb = lower.or(upper).unwrap_or(0);
    let ub = upper.or(lower).unwrap_or(0);
    let visits = places.iter().fold(1u64, |sum, (_, old)| sum.saturating_add(old.visits));
    Some(Model { entries, lb, ub, explicit, visits })
}

/// Computes the model of a subarray (MPI-5.0 section 5.1.3). Its entries are those of the selected
/// elements of the array, in the order of the array. Its extent is that of the whole array.
fn subarray(order: Order, dimensions: &[Dimension], old: &Model, most: usize) -> Option<Model> {
    // `dims` must begin with the slowest-varying dimension, which in Fortran order is the last one.
    let mut dims = dimensions.to_vec();
    if order == Order::Fortran {
        dims.reverse();
    }
    let mut positions: Vec<i64> = vec![0];
    let mut whole: i64 = 1;
    for dim in &dims {
        whole = whole.checked_mul(dim.size)?;
        let mut next = Vec::new();
        for position in &positions {
            for i in 0..dim.subsize {
                next.push(position.checked_mul(dim.size)?.checked_add(dim.start + i)?);
            }
        }
        if next.len() > most {
            return None;
        }
        positions = next;
    }
    let mut places = Vec::new();
    for position in positions {
        places.push((position.checked_mul(old.extent())?, old));
    }
    let model = union(&places, most)?;
    Some(Model { lb: 0, ub: whole.checked_mul(old.extent())?, explicit: (true, true), ..model })
}

/// Computes the model of a distributed array (MPI-5.0 section 5.1.4). Returns `None` under the
/// conditions of [`Model::of`]. For example, `shrink.rs` makes arguments that `MPI_Type_create_darray`
/// would refuse.
fn darray(
    order: Order,
    rank: i32,
    dimensions: &[Spread],
    old: &Model,
    most: usize,
) -> Option<Model> {
    // The processes of the grid are numbered in C order (the last dimension varies fastest), whatever
    // the order of the array is.
    let mut rest = i64::from(rank);
    let mut owned: Vec<(i64, Vec<i64>)> = Vec::new();
    for dim in dimensions.iter().rev() {
        let processes = i64::from(dim.processes);
        if dim.size < 1 || dim.size > most as i64 || processes < 1 || dim.argument < 1 {
            return None;
        }
        let at = rest % processes;
        rest /= processes;
        let block = match (dim.distribution, dim.argument) {
            (Distribution::None, _) if processes > 1 => return None,
            (Distribution::None, _) => dim.size,
            (Distribution::Block, DEFAULT_ARGUMENT) => (dim.size + processes - 1) / processes,
            (Distribution::Block, argument) if i64::from(argument) * processes < dim.size => {
                return None;
            }
            (Distribution::Cyclic, DEFAULT_ARGUMENT) => 1,
            (_, argument) => i64::from(argument),
        };
        let mine = (0..dim.size).filter(|i| i / block % processes == at).collect();
        owned.push((dim.size, mine));
    }
    if rest != 0 || rank < 0 || dimensions.is_empty() {
        return None;
    }
    // `owned` begins with the last dimension, but the loop below needs the slowest-varying dimension
    // first. In C order that is the first dimension.
    if order == Order::C {
        owned.reverse();
    }
    let (mut positions, mut whole) = (vec![0i64], 1i64);
    for (size, mine) in &owned {
        whole = whole.checked_mul(*size)?;
        if positions.len() * mine.len() > most {
            return None;
        }
        positions = positions.iter().flat_map(|p| mine.iter().map(move |i| p * size + i)).collect();
    }
    let mut places = Vec::new();
    for position in positions {
        places.push((position.checked_mul(old.extent())?, old));
    }
    let model = union(&places, most)?;
    Some(Model { lb: 0, ub: whole.checked_mul(old.extent())?, explicit: (true, true), ..model })
}

/// Returns the named type that satisfies the arguments of a Fortran 90 type (MPI-5.0 section 19.1.5),
/// from the types of compilers for LP64 machines. Returns `None` if no type suffices, or if neither the
/// precision nor the range of a real or complex type is given.
fn f90(kind: F90) -> Option<Named> {
    let extended = cfg!(target_arch = "x86_64");
    let reals = [
        (6, 37, Named::REAL4, Named::COMPLEX8, true),
        (15, 307, Named::REAL8, Named::COMPLEX16, true),
        (18, 4931, Named::LONG_DOUBLE, Named::C_LONG_DOUBLE_COMPLEX, extended),
        (33, 4931, Named::REAL16, Named::COMPLEX32, true),
    ];
    match kind {
        F90::Real(None, None) | F90::Complex(None, None) => None,
        F90::Real(precision, range) | F90::Complex(precision, range) => {
            let (precision, range) = (precision.unwrap_or(0), range.unwrap_or(0));
            let enough = reals.iter().find(|row| {
                row.4 && (0..=row.0).contains(&precision) && (0..=row.1).contains(&range)
            })?;
            Some(if matches!(kind, F90::Real(..)) { enough.2 } else { enough.3 })
        }
        F90::Integer(range) => {
            let integers = [
                (2, Named::INTEGER1),
                (4, Named::INTEGER2),
                (9, Named::INTEGER4),
                (18, Named::INTEGER8),
                (38, Named::INTEGER16),
            ];
            integers.iter().find(|row| (0..=row.0).contains(&range)).map(|row| row.1)
        }
    }
}

/// Computes the model of a value-index pair (MPI-5.0 section 6.9.4), which is laid out like a C struct
/// of the two types.
fn value_index(value: Named, index: Named) -> Model {
    let offset = i64::from(value.size().next_multiple_of(index.align()));
    let end = offset + i64::from(index.size());
    let align = i64::from(value.align().max(index.align()));
    Model {
        entries: vec![(0, value), (offset, index)],
        lb: 0,
        ub: (end + align - 1) / align * align,
        explicit: (false, false),
        visits: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Model;
    use crate::Recipe;

    fn model(text: &str) -> Model {
        Model::of(&text.parse::<Recipe>().expect(text), 1000).expect(text)
    }

    #[test]
    fn examples_of_the_standard() {
        // MPI-5.0 example 5.2: {(double, 0), (char, 8)} has extent 16.
        let pair = model("struct([1@0 double, 1@8 char])");
        assert_eq!((pair.size(), pair.lb, pair.extent()), (9, 0, 16));
        // A vector with blocks of 3 at stride 4, and a vector with a negative stride.
        let vector = "vector(2, 3, 4, struct([1@0 double, 1@8 char]))";
        let offsets: Vec<i64> = model(vector).entries.iter().map(|e| e.0).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]);
        let back = model("vector(3, 1, -2, struct([1@0 double, 1@8 char]))");
        assert_eq!((back.true_lb(), back.lb, back.ub), (-64, -64, 16));
        // A resized part sets the bounds of the whole. The part has bounds -3 and 6 around an int at 0;
        // the whole is two copies of the part.
        let explicit = model("contiguous(2, resized(-3, 9, int))");
        assert_eq!((explicit.lb, explicit.ub, explicit.true_ub()), (-3, 15, 13));
    }

    #[test]
    fn empty_types_have_no_bounds_of_their_own() {
        let empty = model("vector(3, 0, 5, double)");
        assert_eq!((empty.lb, empty.ub, empty.size()), (0, 0, 0));
        let with_empty = model("struct([0@1000 double, 1@4 int])");
        assert_eq!((with_empty.lb, with_empty.ub), (4, 8));
    }

    #[test]
    fn subarray_orders_mirror_each_other() {
        let c = model("subarray(c, [4:2@1, 5:3@2], double)");
        let fortran = model("subarray(fortran, [5:3@2, 4:2@1], double)");
        assert_eq!(c, fortran);
        assert_eq!((c.true_lb(), c.extent()), (8 * 7, 8 * 20));
    }

    #[test]
    fn markers_are_sticky() {
        // MPI-1.1 section 3.12.3: a type with lb at -3, an int at 0 and ub at 6, and two copies of that
        // type.
        let marked = "mpi1_struct([1@-3 lb, 1@0 int, 1@6 ub])";
        assert_eq!((model(marked).lb, model(marked).ub, model(marked).extent()), (-3, 6, 9));
        let two = model(&format!("contiguous(2, {marked})"));
        assert_eq!((two.lb, two.ub), (-3, 15));
        // Only the lower bound is explicit, so the upper bound follows from the data and is padded to
        // the alignment.
        let lower = model("mpi1_struct([1@-8 lb, 1@0 int, 1@4 char])");
        assert_eq!((lower.lb, lower.ub), (-8, 8));
        assert_eq!(Model::of(&"contiguous(1, lb)".parse().expect("a recipe"), 10), None);
    }

    #[test]
    fn distributed_arrays_deal_out_their_elements() {
        // MPI-5.0 section 5.1.4: 7 elements are distributed in cyclic blocks of 2 over 2 processes.
        let offsets =
            |text: &str| -> Vec<i64> { model(text).entries.iter().map(|e| e.0).collect() };
        assert_eq!(offsets("darray(c, 0, [7:cyclic/2/2], char)"), [0, 1, 4, 5]);
        assert_eq!(offsets("darray(c, 1, [7:cyclic/2/2], char)"), [2, 3, 6]);
        assert_eq!(offsets("darray(c, 1, [7:block/default/2], char)"), [4, 5, 6]);
        let plane = "[2:none/default/1, 4:block/2/2], char)";
        assert_eq!(offsets(&format!("darray(c, 1, {plane}")), [2, 3, 6, 7]);
        assert_eq!(offsets(&format!("darray(fortran, 1, {plane}")), [4, 5, 6, 7]);
    }

    #[test]
    fn two_elements_go_to_extent_spacing() {
        let ty = model("resized(0, 24, vector(2, 1, 2, char))");
        assert_eq!(ty.addresses(2), [0, 2, 24, 26]);
        assert_eq!(ty.touched(2), Some((0, 27)));
        let negative = model("resized(0, -8, int)");
        assert_eq!(negative.touched(3), Some((-16, 4)));
    }
}
