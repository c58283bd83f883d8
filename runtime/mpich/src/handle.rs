//! Handles. MPICH's are integers of 32 bits, and only those of files are as wide as an address.
//!
//! A predefined handle has its number in each ABI (`values.rs`). The C library makes the handles of a user's objects so
//! small that they fit (`make_narrow` in `typepack-capi-datatype`). They differ from the predefined handles of both ABIs:
//! those of one kind begin with the number of the kind, which no predefined handle of that kind in MPICH begins with.

use crate::raw;
use crate::values;
use std::ffi::c_int;

/// The largest value of a predefined handle in the ABI, with those of `mpi.h`'s compatibility block.
const LAST_PREDEFINED: u32 = 0x1fff;
/// Predefined handles in the ABI, without those of the compatibility block, are below this.
const PLACES: usize = 0x300;

/// MPICH's values of all predefined handles.
static THEIRS: [u32; PLACES] = {
    let mut all = [0; PLACES];
    let kinds: [&[(usize, u32)]; 11] = [
        values::COMM,
        values::DATATYPE,
        values::ERRHANDLER,
        values::FILE,
        values::GROUP,
        values::INFO,
        values::MESSAGE,
        values::OP,
        values::REQUEST,
        values::SESSION,
        values::WIN,
    ];
    let mut kind = 0;
    while kind < kinds.len() {
        let mut at = 0;
        while at < kinds[kind].len() {
            let (ours, theirs) = kinds[kind][at];
            if ours < PLACES {
                all[ours] = theirs;
            }
            at += 1;
        }
        kind += 1;
    }
    all
};

/// Returns the place of a predefined datatype in [`DATATYPES`].
const fn place(theirs: u32) -> usize {
    ((theirs & 0x7f) | (theirs >> 24 & 0x80)) as usize
}

/// The predefined datatypes of MPICH and their values in the ABI, by their places.
static DATATYPES: [(u32, u32); 256] = {
    let mut all = [(0, 0); 256];
    let mut at = 0;
    while at < values::DATATYPE.len() {
        let (ours, theirs) = values::DATATYPE[at];
        let place = place(theirs);
        assert!(all[place].0 == 0 || all[place].1 == ours as u32, "two datatypes at one place");
        all[place] = (theirs, ours as u32);
        at += 1;
    }
    all
};

/// Returns the handle of a user's object, or 0, which is no handle.
#[inline(always)]
fn user(theirs: u32) -> usize {
    if theirs > LAST_PREDEFINED { theirs as usize } else { 0 }
}

fn find(pairs: &[(usize, u32)], theirs: u32) -> usize {
    match pairs.iter().find(|(_, value)| *value == theirs) {
        Some((ours, _)) => *ours,
        None => user(theirs),
    }
}

/// Returns MPICH's value of a handle of any kind but a file.
#[inline(always)]
pub fn to_theirs(handle: usize) -> c_int {
    match THEIRS.get(handle) {
        Some(theirs) => *theirs as c_int,
        None => large_to_theirs(handle),
    }
}

#[inline]
fn large_to_theirs(handle: usize) -> c_int {
    if handle as u32 > LAST_PREDEFINED {
        return handle as u32 as c_int;
    }
    // A marker of MPI-1.
    let found = values::DATATYPE.iter().find(|(ours, _)| *ours == handle);
    found.map_or(0, |(_, theirs)| *theirs as c_int)
}

/// Returns the handle that a function of the program gets.
pub extern "C" fn shown(handle: usize) -> usize {
    /// The kind of files in a user's handle.
    const FILE: usize = 10;
    match handle {
        _ if handle > LAST_PREDEFINED as usize && handle as u32 as usize >> 28 == FILE => handle,
        _ => to_theirs(handle) as u32 as usize,
    }
}

/// A kind of handles.
pub trait Handle: Copy + PartialEq {
    /// MPICH's type.
    type Theirs: Copy;
    /// What is no handle in the ABI.
    const NOTHING: Self;
    /// Returns the ABI's handle.
    fn to_ours(theirs: Self::Theirs) -> Self;
    /// Returns MPICH's handle.
    fn to_theirs(self) -> Self::Theirs;
}

macro_rules! integers {
    ($($name:ident $find:expr;)*) => {
        $(
            impl Handle for raw::$name {
                type Theirs = c_int;
                const NOTHING: Self = Self(0);
                #[inline(always)]
                fn to_ours(theirs: c_int) -> Self {
                    let find: fn(u32) -> usize = $find;
                    Self(find(theirs as u32))
                }
                #[inline(always)]
                fn to_theirs(self) -> c_int {
                    to_theirs(self.0)
                }
            }
        )*
    };
}

integers! {
    Comm |theirs| find(values::COMM, theirs);
    Datatype |theirs| {
        let (value, ours) = DATATYPES[place(theirs)];
        if value == theirs && ours != 0 { ours as usize } else { user(theirs) }
    };
    Errhandler |theirs| find(values::ERRHANDLER, theirs);
    Group |theirs| find(values::GROUP, theirs);
    Info |theirs| find(values::INFO, theirs);
    Message |theirs| find(values::MESSAGE, theirs);
    Op |theirs| match theirs {
        0x5800_0001..=0x5800_000e => {
            const OPS: [usize; 16] = {
                let mut all = [0; 16];
                let mut at = 0;
                while at < values::OP.len() {
                    let (ours, theirs) = values::OP[at];
                    if theirs >> 24 == 0x58 {
                        all[theirs as usize & 15] = ours;
                    }
                    at += 1;
                }
                all
            };
            OPS[theirs as usize & 15]
        }
        _ => find(values::OP, theirs),
    };
    Request |theirs| find(values::REQUEST, theirs);
    Session |theirs| find(values::SESSION, theirs);
    Win |theirs| find(values::WIN, theirs);
}

impl Handle for raw::File {
    type Theirs = raw::File;
    const NOTHING: Self = Self(0);
    #[inline(always)]
    fn to_ours(theirs: raw::File) -> Self {
        match theirs.0 {
            0 => Self(values::FILE[0].0),
            wide if wide as u32 > LAST_PREDEFINED => theirs,
            _ => Self(0),
        }
    }
    #[inline(always)]
    fn to_theirs(self) -> raw::File {
        if self.0 == values::FILE[0].0 { Self(0) } else { self }
    }
}

/// A handle behind a pointer.
#[derive(Debug)]
pub struct At<H: Handle> {
    to: *mut H::Theirs,
    old: H,
    new: H,
}

impl<H: Handle> At<H> {
    /// Returns a place for a handle that the call writes.
    #[inline(always)]
    pub fn new(to: *mut H::Theirs) -> Self {
        Self { to, old: H::NOTHING, new: H::NOTHING }
    }

    /// Returns a place with the handle at `to`.
    ///
    /// # Safety
    ///
    /// - `to` is null, or the address of a handle.
    #[inline(always)]
    pub unsafe fn of(to: *mut H::Theirs) -> Self {
        let old = match to.is_null() {
            true => H::NOTHING,
            // SAFETY: the address is that of a handle (`# Safety`), because it is not null.
            false => H::to_ours(unsafe { to.read_unaligned() }),
        };
        Self { to, old, new: old }
    }

    /// Returns the address for the call; null if the program passes null.
    #[inline(always)]
    pub fn place(&mut self) -> *mut H {
        if self.to.is_null() { std::ptr::null_mut() } else { &raw mut self.new }
    }

    /// Gives the program the handle, if the call has written one.
    ///
    /// # Safety
    ///
    /// - The program's address is null or writable.
    #[inline(always)]
    pub unsafe fn store(&self) {
        if self.new != self.old {
            // SAFETY: the call has written a handle, so the address is not null; it is writable (`# Safety`).
            unsafe { self.to.write_unaligned(self.new.to_theirs()) };
        }
    }
}
