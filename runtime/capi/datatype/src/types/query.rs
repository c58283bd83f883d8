//! Queries about datatypes: sizes, extents, names (MPI-5.0 sections 5.1.5 to 5.1.8, 7.8).
//!
//! If a result does not fit in the type of its output argument, the call returns `MPI_UNDEFINED` instead of
//! that result.

use super::find;
use crate::abi;
use crate::argument::{Output, Text, TextOutput};
use crate::count_width::{CountWidth, Number};
use crate::failure::Result;
use crate::raw;
use std::ffi::c_int;
use std::sync::PoisonError;
use typepack_engine::Named;

fn undefined<N: Number>(value: i64) -> N {
    N::exactly(value)
        .or_else(|| N::exactly(abi::UNDEFINED.into()))
        .unwrap_or_else(|| unreachable!("MPI_UNDEFINED does not fit an integer of the ABI"))
}

/// `MPI_Type_size`.
pub fn size<W: CountWidth>(datatype: raw::Datatype, size: Output<W::Count>) -> Result {
    let out = size.required("size")?;
    out.set(undefined(find(datatype)?.tree().size()));
    Ok(())
}

/// `MPI_Type_size_x`.
pub fn size_x(datatype: raw::Datatype, result: Output<raw::Count>) -> Result {
    size::<crate::count_width::Large>(datatype, result)
}

/// Defines the calls that return a lower bound and an extent, each also in the form whose name ends in `_x`.
/// The names in parentheses are the names of the arguments in the standard, and also the names of the
/// engine's functions that return the two values.
macro_rules! bounds {
    ($($name:ident $name_x:ident $c:literal ($lb:ident, $extent:ident);)*) => {
        $(
            #[doc = concat!("`", $c, "`.")]
            pub fn $name<W: CountWidth>(
                datatype: raw::Datatype,
                $lb: Output<W::Address>,
                $extent: Output<W::Address>,
            ) -> Result {
                let lb = $lb.required(stringify!($lb))?;
                let extent = $extent.required(stringify!($extent))?;
                let found = find(datatype)?;
                lb.set(undefined(found.tree().$lb()));
                extent.set(undefined(found.tree().$extent()));
                Ok(())
            }

            #[doc = concat!("`", $c, "_x`.")]
            pub fn $name_x(
                datatype: raw::Datatype,
                $lb: Output<raw::Count>,
                $extent: Output<raw::Count>,
            ) -> Result {
                self::$name::<crate::count_width::Large>(datatype, $lb, $extent)
            }
        )*
    };
}

bounds! {
    extent extent_x "MPI_Type_get_extent" (lb, extent);
    true_extent true_extent_x "MPI_Type_get_true_extent" (true_lb, true_extent);
}

/// `MPI_Type_set_name`.
pub fn set_name(datatype: raw::Datatype, name: Text) -> Result {
    let found = find(datatype)?;
    let name = name.cut(abi::MAX_OBJECT_NAME, "type_name")?;
    *found.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    Ok(())
}

/// Returns the name that the tables of the standard give to a datatype (MPI-5.0 section 3.2.2). For two
/// datatypes, the ABI and the engine use a different name, which the tables list as a synonym.
fn standard_name(named: Named) -> Vec<u8> {
    let name = match named {
        Named::LONG_LONG => "MPI_LONG_LONG_INT",
        Named::C_FLOAT_COMPLEX => "MPI_C_COMPLEX",
        named => named.name(),
    };
    name.into()
}

/// `MPI_Type_get_name`. A predefined datatype has the standard's name until the program sets another name.
/// Any other datatype has no name until the program sets one.
pub fn get_name(
    datatype: raw::Datatype,
    name: TextOutput<{ abi::MAX_OBJECT_NAME }>,
    resultlen: Output<c_int>,
) -> Result {
    let bytes = match datatype {
        raw::Datatype::NULL => b"MPI_DATATYPE_NULL".to_vec(),
        datatype => {
            let found = find(datatype)?;
            let given = found.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let standard = || found.tree().as_named().map(standard_name);
            given.or_else(standard).unwrap_or_default()
        }
    };
    let length = resultlen.required("resultlen")?;
    length.set(name.required("type_name")?.write(&bytes));
    Ok(())
}
