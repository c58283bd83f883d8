//! Defines the layout of an encoding. `encode.rs` and `decode.rs` use this file.
//!
//! All numbers are little-endian. Every node, table and list of parts begins at a multiple of 8 bytes.
//! The padding bytes after a table are zero. Below, the number before a field is its offset in bytes:
//! from the start of the encoding in `header` and `nodes`, from the start of the node in the other
//! entries.
//!
//! ```text
//! header   0 magic "tpkw"        4 version u32          8 total length u64
//!         16 element bytes u64  24 extent i64          32 true_lb i64     40 true_ub i64
//!         48 factor u64         56 stride i64          64 body offset i64 72 nodes u32  76 zero
//! nodes   80 one after the other, operands before users, the last one is the body,
//!            each other node has a user
//!
//! node     0 tag u8   1 width u8   2 width of lengths u8   3 zero   4 body u32
//! block    8 bytes u64
//! loop     8 count u64     16 stride i64   24 body offset i64
//! table    8 entries u64   16 scale i64    24 body offset i64
//!         32 entries, `width` bytes each: 4 or 8
//! ragged   8 entries u64   16 scale i64    24 body offset i64   32 stride i64
//!         40 entries, then lengths: 1, 4 or 8 bytes each
//! seq      8 parts u64, 2 or more
//!         16 parts: offset i64, node u32, zero u32
//! ```
//!
//! Fields that a node does not use are zero. The encoding does not contain the packed sizes of the
//! nodes, because the decoder can compute them. It does contain the element size and the bounds, for
//! readers that do not decode the program. The decoder refuses an encoding whose header states a wrong
//! element size or wrong bounds.

/// Version of the format. Any change of meaning requires a new version. The decoder refuses all other
/// versions.
pub const VERSION: u32 = 2;

pub(super) const MAGIC: [u8; 4] = *b"tpkw";

/// Size of the header, in bytes.
pub(super) const HEADER: usize = 80;

/// Offset of the field `total length` in the header, in bytes.
pub(super) const LENGTH: usize = 8;

/// Size of the smallest node, in bytes.
pub(super) const NODE: usize = 16;

/// Size of a part of a sequence, in bytes.
pub(super) const PART: usize = 16;

pub(super) const BLOCK: u8 = 1;
pub(super) const LOOP: u8 = 2;
pub(super) const TABLE: u8 = 3;
pub(super) const RAGGED: u8 = 4;
pub(super) const SEQ: u8 = 5;
