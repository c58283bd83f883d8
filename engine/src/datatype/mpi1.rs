//! The constructor calls and bound markers of MPI-1 (deprecated in MPI-2.0, removed in MPI-3.0).
//!
//! Programs and textbooks still use these calls. Each C call does the same as a current call that
//! has another name, except that `MPI_Type_struct` accepts the bound markers
//! [`Named::LB`](crate::Named) and `UB`. The Fortran calls take displacements as default integers,
//! and types made by the Fortran calls decode with combiners of their own (MPI-2.2 section 4.1.13).
//! `bounds.rs` computes the bounds.
//!
//! `MPI_Type_lb`, `MPI_Type_ub` and `MPI_Type_extent` are [`Datatype::lb`], [`Datatype::ub`] and
//! [`Datatype::extent`].

use super::{Datatype, Form, construct};
use crate::error::{Error, ErrorKind, Result};

/// The language from which an MPI-1 constructor was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// C: displacements are addresses. The type decodes like a type made by the call that replaced the
    /// MPI-1 call.
    C,
    /// Fortran: displacements are default integers of 32 bits, narrower than an address. The type
    /// decodes with a combiner that ends in `_INTEGER`.
    Fortran,
}

impl Binding {
    fn check(self, argument: &'static str, values: &[i64]) -> Result<()> {
        match values.iter().find(|&&value| i32::try_from(value).is_err()) {
            Some(value) if self == Self::Fortran => Err(Error::new(
                ErrorKind::Overflow,
                argument,
                format!("{value} does not fit in a Fortran integer of 32 bits"),
            )),
            _ => Ok(()),
        }
    }

    fn record(self, ty: Datatype) -> Result<Datatype> {
        let ty = ty.with_form(Form::Int)?;
        Ok(match self {
            Self::C => ty,
            Self::Fortran => ty.recorded(Form::Fortran),
        })
    }
}

impl Datatype {
    /// Does what [`Datatype::hvector`] does, under the name of the call in MPI-1.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Datatype::hvector`]. Returns `ErrorKind::Overflow` if `count` or
    /// `blocklength` does not fit in an `int`; for [`Binding::Fortran`], also if the stride does not
    /// fit in 32 bits.
    #[doc(alias = "MPI_Type_hvector")]
    pub fn type_hvector(
        count: i64,
        blocklength: i64,
        stride_bytes: i64,
        old: &Datatype,
        binding: Binding,
    ) -> Result<Self> {
        construct::check_int("count", &[count])?;
        construct::check_int("blocklength", &[blocklength])?;
        binding.check("stride_bytes", &[stride_bytes])?;
        binding.record(Self::hvector(count, blocklength, stride_bytes, old)?)
    }

    /// Does what [`Datatype::hindexed`] does, under the name of the call in MPI-1.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Datatype::hindexed`]. Returns `ErrorKind::Overflow` if the number of blocks
    /// or a block length does not fit in an `int`; for [`Binding::Fortran`], also if a displacement does
    /// not fit in 32 bits.
    #[doc(alias = "MPI_Type_hindexed")]
    pub fn type_hindexed(
        blocklengths: &[i64],
        displacements_bytes: &[i64],
        old: &Datatype,
        binding: Binding,
    ) -> Result<Self> {
        construct::check_int("blocklengths", blocklengths)?;
        binding.check("displacements", displacements_bytes)?;
        binding.record(Self::hindexed(blocklengths, displacements_bytes, old)?)
    }

    /// Does what [`Datatype::structured`] does, under the name of the call in MPI-1. Except for
    /// [`Datatype::dup`], only this call accepts the bound markers [`Named::LB`](crate::Named::LB) and
    /// [`Named::UB`](crate::Named::UB).
    ///
    /// A marker has no data. The new type's lower bound is the least displacement of a lower marker
    /// inside it, at any depth. Its upper bound is the greatest displacement of an upper marker. If
    /// there is no lower (upper) marker, the data determine the lower (upper) bound. A marker stays
    /// in effect in every type built from the new type, until [`Datatype::resized`], `subarray` or
    /// `darray` erases it and sets both bounds anew.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Datatype::structured`], except the error for bound markers. Returns
    /// `ErrorKind::Overflow` if the number of blocks or a block length does not fit in an `int`; for
    /// [`Binding::Fortran`], also if a displacement does not fit in 32 bits.
    #[doc(alias = "MPI_Type_struct")]
    pub fn type_struct(
        blocklengths: &[i64],
        displacements_bytes: &[i64],
        types: &[Datatype],
        binding: Binding,
    ) -> Result<Self> {
        construct::check_int("blocklengths", blocklengths)?;
        binding.check("displacements", displacements_bytes)?;
        let constructor = construct::struct_call(blocklengths, displacements_bytes, types)?;
        binding.record(Self::build_with_markers(constructor)?)
    }
}
