//! Reduction operations behind handles: the predefined operations (MPI-5.0 section 6.9.2), and a table for
//! users' operations. The table is still empty, because the calls that make users' operations are not
//! implemented yet.
//!
//! The runtime combines the elements (`typepack::Operator`). This file finds the operator of a handle, and
//! the operator's function for a datatype.

use crate::abi;
use crate::argument::InOut;
use crate::datatype::Type;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw;
use std::ffi::c_int;
use typepack::{Combiner, NoCombiner, Operator};

/// The users' operations.
static OPS: Table<Operator> = Table::new(Kind::Op);

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    OPS.of_int(integer)
}

/// Checks the handle of an operation. `MPI_REPLACE` and `MPI_NO_OP`, which only one-sided calls take, are
/// also valid here.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid.
pub fn check(op: raw::Op) -> Result {
    match op.0 {
        abi::REPLACE | abi::NO_OP => Ok(()),
        _ => find(op).map(drop),
    }
}

/// Checks that an operation may be freed. Predefined operations may not.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid or the operation is predefined, and `MPI_ERR_ARG` if the
/// pointer is null.
pub fn check_at(op: InOut<raw::Op>) -> Result {
    let (op, _) = op.read("op")?;
    check(op)?;
    if OPS.has(op.0) {
        return Ok(());
    }
    Err(Failure::new(abi::ERR_OP, "op", format!("{:#x} is predefined and cannot be freed", op.0)))
}

/// Returns the operation of a handle.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid, or if the operation is one that only one-sided calls
/// take.
fn find(op: raw::Op) -> Result<Operator> {
    Ok(match op.0 {
        abi::MAX => Operator::Max,
        abi::MIN => Operator::Min,
        abi::SUM => Operator::Sum,
        abi::PROD => Operator::Prod,
        abi::LAND => Operator::Land,
        abi::BAND => Operator::Band,
        abi::LOR => Operator::Lor,
        abi::BOR => Operator::Bor,
        abi::LXOR => Operator::Lxor,
        abi::BXOR => Operator::Bxor,
        abi::MAXLOC => Operator::Maxloc,
        abi::MINLOC => Operator::Minloc,
        value => {
            if let Some(made) = OPS.find(value) {
                return Ok(*made);
            }
            let detail = match value {
                abi::OP_NULL => "MPI_OP_NULL is not an operation".to_owned(),
                abi::REPLACE => "MPI_REPLACE is allowed only in one-sided calls".to_owned(),
                abi::NO_OP => "MPI_NO_OP is allowed only in one-sided calls".to_owned(),
                value => format!("{value:#x} is not a valid operation handle"),
            };
            return Err(Failure::new(abi::ERR_OP, "op", detail));
        }
    })
}

/// Returns the function that combines elements of a datatype by an operation.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid or the operation is not defined on the datatype, and
/// `MPI_ERR_UNSUPPORTED_OPERATION` if the standard defines the operation on the datatype but this library
/// does not implement it.
pub fn combiner(op: raw::Op, ty: &Type) -> Result<Combiner> {
    let operator = find(op)?;
    let undefined = |what: &str| {
        let detail = format!("{operator:?} is not defined on {what}");
        Failure::new(abi::ERR_OP, "op", detail)
    };
    let missing = |what: &str| {
        let detail = format!("this version of typepack does not implement {operator:?} on {what}");
        Failure::new(abi::ERR_UNSUPPORTED_OPERATION, "op", detail)
    };
    match ty.tree().as_named() {
        Some(named) => operator.combiner(named).map_err(|refused| match refused {
            NoCombiner::Undefined => undefined(named.name()),
            NoCombiner::Missing => missing(named.name()),
        }),
        // A predefined type without a name is a type of a Fortran 90 kind, or a pair type.
        None if ty.tree().is_predefined() => Err(missing("a pair type or a Fortran 90 type")),
        None => Err(undefined("derived datatypes")),
    }
}
