//! Takes a datatype apart into the constructor calls that make it. The calls that make the parts of a type
//! come before the call that makes the type.
//!
//! A recipe holds the arrays of arguments, as a program that makes the same type repeatedly would hold
//! them. From a recipe, `storm.rs` makes the type with the engine, and `peer/build.rs` with another MPI. To
//! make a recipe, [`Recipe::of`] decodes the type as MPI programs do with `MPI_Type_get_envelope` and
//! `MPI_Type_get_contents` (MPI-5.0 section 5.1.13). [`Recipe::of`] keeps its stack on the heap, because
//! constructor calls can be nested to any depth.

use typepack_engine::{Combiner, Contents, Datatype, Form, Named};

/// An old type: an argument of a constructor call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A named type.
    Named(Named),
    /// The type that the call with this index in [`Recipe::steps`] makes.
    Made(usize),
}

/// One constructor call.
pub struct Step {
    /// The constructor.
    pub combiner: Combiner,
    /// The arguments of the call, without the old types.
    pub contents: Contents,
    /// The old types among the arguments.
    pub parts: Vec<Part>,
}

/// The constructor calls that make a type, in the order in which to make them.
pub struct Recipe {
    /// The calls. The last one makes the type itself. Empty for a named type.
    pub steps: Vec<Step>,
    /// The type itself: the result of the last call, or a named type.
    pub whole: Part,
}

enum Visit {
    /// Decode this type: plan a visit for each of its old types, and after them a visit for the call that makes this
    /// type.
    Open(Datatype),
    /// Add the call that makes a type. Its old types are on the stack.
    Make(Combiner, Contents),
}

impl Recipe {
    /// Returns the recipe of `ty`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the type contains a call with large counts (`MPI_Count`).
    pub fn of(ty: &Datatype) -> Result<Self, String> {
        let (mut visits, mut stack) = (vec![Visit::Open(ty.clone())], Vec::new());
        let mut steps: Vec<Step> = Vec::new();
        while let Some(visit) = visits.pop() {
            match visit {
                Visit::Open(ty) => match ty.as_named() {
                    Some(named) => stack.push(Part::Named(named)),
                    None => {
                        let envelope = ty.envelope();
                        if envelope.form == Form::Large {
                            let combiner = envelope.combiner;
                            return Err(format!("{combiner} with large counts is not supported"));
                        }
                        let mut contents = ty.contents().map_err(|e| e.to_string())?;
                        let parts = std::mem::take(&mut contents.datatypes);
                        let length = parts.len();
                        visits.push(Visit::Make(envelope.combiner, contents));
                        visits.extend(parts.into_iter().rev().map(Visit::Open));
                        debug_assert_eq!(length, envelope.datatypes);
                    }
                },
                Visit::Make(combiner, contents) => {
                    let count = match combiner {
                        Combiner::STRUCT => contents.integers[0] as usize,
                        Combiner::VALUE_INDEX => 2,
                        Combiner::F90_REAL | Combiner::F90_COMPLEX | Combiner::F90_INTEGER => 0,
                        _ => 1,
                    };
                    let parts = stack.split_off(stack.len() - count);
                    stack.push(Part::Made(steps.len()));
                    steps.push(Step { combiner, contents, parts });
                }
            }
        }
        let whole = stack.pop().ok_or("the walk over the type has left no part")?;
        Ok(Self { steps, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Recipe};
    use typepack_engine::{Combiner, Datatype, Named};

    #[test]
    fn parts_come_before_wholes() {
        let text = "struct([1, 1, 1], [0, 8, 64], [char, vector(2, 1, 2, double), dup(int)])";
        let ty: Datatype = text.parse().expect("a type");
        let recipe = Recipe::of(&ty).expect("a recipe");
        let combiners: Vec<Combiner> = recipe.steps.iter().map(|step| step.combiner).collect();
        assert_eq!(combiners, [Combiner::VECTOR, Combiner::DUP, Combiner::STRUCT]);
        let parts = [Part::Named(Named::CHAR), Part::Made(0), Part::Made(1)];
        assert_eq!(recipe.steps[2].parts, parts);
        assert_eq!(recipe.whole, Part::Made(2));
        let named = Recipe::of(&Datatype::named(Named::INT)).expect("a recipe");
        assert!(named.steps.is_empty());
    }
}
