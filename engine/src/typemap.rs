//! Expands a type to its typemap in the simplest possible way. The tests use the result as the oracle
//! for all executors.
//!
//! This file follows the standard's definition of each constructor (MPI-5.0 section 5.1) word by word.
//! It makes one entry (a basic type and its displacement) per basic element and copies entry by entry.
//! Of the rest of the engine, it uses little more than the tree and the extents of types. It serves
//! tests, fuzzing and the self-check of the bench suite. It is unsuitable for anything else, because its
//! cost is proportional to the number of basic elements and it recurses over the depth of the tree.
//!
//! Displacements that may overflow are computed with wrapping arithmetic. The constructors guarantee
//! that the displacement of every basic element fits in an `i64`. But they do not check the
//! displacement of a block of length 0, or the stride between blocks of extent 0, so an intermediate
//! product may overflow.

use crate::datatype::{
    Call, Constructor, DEFAULT_ARGUMENT, Darray, Datatype, Distribution, F90, Order,
};
use crate::named::Named;

/// One entry of a typemap: a basic type at a displacement in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Displacement in bytes.
    pub offset: i64,
    /// The basic type. A pair has no entry of its own; it has one entry for each of its two members.
    pub named: Named,
}

/// Returns the typemap of one element: an entry for each basic element, in packed order.
pub fn typemap(ty: &Datatype) -> Vec<Entry> {
    let mut entries = Vec::new();
    walk(ty, 0, &mut entries);
    entries
}

fn walk(ty: &Datatype, at: i64, out: &mut Vec<Entry>) {
    let block = |count: i64, at: i64, old: &Datatype, out: &mut Vec<Entry>| {
        for i in 0..count {
            walk(old, at.wrapping_add(i.wrapping_mul(old.extent())), out);
        }
    };
    match ty.constructor() {
        // Bound markers have no data.
        Constructor::Named(named) if named.size() == 0 => {}
        Constructor::Named(named) => match named.members() {
            None => out.push(Entry { offset: at, named: *named }),
            Some(members) => {
                for (offset, named) in members {
                    out.push(Entry { offset: at.wrapping_add(i64::from(offset)), named });
                }
            }
        },
        Constructor::Dup { old } | Constructor::Resized { old, .. } => walk(old, at, out),
        Constructor::Contiguous { count, old } => block(*count, at, old, out),
        Constructor::Vector { count, blocklength, stride, old } => {
            let stride = stride.wrapping_mul(old.extent());
            for i in 0..*count {
                block(*blocklength, at.wrapping_add(i.wrapping_mul(stride)), old, out);
            }
        }
        Constructor::Hvector { count, blocklength, stride, old } => {
            for i in 0..*count {
                block(*blocklength, at.wrapping_add(i.wrapping_mul(*stride)), old, out);
            }
        }
        Constructor::Indexed { blocklengths, displacements, old } => {
            for (length, displacement) in blocklengths.iter().zip(displacements.iter()) {
                let displacement = displacement.wrapping_mul(old.extent());
                block(length, at.wrapping_add(displacement), old, out);
            }
        }
        Constructor::Hindexed { blocklengths, displacements, old } => {
            for (length, displacement) in blocklengths.iter().zip(displacements.iter()) {
                block(length, at.wrapping_add(displacement), old, out);
            }
        }
        Constructor::IndexedBlock { blocklength, displacements, old } => {
            for displacement in displacements.iter() {
                let displacement = displacement.wrapping_mul(old.extent());
                block(*blocklength, at.wrapping_add(displacement), old, out);
            }
        }
        Constructor::HindexedBlock { blocklength, displacements, old } => {
            for displacement in displacements.iter() {
                block(*blocklength, at.wrapping_add(displacement), old, out);
            }
        }
        Constructor::Struct { blocklengths, displacements, types } => {
            for ((length, displacement), old) in
                blocklengths.iter().zip(displacements.iter()).zip(types)
            {
                block(length, at.wrapping_add(displacement), old, out);
            }
        }
        Constructor::Subarray { region, order, old } => {
            let [sizes, subsizes, starts] = region.parts();
            // Visit the elements of the box in storage order. The index that varies fastest is the last
            // (C) or the first (Fortran).
            let total: i64 = subsizes.iter().product();
            for n in 0..total {
                let (mut rest, mut element, mut step) = (n, 0, 1);
                let mut visit = |d: usize| {
                    element += (starts[d] + rest % subsizes[d]) * step;
                    rest /= subsizes[d];
                    step *= sizes[d];
                };
                match order {
                    Order::C => (0..sizes.len()).rev().for_each(&mut visit),
                    Order::Fortran => (0..sizes.len()).for_each(&mut visit),
                }
                walk(old, at.wrapping_add(element.wrapping_mul(old.extent())), out);
            }
        }
        // The oracle does not use the layout that the tree stores for a composite (a distributed array,
        // a Fortran kind or a value-index pair), because the tests use the oracle to check that layout.
        // The exception is a Fortran kind, whose layout is a named type.
        Constructor::Composite { call, layout } => match &**call {
            Call::Darray(call) => {
                out.extend(darray(call).iter().map(|e| Entry { offset: at + e.offset, ..*e }));
            }
            Call::F90(F90::Real { .. } | F90::Complex { .. } | F90::Integer { .. }) => {
                walk(layout, at, out);
            }
            // A pair has the layout of a C struct of the two types.
            Call::ValueIndex { value, index } => {
                let align = i64::from(index.align());
                walk(value, at, out);
                walk(index, at + (value.size() + align - 1) / align * align, out);
            }
        },
    }
}

/// Returns the typemap of a distributed array. The function follows the definition in MPI-5.0 section
/// 5.1.4. For each dimension, it calls `cyclic`, which returns the typemap of the dimensions processed
/// so far, including that one.
fn darray(call: &Darray) -> Vec<Entry> {
    let dimensions = call.sizes.len();
    let mut position = vec![0; dimensions];
    let (mut rank, mut size) = (i64::from(call.rank), i64::from(call.size));
    for (position, &processes) in position.iter_mut().zip(&call.processes) {
        size /= i64::from(processes);
        *position = rank / size;
        rank %= size;
    }
    let mut entries = typemap(&call.old);
    let mut extent = call.old.extent();
    for i in 0..dimensions {
        let d = if call.order == Order::Fortran { i } else { dimensions - 1 - i };
        let (size, processes) = (call.sizes[d], i64::from(call.processes[d]));
        let argument = match (call.distributions[d], call.arguments[d]) {
            (Distribution::None, _) => size,
            (Distribution::Block, DEFAULT_ARGUMENT) => (size + processes - 1) / processes,
            (Distribution::Cyclic, DEFAULT_ARGUMENT) => 1,
            (Distribution::Block | Distribution::Cyclic, argument) => i64::from(argument),
        };
        entries = cyclic(argument, size, position[d], processes, &entries, extent);
        // In the standard, `cyclic` also sets a lower bound marker at 0 and an upper bound marker,
        // which determine this extent.
        extent *= size;
    }
    entries
}

fn cyclic(
    argument: i64,
    size: i64,
    position: i64,
    processes: i64,
    old: &[Entry],
    extent: i64,
) -> Vec<Entry> {
    let blocks = (size + (argument - 1)) / argument;
    let mut count = blocks / processes;
    let left_over = blocks - count * processes;
    if position < left_over {
        count += 1;
    }
    let in_last_cycle = size % (processes * argument);
    let last = if in_last_cycle == 0 {
        argument
    } else {
        match in_last_cycle - argument * position {
            last if last > argument => argument,
            last if last <= 0 => argument,
            last => last,
        }
    };
    let mut entries = Vec::new();
    for block in 0..count {
        for i in 0..if block == count - 1 { last } else { argument } {
            let element = position * argument + i + processes * argument * block;
            entries.extend(old.iter().map(|e| Entry { offset: e.offset + element * extent, ..*e }));
        }
    }
    entries
}

/// Packs `count` elements. Displacement 0 is at byte `origin` of `memory`.
///
/// # Panics
///
/// Panics if the elements do not lie within `memory`.
pub fn pack(ty: &Datatype, count: u64, memory: &[u8], origin: usize) -> Vec<u8> {
    let mut packed = Vec::new();
    for (start, size) in pieces(ty, count, origin) {
        packed.extend_from_slice(&memory[start..start + size]);
    }
    packed
}

/// Unpacks `count` elements, in typemap order. Displacement 0 is at byte `origin` of `memory`.
///
/// # Panics
///
/// Panics if the elements do not lie within `memory`, or if the length of `packed` is not the packed
/// size of the elements.
pub fn unpack(ty: &Datatype, count: u64, packed: &[u8], memory: &mut [u8], origin: usize) {
    let mut position = 0;
    for (start, size) in pieces(ty, count, origin) {
        memory[start..start + size].copy_from_slice(&packed[position..position + size]);
        position += size;
    }
    assert_eq!(position, packed.len(), "packed data has the wrong length");
}

/// Returns the position in memory and the size of each basic element of `count` elements, in packed
/// order.
fn pieces(ty: &Datatype, count: u64, origin: usize) -> impl Iterator<Item = (usize, usize)> {
    let (entries, extent) = (typemap(ty), ty.extent());
    (0..count).flat_map(move |i| {
        entries
            .iter()
            .map(|entry| {
                let at = origin as i64 + i as i64 * extent + entry.offset;
                (
                    usize::try_from(at).unwrap_or_else(|_| {
                        panic!("an entry begins at byte {at}, before the memory")
                    }),
                    entry.named.size() as usize,
                )
            })
            .collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the old type of the running example in MPI-5.0 section 5.1.2: {(double, 0), (char, 8)}
    /// with extent 16.
    fn old() -> Datatype {
        let types = [Datatype::named(Named::DOUBLE), Datatype::named(Named::CHAR)];
        Datatype::structured(&[1, 1], &[0, 8], &types).unwrap()
    }

    fn offsets(ty: &Datatype) -> Vec<i64> {
        typemap(ty).iter().map(|e| e.offset).collect()
    }

    #[test]
    fn the_standards_examples() {
        let contiguous = Datatype::contiguous(3, &old()).unwrap();
        assert_eq!(offsets(&contiguous), [0, 8, 16, 24, 32, 40]);
        let vector = Datatype::vector(2, 3, 4, &old()).unwrap();
        assert_eq!(offsets(&vector), [0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]);
        let vector = Datatype::vector(3, 1, -2, &old()).unwrap();
        assert_eq!(offsets(&vector), [0, 8, -32, -24, -64, -56]);
        let indexed = Datatype::indexed(&[3, 1], &[4, 0], &old()).unwrap();
        assert_eq!(offsets(&indexed), [64, 72, 80, 88, 96, 104, 0, 8]);
        let types = [Datatype::named(Named::FLOAT), old(), Datatype::named(Named::CHAR)];
        let structured = Datatype::structured(&[2, 1, 3], &[0, 16, 26], &types).unwrap();
        assert_eq!(offsets(&structured), [0, 4, 16, 24, 26, 27, 28]);
    }

    #[test]
    fn fortran_order_is_c_order_reversed() {
        let int = Datatype::named(Named::INT);
        let c = Datatype::subarray(&[3, 4], &[2, 2], &[1, 1], Order::C, &int).unwrap();
        let f = Datatype::subarray(&[4, 3], &[2, 2], &[1, 1], Order::Fortran, &int).unwrap();
        assert_eq!(offsets(&c), [20, 24, 36, 40]);
        assert_eq!(offsets(&f), offsets(&c));
    }

    #[test]
    fn unused_displacements_and_strides_may_be_anything() {
        let int = Datatype::named(Named::INT);
        let indexed = Datatype::indexed(&[0, 1, 2], &[i64::MAX, 0, 1], &int).unwrap();
        assert_eq!(offsets(&indexed), [0, 4, 8]);
        let still = Datatype::resized(0, 0, &int).unwrap();
        assert_eq!(offsets(&Datatype::vector(3, 1, i64::MAX, &still).unwrap()), [0; 3]);
        let far = Datatype::hindexed(&[1], &[-i64::MAX], &int).unwrap();
        let near = Datatype::hindexed(&[1, 1], &[i64::MAX, i64::MAX - 8], &far).unwrap();
        assert_eq!(offsets(&near), [0, -8]);
    }

    #[test]
    fn pack_then_unpack_restores() {
        let ty = Datatype::vector(2, 1, 2, &Datatype::named(Named::SHORT)).unwrap();
        let memory: Vec<u8> = (0..20).collect();
        let packed = pack(&ty, 2, &memory, 2);
        assert_eq!(packed, [2, 3, 6, 7, 8, 9, 12, 13]);
        let mut back = vec![0; 20];
        unpack(&ty, 2, &packed, &mut back, 2);
        assert_eq!(pack(&ty, 2, &back, 2), packed);
        assert_eq!(back[4], 0);
    }
}
