//! Files: opening and closing, sizes, views, file pointers, modes and hints. `access.rs` reads and writes.
//!
//! Every collective call checks its arguments, and then agrees with the other ranks (`agree.rs`) before it
//! changes anything. So a wrong argument on one rank is an error on all ranks.

use super::access::Position;
use super::agree::{Shared, agree, agree_same, system, system_named, text_words, told};
use super::background::Channel;
use super::choosers::{Choosers, FORM};
use super::hints::Hints;
use super::mode::Mode;
use super::open::{Opened, open_one};
use super::place::{Place, agree_place};
use super::representation::Representation;
use super::transfer::{Target, Windows};
use super::view::View;
use crate::comm::{Communicator, Operation};
use crate::endpoint::progress::Endpoint;
use crate::error::check_memory;
use crate::settings::Settings;
use crate::sys::files::{self, Facts, FileKind, SizeSignal};
use crate::sys::named::Entry;
use crate::{Datatype, Error, ErrorKind, FileErrorKind, Result};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file that the ranks of a communicator have opened together.
///
/// Every rank sees the file through a view: at first all bytes, one after another. Each rank has a file
/// pointer of its own, and all ranks together have a shared one. Positions and pointers are counted in
/// etypes of the view.
///
/// Calls that end in `_all` are made by all ranks together. [`scope`](File::scope) starts accesses in the
/// background.
///
/// ```
/// use typepack::io::{File, Mode};
/// let universe = typepack::init()?;
/// let world = universe.world();
/// let path = std::env::temp_dir().join(format!("typepack-doc-{}", std::process::id()));
/// let file = File::open(&world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)?;
/// let mine = [world.rank() as u8; 4];
/// file.write_at_all(4 * world.rank() as u64, &mine)?;
/// file.sync()?;
/// let mut back = [9_u8; 6];
/// assert_eq!(file.read_at_all(0, &mut back)?, (4 * world.size()).min(6));
/// assert_eq!(back[..4], [0; 4]);
/// file.close()?;
/// # Ok::<(), typepack::Error>(())
/// ```
#[doc(alias = "MPI_File")]
#[derive(Debug)]
pub struct File {
    pub(super) inner: Arc<Inner>,
}

/// From where an offset counts (`seek`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// From the beginning of the view.
    #[doc(alias = "MPI_SEEK_SET")]
    Set,
    /// From the current position.
    #[doc(alias = "MPI_SEEK_CUR")]
    Current,
    /// From the end of the file.
    #[doc(alias = "MPI_SEEK_END")]
    End,
}

/// A collective call that a rank refuses because of its own arguments ([`File::refuse_call`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// [`File::set_view`].
    SetView,
    /// [`File::seek_shared`].
    SeekShared,
    /// [`File::set_hints`].
    SetHints,
}

/// What the handle of a file and its accesses in the background share.
#[derive(Debug)]
pub(super) struct Inner {
    pub comm: Communicator,
    pub target: Target,
    pub windows: Windows,
    /// Where the file is, if this rank removes it on close.
    entry: Option<Entry>,
    identity: (u64, u64),
    pub mode: Mode,
    pub words: Shared,
    state: Mutex<State>,
    /// The accesses in the background to a stream: those that read and those that write.
    pub channels: [Arc<Channel>; 2],
    /// True if this rank has written since the last sync.
    pub written: AtomicBool,
    /// Number of accesses that have been started and not completed by the program.
    pub outstanding: Arc<AtomicUsize>,
}

/// What calls change.
#[derive(Debug)]
pub(super) struct State {
    pub view: Arc<View>,
    /// The individual file pointer, in etypes.
    pub position: u64,
    pub atomic: bool,
    hints: Hints,
    pub split: Option<Split>,
}

/// A split collective access that has begun and not ended.
#[derive(Debug)]
pub(super) struct Split {
    pub write: bool,
    pub position: Position,
    pub address: usize,
    pub operation: Operation,
}

pub(super) fn refused(
    kind: FileErrorKind,
    argument: &'static str,
    detail: impl Into<String>,
) -> Error {
    Error::new(ErrorKind::File(kind), argument, detail)
}

fn wrong(argument: &'static str, detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Argument, argument, detail)
}

impl Inner {
    pub fn state(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn endpoint(&self) -> &Arc<Endpoint> {
        self.comm.endpoint()
    }

    fn facts(&self) -> Result<Facts> {
        files::facts(&self.target.fd).map_err(|error| system("file", &error))
    }

    /// Checks that no access is under way.
    pub fn check_quiet(&self) -> Result<()> {
        let what = match (self.state().split.is_some(), self.outstanding.load(Ordering::Acquire)) {
            (true, _) => "a split collective access has begun and not ended".to_owned(),
            (false, 0) => return Ok(()),
            (false, count) => format!("{count} nonblocking accesses are not complete"),
        };
        Err(Error::new(ErrorKind::Request, "file", what))
    }

    fn check_random(&self) -> Result<()> {
        if self.mode.contains(Mode::SEQUENTIAL) {
            let detail = "the file was opened for access in sequence";
            return Err(refused(FileErrorKind::Operation, "file", detail));
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<()> {
        if self.mode.writes() {
            return Ok(());
        }
        Err(refused(FileErrorKind::ReadOnly, "file", "the file was opened for reading only"))
    }

    /// Returns the number of etypes before the end of the file.
    fn end(&self, view: &View) -> Result<u64> {
        view.etypes_below(self.facts()?.size)
    }

    fn sought(&self, offset: i64, whence: Whence, current: u64, view: &View) -> Result<u64> {
        let base = match whence {
            Whence::Set => 0,
            Whence::Current => current,
            Whence::End => self.end(view)?,
        };
        let place = i128::from(base) + i128::from(offset);
        u64::try_from(place).ok().filter(|&place| place <= i64::MAX as u64).ok_or_else(|| {
            wrong("offset", format!("{offset} leads to position {place}, which is out of range"))
        })
    }
}

impl File {
    /// Opens a file. Collective: all ranks of the communicator must name the same file and the same mode.
    ///
    /// # Errors
    /// Returns an error of the same class on all ranks: [`FileErrorKind::Mode`], `NoSuchFile`, `Exists`,
    /// `Access`, `ReadOnly` or `BadFile` as the system says, and `NotSame` if the ranks name different files
    /// or modes.
    #[doc(alias = "MPI_File_open")]
    pub fn open(comm: &Communicator, path: impl AsRef<Path>, mode: Mode) -> Result<Self> {
        Self::open_with(comm, path, mode, &[])
    }

    /// Opens a file like [`open`](Self::open), with hints: keys and values.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
    pub fn open_with(
        comm: &Communicator,
        path: impl AsRef<Path>,
        mode: Mode,
        hints: &[(String, String)],
    ) -> Result<Self> {
        comm.check_intra("comm")?;
        let checked =
            check_memory().and(mode.check()).and_then(|()| Ok((mode, Place::find(path.as_ref())?)));
        let place = agree_place(comm, checked)?;
        let mut known = Hints::default();
        known.set(comm, Ok(hints))?;
        // A rank that has too little memory for the duplicate tells the others on the old communicator.
        let comm = agree(comm, comm.dup())?;
        let shared = Shared::new(&comm)?;
        // Rank 0 makes the file. The other ranks open it afterwards, so that only one rank can meet a file
        // that exists already.
        let open = |first| open_one(comm.endpoint(), &place, mode, known.permissions, first);
        let made = agree(&comm, if comm.rank() == 0 { open(true).map(Some) } else { Ok(None) })?;
        let opened = match made {
            Some(opened) => Ok(opened),
            None => open(false),
        };
        let identity = opened.as_ref().map_or((0, 0), |opened| opened.facts.identity);
        let words = [identity.0 as i64, identity.1 as i64];
        let same = agree_same(
            &comm,
            opened.as_ref().map(|_| ()).map_err(Clone::clone),
            &words,
            "filename",
        );
        if let (Err(_), Ok(Opened { made: true, entry: Some(entry), .. })) = (&same, &opened) {
            // This rank has made a file for a call that has failed, which returns another error already.
            let _ = entry.remove(identity);
        }
        let Opened { target, facts, entry, .. } = same.and(opened)?;
        known.apply(&target);
        let position = if mode.contains(Mode::APPEND) { facts.size } else { 0 };
        let is_first = comm.rank() == 0;
        let set = if is_first { shared.set_pointer(position) } else { Ok(()) };
        // No rank uses the shared file pointer before it is set.
        let view = Arc::new(agree(&comm, set.and_then(|()| View::bytes()))?);
        let state = State { view, position, atomic: false, hints: known, split: None };
        let (written, outstanding) = (AtomicBool::new(false), Arc::default());
        let state = Mutex::new(state);
        let settings = Settings::get()?;
        let both = mode.contains(Mode::READ_WRITE);
        let choosers = settings.tune.measures(FORM.name).then(|| Choosers::of(facts.identity.0));
        let windows = Windows::new(&target, mode.reads(), both, settings.file_method, choosers);
        let channels = Default::default();
        let entry = entry.filter(|_| mode.contains(Mode::DELETE_ON_CLOSE));
        let words = shared;
        let inner = Inner {
            comm,
            target,
            windows,
            entry,
            identity,
            mode,
            words,
            state,
            channels,
            written,
            outstanding,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes part in an [`open`](Self::open) of the other ranks, with an error that this rank has found in its
    /// own arguments. So the other ranks get an error and do not wait for this one.
    pub fn refuse_open(comm: &Communicator, error: Error) {
        let _same = agree_place(comm, Err(error));
    }

    /// Takes part in a call of the other ranks, with an error that this rank has found in its own arguments.
    /// So the other ranks get an error and do not wait for this one.
    pub fn refuse_call(&self, call: Refused, error: Error) {
        let comm = &self.inner.comm;
        let _same = match call {
            Refused::SetView if self.inner.mode.contains(Mode::SEQUENTIAL) => {
                agree(comm, Err(error))
            }
            Refused::SetView => agree_same(comm, Err(error), &[0; 3], "etype and datarep"),
            Refused::SeekShared => agree_same(comm, Err(error), &[0; 2], "offset and whence"),
            Refused::SetHints => Hints::default().set(comm, Err(error)),
        };
    }

    /// Removes a file from its folder.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::NoSuchFile`] if the file does not exist, and `Access`, `ReadOnly`, `InUse`
    /// or `BadFile` as the system says.
    #[doc(alias = "MPI_File_delete")]
    pub fn delete(path: impl AsRef<Path>) -> Result<()> {
        let name = CString::new(path.as_ref().as_os_str().as_bytes());
        let name = name.map_err(|_| {
            refused(FileErrorKind::BadFile, "filename", "the name contains a zero byte")
        })?;
        files::unlink(&name).map_err(|error| system_named(&name, &error))
    }

    /// Checks that [`close`](Self::close) may be called: no access of any rank is under way. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] on all ranks if an access of a rank is under way.
    pub fn check_close(&self) -> Result<()> {
        agree(&self.inner.comm, self.inner.check_quiet())
    }

    /// Closes the file. Removes it if the mode says so; otherwise first brings all data to the storage device.
    /// Collective.
    ///
    /// The call removes the file that was opened, from the folder in which it was, also if this process has changed
    /// its directory or the folder has another name. If the name has gone from this folder, or is the name of another
    /// file now, the call removes nothing and returns [`FileErrorKind::NoSuchFile`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] on all ranks if an access of any rank is under way. Then the file is
    /// neither synchronized nor removed, and each rank closes it when its own accesses have ended. Returns the
    /// system's error if this rank or another one cannot synchronize, close or remove the file. The file is
    /// closed even then.
    #[doc(alias = "MPI_File_close")]
    pub fn close(self) -> Result<()> {
        self.check_close()?;
        let comm = self.inner.comm.clone();
        let delete = self.inner.mode.contains(Mode::DELETE_ON_CLOSE);
        let synced = if delete { Ok(()) } else { self.inner.synced() };
        // The file is still open here, so no other file has its identity.
        let removed = match &self.inner.entry {
            Some(entry) => entry
                .remove(self.inner.identity)
                .map_err(|error| system_named(entry.name(), &error)),
            None => Ok(()),
        };
        let closed = match Arc::into_inner(self.inner) {
            // A write that the kernel has accepted may still fail here.
            Some(inner) => files::close(inner.target.fd).map_err(|error| system("file", &error)),
            None => Ok(()),
        };
        let closed = agree(&comm, synced.and(closed));
        if !delete {
            return closed;
        }
        closed.and(agree(&comm, removed))
    }

    /// Returns the communicator of the file: a duplicate of the one that opened it.
    pub fn communicator(&self) -> &Communicator {
        &self.inner.comm
    }

    /// Returns the access mode.
    #[doc(alias = "MPI_File_get_amode")]
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Returns the size of the file in bytes.
    ///
    /// # Errors
    /// Returns the system's error.
    #[doc(alias = "MPI_File_get_size")]
    pub fn size(&self) -> Result<u64> {
        Ok(self.inner.facts()?.size)
    }

    /// Checks and agrees on a new size, lets rank 0 change the file, and agrees on the result.
    fn resize(&self, size: i64, change: impl FnOnce(&Target, u64) -> Result<()>) -> Result<()> {
        let inner = &self.inner;
        let checked = inner.check_writable().and_then(|()| {
            inner.check_random()?;
            inner.check_quiet()?;
            u64::try_from(size).map_err(|_| wrong("size", format!("{size} is negative")))
        });
        let bytes = agree_same(&inner.comm, checked, &[size], "size")?;
        let changed = if inner.comm.rank() == 0 {
            let _signal = SizeSignal::block();
            let changed = change(&inner.target, bytes);
            // The new size must reach the storage device with the next sync.
            inner.written.store(true, Ordering::Relaxed);
            changed
        } else {
            Ok(())
        };
        let changed = agree(&inner.comm, changed);
        inner.windows.forget();
        changed
    }

    /// Sets the size of the file in bytes. Collective.
    ///
    /// # Errors
    /// Returns an error of the same class on all ranks: [`FileErrorKind::ReadOnly`] if the file is not open
    /// for writing, `NotSame` if the ranks pass different sizes, and the system's errors.
    #[doc(alias = "MPI_File_set_size")]
    pub fn set_size(&self, size: i64) -> Result<()> {
        self.resize(size, |target, size| {
            files::truncate(&target.fd, size).map_err(|error| system("file", &error))
        })
    }

    /// Allocates space for the first `size` bytes of the file, and extends the file if it is shorter.
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`set_size`](Self::set_size).
    #[doc(alias = "MPI_File_preallocate")]
    pub fn preallocate(&self, size: i64) -> Result<()> {
        self.resize(size, |target, size| {
            if size == 0 {
                return Ok(());
            }
            let allocated = files::allocate(&target.fd, size);
            let cannot = allocated.as_ref().err().is_some_and(|error| {
                matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
            });
            let result = if cannot {
                // The file system cannot allocate in advance. The size must still be right.
                files::facts(&target.fd).and_then(|facts| {
                    if facts.size < size { files::truncate(&target.fd, size) } else { Ok(()) }
                })
            } else {
                allocated
            };
            result.map_err(|error| system("file", &error))
        })
    }

    /// Brings all data that ranks have written to the storage device, and makes it visible to all ranks.
    /// Collective.
    ///
    /// # Errors
    /// Returns an error of the same class on all ranks: [`ErrorKind::Request`] if an access is under way,
    /// and the system's error.
    #[doc(alias = "MPI_File_sync")]
    pub fn sync(&self) -> Result<()> {
        agree(&self.inner.comm, self.inner.check_quiet())?;
        agree(&self.inner.comm, self.inner.synced())
    }

    /// Sets the view: from byte `displacement` on, the data of the repeated `filetype`, in units of `etype`.
    /// All file pointers go to 0. `None` as the displacement means the current position of the shared file
    /// pointer, in a file that is used in sequence. Collective.
    ///
    /// # Errors
    /// Returns an error of the same class on all ranks: `MPI_ERR_TYPE` if the types do not fit,
    /// [`ErrorKind::Argument`] for a displacement that is negative or not allowed,
    /// [`FileErrorKind::NotSame`] if the ranks pass different representations or extents of the etype, and
    /// [`ErrorKind::Request`] if an access is under way.
    #[doc(alias = "MPI_File_set_view")]
    pub fn set_view(
        &self,
        displacement: Option<i64>,
        etype: &Datatype,
        filetype: &Datatype,
        representation: &str,
    ) -> Result<()> {
        let inner = &self.inner;
        let sequence = inner.mode.contains(Mode::SEQUENTIAL);
        let byte = inner.check_quiet().and_then(|()| match (displacement, sequence) {
            (None, true) => Ok(0),
            (None, false) => {
                let detail = "MPI_DISPLACEMENT_CURRENT is only for files that are used in sequence \
                              (MPI_MODE_SEQUENTIAL)";
                Err(wrong("disp", detail))
            }
            (Some(_), true) => {
                let detail = "a file that is used in sequence (MPI_MODE_SEQUENTIAL) needs \
                              MPI_DISPLACEMENT_CURRENT";
                Err(wrong("disp", detail))
            }
            (Some(byte), false) => {
                let negative = |_| wrong("disp", format!("the displacement {byte} is negative"));
                u64::try_from(byte).map_err(negative)
            }
        });
        let byte = match sequence {
            false => byte,
            true => {
                // A rank that has not come yet may still move the shared file pointer.
                agree(&inner.comm, byte)?;
                Ok(told(&inner.comm, || {
                    let view = inner.state().view.clone();
                    view.offset(view.start(inner.words.pointer()?)?)
                })?)
            }
        };
        let made = byte.and_then(|displacement| {
            let representation = Representation::named(representation)?;
            View::new(displacement, etype, filetype, representation, inner.mode.writes())
        });
        let words = text_words(representation.as_bytes());
        let words = [words[0], words[1], etype.extent()];
        let view = agree_same(&inner.comm, made, &words, "etype and datarep")?;
        let mut state = inner.state();
        (state.view, state.position) = (Arc::new(view), 0);
        drop(state);
        let is_first = inner.comm.rank() == 0;
        let set = if is_first { inner.words.set_pointer(0) } else { Ok(()) };
        // No rank uses the shared file pointer before it is 0.
        agree(&inner.comm, set)
    }

    /// Returns the view.
    #[doc(alias = "MPI_File_get_view")]
    pub fn view(&self) -> Arc<View> {
        self.inner.state().view.clone()
    }

    /// Returns the byte of the file at which etype `offset` of the view begins.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if the offset is negative or too large, and
    /// [`FileErrorKind::Operation`] if the file is used in sequence.
    #[doc(alias = "MPI_File_get_byte_offset")]
    pub fn byte_offset(&self, offset: i64) -> Result<u64> {
        self.inner.check_random()?;
        let at =
            u64::try_from(offset).map_err(|_| wrong("offset", format!("{offset} is negative")))?;
        let view = self.view();
        view.offset(view.start(at)?)
    }

    /// Moves this rank's file pointer.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if the new position is negative or too large, and
    /// [`FileErrorKind::Operation`] if the file is used in sequence.
    #[doc(alias = "MPI_File_seek")]
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<()> {
        self.inner.check_random()?;
        let mut state = self.inner.state();
        state.position = self.inner.sought(offset, whence, state.position, &state.view)?;
        Ok(())
    }

    /// Returns the position of this rank's file pointer, in etypes.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::Operation`] if the file is used in sequence.
    #[doc(alias = "MPI_File_get_position")]
    pub fn position(&self) -> Result<u64> {
        self.inner.check_random()?;
        Ok(self.inner.state().position)
    }

    /// Moves the shared file pointer. Collective: all ranks must pass the same arguments.
    ///
    /// # Errors
    /// Returns an error of the same class on all ranks: the errors of [`seek`](Self::seek), and
    /// [`FileErrorKind::NotSame`].
    #[doc(alias = "MPI_File_seek_shared")]
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<()> {
        let inner = &self.inner;
        let words = [offset, whence as i64];
        agree_same(&inner.comm, inner.check_random(), &words, "offset and whence")?;
        // Now no rank moves the pointer or changes the size of the file before all ranks know the result.
        told(&inner.comm, || {
            let view = inner.state().view.clone();
            let place = inner.sought(offset, whence, inner.words.pointer()?, &view)?;
            inner.words.set_pointer(place)?;
            Ok(place)
        })?;
        Ok(())
    }

    /// Returns the position of the shared file pointer, in etypes.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::Operation`] if the file is used in sequence.
    #[doc(alias = "MPI_File_get_position_shared")]
    pub fn position_shared(&self) -> Result<u64> {
        self.inner.check_random()?;
        self.inner.words.pointer()
    }

    /// Sets atomic mode: whether accesses of different ranks to the same bytes happen one after another.
    /// Ranks of other jobs are not part of this. Collective.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::NotSame`] if the ranks pass different values.
    #[doc(alias = "MPI_File_set_atomicity")]
    pub fn set_atomic(&self, atomic: bool) -> Result<()> {
        let inner = &self.inner;
        let checked = agree_same(&inner.comm, inner.check_quiet(), &[atomic.into()], "flag");
        checked?;
        inner.state().atomic = atomic;
        Ok(())
    }

    /// Returns whether atomic mode is on.
    #[doc(alias = "MPI_File_get_atomicity")]
    pub fn is_atomic(&self) -> bool {
        self.inner.state().atomic
    }

    /// Sets hints: keys and values. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died, and the error of another rank's arguments if that
    /// rank refuses the call ([`refuse_call`](Self::refuse_call)).
    #[doc(alias = "MPI_File_set_info")]
    pub fn set_hints(&self, hints: &[(String, String)]) -> Result<()> {
        let mut known = self.inner.state().hints.clone();
        known.set(&self.inner.comm, Ok(hints))?;
        known.apply(&self.inner.target);
        self.inner.state().hints = known;
        Ok(())
    }

    /// Returns the hints that are in force.
    #[doc(alias = "MPI_File_get_info")]
    pub fn hints(&self) -> Vec<(String, String)> {
        self.inner.state().hints.all()
    }

    /// Returns the extent that `datatype` has in the file.
    ///
    /// # Errors
    /// Returns an engine error if the extent does not fit in an `i64`.
    #[doc(alias = "MPI_File_get_type_extent")]
    pub fn type_extent(&self, datatype: &Datatype) -> Result<i64> {
        Ok(self.view().representation().in_file(datatype)?.extent())
    }
}

impl Inner {
    /// Agrees whether a rank has written, and if so, lets rank 0 sync for the whole machine. Returns rank
    /// 0's error on rank 0 only.
    fn synced(&self) -> Result<()> {
        self.windows.look_again();
        let mut written = [i64::from(self.written.swap(false, Ordering::Relaxed))];
        self.comm.all_reduce_in_place(&mut written, crate::coll::Op::Max)?;
        if written[0] == 0 || self.comm.rank() != 0 || self.target.kind == FileKind::Stream {
            return Ok(());
        }
        files::sync(&self.target.fd).map_err(|error| {
            // The next call must try again.
            self.written.store(true, Ordering::Relaxed);
            system("file", &error)
        })
    }
}
