//! Checks decoding: a type that is rebuilt from its contents, at every level of its tree, must equal
//! the original.
//!
//! The case comes from `generate.rs`. At every node the check requires that the envelope states the
//! lengths of the contents' lists, that a named type refuses to return contents, and that the rebuilt
//! type has the envelope of the original. For the whole type the check compares bounds and typemap with
//! the model, and the signature with that of the original. All of this is checked for the type as it was
//! made, and again for the type with large counts (`Form::Large`).

use crate::check::same_bounds;
use crate::generate::Case;
use typepack_engine::signature::{Sameness, Signature};
use typepack_engine::{Combiner, Datatype, Form};

/// Checks one case. The error message describes the first difference.
pub fn check(case: &Case) -> Result<(), String> {
    let model = case.bounded()?;
    let ty = case.recipe.build().map_err(|e| format!("constructor refused: {e}"))?;
    let large = ty.clone().with_form(Form::Large).map_err(|e| format!("large form: {e}"))?;
    for (name, original) in [("as made", &ty), ("large", &large)] {
        let rebuilt = rebuild(original).map_err(|e| format!("{name}: {e}"))?;
        same_bounds(&rebuilt, &model).map_err(|e| format!("{name}: rebuilt: {e}"))?;
        let hash = |ty: &Datatype| {
            let signature = Signature::with(ty, Sameness::Name).map_err(|e| e.to_string())?;
            signature.hash(case.count).map_err(|e| e.to_string())
        };
        if hash(&rebuilt)? != hash(&ty)? {
            return Err(format!("{name}: the rebuilt type has a different signature"));
        }
    }
    Ok(())
}

fn rebuild(ty: &Datatype) -> Result<Datatype, String> {
    let envelope = ty.envelope();
    if let Some(named) = ty.as_named() {
        if envelope.combiner != Combiner::NAMED {
            let (found, expected) = (envelope.combiner, Combiner::NAMED);
            return Err(format!("{named} has the combiner {found}; expected {expected}"));
        }
        return match ty.contents() {
            Ok(_) => Err(format!("contents() of the named type {named} succeeded; it must fail")),
            Err(_) => Ok(Datatype::named(named)),
        };
    }
    let contents = ty.contents().map_err(|e| format!("{}: contents: {e}", envelope.combiner))?;
    let found = (
        contents.integers.len(),
        contents.addresses.len(),
        contents.large_counts.len(),
        contents.datatypes.len(),
    );
    let stated = (envelope.integers, envelope.addresses, envelope.large_counts, envelope.datatypes);
    if found != stated {
        let (integers, addresses, large_counts, datatypes) = found;
        return Err(format!(
            "the contents have {integers} integers, {addresses} addresses, {large_counts} large \
             counts and {datatypes} datatypes; the envelope states {envelope:?}"
        ));
    }
    let types = contents.datatypes.iter().map(rebuild).collect::<Result<Vec<_>, _>>()?;
    let (integers, addresses) = (&contents.integers, &contents.addresses);
    let rebuilt = Datatype::from_contents(
        envelope.combiner,
        integers,
        addresses,
        &contents.large_counts,
        &types,
    )
    .map_err(|e| format!("{}: from_contents: {e}", envelope.combiner))?;
    if rebuilt.envelope() != envelope {
        return Err(format!(
            "the rebuilt type has {:?}; expected {envelope:?}",
            rebuilt.envelope()
        ));
    }
    Ok(rebuilt)
}
