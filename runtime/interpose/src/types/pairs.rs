//! The predefined pair types, such as `MPI_DOUBLE_INT`. They need no commit, and some of them have gaps.

use super::{Layout, decode, plan};
use crate::host::next;
use std::sync::{Arc, OnceLock};
use typepack_capi_datatype::{abi, raw};

/// The pair types of C that have members of different types.
const PAIRS: [usize; 5] =
    [abi::FLOAT_INT, abi::DOUBLE_INT, abi::LONG_INT, abi::SHORT_INT, abi::LONG_DOUBLE_INT];

/// Returns whether a predefined type is one of the pair types.
#[inline(always)]
pub fn is_pair(datatype: raw::Datatype) -> bool {
    // The values lie close to each other.
    (abi::FLOAT_INT..=abi::LONG_DOUBLE_INT).contains(&datatype.0) && PAIRS.contains(&datatype.0)
}

/// What is known about a pair type.
enum Pair {
    /// It has gaps.
    Layout(Arc<Layout>),
    /// It is contiguous.
    InOrder,
    /// The host's type is another one than ours.
    Other,
}

static PAIRS_KNOWN: [OnceLock<Pair>; PAIRS.len()] = [const { OnceLock::new() }; PAIRS.len()];

fn known(datatype: raw::Datatype) -> Option<&'static Pair> {
    let at = PAIRS.iter().position(|&pair| pair == datatype.0)?;
    let make = || {
        let rebuilt = decode::rebuild(next(), datatype);
        match rebuilt.and_then(|rebuilt| Some((plan(&rebuilt.tree)?, rebuilt.unit))) {
            None => Pair::Other,
            Some((plan, _)) if plan.is_contiguous() => Pair::InOrder,
            Some((plan, unit)) => Pair::Layout(Arc::new(Layout::new(next(), plan, unit))),
        }
    };
    Some(PAIRS_KNOWN[at].get_or_init(make))
}

/// Forgets the twins of the pair types.
pub fn release() {
    for pair in PAIRS_KNOWN.iter().filter_map(OnceLock::get) {
        if let Pair::Layout(layout) = pair {
            layout.release();
        }
    }
}

/// Returns the layout of a pair type; `None` if it is contiguous, or the host's type is another one than ours.
pub fn find(datatype: raw::Datatype) -> Option<Arc<Layout>> {
    match known(datatype)? {
        Pair::Layout(layout) => Some(layout.clone()),
        Pair::InOrder | Pair::Other => None,
    }
}

/// Returns whether the packed bytes of a pair type are its bytes in memory.
pub fn is_in_order(datatype: raw::Datatype) -> bool {
    matches!(known(datatype), Some(Pair::InOrder))
}
