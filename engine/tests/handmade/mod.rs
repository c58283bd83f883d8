//! Encoded layouts written by hand, for the tests of the wire form (`wire.rs`, `wire_memory.rs`).

use typepack_engine::wire;

/// Encodes a program of `nodes` with `true_lb` 0. The last node is its body. The header states the
/// given sizes.
pub fn handmade(element_bytes: u64, true_ub: i64, extent: i64, nodes: &[Vec<u8>]) -> Vec<u8> {
    let body: Vec<u8> = nodes.concat();
    let mut bytes = b"tpkw".to_vec();
    bytes.extend(wire::VERSION.to_le_bytes());
    let (length, extent) = (80 + body.len() as u64, extent as u64);
    for word in [length, element_bytes, extent, 0, true_ub as u64, 1, extent, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend((nodes.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Encodes a node without tables: its tag, its body, and the words after them.
pub fn node(tag: u8, body: u32, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![tag, 0, 0, 0];
    bytes.extend(body.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}
