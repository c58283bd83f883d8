//! Rebuilds a datatype of the host from the host's own decoding (MPI-5.0 section 5.1.13).
//!
//! If anything is odd, the function returns `None`, and the type stays with the host: a combiner or a predefined type
//! that the engine does not know, a failing call, or data of another size or at other bounds than the host's.

use super::{HandleMap, LAST_PREDEFINED, find};
use crate::host::Next;
use std::ffi::c_int;
use typepack_capi_datatype::{abi, raw};
use typepack_engine::{Combiner, Datatype, Named, Plan};

/// How deep types may be nested. Deeper types stay with the host. The limit bounds the recursion of this file.
const DEPTH: usize = 100;

/// Maximum number of parts of a type. Open MPI decodes each part into a new handle, so this library cannot see that two
/// parts are the same type, and a type of few levels may have a very large number of parts. A type with more parts
/// stays with the host.
const PARTS: usize = 1 << 14;

/// A rebuilt datatype.
#[derive(Clone)]
pub struct Rebuilt {
    /// The tree.
    pub tree: Datatype,
    /// The common size of all basic elements, if they have one and it is 1, 2, 4 or 8.
    pub unit: Option<i64>,
}

/// Rebuilds a datatype.
pub fn rebuild(next: &Next, datatype: raw::Datatype) -> Option<Rebuilt> {
    let mut decoder = Decoder { next, known: HandleMap::default(), held: Vec::new() };
    decoder.decode(datatype, DEPTH)
}

/// Compares size and bounds of `tree` with those of the host's type. Returns the tree with the host's bounds; `None`
/// if the data lie elsewhere.
///
/// A type that was made from resized types has the bounds that were set, says the standard (MPI-5.0 section 5.1.7).
/// MPICH 5.0.2 takes the bounds of the data into account as well. What matters here is what the host does, at each
/// level of the type, because the distance of the elements of the next level follows from it.
fn agreeing(next: &Next, datatype: raw::Datatype, tree: Datatype) -> Option<Datatype> {
    let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: the type is valid, and the results are writable.
    let codes = unsafe {
        [
            next.PMPI_Type_size_c(datatype, &mut size),
            next.PMPI_Type_get_extent_c(datatype, &mut lb, &mut extent),
            next.PMPI_Type_get_true_extent_c(datatype, &mut true_lb, &mut true_extent),
        ]
    };
    let true_bounds = (true_lb, true_extent) == (tree.true_lb(), tree.true_extent());
    // Types without data have no data anywhere, so their true bounds say nothing.
    if codes != [abi::SUCCESS; 3] || size != tree.size() || (size != 0 && !true_bounds) {
        return None;
    }
    if (lb, extent) == (tree.lb(), tree.extent()) {
        return Some(tree);
    }
    Datatype::resized(lb, extent, &tree).ok()
}

/// The results of `MPI_Type_get_contents_c`. The types among them are references that must be freed, except
/// predefined ones.
struct Contents<'a> {
    next: &'a Next,
    integers: Vec<c_int>,
    addresses: Vec<raw::Aint>,
    counts: Vec<raw::Count>,
    types: Vec<raw::Datatype>,
}

impl Drop for Contents<'_> {
    fn drop(&mut self) {
        for datatype in &mut self.types {
            if envelope(self.next, *datatype).is_some_and(|e| !is_predefined(e.combiner)) {
                // SAFETY: decoding returned this type as a new reference.
                unsafe { self.next.PMPI_Type_free(datatype) };
            }
        }
    }
}

/// The results of `MPI_Type_get_envelope_c`.
struct Envelope {
    integers: i64,
    addresses: i64,
    counts: i64,
    types: i64,
    combiner: c_int,
}

fn envelope(next: &Next, datatype: raw::Datatype) -> Option<Envelope> {
    let (mut integers, mut addresses, mut counts, mut types) = (0, 0, 0, 0);
    let mut combiner = 0;
    // SAFETY: the type is valid, and the results are writable.
    let code = unsafe {
        next.PMPI_Type_get_envelope_c(
            datatype,
            &mut integers,
            &mut addresses,
            &mut counts,
            &mut types,
            &mut combiner,
        )
    };
    (code == abi::SUCCESS).then_some(Envelope { integers, addresses, counts, types, combiner })
}

/// Returns whether types of a combiner are predefined, so that they must not be freed.
fn is_predefined(combiner: c_int) -> bool {
    [
        Combiner::NAMED,
        Combiner::F90_REAL,
        Combiner::F90_COMPLEX,
        Combiner::F90_INTEGER,
        Combiner::VALUE_INDEX,
    ]
    .contains(&Combiner(combiner))
}

/// Makes an array for the results of a call.
fn room<T: Clone>(len: i64, empty: T) -> Option<Vec<T>> {
    let len = usize::try_from(len).ok()?;
    let mut room = Vec::new();
    room.try_reserve_exact(len).ok()?;
    room.resize(len, empty);
    Some(room)
}

/// The work on one datatype.
struct Decoder<'a> {
    next: &'a Next,
    /// The types that were rebuilt, by their handles. A type can contain another one many times, at each level of its
    /// tree, so that the number of paths grows exponentially with the depth.
    known: HandleMap<Option<Rebuilt>>,
    /// The references to the types of `known`. While they live, the host gives their handles to no other type.
    held: Vec<Contents<'a>>,
}

impl Decoder<'_> {
    fn decode(&mut self, datatype: raw::Datatype, depth: usize) -> Option<Rebuilt> {
        if let Some(known) = self.known.get(&datatype.0) {
            return known.clone();
        }
        if self.known.len() >= PARTS {
            return None;
        }
        let rebuilt = self.fresh(datatype, depth);
        self.known.insert(datatype.0, rebuilt.clone());
        rebuilt
    }

    fn fresh(&mut self, datatype: raw::Datatype, depth: usize) -> Option<Rebuilt> {
        let next = self.next;
        // A type that was made from committed types: their trees are known.
        if datatype.0 > LAST_PREDEFINED
            && let Some(layout) = find(datatype)
            && let Some(tree) = layout.plan().and_then(Plan::datatype).cloned()
        {
            return Some(Rebuilt { tree, unit: layout.unit });
        }
        let envelope = envelope(next, datatype)?;
        let combiner = Combiner(envelope.combiner);
        if combiner == Combiner::NAMED {
            let tree = Datatype::named(Named::from_abi_value(u32::try_from(datatype.0).ok()?)?);
            let unit = Some(tree.size()).filter(|size| [1, 2, 4, 8].contains(size));
            return Some(Rebuilt { tree: agreeing(next, datatype, tree)?, unit });
        }
        let mut contents = Contents {
            next,
            integers: room(envelope.integers, 0)?,
            addresses: room(envelope.addresses, 0)?,
            counts: room(envelope.counts, 0)?,
            types: room(envelope.types, raw::Datatype::NULL)?,
        };
        // SAFETY: the type is valid, and each array has as many entries as the call is told.
        let code = unsafe {
            next.PMPI_Type_get_contents_c(
                datatype,
                envelope.integers,
                envelope.addresses,
                envelope.counts,
                envelope.types,
                contents.integers.as_mut_ptr(),
                contents.addresses.as_mut_ptr(),
                contents.counts.as_mut_ptr(),
                contents.types.as_mut_ptr(),
            )
        };
        if code != abi::SUCCESS {
            contents.types.clear();
            return None;
        }
        let types = contents.types.clone();
        let integers = std::mem::take(&mut contents.integers);
        let addresses: Vec<i64> =
            contents.addresses.iter().map(|&address| address as i64).collect();
        let counts = std::mem::take(&mut contents.counts);
        self.held.push(contents);
        let depth = depth.checked_sub(1)?;
        let parts: Option<Vec<_>> = types.iter().map(|&part| self.decode(part, depth)).collect();
        let parts = parts?;
        let first = parts.first().and_then(|part| part.unit);
        let unit = first.filter(|unit| parts.iter().all(|part| part.unit == Some(*unit)));
        let trees: Vec<Datatype> = parts.into_iter().map(|part| part.tree).collect();
        let made = Datatype::from_contents(combiner, &integers, &addresses, &counts, &trees);
        Some(Rebuilt { tree: agreeing(next, datatype, made.ok()?)?, unit })
    }
}
