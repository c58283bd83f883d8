//! Attributes: values that users attach to communicators, datatypes and windows (MPI-5.0 section 7.7).
//!
//! A key belongs to one kind of object, and has a function that copies values of the key and a function that
//! deletes them. Each object keeps a list of attributes, which are pairs of a key and a value. A freed key
//! stays alive as long as an object has a value of that key. The library holds no lock while it calls a
//! user's function, because that function may call the library.

use crate::abi;
use crate::argument::{InOut, Output};
use crate::callback::{CopyFunction, DeleteFunction};
use crate::error::{Failure, Result};
use crate::ordered::Ordered;
use crate::raw;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use typepack::engine::reserve::Grow;

/// The kind of object to which the attributes of a key can be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

/// An attribute key, with the functions that copy and delete its values.
#[derive(Debug)]
pub struct Key {
    of: Of,
    copy: CopyFunction,
    delete: DeleteFunction,
    extra: Pointer,
}

/// A pointer from the user. The library stores and returns the pointer, and never dereferences it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(pub *mut c_void);

// SAFETY: the library never dereferences the address, so any thread may own the `Pointer`.
unsafe impl Send for Pointer {}
// SAFETY: a shared reference to a `Pointer` gives no access to the memory behind the address.
unsafe impl Sync for Pointer {}

#[derive(Debug)]
struct Keys {
    live: BTreeMap<c_int, Arc<Key>>,
    /// Freed keys. A freed key lives as long as an object has a value of the key. The program can still
    /// read and delete such a value by the number of the key, so this map still finds the key by its
    /// number.
    freed: BTreeMap<c_int, Weak<Key>>,
    /// When `freed` has this number of keys, `free` removes those that no object uses any more.
    sweep_at: usize,
    last: c_int,
}

/// While fewer freed keys than this number are in use, `freed` has at most this number of keys.
const SWEEP_MIN: usize = 64;

/// All keys that users have made. Their numbers begin above those of the predefined keys.
static KEYS: Mutex<Keys> = Mutex::new(Keys {
    live: BTreeMap::new(),
    freed: BTreeMap::new(),
    sweep_at: SWEEP_MIN,
    last: 0x2000,
});

fn keys() -> MutexGuard<'static, Keys> {
    // The keys may be used after a panic poisoned the lock. No call under the lock can panic between two
    // changes that belong together, so the keys are consistent.
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(of: Of, number: c_int) -> Result<Arc<Key>> {
    let key = keys().live.get(&number).filter(|key| key.of == of).cloned();
    key.ok_or_else(|| unknown(number))
}

/// Returns the key with the number `number`. A freed key is also found, as long as an object has a value of
/// the key.
fn find_used(of: Of, number: c_int) -> Result<Arc<Key>> {
    let keys = keys();
    let key = match keys.live.get(&number) {
        Some(key) => Some(key.clone()),
        None => keys.freed.get(&number).and_then(Weak::upgrade),
    };
    key.filter(|key| key.of == of).ok_or_else(|| unknown(number))
}

#[cold]
fn unknown(number: c_int) -> Failure {
    let detail = match number {
        abi::KEYVAL_INVALID => "MPI_KEYVAL_INVALID is not a key".to_owned(),
        number => format!("{number} is not a key for this kind of object"),
    };
    Failure::new(abi::ERR_KEYVAL, "keyval", detail)
}

/// Makes a key and writes its number.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if `keyval` is null, and `MPI_ERR_OTHER` if all numbers have been used.
pub fn create(
    of: Of,
    copy: raw::Callback,
    delete: raw::Callback,
    keyval: Output<c_int>,
    extra: *mut c_void,
) -> Result {
    let out = keyval.required("keyval")?;
    let mut keys = keys();
    let number = keys.last.checked_add(1).ok_or_else(|| {
        Failure::new(abi::ERR_OTHER, "keyval", "all numbers of attribute keys have been used")
    })?;
    keys.last = number;
    let (copy, delete) = (CopyFunction::new(copy), DeleteFunction::new(delete));
    keys.live.insert(number, Arc::new(Key { of, copy, delete, extra: Pointer(extra) }));
    out.set(number);
    Ok(())
}

/// Calls `value`, which looks an attribute up. Writes to `flag` whether the attribute is set and, if it is,
/// its value to `target`.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if a pointer is null, and the errors of `value`. Nothing is written if there is an
/// error.
pub fn answer(
    value: impl FnOnce() -> Result<Option<*mut c_void>>,
    target: Output<*mut c_void>,
    flag: Output<c_int>,
) -> Result {
    let (out, flag) = (target.required("attribute_val")?, flag.required("flag")?);
    let value = value()?;
    if let Some(value) = value {
        out.set(value);
    }
    flag.set(value.is_some().into());
    Ok(())
}

/// Frees a key. Objects keep their values of the key, and the program can still read and delete these values
/// by the number of the key.
///
/// # Errors
/// Returns `MPI_ERR_KEYVAL` if this kind of object has no such key or the key has been freed, and
/// `MPI_ERR_ARG` if the pointer is null.
pub fn free(of: Of, keyval: InOut<c_int>) -> Result {
    let (number, out) = keyval.read("keyval")?;
    let key = find(of, number)?;
    let mut keys = keys();
    keys.live.remove(&number);
    if keys.freed.len() >= keys.sweep_at {
        keys.freed.retain(|_, key| key.strong_count() > 0);
        // The next sweep comes when the number has doubled, so sweeps take constant time per freed key.
        keys.sweep_at = SWEEP_MIN.max(2 * keys.freed.len());
    }
    keys.freed.insert(number, Arc::downgrade(&key));
    out.set(abi::KEYVAL_INVALID);
    Ok(())
}

#[cold]
fn no_room() -> Failure {
    Failure::new(abi::ERR_NO_MEM, "keyval", "there is no memory for another attribute")
}

/// A value, and its key.
#[derive(Clone, Debug)]
struct Value {
    key: Arc<Key>,
    value: Pointer,
}

/// The attributes of one object by the numbers of their keys, in the order in which they were last set. They are
/// deleted in the reverse
/// order, as the standard requires for the attributes of `MPI_COMM_SELF` in `MPI_Finalize` (MPI-5.0 section
/// 11.2.4).
#[derive(Debug, Default)]
pub struct Attributes(Mutex<Ordered<c_int, Value>>);

impl Attributes {
    /// Makes an empty list of attributes.
    pub const fn new() -> Self {
        Self(Mutex::new(Ordered::new()))
    }

    fn values(&self) -> MutexGuard<'_, Ordered<c_int, Value>> {
        // The list may be used after a panic poisoned the lock. No call under the lock can panic between
        // two changes of the list that belong together, so the list is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn value(&self, number: c_int) -> Option<Value> {
        self.values().get(&number).cloned()
    }

    /// Returns the value of a key; `None` if the object has no value of this key.
    ///
    /// # Errors
    /// Returns `MPI_ERR_KEYVAL` if this kind of object has no such key.
    pub fn get(&self, of: Of, number: c_int) -> Result<Option<*mut c_void>> {
        find_used(of, number)?;
        Ok(self.value(number).map(|value| value.value.0))
    }

    /// Sets the value of a key. If the object already has a value of the key, the old value is deleted first.
    ///
    /// # Errors
    /// Returns `MPI_ERR_KEYVAL` if this kind of object has no such key or the key has been freed. If the
    /// delete function fails, returns the code of that function, and the old value stays.
    pub fn set(&self, of: Of, handle: usize, number: c_int, value: *mut c_void) -> Result {
        let key = find(of, number)?;
        self.values().grow(1).map_err(|_| no_room())?;
        if let Some(old) = self.value(number) {
            old.delete(handle, number)?;
        }
        let mut values = self.values();
        values.remove(&number);
        values.set(number, Value { key, value: Pointer(value) }).map_err(|_| no_room())
    }

    /// Deletes the value of a key.
    ///
    /// # Errors
    /// Returns `MPI_ERR_KEYVAL` if this kind of object has no such key or this object has no value of the
    /// key. If the delete function fails, returns the code of that function, and the value stays.
    pub fn delete(&self, of: Of, handle: usize, number: c_int) -> Result {
        find_used(of, number)?;
        // The standard does not ask for an attribute. Without one, there is nothing to delete.
        let Some(old) = self.value(number) else { return Ok(()) };
        old.delete(handle, number)?;
        self.values().remove(&number);
        Ok(())
    }

    /// Deletes all values, the most recently set value first. The caller frees the object afterwards.
    ///
    /// # Errors
    /// Returns the code of the first delete function that fails. The value that it should have deleted, and
    /// the values that were set before that value, stay.
    pub fn clear(&self, handle: usize) -> Result {
        loop {
            let Some((number, last)) = self.values().last().cloned() else { return Ok(()) };
            last.delete(handle, number)?;
            self.values().remove(&number);
        }
    }

    /// Copies the attributes to `duplicate`, a duplicate of the object. The copy function of each key decides
    /// whether and how a value is copied. The copy functions get `original`, the handle of the original
    /// object.
    ///
    /// # Errors
    /// Returns the code of the first copy function that fails. The values that have already been copied are
    /// deleted from the duplicate again. Their delete functions get `handle`, the handle of the duplicate.
    pub fn copy(&self, original: usize, duplicate: &Self, handle: usize) -> Result {
        let mut values: Vec<(c_int, Value)> = Vec::new();
        let old = self.values();
        values
            .grow(old.len())
            .and_then(|()| duplicate.values().grow(old.len()))
            .map_err(|_| no_room())?;
        values.extend(old.iter().cloned());
        drop(old);
        for (number, Value { key, value }) in values {
            let copied = match key.copy {
                CopyFunction::Nothing => None,
                CopyFunction::Same => Some(value.0),
                CopyFunction::User(function) => {
                    match function.call(original, number, key.extra.0, value.0) {
                        Ok(copied) => copied,
                        Err(code) => {
                            // The caller gets the error of the copy function, so an error of a delete
                            // function is ignored here.
                            let _ = duplicate.clear(handle);
                            return Err(Failure::of_callback(
                                code,
                                &format!("copy function of the attribute with key {number}"),
                            ));
                        }
                    }
                }
            };
            if let Some(copied) = copied {
                let copy = Value { key, value: Pointer(copied) };
                duplicate.values().set(number, copy).map_err(|_| no_room())?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn delete(&self, handle: usize, number: c_int) -> Result {
        self.key.delete.call(handle, number, self.value.0, self.key.extra.0).map_err(|code| {
            let callback = format!("delete function of the attribute with key {number}");
            Failure::of_callback(code, &callback)
        })
    }
}
