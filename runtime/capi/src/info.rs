//! Info objects: ordered lists of keys and values (MPI-5.0 chapter 10).
//!
//! The keys of an info object are in the order in which they were first set. Keys are case sensitive.
//! `MPI_INFO_ENV` says how the process was started, and cannot be changed.

use crate::abi;
use crate::argument::{InOut, Output, Text, TextBuffer, TextOutput};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::ordered::Ordered;
use crate::raw;
use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use typepack::engine::reserve::Grow;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// An info object.
#[derive(Debug)]
pub struct Info {
    entries: Mutex<Ordered<Vec<u8>, Vec<u8>>>,
}

static INFOS: Table<Info> = Table::new(Kind::Info);

/// Returns the content of `MPI_INFO_ENV`. The first call fixes it, also a call before init: MPI-4.0 section 10 says of
/// `MPI_Info_create_env` that calls with the same arguments produce consistent objects.
fn environment() -> Arc<Info> {
    static ENVIRONMENT: OnceLock<Arc<Info>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| Arc::new(described())).clone()
}

/// Builds the content of `MPI_INFO_ENV`, which says how this process was started.
fn described() -> Info {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |key: &str, value: Vec<u8>| {
        if !value.is_empty() && value.len() < abi::MAX_INFO_VAL as usize {
            entries.push((key.into(), value));
        }
    };
    let mut arguments = std::env::args_os().map(std::os::unix::ffi::OsStringExt::into_vec);
    add("command", arguments.next().unwrap_or_default());
    add("argv", arguments.collect::<Vec<_>>().join(&b' '));
    // `maxprocs` is the number of ranks that run this program, not of all ranks of the job.
    if let Some(ranks) = typepack::program_size() {
        add("maxprocs", ranks.to_string().into());
    }
    if let Ok(directory) = std::env::current_dir() {
        let directory = directory.into_os_string();
        add("wdir", std::os::unix::ffi::OsStringExt::into_vec(directory));
    }
    // The key `thread_level` is missing. Its value would be the thread level that the user requested when
    // starting the program, but `mpiexec` has no option for that.
    Info { entries: Mutex::new(entries.into_iter().collect()) }
}

impl Info {
    fn entries(&self) -> MutexGuard<'_, Ordered<Vec<u8>, Vec<u8>>> {
        // The entries may be used after a panic poisoned the lock, because each change is one operation on
        // the map.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the alignment in bytes that the key `mpi_minimum_memory_alignment` asks for; 1 if the key is
    /// not set.
    ///
    /// # Errors
    /// Returns `MPI_ERR_INFO_VALUE` if the value is not a power of two.
    pub fn alignment(&self) -> Result<usize> {
        let Some(value) = self.value(b"mpi_minimum_memory_alignment") else { return Ok(1) };
        let text = String::from_utf8_lossy(&value);
        let number = text.trim().parse::<usize>().ok().filter(|n| n.is_power_of_two());
        number.ok_or_else(|| {
            let detail =
                format!("mpi_minimum_memory_alignment is \"{text}\"; it must be a power of two");
            Failure::new(abi::ERR_INFO_VALUE, "info", detail)
        })
    }

    /// Returns whether the key `typepack_populate` is true: memory takes all its pages when it is allocated.
    pub fn populate(&self) -> bool {
        self.value(b"typepack_populate").is_some_and(|value| value.trim_ascii() == b"true")
    }

    /// Returns all keys and values, in the order in which the keys were first set.
    pub fn all(&self) -> Vec<Entry> {
        self.entries().iter().cloned().collect()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// Returns `MPI_ERR_NO_MEM` if there is no memory for another key.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result {
        self.entries().set(key.into(), value.into()).map_err(|_| no_room())
    }

    /// Returns the value of a key; `None` if the key is not set.
    pub fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.entries().get(key).cloned()
    }
}

/// Makes an info object with these entries.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn make(entries: Vec<Entry>) -> Result<raw::Info> {
    insert(entries.into_iter().collect())
}

#[cold]
fn no_room() -> Failure {
    Failure::new(abi::ERR_NO_MEM, "info", "there is no memory for another key")
}

fn insert(entries: Ordered<Vec<u8>, Vec<u8>>) -> Result<raw::Info> {
    let info = Info { entries: Mutex::new(entries) };
    Ok(raw::Info(INFOS.insert(Arc::new(info))?))
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    INFOS.of_int(integer)
}

/// Returns the info object of a handle.
///
/// # Errors
/// Returns `MPI_ERR_INFO` if the handle is not valid.
pub fn find(info: raw::Info) -> Result<Arc<Info>> {
    if info.0 == abi::INFO_ENV {
        return Ok(environment());
    }
    INFOS.find(info.0).ok_or_else(|| invalid(info))
}

/// Returns the entries of an info object, in the order in which the keys were first set.
///
/// # Errors
/// Returns `MPI_ERR_INFO` if the handle is not valid.
pub fn entries_of(info: raw::Info) -> Result<Vec<Entry>> {
    Ok(find(info)?.all())
}

#[cold]
fn invalid(info: raw::Info) -> Failure {
    if info.0 == abi::INFO_ENV {
        return Failure::new(abi::ERR_INFO, "info", "MPI_INFO_ENV cannot be changed");
    }
    let null = (abi::INFO_NULL, "MPI_INFO_NULL");
    Failure::no_object(abi::ERR_INFO, ("info", "info object"), info.0, null)
}

/// Returns the info object of a handle for a call that changes the object. For `MPI_INFO_ENV`, returns
/// `MPI_ERR_INFO`.
fn find_own(info: raw::Info) -> Result<Arc<Info>> {
    INFOS.find(info.0).ok_or_else(|| invalid(info))
}

fn read_key(key: Text) -> Result<Vec<u8>> {
    let bytes = key.read(abi::MAX_INFO_KEY, "key", abi::ERR_INFO_KEY)?;
    if bytes.is_empty() {
        return Err(Failure::new(
            abi::ERR_INFO_KEY,
            "key",
            "the string is empty; a key must have at least 1 character",
        ));
    }
    Ok(bytes)
}

/// `MPI_Info_create`.
pub fn create(info: Output<raw::Info>) -> Result {
    let out = info.required("info")?;
    out.set(insert(Ordered::new())?);
    Ok(())
}

/// `MPI_Info_create_env`. The arguments of the program are read from the system, so `argc` and `argv` are not needed.
pub fn create_env(_argc: c_int, _argv: *mut *mut c_char, info: Output<raw::Info>) -> Result {
    let out = info.required("info")?;
    let entries = environment().entries().clone();
    out.set(insert(entries)?);
    Ok(())
}

/// `MPI_Info_dup`.
pub fn dup(info: raw::Info, newinfo: Output<raw::Info>) -> Result {
    let out = newinfo.required("newinfo")?;
    let old = find(info)?;
    let mut entries = Ordered::new();
    entries.grow(old.entries().len()).map_err(|_| no_room())?;
    for (key, value) in old.entries().iter() {
        entries.set(key.clone(), value.clone()).map_err(|_| no_room())?;
    }
    out.set(insert(entries)?);
    Ok(())
}

/// `MPI_Info_free`.
pub fn free(info: InOut<raw::Info>) -> Result {
    let (handle, out) = info.read("info")?;
    INFOS.remove(handle.0).ok_or_else(|| invalid(handle))?;
    out.set(raw::Info::NULL);
    Ok(())
}

/// `MPI_Info_set`.
pub fn set(info: raw::Info, key: Text, value: Text) -> Result {
    let info = find_own(info)?;
    let (key, value) =
        (read_key(key)?, value.read(abi::MAX_INFO_VAL, "value", abi::ERR_INFO_VALUE)?);
    info.put(&key, &value)
}

/// `MPI_Info_delete`.
pub fn delete(info: raw::Info, key: Text) -> Result {
    let info = find_own(info)?;
    let key = read_key(key)?;
    if info.entries().remove(&key).is_none() {
        let detail = format!("{} is not set", String::from_utf8_lossy(&key));
        return Err(Failure::new(abi::ERR_INFO_NOKEY, "key", detail));
    }
    Ok(())
}

/// `MPI_Info_get`: returns the value, truncated to `valuelen` characters.
pub fn get(
    info: raw::Info,
    key: Text,
    valuelen: c_int,
    value: TextBuffer,
    flag: Output<c_int>,
) -> Result {
    let info = find(info)?;
    let (key, flag) = (read_key(key)?, flag.required("flag")?);
    if valuelen < 0 {
        return Err(Failure::new(abi::ERR_ARG, "valuelen", format!("{valuelen} is negative")));
    }
    let found = info.value(&key);
    if let Some(found) = &found {
        // SAFETY: the caller of `MPI_Info_get` passes a buffer of `valuelen` bytes and one more byte for the
        // zero byte at the end. `valuelen` is not negative (checked above), so the sum is at least 1.
        unsafe { value.required(valuelen.saturating_add(1), "value")? }.write(found);
    }
    flag.set(found.is_some().into());
    Ok(())
}

/// `MPI_Info_get_string`: returns the value, truncated to `*buflen` bytes including the zero byte at its
/// end. Also returns in `*buflen` the number of bytes that the whole value needs, including the zero byte.
pub fn get_string(
    info: raw::Info,
    key: Text,
    buflen: InOut<c_int>,
    value: TextBuffer,
    flag: Output<c_int>,
) -> Result {
    let info = find(info)?;
    let (key, flag) = (read_key(key)?, flag.required("flag")?);
    let (room, length) = buflen.read("buflen")?;
    if room < 0 {
        return Err(Failure::new(abi::ERR_ARG, "buflen", format!("{room} is negative")));
    }
    let found = info.value(&key);
    if let Some(found) = &found {
        if room > 0 {
            // SAFETY: the caller of `MPI_Info_get_string` passes a buffer of `*buflen` bytes. `room` equals
            // `*buflen`, and is at least 1 here.
            unsafe { value.required(room, "value")? }.write(found);
        }
        length.set(found.len() as c_int + 1);
    }
    flag.set(found.is_some().into());
    Ok(())
}

/// `MPI_Info_get_valuelen`.
pub fn get_valuelen(
    info: raw::Info,
    key: Text,
    valuelen: Output<c_int>,
    flag: Output<c_int>,
) -> Result {
    let info = find(info)?;
    let (key, length, flag) =
        (read_key(key)?, valuelen.required("valuelen")?, flag.required("flag")?);
    let found = info.value(&key);
    if let Some(found) = &found {
        length.set(found.len() as c_int);
    }
    flag.set(found.is_some().into());
    Ok(())
}

/// `MPI_Info_get_nkeys`.
pub fn get_nkeys(info: raw::Info, nkeys: Output<c_int>) -> Result {
    let info = find(info)?;
    let out = nkeys.required("nkeys")?;
    out.set(info.entries().len() as c_int);
    Ok(())
}

/// `MPI_Info_get_nthkey`.
pub fn get_nthkey(info: raw::Info, n: c_int, key: TextOutput<{ abi::MAX_INFO_KEY }>) -> Result {
    let info = find(info)?;
    let key = key.required("key")?;
    let mut entries = info.entries();
    let number = entries.len();
    let found = usize::try_from(n).ok().and_then(|n| entries.nth(n));
    let Some((name, _)) = found else {
        let detail = format!(
            "{n} is out of range; it must be at least 0 and less than {number}, the number of keys"
        );
        return Err(Failure::new(abi::ERR_ARG, "n", detail));
    };
    key.write(name);
    Ok(())
}
