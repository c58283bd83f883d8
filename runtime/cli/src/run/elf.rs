//! Reads from an ELF file which libraries it needs (System V ABI, chapter 5). Only files of 64 bits in the byte order
//! of this machine are read, because the library is such a file. Anything odd in a file makes it unknown; nothing
//! panics.

use std::io::Read;
use std::path::Path;

use typepack_job::sys::named;

/// What is known about a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Program {
    /// A program that is linked statically and does not define `MPI_Init`.
    Static,
    /// A program that is linked statically and defines `MPI_Init`.
    StaticMpi,
    /// A program with the names of the libraries that it needs.
    Dynamic(Vec<String>),
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 30;

/// Reads a program; `None` if the file is no ELF file of this machine, or cannot be read.
pub fn read(path: &Path) -> Option<Program> {
    let mut start = [0_u8; 4];
    let (mut file, metadata) = named::open_regular(path).ok()?;
    file.read_exact(&mut start).ok()?;
    if &start != b"\x7fELF" || metadata.len() > LONGEST {
        return None;
    }
    let mut bytes = start.to_vec();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    parse(&bytes)
}

/// A segment of a program.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

fn word(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(part.try_into().ok()?))
}

fn half(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u64::from(u16::from_ne_bytes(part.try_into().ok()?)))
}

fn parse(bytes: &[u8]) -> Option<Program> {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if bytes.get(..6)? != [0x7f, b'E', b'L', b'F', 2, order] {
        return None;
    }
    let (table, entry, count) = (word(bytes, 32)?, half(bytes, 54)?, half(bytes, 56)?);
    let segments: Option<Vec<Segment>> = (0..count)
        .map(|number| {
            let at = table.checked_add(number * entry)?;
            Some(Segment {
                kind: u32::try_from(word(bytes, at)? & 0xffff_ffff).ok()?,
                offset: word(bytes, at.checked_add(8)?)?,
                address: word(bytes, at.checked_add(16)?)?,
                size: word(bytes, at.checked_add(32)?)?,
            })
        })
        .collect();
    let segments = segments?;
    if !segments.iter().any(|segment| segment.kind == PT_INTERP) {
        // A name in the table of symbols is surrounded by zeros.
        let is_mpi = memchr::memmem::find(bytes, b"\0MPI_Init\0").is_some();
        return Some(if is_mpi { Program::StaticMpi } else { Program::Static });
    }
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let entries: Vec<(u64, u64)> = (0..dynamic.size / 16)
        .map_while(|number| {
            let at = dynamic.offset.checked_add(number * 16)?;
            Some((word(bytes, at)?, word(bytes, at.checked_add(8)?)?))
        })
        .take_while(|(tag, _)| *tag != 0)
        .collect();
    let names = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    // The table of names has an address; its place in the file follows from the segment that is loaded there.
    let home = segments.iter().find(|segment| {
        segment.kind == PT_LOAD
            && names.checked_sub(segment.address).is_some_and(|distance| distance < segment.size)
    })?;
    let names = home.offset.checked_add(names - home.address)?;
    let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED).map(|(_, offset)| {
        let at = usize::try_from(names.checked_add(*offset)?).ok()?;
        let text = bytes.get(at..)?;
        let end = memchr::memchr(0, text)?;
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    });
    Some(Program::Dynamic(needed.collect::<Option<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::{Program, parse, read};

    #[test]
    fn this_program_needs_the_c_library() {
        let exe = std::env::current_exe().unwrap();
        let Some(Program::Dynamic(needed)) = read(&exe) else { panic!("a dynamic program") };
        assert!(needed.iter().any(|name| name.starts_with("libc.so")), "{needed:?}");
        // Every file that ends too early is unknown, or a program without more names.
        let bytes = std::fs::read(&exe).unwrap();
        for length in (0..4096).chain([bytes.len() / 2]) {
            if let Some(Program::Dynamic(found)) = parse(&bytes[..length]) {
                assert_eq!(found, needed);
            }
        }
        assert_eq!(parse(b"#!/bin/sh\n"), None);
    }
}
