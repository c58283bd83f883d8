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

static LAYOUTS: [OnceLock<Option<Arc<Layout>>>; PAIRS.len()] =
    [const { OnceLock::new() }; PAIRS.len()];

/// Forgets the twins of the pair types.
pub fn release() {
    LAYOUTS.iter().filter_map(OnceLock::get).flatten().for_each(|layout| layout.release());
}

/// Returns the layout of a pair type; `None` if it is contiguous, or the host's type is another one than ours.
pub fn find(datatype: raw::Datatype) -> Option<Arc<Layout>> {
    let at = PAIRS.iter().position(|&pair| pair == datatype.0)?;
    let make = || {
        let rebuilt = decode::rebuild(next(), datatype)?;
        let plan = plan(&rebuilt.tree).filter(|plan| !plan.is_contiguous())?;
        Some(Arc::new(Layout::new(next(), plan, rebuilt.unit)))
    };
    LAYOUTS[at].get_or_init(make).clone()
}
