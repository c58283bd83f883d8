//! The storm: a competitor that makes a new type after every ten uses.
//!
//! `suite.rs` measures the storm. One call of the competitor makes the type from arrays of arguments
//! (`recipe.rs`), commits it, packs ten times, and frees the type. So the storm can be verified and timed
//! like all other competitors. `peer/competitor.rs` does the same for peers. The arrays are in the form in
//! which a program would pass them: lists of 64-bit numbers for the constructors of the engine, and lists
//! of `int` for the constructors of a peer.

use crate::competitor::Competitor;
use crate::layout::{Layout, Numbers};
use crate::recipe::{Part, Recipe, Step};
use crate::row::TYPEPACK;
use std::sync::Arc;
use typepack_engine::kernel::Direction;
use typepack_engine::{Combiner, Datatype, Settings};
use typepack_jit::Jit;

/// The number of uses of each type.
pub const USES: usize = 10;

/// The types of the storm: the name, and the type in the engine's text form. If this text is empty,
/// [`layout`] makes the type from the name.
pub const LAYOUTS: [(&str, &str); 4] = [
    ("struct of 8", "struct([8 x 1], [0..128 step 16], [4 x double, 4 x int])"),
    ("vector of 256", "vector(256, 1, 4, double)"),
    ("100 offsets", ""),
    ("10000 offsets", ""),
];

/// Makes the layout with the index `index` in [`LAYOUTS`]. If the name has the form `N offsets`, the type
/// is a list of N single doubles in random order.
///
/// # Errors
///
/// Returns a one-line message if the engine refuses the type. The engine accepts all types of [`LAYOUTS`].
pub fn layout(index: usize) -> Result<Layout, String> {
    let (name, text) = LAYOUTS[index];
    let ty = match name.split_once(" offsets") {
        None => text.parse().map_err(|e: typepack_engine::text::ParseError| e.to_string())?,
        Some((count, _)) => {
            let count: i64 = count.parse().map_err(|_| format!("{count} offsets"))?;
            let mut places: Vec<i64> = (0..count).map(|i| 2 * i).collect();
            Numbers::new().shuffle(&mut places);
            let double = Datatype::named(typepack_engine::Named::DOUBLE);
            Datatype::indexed_block(1, &places, &double).map_err(|e| e.to_string())?
        }
    };
    Layout::of(name, ty, 1)
}

/// A constructor call of the engine with its arguments, except the old types.
enum Call {
    Vector { count: i64, blocklength: i64, stride: i64 },
    IndexedBlock { blocklength: i64, displacements: Vec<i64> },
    Struct { blocklengths: Vec<i64>, displacements: Vec<i64> },
}

impl Call {
    /// Returns the call that `step` of a recipe stands for.
    fn of(step: &Step) -> Result<Self, String> {
        let integers: Vec<i64> = step.contents.integers.iter().map(|&i| i.into()).collect();
        match step.combiner {
            Combiner::VECTOR => {
                let [count, blocklength, stride] = [0, 1, 2].map(|i| integers[i]);
                Ok(Self::Vector { count, blocklength, stride })
            }
            Combiner::INDEXED_BLOCK => Ok(Self::IndexedBlock {
                blocklength: integers[1],
                displacements: integers[2..].to_vec(),
            }),
            Combiner::STRUCT => Ok(Self::Struct {
                blocklengths: integers[1..].to_vec(),
                displacements: step.contents.addresses.clone(),
            }),
            other => Err(format!("a storm cannot make a type of combiner {other}")),
        }
    }

    fn make(&self, old: &[Datatype]) -> typepack_engine::Result<Datatype> {
        match self {
            Self::Vector { count, blocklength, stride } => {
                Datatype::vector(*count, *blocklength, *stride, &old[0])
            }
            Self::IndexedBlock { blocklength, displacements } => {
                Datatype::indexed_block(*blocklength, displacements, &old[0])
            }
            Self::Struct { blocklengths, displacements } => {
                Datatype::structured(blocklengths, displacements, old)
            }
        }
    }
}

/// The competitor: the engine in a storm.
pub struct Storm {
    /// The constructor calls that make the type, each with its old types.
    calls: Vec<(Call, Vec<Part>)>,
    whole: Part,
    settings: Settings,
    count: u64,
}

impl Storm {
    /// Takes the type of `layout` apart into constructor calls.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Recipe::of`], and a one-line message if the type needs a constructor that
    /// no layout of the storm uses.
    pub fn new(layout: &Layout, jit: &Jit) -> Result<Self, String> {
        let recipe = Recipe::of(&layout.datatype)?;
        let call = |step: &Step| Ok((Call::of(step)?, step.parts.clone()));
        Ok(Self {
            calls: recipe.steps.iter().map(call).collect::<Result<_, String>>()?,
            whole: recipe.whole,
            settings: Settings { compiler: Some(Arc::new(jit.clone())), ..Settings::default() },
            count: layout.count,
        })
    }

    /// Makes the type with the constructor calls. Looks up the old types at every call, as `peer/build.rs`
    /// does.
    fn make(&self) -> typepack_engine::Result<Datatype> {
        let mut made: Vec<Datatype> = Vec::with_capacity(self.calls.len());
        let part = |part: &Part, made: &[Datatype]| match part {
            Part::Named(named) => Datatype::named(*named),
            Part::Made(index) => made[*index].clone(),
        };
        for (call, parts) in &self.calls {
            let old: Vec<Datatype> = parts.iter().map(|p| part(p, &made)).collect();
            made.push(call.make(&old)?);
        }
        Ok(part(&self.whole, &made))
    }
}

impl Competitor for Storm {
    fn name(&self) -> &'static str {
        TYPEPACK
    }

    fn executor(&self, _: Direction) -> String {
        "storm".to_owned()
    }

    fn pack(&self, memory: &[u8], packed: &mut [u8]) {
        let made = self.make().and_then(|ty| ty.commit_with(&self.settings));
        let plan = made.expect("the engine must make and commit the type for packing");
        for _ in 0..USES {
            typepack_engine::pack(&plan, self.count, memory, packed)
                .expect("the engine must pack with the buffers of this layout");
        }
    }

    fn unpack(&self, packed: &[u8], memory: &mut [u8]) {
        let made = self.make().and_then(|ty| ty.commit_with(&self.settings));
        let plan = made.expect("the engine must make and commit the type for unpacking");
        for _ in 0..USES {
            typepack_engine::unpack(&plan, self.count, packed, memory)
                .expect("the engine must unpack with the buffers of this layout");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LAYOUTS, Storm, layout};
    use crate::prepare::Bench;
    use typepack_jit::{Jit, Settings};

    #[test]
    fn storms_pack_the_right_bytes() {
        let jit = Jit::new(Settings::default());
        for index in 0..LAYOUTS.len() {
            let layout = layout(index).expect("a layout");
            let storm = Storm::new(&layout, &jit).expect("a recipe");
            Bench::verified(layout, vec![Box::new(storm)]).expect("right answers");
        }
    }
}
