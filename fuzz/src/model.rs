//! What the standard says about a datatype, computed naively and without the engine.
//!
//! `check.rs` holds the engine's bounds, its typemap and every packed byte against this. The only
//! thing taken from the engine is the table of named types. Expanding to one entry per named type
//! is the point: simple enough to be obviously right.
//!
//! Source: MPI-5.0 section 5.1, the type map of each constructor, and 5.1.6 and 5.1.7 for lower
//! bound, upper bound and extent. A type made by `resized` carries explicit bounds, and a type
//! that contains such types takes its own bounds from those alone.

use crate::recipe::{Block, Dimension, Recipe};
use typepack_engine::{Named, Order};

/// Type map and bounds of a recipe. All numbers are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Displacement and named type of each entry, in type map order. Pair types are two entries.
    pub entries: Vec<(i64, Named)>,
    /// Lower bound.
    pub lb: i64,
    /// Upper bound.
    pub ub: i64,
    /// Were the bounds set by `resized`, here or in a part?
    pub explicit: bool,
    /// Nodes that a walk over the tree visits. Copies of empty types add nothing to the type map,
    /// but a naive walk enters every one of them: towers of them would take it hours.
    pub visits: u64,
}

/// Where a copy of a type goes, in bytes.
type Place<'a> = (i64, &'a Model);

impl Model {
    /// The model of `recipe`; `None` when a number does not fit 64 bits or the type map would
    /// have more than `most` entries.
    pub fn of(recipe: &Recipe, most: usize) -> Option<Model> {
        let children: Option<Vec<Model>> =
            recipe.children().into_iter().map(|child| Model::of(child, most)).collect();
        Model::compose(recipe, &children?, most)
    }

    /// The model of `recipe` from the models of its element types.
    pub fn compose(recipe: &Recipe, children: &[Model], most: usize) -> Option<Model> {
        let element = children.first();
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
            Recipe::Struct { members } => {
                let mut places = Vec::new();
                for ((block, _), old) in members.iter().zip(children) {
                    run(*block, 1, old, most, &mut places)?;
                }
                let mut model = union(&places, most)?;
                if !model.explicit {
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
            Recipe::Resized { lb, extent, .. } => {
                let Model { entries, visits, .. } = element?.clone();
                Some(Model {
                    entries,
                    lb: *lb,
                    ub: lb.checked_add(*extent)?,
                    explicit: true,
                    visits,
                })
            }
            Recipe::Dup { .. } => element.cloned(),
        }
    }

    fn named(named: Named) -> Model {
        let entries = match named.members() {
            Some(members) => members.map(|(offset, n)| (i64::from(offset), n)).to_vec(),
            None => vec![(0, named)],
        };
        Model { entries, lb: 0, ub: i64::from(named.extent()), explicit: false, visits: 1 }
    }

    /// Bytes of data.
    pub fn size(&self) -> i64 {
        self.entries.iter().map(|(_, named)| i64::from(named.size())).sum()
    }

    /// Distance of consecutive elements.
    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// First byte of data; 0 when there is none.
    pub fn true_lb(&self) -> i64 {
        self.entries.iter().map(|(offset, _)| *offset).min().unwrap_or(0)
    }

    /// One past the last byte of data; 0 when there is none.
    pub fn true_ub(&self) -> i64 {
        self.entries.iter().map(|(offset, n)| offset + i64::from(n.size())).max().unwrap_or(0)
    }

    /// Bytes that `count` elements touch: the first, and one past the last. `None` when it does
    /// not fit 64 bits.
    pub fn touched(&self, count: u64) -> Option<(i64, i64)> {
        if count == 0 || self.entries.is_empty() {
            return Some((0, 0));
        }
        let shift = self.extent().checked_mul(i64::try_from(count - 1).ok()?)?;
        let low = self.true_lb().checked_add(shift.min(0))?;
        Some((low, self.true_ub().checked_add(shift.max(0))?))
    }

    /// The memory address of every packed byte of `count` elements, relative to the origin.
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

/// Adds the copies of `old` that one block makes.
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

/// The type map of copies in order, and its bounds: those of the explicit parts where there are
/// any, else of all parts that have data.
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
    let explicit = places.iter().any(|(_, old)| old.explicit);
    let mut bounds: Option<(i64, i64)> = None;
    for (start, old) in places {
        if old.explicit == explicit && (explicit || !old.entries.is_empty()) {
            let (lb, ub) = (start.checked_add(old.lb)?, start.checked_add(old.ub)?);
            let (low, high) = bounds.unwrap_or((lb, ub));
            bounds = Some((low.min(lb), high.max(ub)));
        }
    }
    let (lb, ub) = bounds.unwrap_or((0, 0));
    let visits = places.iter().fold(1u64, |sum, (_, old)| sum.saturating_add(old.visits));
    Some(Model { entries, lb, ub, explicit, visits })
}

/// MPI-5.0 section 5.1.3: the part's elements in the array's order, and the whole array's extent.
fn subarray(order: Order, dimensions: &[Dimension], old: &Model, most: usize) -> Option<Model> {
    // Slowest dimension first, whatever the order.
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
    Some(Model { lb: 0, ub: whole.checked_mul(old.extent())?, explicit: true, ..model })
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
        // Example of vector with blocks of 3 at stride 4, and of a negative stride.
        let vector = "vector(2, 3, 4, struct([1@0 double, 1@8 char]))";
        let offsets: Vec<i64> = model(vector).entries.iter().map(|e| e.0).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]);
        let back = model("vector(3, 1, -2, struct([1@0 double, 1@8 char]))");
        assert_eq!((back.true_lb(), back.lb, back.ub), (-64, -64, 16));
        // A resized part decides the bounds of what contains it: {-3, int at 0, 6} twice.
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
    fn two_elements_go_to_extent_spacing() {
        let ty = model("resized(0, 24, vector(2, 1, 2, char))");
        assert_eq!(ty.addresses(2), [0, 2, 24, 26]);
        assert_eq!(ty.touched(2), Some((0, 27)));
        let negative = model("resized(0, -8, int)");
        assert_eq!(negative.touched(3), Some((-16, 4)));
    }
}
