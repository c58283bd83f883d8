//! Decodes bytes, which may be hostile, to a program and its footprint (the memory that the program
//! touches).
//!
//! Before the decoder allocates memory for a number of items, it checks that the input has enough bytes
//! left for that many items. It computes packed sizes and distances in 128 bits. A node may only use
//! operands that come before it. The decoder checks every number before it uses the number as an index.
//! At the end, `ir/verify.rs` verifies the program.

use super::format::{BLOCK, HEADER, LOOP, MAGIC, NODE, PART, RAGGED, SEQ, TABLE, VERSION};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Edge, NodeId, Op, Part, Program, RaggedList, verify};
use crate::plan::footprint::Footprint;
use std::sync::Arc;
use typepack_leaf::Table;

fn malformed(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Argument, "wire", detail)
}

/// Returns the program that `bytes` encode, and its footprint.
pub(super) fn program(bytes: &[u8]) -> Result<(Program, Footprint)> {
    let mut reader = Reader { rest: bytes };
    if reader.take(4)? != MAGIC {
        return Err(malformed("not an encoded layout; the first 4 bytes must be \"tpkw\""));
    }
    let version = reader.half()?;
    if version != VERSION {
        return Err(malformed(format!(
            "format version {version} is not supported; the version must be {VERSION}"
        )));
    }
    let length = reader.word()?;
    if length != bytes.len() as u64 {
        return Err(Error::new(
            ErrorKind::Truncated,
            "wire",
            format!(
                "the header states a length of {length} bytes, but the encoding has {}",
                bytes.len()
            ),
        ));
    }
    let element_bytes = reader.word()?;
    let stated = Footprint {
        extent: reader.word()? as i64,
        true_lb: reader.word()? as i64,
        true_ub: reader.word()? as i64,
    };
    let factor = reader.word()?;
    let mut program = Program::new(reader.word()? as i64);
    program.factor = factor;
    let offset = reader.word()? as i64;
    let nodes = reader.half()? as usize;
    reader.zero()?;
    debug_assert_eq!(bytes.len() - reader.rest.len(), HEADER);
    reader.promise(nodes as u64, NODE)?;
    *program.nodes_mut() = Vec::with_capacity(nodes);

    let mut used = vec![false; nodes];
    for id in 0..nodes {
        let (op, bytes) = reader.node(&program, &mut used)?;
        let bytes = i64::try_from(bytes).ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
            malformed(format!(
                "node {id} has {bytes} packed bytes; it must have between 1 and 2^63 - 1"
            ))
        })?;
        program.push(bytes as u64, op);
    }
    if !reader.rest.is_empty() {
        let left = reader.rest.len();
        return Err(malformed(format!(
            "the encoding has {left} bytes after the last node; it must end there"
        )));
    }
    // The last node is the body. Refuse the encoding if any other node is unused.
    if let Some(id) = used.iter().rev().skip(1).rev().position(|used| !used) {
        return Err(malformed(format!(
            "no other node uses node {id}; only the last node, the body, may be unused"
        )));
    }
    drop(used);
    if let Some(last) = nodes.checked_sub(1) {
        program.body = Some(Edge { offset, node: NodeId(last as u32) });
    } else if offset != 0 {
        return Err(malformed(format!("the body offset is {offset}, but there is no body")));
    }
    check(&program, element_bytes, stated)?;
    Ok((program, stated))
}

/// Checks the program, and checks that the header states the program's element size and bounds.
fn check(program: &Program, element_bytes: u64, stated: Footprint) -> Result<()> {
    let body = program.body.map_or(0, |body| program.node(body.node).bytes);
    if program.factor == 0 {
        return Err(malformed("the factor is 0; it must be at least 1"));
    }
    let product = u128::from(program.factor) * u128::from(body);
    if i64::try_from(product).is_err() {
        return Err(malformed(format!(
            "element size: {} * {body} bytes is more than 2^63 - 1 bytes",
            program.factor
        )));
    }
    if program.element_bytes() != element_bytes {
        return Err(malformed(format!(
            "element size: the header states {element_bytes} bytes, but the program has {product}"
        )));
    }
    let invalid = |error: Error| malformed(format!("the program is invalid: {}", error.detail()));
    verify::verify(program, element_bytes).map_err(invalid)?;
    let found = Footprint::of_program(program).map_err(invalid)?;
    if found != stated {
        return Err(malformed(format!(
            "bounds: the header states {stated:?}, but the program has {found:?}"
        )));
    }
    Ok(())
}

/// The bytes that have not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(|| {
            Error::new(
                ErrorKind::Truncated,
                "wire",
                format!(
                    "the encoding ends too early; it needs {bytes} more bytes and has only {}",
                    self.rest.len()
                ),
            )
        })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn word(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn half(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn zero(&mut self) -> Result<()> {
        match self.half()? {
            0 => Ok(()),
            other => Err(malformed(format!("a reserved field is {other}; it must be 0"))),
        }
    }

    /// Checks that enough bytes are left for `count` items of at least `bytes` bytes each. Returns
    /// the number of bytes of `count` items of exactly `bytes` bytes.
    fn promise(&self, count: u64, bytes: usize) -> Result<usize> {
        let total = u128::from(count) * bytes as u128;
        if total > self.rest.len() as u128 {
            return Err(Error::new(
                ErrorKind::Truncated,
                "wire",
                format!(
                    "the encoding ends too early; it needs at least {count} * {bytes} more bytes and has only {}",
                    self.rest.len()
                ),
            ));
        }
        Ok(total as usize)
    }

    /// Reads the next node. Returns its operation and the number of its packed bytes, which the
    /// caller must check: the number may be 0 or too large.
    fn node(&mut self, program: &Program, used: &mut [bool]) -> Result<(Op, u128)> {
        let [tag, width, lengths, reserved] = self.array()?;
        let body = self.half()?;
        let widths = (matches!(tag, TABLE | RAGGED), tag == RAGGED);
        if reserved != 0 || !widths.0 && width != 0 || !widths.1 && lengths != 0 {
            return Err(malformed(format!(
                "a node with tag {tag} has entry width {width}, length width {lengths} and reserved \
                 byte {reserved}; the entry width must be 0 unless the tag is {TABLE} or {RAGGED}, the \
                 length width must be 0 unless the tag is {RAGGED}, and the reserved byte must be 0"
            )));
        }
        let mut operand = |node: u32, offset: i64| {
            let bytes = program.nodes().get(node as usize).map(|node| u128::from(node.bytes));
            let bytes = bytes.ok_or_else(|| {
                let id = program.nodes().len();
                malformed(format!("node {id} uses node {node}; it may use only earlier nodes"))
            })?;
            used[node as usize] = true;
            Ok::<_, Error>((Edge { offset, node: NodeId(node) }, bytes))
        };
        let count = self.word()?;
        Ok(match tag {
            BLOCK | SEQ if body != 0 => {
                return Err(malformed(format!(
                    "the reserved field of a node with tag {tag} is {body}; it must be 0"
                )));
            }
            BLOCK => (Op::Block, u128::from(count)),
            LOOP => {
                let stride = self.word()? as i64;
                let (body, bytes) = operand(body, self.word()? as i64)?;
                (Op::Loop { count, stride, body }, u128::from(count) * bytes)
            }
            TABLE => {
                let scale = self.word()? as i64;
                let (body, bytes) = operand(body, self.word()? as i64)?;
                let entries = self.table(count, width, 4)?;
                (Op::Table { entries, scale, body }, u128::from(count) * bytes)
            }
            RAGGED => {
                let scale = self.word()? as i64;
                let (body, bytes) = operand(body, self.word()? as i64)?;
                let stride = self.word()? as i64;
                let entries = self.table(count, width, 4)?;
                let lengths = self.table(count, lengths, 1)?;
                let copies = lengths.total();
                let copies = copies.ok_or_else(|| {
                    malformed(
                        "a list of runs has a negative length; each length must be at least 0",
                    )
                })?;
                let total = copies.saturating_mul(bytes);
                if i64::try_from(total).is_err() {
                    return Err(malformed(format!(
                        "the packed size of a list, {copies} * {bytes} bytes, exceeds 2^63 - 1 bytes"
                    )));
                }
                let list = Arc::new(RaggedList::new(lengths, entries));
                (Op::Ragged { list, scale, stride, body }, total)
            }
            SEQ => {
                if count < 2 {
                    return Err(malformed(format!(
                        "the number of parts of a sequence is {count}; it must be at least 2"
                    )));
                }
                let promised = self.promise(count, PART)?;
                let parts = self.take(promised)?;
                // The first pass over the parts checks them. The second pass can then collect them
                // without errors, in one allocation.
                let mut end = 0u128;
                for part in parts.chunks_exact(PART) {
                    let mut part = Reader { rest: part };
                    let offset = part.word()? as i64;
                    end += operand(part.half()?, offset)?.1;
                    part.zero()?;
                }
                if i64::try_from(end).is_err() {
                    return Err(malformed(format!(
                        "the packed size of a sequence, {end} bytes, exceeds 2^63 - 1 bytes"
                    )));
                }
                let mut end = 0;
                let part = |part: &[u8]| {
                    let (mut offset, mut node) = ([0; 8], [0; 4]);
                    offset.copy_from_slice(&part[..8]);
                    node.copy_from_slice(&part[8..12]);
                    let node = NodeId(u32::from_le_bytes(node));
                    end += program.node(node).bytes;
                    Part { edge: Edge { offset: i64::from_le_bytes(offset), node }, end }
                };
                let parts: Box<[Part]> = parts.chunks_exact(PART).map(part).collect();
                let total = u128::from(parts[parts.len() - 1].end);
                (Op::Seq { parts }, total)
            }
            _ => {
                return Err(malformed(format!(
                    "a node has the unknown tag {tag}; the tag must be 1 to 5"
                )));
            }
        })
    }

    /// Reads a table of `count` entries of `width` bytes each, and the padding after it, up to a
    /// multiple of 8 bytes. Refuses a width that is less than `least` or is not 1, 4 or 8.
    fn table(&mut self, count: u64, width: u8, least: u8) -> Result<Table> {
        let bytes = match width {
            1 | 4 | 8 if width >= least => self.promise(count, usize::from(width))?,
            _ => {
                let allowed = if least == 1 { "1, 4 or 8" } else { "4 or 8" };
                return Err(malformed(format!(
                    "the width of a table's entries is {width}; it must be {allowed}"
                )));
            }
        };
        let entries = self.take(bytes)?;
        if self.take(bytes.next_multiple_of(8) - bytes)?.iter().any(|&byte| byte != 0) {
            return Err(malformed("the padding of a table contains a byte that is not 0"));
        }
        // The length of `entries` is a multiple of the width, so `as_chunks` leaves no remainder.
        Ok(match width {
            1 => Table::of_bytes(entries),
            4 => Table::Narrow(
                entries.as_chunks().0.iter().map(|e| i32::from_le_bytes(*e)).collect(),
            ),
            _ => {
                Table::Wide(entries.as_chunks().0.iter().map(|e| i64::from_le_bytes(*e)).collect())
            }
        })
    }
}
