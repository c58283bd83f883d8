//! Reduction operations behind handles: the predefined operations (MPI-5.0 section 6.9.2), and those of the user
//! (section 6.9.5).
//!
//! The runtime combines the elements (`typepack::Operator`, `typepack::Combine`). This file finds the operation of a
//! handle, and the function that combines elements of a datatype.

use crate::abi;
use crate::argument::{InOut, Output};
use crate::callback::UserReduction;
use crate::datatype::{self, Type};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;
use typepack::{Combine, Operator};

/// An operation of the user.
#[derive(Debug)]
struct UserOp {
    function: UserReduction,
    /// Whether the program said that the operation is commutative. The library always combines in rank order, so it
    /// uses this value only as the result of `MPI_Op_commutative`.
    commutes: bool,
}

/// The users' operations.
static OPS: Table<UserOp> = Table::new(Kind::Op);

/// An operation that a handle stands for.
enum Found {
    Predefined(Operator),
    User(Arc<UserOp>),
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    OPS.of_int(integer)
}

/// `MPI_Op_create`.
pub fn create(function: raw::Callback, commute: c_int, op: Output<raw::Op>) -> Result {
    create_with(UserReduction::new(function), commute, op)
}

/// `MPI_Op_create_c`.
pub fn create_large(function: raw::Callback, commute: c_int, op: Output<raw::Op>) -> Result {
    create_with(UserReduction::new_large(function), commute, op)
}

fn create_with(function: Option<UserReduction>, commute: c_int, op: Output<raw::Op>) -> Result {
    let out = op.required("op")?;
    let function = function.ok_or_else(|| Failure::null("user_fn"))?;
    let made = UserOp { function, commutes: commute != 0 };
    out.set(raw::Op(OPS.insert(Arc::new(made))?));
    Ok(())
}

/// `MPI_Op_free`. Collective calls that have been started with this reduction operation continue.
pub fn free(op: InOut<raw::Op>) -> Result {
    let (handle, out) = op.read("op")?;
    check(handle)?;
    if OPS.remove(handle.0).is_some() {
        out.set(raw::Op::NULL);
        return Ok(());
    }
    let detail = format!("{:#x} is predefined and cannot be freed", handle.0);
    Err(Failure::new(abi::ERR_OP, "op", detail))
}

/// `MPI_Op_commutative`.
pub fn commutative(op: raw::Op, commute: Output<c_int>) -> Result {
    let out = commute.required("commute")?;
    let commutes = match op.0 {
        abi::REPLACE | abi::NO_OP => false,
        _ => match find(op)? {
            Found::Predefined(_) => true,
            Found::User(made) => made.commutes,
        },
    };
    out.set(commutes.into());
    Ok(())
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

/// Returns the predefined operation of a handle. One-sided calls take no operations of the user.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid, or if it stands for an operation of the user, `MPI_REPLACE` or
/// `MPI_NO_OP`.
#[inline]
pub fn predefined(op: raw::Op) -> Result<Operator> {
    match builtin(op) {
        Some(operator) => Ok(operator),
        None => not_predefined(op),
    }
}

#[cold]
fn not_predefined(op: raw::Op) -> Result<Operator> {
    match find(op)? {
        Found::Predefined(operator) => Ok(operator),
        Found::User(_) => {
            let detail =
                "the program made this operation; one-sided calls take only predefined operations";
            Err(Failure::new(abi::ERR_OP, "op", detail))
        }
    }
}

/// Returns the predefined operation of a handle; `None` if the handle is another one.
pub fn builtin(op: raw::Op) -> Option<Operator> {
    Some(match op.0 {
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
        _ => return None,
    })
}

/// Returns the operation of a handle.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid, or if the operation is one that only one-sided calls
/// take.
fn find(op: raw::Op) -> Result<Found> {
    if let Some(operator) = builtin(op) {
        return Ok(Found::Predefined(operator));
    }
    if let Some(made) = OPS.find(op.0) {
        return Ok(Found::User(made));
    }
    let detail = match op.0 {
        abi::OP_NULL => "MPI_OP_NULL is not an operation".to_owned(),
        abi::REPLACE => "MPI_REPLACE is allowed only in one-sided calls".to_owned(),
        abi::NO_OP => "MPI_NO_OP is allowed only in one-sided calls".to_owned(),
        value => format!("{value:#x} is not a valid operation handle"),
    };
    Err(Failure::new(abi::ERR_OP, "op", detail))
}

/// Returns the function that combines elements of the datatype `ty`, whose handle is `datatype` and valid.
///
/// # Errors
/// Returns `MPI_ERR_OP` if the handle is not valid or the operation is not defined on the datatype.
pub fn combine(op: raw::Op, datatype: raw::Datatype, ty: &Type) -> Result<Combine> {
    match find(op)? {
        Found::Predefined(operator) => operator.combine(ty.tree()).ok_or_else(|| {
            let what = match ty.tree().as_named() {
                Some(named) => named.name(),
                None if ty.tree().is_predefined() => "this predefined datatype",
                None => "derived datatypes",
            };
            let detail = format!("{operator:?} is not defined on {what}");
            Failure::new(abi::ERR_OP, "op", detail)
        }),
        Found::User(made) => {
            let (function, extent) = (made.function, ty.tree().extent() as isize);
            let ty = datatype::find(datatype)?;
            Ok(Combine::user(move |lower, upper, _, elements| {
                // The program may have freed the datatype after it started the operation.
                datatype::with_handle(datatype, &ty, |datatype| {
                    function.call(lower, upper, elements, extent, datatype);
                });
            }))
        }
    }
}
