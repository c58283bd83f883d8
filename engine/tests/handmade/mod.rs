//! Helps the tests of the wire form (`wire.rs`, `wire_memory.rs`) construct encoded layouts by hand.

use typepack_engine::wire;

/// Returns the encoding of a program. `nodes` are the encoded nodes of the program; the last one is the
/// body. The header states the three given numbers, 0 for `true_lb`, one copy of the body per element
/// (`factor` 1), and `extent` as the stride between copies.
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

/// Returns the encoding of a node without tables: `tag`, the id of its body, and the words after
/// them.
pub fn node(tag: u8, body: u32, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![tag, 0, 0, 0];
    bytes.extend(body.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}
