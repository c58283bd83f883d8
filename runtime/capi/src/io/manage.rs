//! Opening, closing and deleting files; sizes, modes, hints and file pointers (MPI-5.0 sections 14.2, 14.4
//! and 14.6).

use super::view::ViewTypes;
use super::{DEFAULT, FILES, FileObject, error_of, find, handler};
use crate::abi;
use crate::argument::{InOut, Output, Text};
use crate::comm;
use crate::count_width::{CountWidth, Number};
use crate::datatype;
use crate::error::handler::HandlerCell;
use crate::error::{Failure, Result};
use crate::group;
use crate::info;
use crate::raw::{self, Offset};
use std::ffi::{OsString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use typepack::io::{File, Mode, Refused, Whence};

/// The length of the longest path that Linux accepts, in bytes, including the zero byte.
const PATH: c_int = 4096;

fn path(filename: Text) -> Result<PathBuf> {
    let bytes = filename.read(PATH, "filename", abi::ERR_BAD_FILE)?;
    Ok(OsString::from_vec(bytes).into())
}

/// Returns the hints of an info object as keys and values. The null handle has no hints.
///
/// # Errors
/// Returns `MPI_ERR_INFO` if the handle is not valid.
pub fn hints(info: raw::Info) -> Result<Vec<(String, String)>> {
    if info == raw::Info::NULL {
        return Ok(Vec::new());
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let entries = info::entries_of(info)?;
    Ok(entries.into_iter().map(|(key, value)| (text(key), text(value))).collect())
}

/// `MPI_File_open`.
pub fn open(
    comm: raw::Comm,
    filename: Text,
    amode: c_int,
    info: raw::Info,
    fh: Output<raw::File>,
) -> Result {
    let comm = comm::find(comm)?;
    let arguments = || Ok((fh.required("fh")?, path(filename)?, hints(info)?));
    let communicator = comm.communicator();
    let (out, path, hints) = arguments()
        .inspect_err(|failure: &Failure| File::refuse_open(communicator, error_of(failure)))?;
    let mode = Mode::from_bits(amode as u32);
    let file = File::open_with(communicator, path, mode, &hints)?;
    let object = FileObject {
        handler: Arc::new(HandlerCell::new(DEFAULT.get())),
        file: Mutex::new(Some(Arc::new(file))),
        types: Mutex::new(ViewTypes::bytes()),
    };
    out.set(raw::File(FILES.insert(Arc::new(object))?));
    Ok(())
}

/// `MPI_File_close`. If an access is under way on any rank, the call fails on all ranks and the file stays
/// open.
pub fn close(fh: InOut<raw::File>) -> Result {
    let (file, out) = fh.read("fh")?;
    let (on, handle) = handler(file);
    let raise = |mut failure: Failure| {
        failure.on = Some((handle, on.clone()));
        failure
    };
    let object = FILES.find(file.0).map_err(raise)?;
    let found = object.file().map_err(raise)?;
    found.check_close().map_err(|error| raise(error.into()))?;
    drop(found);
    FILES.remove(file.0);
    out.set(raw::File::NULL);
    let file = object.file.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut file) = file else {
        let detail = "another thread closes the file at the same time";
        return Err(raise(Failure::new(abi::ERR_FILE, "fh", detail)));
    };
    // The other ranks wait in `File::close` for this rank, so this thread must call `File::close`, which needs the
    // only reference to the file. No other thread can get a new reference any more. The loop waits until the other
    // threads that use the file have dropped their references.
    let closed = loop {
        match Arc::try_unwrap(file) {
            Ok(file) => break file.close(),
            Err(used) => file = used,
        }
        std::thread::sleep(Duration::from_micros(50));
    };
    closed.map_err(|error| raise(error.into()))
}

/// `MPI_File_delete`.
pub fn delete(filename: Text, info: raw::Info) -> Result {
    let path = path(filename)?;
    hints(info)?;
    Ok(File::delete(path)?)
}

/// `MPI_File_set_size`.
pub fn set_size(fh: raw::File, size: Offset) -> Result {
    Ok(find(fh)?.set_size(size)?)
}

/// `MPI_File_preallocate`.
pub fn preallocate(fh: raw::File, size: Offset) -> Result {
    Ok(find(fh)?.preallocate(size)?)
}

/// `MPI_File_get_size`.
pub fn get_size(fh: raw::File, size: Output<Offset>) -> Result {
    let file = find(fh)?;
    let out = size.required("size")?;
    out.set(file.size()? as Offset);
    Ok(())
}

/// `MPI_File_get_group`.
pub fn get_group(fh: raw::File, group: Output<raw::Group>) -> Result {
    let file = find(fh)?;
    let out = group.required("group")?;
    out.set(group::insert(file.communicator().group().clone(), 0)?);
    Ok(())
}

/// `MPI_File_get_amode`.
pub fn get_amode(fh: raw::File, amode: Output<c_int>) -> Result {
    let file = find(fh)?;
    amode.required("amode")?.set(file.mode().bits() as c_int);
    Ok(())
}

/// `MPI_File_set_info`.
pub fn set_info(fh: raw::File, info: raw::Info) -> Result {
    let file = find(fh)?;
    // A null handle is an error wherever the standard does not allow it (MPI-5.0 section 2.5.1). It allows
    // `MPI_INFO_NULL` in `MPI_File_open` and `MPI_File_set_view`, and says nothing of it for this call.
    let entries = info::find(info).and_then(|_| hints(info));
    let entries =
        entries.inspect_err(|failure| file.refuse_call(Refused::SetHints, error_of(failure)))?;
    Ok(file.set_hints(&entries)?)
}

/// `MPI_File_get_info`.
pub fn get_info(fh: raw::File, info_used: Output<raw::Info>) -> Result {
    let file = find(fh)?;
    let out = info_used.required("info_used")?;
    let entries = file.hints().into_iter().map(|(key, value)| (key.into(), value.into()));
    out.set(info::make(entries.collect())?);
    Ok(())
}

/// Converts the argument `whence`, which says from where an offset counts.
fn whence(whence: c_int) -> Result<Whence> {
    match whence {
        abi::SEEK_SET => Ok(Whence::Set),
        abi::SEEK_CUR => Ok(Whence::Current),
        abi::SEEK_END => Ok(Whence::End),
        other => {
            let detail = format!("{other} is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
            Err(Failure::new(abi::ERR_ARG, "whence", detail))
        }
    }
}

/// `MPI_File_seek`.
pub fn seek(fh: raw::File, offset: Offset, from: c_int) -> Result {
    Ok(find(fh)?.seek(offset, whence(from)?)?)
}

/// `MPI_File_seek_shared`.
pub fn seek_shared(fh: raw::File, offset: Offset, from: c_int) -> Result {
    let file = find(fh)?;
    let from = whence(from)
        .inspect_err(|failure| file.refuse_call(Refused::SeekShared, error_of(failure)))?;
    Ok(file.seek_shared(offset, from)?)
}

/// `MPI_File_get_position`.
pub fn get_position(fh: raw::File, offset: Output<Offset>) -> Result {
    let file = find(fh)?;
    let out = offset.required("offset")?;
    out.set(file.position()? as Offset);
    Ok(())
}

/// `MPI_File_get_position_shared`.
pub fn get_position_shared(fh: raw::File, offset: Output<Offset>) -> Result {
    let file = find(fh)?;
    let out = offset.required("offset")?;
    out.set(file.position_shared()? as Offset);
    Ok(())
}

/// `MPI_File_get_byte_offset`.
pub fn get_byte_offset(fh: raw::File, offset: Offset, disp: Output<Offset>) -> Result {
    let file = find(fh)?;
    let out = disp.required("disp")?;
    out.set(file.byte_offset(offset)? as Offset);
    Ok(())
}

/// `MPI_File_get_type_extent`.
pub fn get_type_extent<W: CountWidth>(
    fh: raw::File,
    datatype: raw::Datatype,
    extent: Output<W::Address>,
) -> Result {
    let file = find(fh)?;
    let out = extent.required("extent")?;
    let extent = file.type_extent(datatype::find(datatype)?.tree())?;
    let value = W::Address::exactly(extent).ok_or_else(|| {
        let detail =
            format!("the extent of {extent} bytes does not fit in the type of the argument");
        Failure::new(abi::ERR_VALUE_TOO_LARGE, "extent", detail)
    })?;
    out.set(value);
    Ok(())
}

/// `MPI_File_set_atomicity`.
pub fn set_atomicity(fh: raw::File, flag: c_int) -> Result {
    Ok(find(fh)?.set_atomic(flag != 0)?)
}

/// `MPI_File_get_atomicity`.
pub fn get_atomicity(fh: raw::File, flag: Output<c_int>) -> Result {
    let file = find(fh)?;
    flag.required("flag")?.set(file.is_atomic().into());
    Ok(())
}

/// `MPI_File_sync`.
pub fn sync(fh: raw::File) -> Result {
    Ok(find(fh)?.sync()?)
}
