//! Reduction operations behind handles: the predefined ones (MPI-5.0 section 6.9.2), and a table for the
//! user's, of which none can be made yet.
//!
//! What they do to elements is the runtime's (`typepack::Operator`); `coll/` asks here which one
//! a handle and a datatype stand for.

use crate::abi;
use crate::argument::InOut;
use crate::datatype::Type;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw;
use std::ffi::c_int;
use typepack::{Combiner, NoCombiner, Operator};

/// Operations that are not predefined.
static OPS: Table<Operator> = Table::new(Kind::Op);

/// Returns the live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    OPS.of_int(integer)
}

/// Checks the handle of an operation, also of those that only one-sided calls take.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid.
pub fn check(op: raw::Op) -> Result {
    match op.0 {
        abi::REPLACE | abi::NO_OP => Ok(()),
        _ => find(op).map(drop),
    }
}

/// Checks the handle of an operation that the call is to free: a predefined operation cannot be freed.
///
/// # Errors
/// Returns `MPI_ERR_OP`, and `MPI_ERR_ARG` if the pointer is null.
pub fn check_at(op: InOut<raw::Op>) -> Result {
    let (op, _) = op.read("op")?;
    check(op)?;
    if OPS.has(op.0) {
        return Ok(());
    }
    Err(Failure::new(abi::ERR_OP, "op", format!("{:#x} is predefined and cannot be freed", op.0)))
}

/// The operation of a handle.
///
/// # Errors
/// `MPI_ERR_OP`, also for the two that only one-sided calls take.
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
                abi::OP_NULL => "MPI_OP_NULL".to_owned(),
                abi::REPLACE => "MPI_REPLACE is for one-sided calls".to_owned(),
                abi::NO_OP => "MPI_NO_OP is for one-sided calls".to_owned(),
                value => format!("{value:#x} is no operation"),
            };
            return Err(Failure::new(abi::ERR_OP, "op", detail));
        }
    })
}

/// The function by which an operation combines elements of a type.
///
/// # Errors
/// `MPI_ERR_OP` for an invalid handle and for a type that the operation is not defined on;
/// `MPI_ERR_UNSUPPORTED_OPERATION` for types without arithmetic here.
pub fn combiner(op: raw::Op, ty: &Type) -> Result<Combiner> {
    let operator = find(op)?;
    let undefined = |what: &str| {
        let detail = format!("{operator:?} is not defined on {what}");
        Failure::new(abi::ERR_OP, "op", detail)
    };
    let missing = |what: &str| {
        let detail = format!("this version of typepack has no {operator:?} of {what}");
        Failure::new(abi::ERR_UNSUPPORTED_OPERATION, "op", detail)
    };
    match ty.tree().as_named() {
        Some(named) => operator.combiner(named).map_err(|refused| match refused {
            NoCombiner::Undefined => undefined(named.name()),
            NoCombiner::Missing => missing(named.name()),
        }),
        // Kinds of Fortran 90, and pairs without a name.
        None if ty.tree().is_predefined() => Err(missing("a predefined type without a name")),
        None => Err(undefined("derived datatypes")),
    }
}
