//! The constructors of derived datatypes and the checks of their arguments.
//!
//! Counts and block lengths may be 0 and must not be negative; strides and displacements may have any
//! value. All array arguments of one call must have equal lengths. `bounds.rs` checks that the sizes and
//! displacements of the new layout fit in an `i64`. Subarrays are in `array.rs`, distributed arrays in
//! `darray.rs`, predefined types in `predefined.rs`, and the calls of MPI-1 in `mpi1.rs`.

use super::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result, counted};
use typepack_leaf::Table;

fn check_count(argument: &'static str, value: i64) -> Result<()> {
    if value < 0 {
        return Err(Error::new(ErrorKind::Count, argument, format!("{value} is negative")));
    }
    Ok(())
}

/// Stores block lengths in a table. Returns an error if a block length is negative.
fn block_lengths(argument: &'static str, values: &[i64]) -> Result<Table> {
    Table::lengths(values).ok_or_else(|| {
        let index = values.iter().position(|&value| value < 0).unwrap_or_default();
        Error::new(
            ErrorKind::Count,
            argument,
            format!("entry {index} is {}, which is negative", values[index]),
        )
    })
}

fn check_lengths(argument: &'static str, length: usize, blocks: usize) -> Result<()> {
    if length != blocks {
        return Err(Error::new(
            ErrorKind::Count,
            argument,
            format!(
                "{}, but blocklengths has {}",
                counted(length, "entry", "entries"),
                counted(blocks, "entry", "entries")
            ),
        ));
    }
    Ok(())
}

/// Returns an error if a value is greater than the maximum of an `int`. Other checks refuse negative
/// values.
pub(super) fn check_int(argument: &'static str, values: &[i64]) -> Result<()> {
    match values.iter().find(|&&value| value > i64::from(i32::MAX)) {
        Some(value) => Err(Error::new(
            ErrorKind::Overflow,
            argument,
            format!("{value} does not fit in an int; it must be at most {}", i32::MAX),
        )),
        None => Ok(()),
    }
}

/// Stores the block lengths of a struct. Most structs have a few members, and all their block lengths
/// are 1. Allocating a table for such block lengths would account for a tenth of the instructions that
/// it takes to make and drop the struct.
#[inline]
fn struct_lengths(blocklengths: &[i64]) -> Result<Table> {
    match Table::ones(blocklengths.len()) {
        Some(ones) if blocklengths.iter().all(|&length| length == 1) => Ok(ones),
        _ => block_lengths("blocklengths", blocklengths),
    }
}

/// Makes the constructor call of a struct. Checks all arguments, except that it accepts bound markers
/// among the types.
#[inline]
pub(super) fn struct_call(
    blocklengths: &[i64],
    displacements_bytes: &[i64],
    types: &[Datatype],
) -> Result<Constructor> {
    let lengths = struct_lengths(blocklengths)?;
    check_lengths("displacements", displacements_bytes.len(), blocklengths.len())?;
    check_lengths("types", types.len(), blocklengths.len())?;
    Ok(Constructor::Struct {
        blocklengths: lengths,
        displacements: Table::new(displacements_bytes),
        types: types.into(),
    })
}

impl Datatype {
    /// Creates a type of `count` copies of `old` that lie one extent of `old` apart (MPI-5.0 section
    /// 5.1.2).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if `count` is negative. Returns `ErrorKind::Type` if `old` is a
    /// bound marker of MPI-1. Returns `ErrorKind::Overflow` if the size, the extent, a bound or a
    /// displacement of the new type does not fit in an `i64`.
    #[doc(alias = "MPI_Type_contiguous")]
    pub fn contiguous(count: i64, old: &Datatype) -> Result<Self> {
        check_count("count", count)?;
        Self::build(Constructor::Contiguous { count, old: old.clone() })
    }

    /// Creates a type of `count` blocks, each of `blocklength` copies of `old`. The starts of
    /// consecutive blocks lie `stride` extents of `old` apart (MPI-5.0 section 5.1.2).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if `count` or `blocklength` is negative. Returns
    /// `ErrorKind::Type` if `old` is a bound marker of MPI-1. Returns `ErrorKind::Overflow` if the
    /// size, the extent, a bound or a displacement of the new type does not fit in an `i64`.
    #[doc(alias = "MPI_Type_vector")]
    pub fn vector(count: i64, blocklength: i64, stride: i64, old: &Datatype) -> Result<Self> {
        check_count("count", count)?;
        check_count("blocklength", blocklength)?;
        Self::build(Constructor::Vector { count, blocklength, stride, old: old.clone() })
    }

    /// Does what [`Datatype::vector`] does, except that the stride is in bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if `count` or `blocklength` is negative. Returns
    /// `ErrorKind::Type` if `old` is a bound marker of MPI-1. Returns `ErrorKind::Overflow` if the
    /// size, the extent, a bound or a displacement of the new type does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_hvector")]
    pub fn hvector(
        count: i64,
        blocklength: i64,
        stride_bytes: i64,
        old: &Datatype,
    ) -> Result<Self> {
        check_count("count", count)?;
        check_count("blocklength", blocklength)?;
        Self::build(Constructor::Hvector {
            count,
            blocklength,
            stride: stride_bytes,
            old: old.clone(),
        })
    }

    /// Creates a type with one block of `blocklengths[i]` copies of `old` for every `i`. Block `i`
    /// begins at `displacements[i]` extents of `old` (MPI-5.0 section 5.1.2).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if the arrays have different lengths or a block length is
    /// negative. Returns `ErrorKind::Type` if `old` is a bound marker of MPI-1. Returns
    /// `ErrorKind::Overflow` if the size, the extent, a bound or a displacement of the new type
    /// does not fit in an `i64`.
    #[doc(alias = "MPI_Type_indexed")]
    pub fn indexed(blocklengths: &[i64], displacements: &[i64], old: &Datatype) -> Result<Self> {
        let lengths = block_lengths("blocklengths", blocklengths)?;
        check_lengths("displacements", displacements.len(), blocklengths.len())?;
        Self::build(Constructor::Indexed {
            blocklengths: lengths,
            displacements: Table::new(displacements),
            old: old.clone(),
        })
    }

    /// Does what [`Datatype::indexed`] does, except that the displacements are in bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if the arrays have different lengths or a block length is
    /// negative. Returns `ErrorKind::Type` if `old` is a bound marker of MPI-1. Returns
    /// `ErrorKind::Overflow` if the size, the extent, a bound or a displacement of the new type
    /// does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_hindexed")]
    pub fn hindexed(
        blocklengths: &[i64],
        displacements_bytes: &[i64],
        old: &Datatype,
    ) -> Result<Self> {
        let lengths = block_lengths("blocklengths", blocklengths)?;
        check_lengths("displacements", displacements_bytes.len(), blocklengths.len())?;
        Self::build(Constructor::Hindexed {
            blocklengths: lengths,
            displacements: Table::new(displacements_bytes),
            old: old.clone(),
        })
    }

    /// Creates a type with one block of `blocklength` copies of `old` at each entry of
    /// `displacements`. Displacements are in units of the extent of `old` (MPI-5.0 section 5.1.2).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if `blocklength` is negative. Returns `ErrorKind::Type` if `old`
    /// is a bound marker of MPI-1. Returns `ErrorKind::Overflow` if the size, the extent, a bound
    /// or a displacement of the new type does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_indexed_block")]
    pub fn indexed_block(blocklength: i64, displacements: &[i64], old: &Datatype) -> Result<Self> {
        check_count("blocklength", blocklength)?;
        Self::build(Constructor::IndexedBlock {
            blocklength,
            displacements: Table::new(displacements),
            old: old.clone(),
        })
    }

    /// Does what [`Datatype::indexed_block`] does, except that the displacements are in bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if `blocklength` is negative. Returns `ErrorKind::Type` if `old`
    /// is a bound marker of MPI-1. Returns `ErrorKind::Overflow` if the size, the extent, a bound
    /// or a displacement of the new type does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_hindexed_block")]
    pub fn hindexed_block(
        blocklength: i64,
        displacements_bytes: &[i64],
        old: &Datatype,
    ) -> Result<Self> {
        check_count("blocklength", blocklength)?;
        Self::build(Constructor::HindexedBlock {
            blocklength,
            displacements: Table::new(displacements_bytes),
            old: old.clone(),
        })
    }

    /// Creates a type with one block of `blocklengths[i]` copies of `types[i]` at
    /// `displacements_bytes[i]` for every `i` (MPI-5.0 section 5.1.2). If the types have no upper
    /// bound marker, the extent is rounded up to a multiple of the largest alignment of their basic
    /// types.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Count` if the arrays have different lengths or a block length is
    /// negative. Returns `ErrorKind::Type` if one of `types` is a bound marker of MPI-1. Returns
    /// `ErrorKind::Overflow` if the size, the extent, a bound or a displacement of the new type
    /// does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_struct")]
    pub fn structured(
        blocklengths: &[i64],
        displacements_bytes: &[i64],
        types: &[Datatype],
    ) -> Result<Self> {
        Self::build(struct_call(blocklengths, displacements_bytes, types)?)
    }

    /// Creates a copy of `old` with lower bound `lb` and extent `extent`, both in bytes. Any extent is
    /// allowed, including 0 and negative ones (MPI-5.0 section 5.1.7).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if `lb + extent` does not fit in an `i64`. Returns
    /// `ErrorKind::Type` if `old` is a bound marker of MPI-1.
    #[doc(alias = "MPI_Type_create_resized")]
    pub fn resized(lb: i64, extent: i64, old: &Datatype) -> Result<Self> {
        Self::build(Constructor::Resized { lb, extent, old: old.clone() })
    }

    /// Creates a new type with the same layout as this type (MPI-5.0 section 5.1.10).
    #[doc(alias = "MPI_Type_dup")]
    pub fn dup(&self) -> Self {
        Self::build_with_markers(Constructor::Dup { old: self.clone() }).expect(
            "the bounds of a duplicate always fit in an `i64`, because those of its original do",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::Named;

    fn double() -> Datatype {
        Datatype::named(Named::DOUBLE)
    }

    fn bounds(ty: &Datatype) -> (i64, i64, i64, i64, i64) {
        (ty.size(), ty.lb(), ty.extent(), ty.true_lb(), ty.true_extent())
    }

    #[test]
    fn bounds_of_the_constructors() {
        let d = double();
        assert_eq!(bounds(&Datatype::contiguous(3, &d).unwrap()), (24, 0, 24, 0, 24));
        assert_eq!(bounds(&Datatype::contiguous(0, &d).unwrap()), (0, 0, 0, 0, 0));
        assert_eq!(bounds(&Datatype::vector(3, 2, 4, &d).unwrap()), (48, 0, 80, 0, 80));
        assert_eq!(bounds(&Datatype::vector(3, 1, -2, &d).unwrap()), (24, -32, 40, -32, 40));
        assert_eq!(bounds(&Datatype::hvector(2, 1, 0, &d).unwrap()), (16, 0, 8, 0, 8));
        assert_eq!(
            bounds(&Datatype::indexed(&[1, 0, 2], &[4, -9, 0], &d).unwrap()),
            (24, 0, 40, 0, 40)
        );
        assert_eq!(
            bounds(&Datatype::hindexed_block(1, &[-3, 9], &d).unwrap()),
            (16, -3, 20, -3, 20)
        );
        assert_eq!(bounds(&Datatype::resized(-4, 100, &d).unwrap()), (8, -4, 100, 0, 8));
    }

    #[test]
    fn structs_are_padded_and_markers_are_sticky() {
        let types = [Datatype::named(Named::CHAR), Datatype::named(Named::INT), double()];
        let ty = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &types).unwrap();
        assert_eq!(bounds(&ty), (13, 0, 16, 0, 16));
        // In MPI-5.0 section 5.1, example 5.1, the type {(double, 0), (char, 8)} has extent 16.
        let ty = Datatype::structured(&[1, 1], &[0, 8], &[double(), types[0].clone()]).unwrap();
        assert_eq!(bounds(&ty), (9, 0, 16, 0, 9));
        let marked = Datatype::resized(-8, 32, &types[1]).unwrap();
        let ty = Datatype::structured(&[1, 1], &[0, 40], &[marked.clone(), double()]).unwrap();
        assert_eq!(bounds(&ty), (12, -8, 32, 0, 48));
        assert_eq!(Datatype::contiguous(3, &marked).unwrap().extent(), 96);
    }

    #[test]
    fn refusals_name_the_argument() {
        let d = double();
        let text = |r: Result<Datatype>| r.unwrap_err().to_string();
        assert_eq!(text(Datatype::contiguous(-1, &d)), "count: -1 is negative");
        assert_eq!(text(Datatype::vector(1, -2, 0, &d)), "blocklength: -2 is negative");
        assert_eq!(
            text(Datatype::indexed(&[1, -1], &[0, 0], &d)),
            "blocklengths: entry 1 is -1, which is negative"
        );
        assert_eq!(
            text(Datatype::hindexed(&[1, 1], &[0], &d)),
            "displacements: 1 entry, but blocklengths has 2 entries"
        );
        assert_eq!(
            text(Datatype::structured(&[1], &[0], &[])),
            "types: 0 entries, but blocklengths has 1 entry"
        );
        for huge in [
            Datatype::contiguous(i64::MAX, &d),
            Datatype::vector(i64::MAX, 1, i64::MAX, &d),
            Datatype::vector(3, i64::MAX, i64::MIN, &d),
            Datatype::hvector(2, 1, i64::MAX, &d),
            Datatype::indexed_block(1, &[i64::MIN], &d),
            Datatype::resized(i64::MAX, 1, &d),
            Datatype::hindexed(&[i64::MAX; 5], &[0; 5], &d),
        ] {
            assert_eq!(huge.unwrap_err().kind(), ErrorKind::Overflow);
        }
    }
}
