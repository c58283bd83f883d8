//! Views of files (MPI-5.0 section 14.3).

use super::{FILES, error_of, find};
use crate::abi;
use crate::argument::{Output, Text, TextOutput};
use crate::datatype::{self, Type};
use crate::error::Result;
use crate::io::manage::hints;
use crate::raw::{self, Offset};
use std::sync::{Arc, PoisonError};
use typepack::io::Refused;
use typepack_capi_datatype::types;

/// A datatype of a view, as `MPI_File_get_view` returns it.
#[derive(Clone, Debug)]
struct ViewType {
    handle: raw::Datatype,
    found: Arc<Type>,
}

/// The datatypes of a file's view. Until the program sets a view, both fields are `None`, which stands for `MPI_BYTE`.
#[derive(Debug)]
pub struct ViewTypes {
    etype: Option<ViewType>,
    filetype: Option<ViewType>,
}

impl ViewTypes {
    /// Returns the datatypes for a file that has just been opened.
    pub fn bytes() -> Self {
        Self { etype: None, filetype: None }
    }
}

impl ViewType {
    fn new(handle: raw::Datatype) -> Result<Self> {
        let found = datatype::find(handle)?;
        found.check_committed()?;
        Ok(Self { handle, found })
    }

    /// Returns a handle for the program: for a predefined datatype its fixed handle, and for any other datatype
    /// the new handle of a committed copy.
    fn handle(this: &Option<Self>) -> Result<raw::Datatype> {
        let Some(this) = this else { return Ok(raw::Datatype(abi::BYTE)) };
        if this.found.tree().is_predefined() {
            return Ok(this.handle);
        }
        let copy = Type::sharing(this.found.tree().clone(), &this.found);
        Ok(types::insert_type(Arc::new(copy))?)
    }
}

/// `MPI_File_set_view`.
pub fn set_view(
    fh: raw::File,
    disp: Offset,
    etype: raw::Datatype,
    filetype: raw::Datatype,
    datarep: Text,
    info: raw::Info,
) -> Result {
    let (object, file) = (FILES.find(fh.0)?, find(fh)?);
    let arguments = || {
        let name =
            datarep.read(abi::MAX_DATAREP_STRING, "datarep", abi::ERR_UNSUPPORTED_DATAREP)?;
        let name = String::from_utf8_lossy(&name).into_owned();
        Ok((ViewType::new(etype)?, ViewType::new(filetype)?, name, hints(info)?))
    };
    let (etype, filetype, name, hints) =
        arguments().inspect_err(|failure| file.refuse_call(Refused::SetView, error_of(failure)))?;
    let disp = (disp != abi::DISPLACEMENT_CURRENT).then_some(disp);
    file.set_view(disp, etype.found.tree(), filetype.found.tree(), &name)?;
    file.set_hints(&hints)?;
    *object.types.lock().unwrap_or_else(PoisonError::into_inner) =
        ViewTypes { etype: Some(etype), filetype: Some(filetype) };
    Ok(())
}

/// `MPI_File_get_view`.
pub fn get_view(
    fh: raw::File,
    disp: Output<Offset>,
    etype: Output<raw::Datatype>,
    filetype: Output<raw::Datatype>,
    datarep: TextOutput<{ abi::MAX_DATAREP_STRING }>,
) -> Result {
    let (object, file) = (FILES.find(fh.0)?, find(fh)?);
    let (disp, datarep) = (disp.required("disp")?, datarep.required("datarep")?);
    let (etype, filetype) = (etype.required("etype")?, filetype.required("filetype")?);
    let view = file.view();
    let types = object.types.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, second) = (ViewType::handle(&types.etype)?, ViewType::handle(&types.filetype)?);
    disp.set(view.displacement() as Offset);
    etype.set(first);
    filetype.set(second);
    datarep.write(view.representation().name().as_bytes());
    Ok(())
}
