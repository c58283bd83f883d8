//! The wire form: a committed layout as bytes, for peers and for caches.
//!
//! Comes after `plan/`; what [`decode`] returns is a [`Plan`] like any other, without a datatype:
//! it packs, unpacks and copies, with kernels of this process. `format.rs` says where each byte is.
//!
//! Whoever sent the bytes is not believed. The decoder refuses what is not a program of the
//! engine, computes packed bytes and the touched memory itself and refuses bytes that state others,
//! so that a plan that decodes is as safe to use as a committed one: safe calls check buffers
//! against the computed footprint. What hostile bytes can do is describe a layout that is large or
//! slow, and the caller sees [`Plan::element_bytes`] and [`Plan::footprint`] before using it.
//!
//! Bytes in memory that another process can write have to be copied before they are decoded.
//!
//! Decoding needs at most four times the bytes it is given, plus 64 KiB; it does not recurse, and
//! takes time proportional to its input. To keep that bound, only the first 32 nests of a program,
//! and one more for each 4 KiB of input, get kernels; what is beyond is walked, with the same
//! result (a struct of hundreds of unlike parts: committing the datatype has no such limit).

mod decode;
mod encode;
mod format;

use crate::error::Result;
use crate::plan::{Plan, Settings};

pub use encode::{encode, encode_within};
pub use format::VERSION;

/// Nests of a decoded program that get a kernel site in any case.
const SITES: usize = 32;

/// Bytes of input for each further site, which needs up to 1.5 KiB.
const BYTES_PER_SITE: usize = 4096;

/// Decodes what [`encode`] made, to be executed by the engine alone.
///
/// # Errors
///
/// See [`decode_with`].
pub fn decode(bytes: &[u8]) -> Result<Plan> {
    decode_with(bytes, &Settings::default())
}

/// Decodes what [`encode`] made, with settings as for a commit.
///
/// # Errors
///
/// `wire`: the bytes end before or go on after what they announce, are of another version, or are
/// not a sound program with the sizes and bounds they state.
pub fn decode_with(bytes: &[u8], settings: &Settings) -> Result<Plan> {
    let (program, footprint) = decode::program(bytes)?;
    let nests = SITES + bytes.len() / BYTES_PER_SITE;
    Ok(Plan::assemble(None, footprint, program, settings, nests))
}

/// A 128-bit hash of an encoding (XXH3), as the identity of a layout in caches and tables.
///
/// Equal programs have equal encodings. The hash is not cryptographic: whoever chooses the bytes
/// can make two encodings collide, so a table that holds layouts of peers that are not trusted
/// compares the encodings too.
pub fn identity(encoding: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(encoding)
}
