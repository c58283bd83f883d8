//! The wire form represents a committed layout as bytes, which can be sent to peers and stored in
//! caches.
//!
//! [`encode`] turns a plan into bytes. [`decode`] turns the bytes into a [`Plan`] that has no
//! datatype. The decoded plan packs, unpacks and copies with the kernels of the process that
//! decoded it. `format.rs` describes the layout of the bytes.
//!
//! The decoder does not trust the sender. It refuses bytes that do not encode a valid program. It
//! computes the packed size and the footprint itself, and refuses a header that states other values.
//! Safe calls check their buffers against the computed footprint, so a decoded plan is as safe to use
//! as a committed one. The worst that hostile bytes can do is describe a layout that is very large or
//! slow to execute. The caller can look at [`Plan::element_bytes`] and [`Plan::footprint`] before it
//! uses the plan.
//!
//! If another process can write to the memory that holds the bytes, the caller must copy the bytes
//! before it decodes them.
//!
//! The decoder allocates at most four times the size of its input, plus 64 KiB. It does not recurse,
//! and its time is proportional to the size of the input. To stay within that memory, the decoder gives
//! executors of their own only to the first nests of a program (a nest is a part that one kernel can
//! execute): 32 nests, and one more for each 4 KiB of input. The walk (`ir/walk.rs`) executes all other
//! nests, with the same result but more slowly. This limit affects only programs with very many
//! different nests, such as a struct with hundreds of different members. A commit has no such limit.

mod decode;
mod encode;
mod format;

use crate::error::Result;
use crate::plan::{Plan, Settings};

pub use encode::{encode, encode_within};
pub use format::VERSION;

/// Number of nests that may have executors of their own in a decoded program, however short its
/// encoding is.
const SITES: usize = 32;

/// Number of bytes of input that allow executors for one more nest. The executors of a nest take up to
/// 1.5 KiB.
const BYTES_PER_SITE: usize = 4096;

/// Decodes bytes that [`encode`] made. The plan has no compiler, so the engine's own executors
/// execute it.
///
/// # Errors
///
/// Returns the errors of [`decode_with`].
pub fn decode(bytes: &[u8]) -> Result<Plan> {
    decode_with(bytes, &Settings::default())
}

/// Decodes bytes that [`encode`] made. `settings` have the same meaning as for a commit.
///
/// # Errors
///
/// Returns `ErrorKind::Truncated` if the bytes end too early, or if their number differs from the length
/// in the header. Returns `ErrorKind::Argument` if the bytes do not begin with `tpkw`, if the format
/// version is not [`VERSION`], if the nodes are not a valid program in this format, or if the header
/// states a wrong element size or wrong bounds. Each of these errors names `wire` as the argument.
pub fn decode_with(bytes: &[u8], settings: &Settings) -> Result<Plan> {
    let (program, footprint) = decode::program(bytes)?;
    let nests = SITES + bytes.len() / BYTES_PER_SITE;
    Ok(Plan::assemble(None, footprint, program, settings, nests))
}

/// Returns a 128-bit hash of an encoding (XXH3). The hash identifies a layout in caches and tables.
///
/// Equal programs have equal encodings, and so equal hashes. The hash is not cryptographic: a
/// sender can construct two different encodings with the same hash. So a table that contains
/// layouts from untrusted peers must also compare the encodings.
pub fn identity(encoding: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(encoding)
}
