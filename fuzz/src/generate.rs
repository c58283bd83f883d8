//! Makes random cases from random bytes. A case is a datatype tree and a count.
//!
//! The input is any [`Unstructured`]: a fuzzer's bytes, or bytes from `stream.rs`. The generator models
//! every node (`model.rs`) as soon as the node is made, and discards a node that would exceed one of the
//! limits below (`MAX_ENTRIES` and others). So `check.rs` can check every case in full. If the bytes run
//! out, every choice is the simplest one, so shorter inputs make simpler cases.

use crate::model::Model;
use crate::recipe::{Block, Dimension, F90, Recipe, Spread, StructCall, is_marker};
use arbitrary::{Arbitrary, Result, Unstructured};
use std::fmt;
use typepack_engine::{DEFAULT_ARGUMENT, Distribution, Named, Order};

/// Maximum number of type map entries of one element.
pub const MAX_ENTRIES: usize = 1500;
/// Maximum distance of an element's data and bounds from its origin, in bytes, in either direction.
pub const MAX_REACH: i64 = 96 << 10;
/// Maximum number of type map entries of all elements of a case.
pub const MAX_TOTAL_ENTRIES: u64 = 6000;
/// Maximum number of nodes that a walk over one element visits (see [`Model::visits`]).
pub const MAX_VISITS: u64 = 20_000;
/// Maximum number of bytes of memory that a case spans.
pub const MAX_TOUCHED: i64 = 512 << 10;
/// Maximum depth of a tree: the number of nested constructor calls.
pub const MAX_DEPTH: u32 = 6;

/// A datatype and a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The datatype.
    pub recipe: Recipe,
    /// The count argument.
    pub count: u64,
}

impl fmt::Display for Case {
    /// Prints the case as one line, which `parse.rs` can read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} * {}", self.count, self.recipe)
    }
}

/// Selects the types that the generator prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every constructor with any legal argument.
    Any,
    /// Loop nests and tables over blocks and small structs. The JIT compiles kernels for such types.
    Regular,
    /// Types of a few bytes. They are so small that a check can try every split of their packed bytes.
    Tiny,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mode = *u.choose(&[Mode::Any, Mode::Regular, Mode::Tiny])?;
        Case::generate(u, mode)
    }
}

impl Case {
    /// Makes a case from the bytes of `u`.
    pub fn generate(u: &mut Unstructured<'_>, mode: Mode) -> Result<Case> {
        let depth = match mode {
            Mode::Tiny => u.int_in_range(1..=3)?,
            Mode::Any => u.int_in_range(0..=MAX_DEPTH)?,
            Mode::Regular => u.int_in_range(1..=MAX_DEPTH)?,
        };
        let (recipe, model) = Generator { u, mode }.tree(depth)?;
        let most = match mode {
            Mode::Tiny => 4,
            Mode::Any | Mode::Regular => 60,
        };
        let mut count = match u.int_in_range(0..=7)? {
            0 => 1,
            1 => u.int_in_range(0..=1)?,
            2..=5 => u.int_in_range(1..=most.min(6))?,
            _ => u.int_in_range(1..=most)?,
        };
        while !fits(&model, count) {
            count /= 2;
        }
        Ok(Case { recipe, count })
    }

    /// Returns the model of this case. Returns `None` if the case exceeds the generator's limits, if MPI
    /// would refuse the arguments of a call, or if the type is a bound marker.
    pub fn model(&self) -> Option<Model> {
        let model = Model::of(&self.recipe, MAX_ENTRIES).filter(|_| !is_marker(&self.recipe));
        model.filter(|m| in_reach(m) && fits(m, self.count))
    }

    /// Returns the model of this case, or an error.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if [`Case::model`] returns `None`.
    pub fn bounded(&self) -> std::result::Result<Model, String> {
        self.model().ok_or_else(|| {
            format!(
                "the case, with count {}, has arguments that MPI refuses, or exceeds one of the \
                 generator's limits, such as {MAX_ENTRIES} entries in an element, {MAX_TOTAL_ENTRIES} in \
                 all, data within {MAX_TOUCHED} bytes",
                self.count
            )
        })
    }
}

pub(crate) fn in_reach(model: &Model) -> bool {
    let reach = -MAX_REACH..=MAX_REACH;
    model.visits <= MAX_VISITS
        && reach.contains(&model.lb)
        && reach.contains(&model.ub)
        && reach.contains(&model.true_lb())
        && reach.contains(&model.true_ub())
}

pub(crate) fn fits(model: &Model, count: u64) -> bool {
    let within = |(low, high): (i64, i64)| low > -MAX_TOUCHED && high < MAX_TOUCHED;
    (model.entries.len() as u64).saturating_mul(count) <= MAX_TOTAL_ENTRIES
        && count <= MAX_TOTAL_ENTRIES
        && model
            .touched(count)
            .is_some_and(|(low, high)| within((low, high)) && high - low < MAX_TOUCHED)
}

const INCORRECT: arbitrary::Error = arbitrary::Error::IncorrectFormat;

struct Generator<'a, 'u> {
    u: &'a mut Unstructured<'u>,
    mode: Mode,
}

impl Generator<'_, '_> {
    fn tree(&mut self, depth: u32) -> Result<(Recipe, Model)> {
        if depth == 0 || (self.mode != Mode::Regular && self.u.ratio(1, 12)?) {
            return self.leaf();
        }
        if self.u.ratio(if self.mode == Mode::Regular { 1 } else { 2 }, 12)? {
            return self.structure(depth);
        }
        let (old, child) = self.tree(depth - 1)?;
        let recipe = self.wrap(old.clone(), &child)?;
        let model = Model::compose(&recipe, std::slice::from_ref(&child), MAX_ENTRIES);
        Ok(match model.filter(in_reach) {
            Some(model) => (recipe, model),
            None => (old, child),
        })
    }

    fn leaf(&mut self) -> Result<(Recipe, Model)> {
        let common = [Named::DOUBLE, Named::INT, Named::CHAR, Named::SHORT, Named::FLOAT];
        let named = if self.u.ratio(3, 4)? {
            *self.u.choose(&common)?
        } else {
            let all: Vec<Named> = Named::all().collect();
            *self.u.choose(&all)?
        };
        // Fortran 90 types and value-index pairs have no element type, so they are leaves. They are
        // drawn rarely, because every tree has leaves and most leaves should be named types.
        let recipe =
            match if self.mode == Mode::Regular { 0 } else { self.u.int_in_range(0..=19)? } {
                18 => Recipe::F90(self.f90()?),
                19 => Recipe::ValueIndex {
                    value: *self.u.choose(&[
                        Named::FLOAT,
                        Named::DOUBLE,
                        Named::SHORT,
                        Named::INT64_T,
                        Named::LONG_DOUBLE,
                        Named::REAL2,
                        Named::UINT8_T,
                    ])?,
                    index: *self.u.choose(&[
                        Named::INT,
                        Named::INT64_T,
                        Named::INT8_T,
                        Named::SHORT,
                    ])?,
                },
                _ => Recipe::Named(named),
            };
        match Model::compose(&recipe, &[], MAX_ENTRIES) {
            Some(model) => Ok((recipe, model)),
            None => Err(INCORRECT),
        }
    }

    fn f90(&mut self) -> Result<F90> {
        let real = |u: &mut Unstructured<'_>| -> Result<(Option<i32>, Option<i32>)> {
            Ok(match u.int_in_range(0..=2)? {
                0 => (Some(u.int_in_range(0..=33)?), None),
                1 => (None, Some(u.int_in_range(0..=4931)?)),
                _ => (Some(u.int_in_range(0..=33)?), Some(u.int_in_range(0..=400)?)),
            })
        };
        Ok(match self.u.int_in_range(0..=2)? {
            0 => real(self.u).map(|(precision, range)| F90::Real(precision, range))?,
            1 => real(self.u).map(|(precision, range)| F90::Complex(precision, range))?,
            _ => F90::Integer(self.u.int_in_range(0..=38)?),
        })
    }

    /// Makes one dimension of a distributed array.
    fn spread(&mut self) -> Result<Spread> {
        let size: i64 = self.u.int_in_range(1..=if self.mode == Mode::Tiny { 4 } else { 14 })?;
        let processes = self.u.int_in_range(1..=4)?;
        let default = self.u.ratio(1, 3)?;
        let (distribution, argument, processes) = match self.u.int_in_range(0..=4)? {
            0 => (Distribution::None, 1, 1),
            1..=2 => {
                let least = (size as i32 + processes - 1) / processes;
                let argument = least + self.u.int_in_range(0..=2)?;
                (Distribution::Block, argument, processes)
            }
            _ => (Distribution::Cyclic, self.u.int_in_range(1..=5)?, processes),
        };
        let argument = if default { DEFAULT_ARGUMENT } else { argument };
        Ok(Spread { size, distribution, argument, processes })
    }

    /// Makes a struct of different members, in some cases with bound markers of MPI-1 among them. The members
    /// lie either one after the other with gaps of at most 7 bytes, or at arbitrary positions.
    fn structure(&mut self, depth: u32) -> Result<(Recipe, Model)> {
        let most = if self.mode == Mode::Tiny { 3 } else { 6 };
        let members = self.u.int_in_range(1..=most)?;
        let in_a_row = self.u.ratio(2, 3)?;
        let mut list = Vec::new();
        let mut models = Vec::new();
        let mut end = 0i64;
        let mut first = None;
        for _ in 0..members {
            let below = if self.mode == Mode::Regular { depth.min(2) } else { depth };
            let (old, model) = self.tree(below - 1)?;
            let blocklength = self.count(&model, 3)?;
            let displacement = if in_a_row {
                end = (end - model.true_lb()).max(end) + self.u.int_in_range(0..=7)?;
                end
            } else {
                self.wild_bytes(&model)?
            };
            end += (model.extent() * blocklength).max(model.true_ub()).min(MAX_REACH);
            first.get_or_insert_with(|| (old.clone(), model.clone()));
            list.push((Block { blocklength, displacement }, old));
            models.push(model);
        }
        let mut call = StructCall::Create;
        if self.u.ratio(1, 5)? {
            call = if self.u.arbitrary()? { StructCall::Mpi1 } else { StructCall::Fortran };
            for marker in [Named::LB, Named::UB] {
                if self.u.arbitrary()? {
                    let displacement = match self.u.int_in_range(0..=2)? {
                        0 => end,
                        1 => -self.u.int_in_range(0..=24)?,
                        _ => self.u.int_in_range(-100..=400)?,
                    };
                    let at = self.u.int_in_range(0..=list.len())?;
                    let marker = Recipe::Named(marker);
                    models.insert(at, Model::of(&marker, 1).ok_or(INCORRECT)?);
                    list.insert(at, (Block { blocklength: 1, displacement }, marker));
                }
            }
        }
        let recipe = Recipe::Struct { call, members: list };
        let model = Model::compose(&recipe, &models, MAX_ENTRIES).filter(in_reach);
        match (model, first) {
            (Some(model), _) => Ok((recipe, model)),
            (None, Some(first)) => Ok(first),
            (None, None) => Err(INCORRECT),
        }
    }

    /// Returns a constructor call whose element type is `old`.
    fn wrap(&mut self, old: Recipe, child: &Model) -> Result<Recipe> {
        let old = Box::new(old);
        let kinds = if self.mode == Mode::Regular { 9 } else { 14 };
        Ok(match self.u.int_in_range(0..=kinds)? {
            0 => Recipe::Contiguous { count: self.count(child, 1)?, old },
            1..=4 => {
                let bytes = self.u.arbitrary()?;
                let count = self.count(child, 2)?;
                let blocklength = self.count(child, 3)?;
                let stride = self.stride(bytes, blocklength, child)?;
                Recipe::Vector { bytes, count, blocklength, stride, old }
            }
            5..=6 => {
                let bytes = self.u.arbitrary()?;
                let most = self.count(child, 2)?;
                let mut blocks = Vec::new();
                for displacement in self.displacements(bytes, most, child)? {
                    let blocklength = self.count(child, 4)?;
                    blocks.push(Block { blocklength, displacement });
                }
                Recipe::Indexed { bytes, blocks, old }
            }
            7..=8 => {
                let bytes = self.u.arbitrary()?;
                let blocklength = self.count(child, 4)?;
                let most = self.count(child, 2)?;
                let displacements = self.displacements(bytes, most, child)?;
                Recipe::IndexedBlock { bytes, blocklength, displacements, old }
            }
            9..=10 => {
                let order = if self.u.arbitrary()? { Order::C } else { Order::Fortran };
                let dimensions = self.u.int_in_range(1..=4)?;
                let mut list = Vec::new();
                for _ in 0..dimensions {
                    let longest = if self.mode == Mode::Tiny { 3 } else { 12 };
                    let size: i64 = self.u.int_in_range(1..=longest)?;
                    let subsize = self.u.int_in_range(1..=size)?;
                    let start = self.u.int_in_range(0..=size - subsize)?;
                    list.push(Dimension { size, subsize, start });
                }
                Recipe::Subarray { order, dimensions: list, old }
            }
            11 => Recipe::Dup { old },
            14 => {
                let order = if self.u.arbitrary()? { Order::C } else { Order::Fortran };
                let dimensions = (0..self.u.int_in_range(1..=3)?)
                    .map(|_| self.spread())
                    .collect::<Result<Vec<Spread>>>()?;
                let processes: i32 = dimensions.iter().map(|d| d.processes).product();
                let rank = self.u.int_in_range(0..=processes - 1)?;
                Recipe::Darray { order, rank, dimensions, old }
            }
            _ => {
                let (lb, extent) = match self.u.int_in_range(0..=4)? {
                    0 => (child.lb, child.extent()),
                    1 => (0, child.true_ub().max(1)),
                    2 => (child.true_lb(), child.true_ub() - child.true_lb()),
                    3 => (0, -child.extent()),
                    _ => (self.u.int_in_range(-40..=40)?, self.wild_bytes(child)?),
                };
                Recipe::Resized { lb, extent, old }
            }
        })
    }

    /// Makes a count or a block length. The upper limit of the result is divided by the square of
    /// `shorter`. A constructor call that multiplies several such numbers makes them with a larger
    /// `shorter`, so that their product stays small. Tiny types have a fixed limit.
    fn count(&mut self, child: &Model, shorter: u32) -> Result<i64> {
        let room = (MAX_ENTRIES / child.entries.len().max(1)).max(1) as i64;
        let most = match self.mode {
            Mode::Tiny => 3,
            Mode::Any | Mode::Regular => room.min(400) / i64::from(shorter * shorter),
        };
        let choice = self.u.int_in_range(0..=11)?;
        Ok(match choice {
            0..=1 => 1,
            2 if self.mode != Mode::Regular => 1,
            3 if self.mode != Mode::Regular => 0,
            2..=8 => self.u.int_in_range(1..=most.clamp(1, 5))?,
            _ => self.u.int_in_range(1..=most.max(1))?,
        })
    }

    fn stride(&mut self, bytes: bool, blocklength: i64, child: &Model) -> Result<i64> {
        let unit = if bytes { child.extent() } else { 1 };
        let touching = blocklength.saturating_mul(unit);
        Ok(match self.u.int_in_range(0..=9)? {
            0 => touching,
            1..=5 => touching + self.u.int_in_range(0..=4)? * unit,
            6 => -touching - self.u.int_in_range(0..=4)? * unit,
            7 => touching + self.u.int_in_range(-3..=9)?,
            8 => self.u.int_in_range(-8..=8)?,
            _ if bytes => self.wild_bytes(child)?,
            _ => self.u.int_in_range(-60..=300)?,
        })
    }

    /// Makes a displacement in bytes that follows no pattern.
    fn wild_bytes(&mut self, child: &Model) -> Result<i64> {
        Ok(match self.u.int_in_range(0..=3)? {
            0 => child.extent() * self.u.int_in_range(-3..=8)?,
            1 => self.u.int_in_range(-64..=64)?,
            2 => self.u.int_in_range(0..=2000)?,
            _ => self.u.int_in_range(-9000..=20000)?,
        })
    }

    /// Makes the starts of `count` blocks, in bytes if `bytes` is true, otherwise in extents of the
    /// element type. The starts are evenly spaced, or irregularly spaced in one direction, or arbitrary
    /// (so that blocks may descend and overlap).
    fn displacements(&mut self, bytes: bool, count: i64, child: &Model) -> Result<Vec<i64>> {
        let unit = if bytes { child.extent().clamp(-4096, 4096) } else { 1 };
        let kind = self.u.int_in_range(0..=4)?;
        let step = self.u.int_in_range(-2..=6)?;
        let mut list = Vec::new();
        let mut walk: i64 = self.u.int_in_range(0..=3)? * unit;
        for _ in 0..count {
            list.push(walk);
            walk = match kind {
                0 => walk + step * unit,
                1 | 2 => walk + self.u.int_in_range(1..=5)? * unit,
                3 if bytes => walk + self.u.int_in_range(0..=40)?,
                3 => walk + self.u.int_in_range(0..=3)?,
                _ if bytes => self.wild_bytes(child)?,
                _ => self.u.int_in_range(-20..=60)?,
            };
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Mode};
    use crate::{Recipe, Stream};
    use arbitrary::Unstructured;
    use std::collections::BTreeMap;

    fn kind(recipe: &Recipe) -> String {
        recipe.to_string().split('(').next().unwrap_or_default().to_owned()
    }

    fn depth(recipe: &Recipe) -> usize {
        recipe.children().into_iter().map(|c| depth(c) + 1).max().unwrap_or(0)
    }

    #[test]
    fn every_constructor_appears_and_cases_are_in_bounds() {
        let mut kinds = BTreeMap::<String, u32>::new();
        let mut deepest = 0;
        for index in 0..4000 {
            let bytes = Stream::new(5, index).bytes(600);
            let mode = [Mode::Any, Mode::Regular, Mode::Tiny][index as usize % 3];
            let case = Case::generate(&mut Unstructured::new(&bytes), mode).expect("bytes");
            assert!(case.model().is_some(), "out of bounds: {case}");
            deepest = deepest.max(depth(&case.recipe));
            let mut todo = vec![&case.recipe];
            while let Some(recipe) = todo.pop() {
                if !matches!(recipe, Recipe::Named(_)) {
                    *kinds.entry(kind(recipe)).or_default() += 1;
                }
                todo.extend(recipe.children());
            }
        }
        assert_eq!(kinds.len(), 18, "{kinds:?}");
        assert!(kinds.values().all(|&n| n > 20), "{kinds:?}");
        assert!(deepest >= 5, "{deepest}");
    }

    #[test]
    fn no_bytes_give_the_simplest_case() {
        let case = Case::generate(&mut Unstructured::new(&[]), Mode::Any).expect("a case");
        assert_eq!(case.to_string(), "1 * double");
    }
}
