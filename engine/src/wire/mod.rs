//! The wire form: a committed layout as bytes, for peers and for caches.
//!
//! [`encode`] turns a plan into bytes. [`decode`] returns a [`Plan`] without a datatype, which
//! packs, unpacks and copies with kernels of this process. `format.rs` describes the layout of the
//! bytes.
//!
//! The decoder does not trust the sender. It refuses bytes that are not a program of the engine. It
//! computes packed bytes and touched memory itself and refuses bytes that state other values. So a
//! decoded plan is as safe to use as a committed one: safe calls check buffers against the computed
//! footprint. Hostile bytes can only describe a layout that is large or slow, and the caller sees
//! [`Plan::element_bytes`] and [`Plan::footprint`] before using it.
//!
//! If another process can write the memory that holds the bytes, the caller must copy them before
//! decoding.
//!
//! Decoding needs at most four times the memory of its input, plus 64 KiB. It does not recurse, and
//! takes time proportional to its input. To keep that bound, only the first 32 nests of a program
//! get kernels, and one more nest for each 4 KiB of input. The executor walks all other nests, with
//! the same result. (This matters for a struct of hundreds of unlike parts; committing the datatype
//! has no such limit.)

mod decode;
mod encode;
mod format;

use crate::error::Result;
use crate::plan::{Plan, Settings};

pub use encode::{encode, encode_within};
pub use format::VERSION;

/// Number of nests of a decoded program that always get a plan of their own.
const SITES: usize = 32;

/// Bytes of input for each further nest plan, which needs up to 1.5 KiB.
const BYTES_PER_SITE: usize = 4096;

/// Decodes the bytes that [`encode`] made. Only the engine executes the plan, without a compiler.
///
/// # Errors
///
/// Returns the errors of [`decode_with`].
pub fn decode(bytes: &[u8]) -> Result<Plan> {
    decode_with(bytes, &Settings::default())
}

/// Decodes the bytes that [`encode`] made, with settings as for a commit.
///
/// # Errors
///
/// Returns an error for `wire` if the bytes are shorter or longer than they state, if they have
/// another version, or if they are not a valid program with the stated sizes and bounds.
pub fn decode_with(bytes: &[u8], settings: &Settings) -> Result<Plan> {
    let (program, footprint) = decode::program(bytes)?;
    let nests = SITES + bytes.len() / BYTES_PER_SITE;
    Ok(Plan::assemble(None, footprint, program, settings, nests))
}

/// Returns a 128-bit hash of an encoding (XXH3), which identifies a layout in caches and tables.
///
/// Equal programs have equal encodings. The hash is not cryptographic: a sender can choose bytes so
/// that two encodings collide. So a table with layouts of untrusted peers must compare the
/// encodings too.
pub fn identity(encoding: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(encoding)
}
