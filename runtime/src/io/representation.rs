//! Representations of data in files (MPI-5.0 section 14.5): native, internal, external32, and those of the user.
//!
//! A representation of the user has conversion functions and a function that gives the sizes of basic types in the
//! file. The conversion functions run only in threads that call this library: `access.rs` moves the data of such an
//! access in the calling thread, also if the access is nonblocking. The calling thread of a nonblocking collective
//! write only converts the data, because the write must not begin before the ranks have agreed.

use crate::{Datatype, Error, ErrorKind, FileErrorKind, Named, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typepack_engine::external32;
use typepack_engine::view::in_file;

/// Data to convert: elements in memory, and their form in the file.
#[derive(Debug)]
pub struct Conversion<'a> {
    /// The address of the buffer of the access.
    pub memory: *mut u8,
    /// The datatype of the elements.
    pub datatype: &'a Datatype,
    /// The number of elements to convert.
    pub count: u64,
    /// The address of the data in the form of the file, one element directly after another.
    pub file: *mut u8,
    /// The number of elements of the buffer that come before those to convert.
    pub position: u64,
}

/// A function that converts data in one direction.
pub type Converter = dyn Fn(&Conversion<'_>) -> Result<()> + Send + Sync;

/// A function that returns how many bytes an element of a basic type takes in the file.
pub type Width = dyn Fn(Named) -> Result<u64> + Send + Sync;

/// A data representation that the program has registered (`MPI_Register_datarep`).
pub struct UserRepresentation {
    name: String,
    read: Option<Box<Converter>>,
    write: Option<Box<Converter>>,
    width: Box<Width>,
}

impl UserRepresentation {
    /// Makes a representation. `read` converts from the form of the file, `write` to it; `None` means that data in
    /// the file is as in memory. `width` returns the sizes of basic types in the file; it is used only if there is a
    /// conversion function.
    ///
    /// # Safety
    ///
    /// - The functions touch only the memory that the standard allows them: `read` reads the given number of elements
    ///   at `file` and writes the elements of the buffer, `write` the other way round.
    pub unsafe fn new(
        name: &str,
        read: Option<Box<Converter>>,
        write: Option<Box<Converter>>,
        width: Box<Width>,
    ) -> Self {
        Self { name: name.to_owned(), read, write, width }
    }

    /// Returns the conversion function for one direction.
    pub(super) fn converter(&self, write: bool) -> Option<&Converter> {
        let function = if write { &self.write } else { &self.read };
        function.as_deref()
    }

    fn converts(&self) -> bool {
        self.read.is_some() || self.write.is_some()
    }
}

impl fmt::Debug for UserRepresentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserRepresentation").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How data is represented in a file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Representation {
    /// As in memory.
    #[default]
    Native,
    /// As in memory: all machines of a job are the same machine.
    Internal,
    /// The portable representation of the standard: big-endian, with sizes of its own.
    External32,
    /// A representation of the user.
    User(&'static UserRepresentation),
}

/// The representations of the user by their names. They live as long as the process.
static USER: Mutex<BTreeMap<&str, &UserRepresentation>> = Mutex::new(BTreeMap::new());

fn user() -> MutexGuard<'static, BTreeMap<&'static str, &'static UserRepresentation>> {
    // Nothing under this lock can panic between two changes that belong together.
    USER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a representation of the user. It exists until the process ends.
///
/// # Errors
/// Returns [`FileErrorKind::DuplicateRepresentation`] if a representation with this name exists, and
/// [`ErrorKind::Argument`] if the name is empty.
#[doc(alias = "MPI_Register_datarep")]
pub fn register_representation(representation: UserRepresentation) -> Result<()> {
    let name = &representation.name;
    if name.is_empty() {
        return Err(Error::new(ErrorKind::Argument, "datarep", "the name is empty"));
    }
    if Representation::named(name).is_ok() {
        let kind = ErrorKind::File(FileErrorKind::DuplicateRepresentation);
        let detail = format!("a representation with the name \"{name}\" exists already");
        return Err(Error::new(kind, "datarep", detail));
    }
    let representation: &'static UserRepresentation = Box::leak(Box::new(representation));
    user().insert(&representation.name, representation);
    Ok(())
}

impl Representation {
    /// Returns the representation with this name.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::Representation`] if there is none.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "native" => Ok(Self::Native),
            "internal" => Ok(Self::Internal),
            "external32" => Ok(Self::External32),
            _ => {
                if let Some(known) = user().get(name) {
                    return Ok(Self::User(known));
                }
                let detail = format!(
                    "\"{name}\" names no data representation; the names are native, internal, external32, and \
                     those that MPI_Register_datarep has registered"
                );
                Err(Error::new(ErrorKind::File(FileErrorKind::Representation), "datarep", detail))
            }
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
            Self::External32 => "external32",
            Self::User(user) => &user.name,
        }
    }

    /// Returns whether the sizes of data in the file may differ from those in memory.
    pub(super) fn converts(self) -> bool {
        match self {
            Self::Native | Self::Internal => false,
            Self::External32 => true,
            Self::User(user) => user.converts(),
        }
    }

    /// Returns the user's function that an access must call.
    pub(super) fn converter(self, write: bool) -> Option<&'static Converter> {
        match self {
            Self::User(user) => user.converter(write),
            _ => None,
        }
    }

    /// Returns a type as it is in the file.
    pub(super) fn in_file(self, ty: &Datatype) -> Result<Datatype> {
        if !self.converts() {
            return Ok(ty.clone());
        }
        let mut failure = None;
        let in_file = in_file(ty, |named| match self {
            Self::User(user) => (user.width)(named).map_err(|error| {
                let text = error.to_string();
                failure = Some(error);
                // The engine passes this error on. It only ends the work: the code below returns `failure`, the error
                // of the user's function.
                typepack_engine::Error::new(typepack_engine::ErrorKind::Argument, "datarep", text)
            }),
            _ => Ok(external32::size_of(named)),
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(in_file?),
        }
    }
}
