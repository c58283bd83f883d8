//! Finds out with which MPI library a program is linked.
//!
//! [`read`] reads from an ELF file which libraries the program or the shared library needs (System V ABI, chapter 5), and
//! [`Program::other_mpi`] looks for MPI libraries without the standard ABI among them. `mpiexec` and `typepack run` ask
//! before they start a program; `typepack doctor` asks about the modules of mpi4py. Only files of 64 bits in the byte order
//! of this machine are read, because typepack's library is such a file. Anything odd in a file makes the file unknown;
//! nothing panics. Only the parts with the names are read, because a program may be large.

use crate::sys::named;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is known about a program or a shared library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program that is linked statically, or a library that needs no other.
    Static,
    /// A program or a library.
    Dynamic {
        /// The names of the libraries that it needs.
        needed: Vec<String>,
        /// Whether the loader looks into the file's own folders before those of `LD_LIBRARY_PATH` (`DT_RPATH`).
        is_fixed: bool,
    },
}

/// The sonames of the libraries with MPICH's ABI. Debian's has the second one.
const MPICH: [&str; 2] = ["libmpi.so.12", "libmpich.so.12"];

/// The sonames of MPI libraries without the standard ABI, by their beginnings, and the names of the MPIs.
const OTHERS: [(&str, &str); 8] = [
    ("libmpi.so.40", "Open MPI"),
    ("libmpi_mpifh.so", "Open MPI"),
    ("libmpi_usempif08.so", "Open MPI"),
    ("libmpi_cxx.so", "Open MPI"),
    ("libmpich", "MPICH"),
    ("libmpi.so.12", "MPICH or Intel MPI"),
    ("libmpifort.so.12", "MPICH or Intel MPI"),
    ("libmpicxx.so.12", "MPICH or Intel MPI"),
];

impl Program {
    /// Returns whether the program is linked with a library that has the MPI 5 standard ABI.
    pub fn has_the_standard_abi(&self) -> bool {
        self.needed().iter().any(|name| name.starts_with("libmpi_abi.so"))
    }

    /// Returns the name of a library that the program needs and that belongs to an MPI without the standard ABI, and
    /// the name of that MPI. Returns `None` if there is no such library, or if the program also needs a library with
    /// the standard ABI. `has_mpich` says whether typepack's own library with MPICH's ABI is there.
    pub fn other_mpi(&self, has_mpich: bool) -> Option<(&str, &'static str)> {
        if self.has_the_standard_abi() {
            return None;
        }
        let is_mpich = has_mpich && !matches!(self, Self::Dynamic { is_fixed: true, .. });
        let is_ours = |name: &str| is_mpich && MPICH.contains(&name);
        OTHERS.iter().find_map(|(start, owner)| {
            let mut names = self.needed().iter().filter(|name| !is_ours(name));
            let name = names.find(|name| name.starts_with(start))?;
            Some((name.as_str(), *owner))
        })
    }

    /// Returns whether the library with MPICH's ABI may lie in the way of the program: it needs no library of the standard
    /// ABI, and none of MPICH's for Fortran or C++.
    pub fn may_have_mpich(&self) -> bool {
        !self.has_the_standard_abi() && self.other_mpi(true).is_none()
    }

    /// Returns the names of the libraries that it needs.
    pub fn needed(&self) -> &[String] {
        match self {
            Self::Static => &[],
            Self::Dynamic { needed, .. } => needed,
        }
    }
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// The largest part of a file that is read at once, in bytes.
const LONGEST: u64 = 16 << 20;

/// The longest name of a library that is read, in bytes.
const LONGEST_NAME: usize = 4096;

/// Reads a program. Returns `None` if the file is no regular file, is no ELF file of this machine, or cannot be read.
pub fn read(path: &Path) -> Option<Program> {
    let (file, _) = named::open_regular(path).ok()?;
    parse(&|at, buffer| file.read_at(buffer, at).unwrap_or(0))
}

/// Reads bytes of a file from an offset on. Returns how many bytes it has read.
type Source<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;

/// A segment of a program.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Returns `length` bytes of a file from the offset `at` on. Returns `None` if the file is shorter, or if the part is
/// longer than any that a program has.
fn part(source: Source<'_>, at: u64, length: u64) -> Option<Vec<u8>> {
    if length > LONGEST {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    (source(at, &mut bytes) == bytes.len()).then_some(bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(part.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u64::from(u16::from_ne_bytes(part.try_into().ok()?)))
}

fn parse(source: Source<'_>) -> Option<Program> {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    let header = part(source, 0, 64)?;
    if header[..6] != [0x7f, b'E', b'L', b'F', 2, order] {
        return None;
    }
    let (table, entry, count) = (word(&header, 32)?, half(&header, 54)?, half(&header, 56)?);
    let segments: Option<Vec<Segment>> = (0..count)
        .map(|number| {
            let bytes = part(source, table.checked_add(number * entry)?, 40)?;
            Some(Segment {
                kind: u32::try_from(word(&bytes, 0)? & 0xffff_ffff).ok()?,
                offset: word(&bytes, 8)?,
                address: word(&bytes, 16)?,
                size: word(&bytes, 32)?,
            })
        })
        .collect();
    let segments = segments?;
    let is_program = segments.iter().any(|segment| segment.kind == PT_INTERP);
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return (!is_program).then_some(Program::Static);
    };
    let table = part(source, dynamic.offset, dynamic.size)?;
    let entries: Vec<(u64, u64)> = table
        .chunks_exact(16)
        .map_while(|pair| Some((word(pair, 0)?, word(pair, 8)?)))
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
        let mut text = [0; LONGEST_NAME];
        let length = source(names.checked_add(*offset)?, &mut text).min(LONGEST_NAME);
        let end = memchr::memchr(0, &text[..length])?;
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    });
    let needed = needed.collect::<Option<Vec<_>>>()?;
    // A static program that may lie at any address has this table, too.
    let has = |tag| entries.iter().any(|entry| entry.0 == tag);
    let is_fixed = has(DT_RPATH) && !has(DT_RUNPATH);
    Some(match is_program || !needed.is_empty() {
        true => Program::Dynamic { needed, is_fixed },
        false => Program::Static,
    })
}

#[cfg(test)]
mod tests {
    use super::{Program, parse, read};

    fn parse_bytes(bytes: &[u8]) -> Option<Program> {
        parse(&|at, buffer| {
            let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            length
        })
    }

    #[test]
    fn this_program_needs_the_c_library() {
        let exe = std::env::current_exe().unwrap();
        let Some(Program::Dynamic { needed, .. }) = read(&exe) else { panic!("a dynamic program") };
        assert!(needed.iter().any(|name| name.starts_with("libc.so")), "{needed:?}");
        // Every file that ends too early is unknown, or a program without more names.
        let bytes = std::fs::read(&exe).unwrap();
        let is_the_same = |found: Program| matches!(found, Program::Dynamic { needed: found, .. } if found == needed);
        assert!(parse_bytes(&bytes).is_some_and(is_the_same));
        for length in (0..4096).chain([bytes.len() / 2]) {
            if let Some(Program::Dynamic { needed: found, .. }) = parse_bytes(&bytes[..length]) {
                assert_eq!(found, needed);
            }
        }
        assert_eq!(parse_bytes(b"#!/bin/sh\n"), None);
        assert_eq!(read(std::path::Path::new("/dev/null")), None);
    }

    #[test]
    fn other_libraries_are_known_by_their_names() {
        let linked = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let program = Program::Dynamic { needed: names, is_fixed: false };
            program.other_mpi(false).map(|(name, owner)| (name.to_owned(), owner))
        };
        let found = |name: &str, owner| Some((name.to_owned(), owner));
        assert_eq!(linked(&["libc.so.6", "libmpi.so.40"]), found("libmpi.so.40", "Open MPI"));
        assert_eq!(linked(&["libmpich.so.12"]), found("libmpich.so.12", "MPICH"));
        assert_eq!(linked(&["libmpi.so.12"]), found("libmpi.so.12", "MPICH or Intel MPI"));
        assert_eq!(linked(&["libmpi_abi.so.1", "libmpi.so.12"]), None);
        let ours = |names: &[&str], is_fixed| {
            let needed = names.iter().map(|name| (*name).to_owned()).collect();
            let program = Program::Dynamic { needed, is_fixed };
            (program.other_mpi(true).is_none(), program.may_have_mpich())
        };
        assert_eq!(ours(&["libmpi.so.12"], false), (true, true));
        assert_eq!(ours(&["libmpich.so.12"], false), (true, true));
        assert_eq!(ours(&["libmpich.so.12", "libmpichfort.so.12"], false), (false, false));
        assert_eq!(ours(&["libmpich.so.10"], false), (false, false));
        // The loader takes the library of the program's own folder.
        assert_eq!(ours(&["libmpi.so.12"], true), (false, false));
        assert_eq!(ours(&["libmpi.so.12", "libmpifort.so.12"], false), (false, false));
        assert_eq!(ours(&["libmpi_abi.so.1"], false), (true, false));
        // Python, which loads a library of either ABI later.
        assert_eq!(ours(&["libc.so.6"], true), (true, true));
        assert_eq!(linked(&["libmpi_abi.so.0"]), None);
        assert_eq!(linked(&["libc.so.6"]), None);
        assert_eq!(Program::Static.other_mpi(false), None);
    }
}
