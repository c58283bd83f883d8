//! The two ends of a message's data: the supply of packed bytes at the sender, and the sink for packed bytes
//! at the receiver.
//!
//! `endpoint/engine.rs` makes a supply or a sink from the arguments of a call. The protocols of `transport/` pack and
//! unpack any range of their bytes through this file. The raw executors of typepack-engine do the packing. Short
//! messages, messages in fragments, flag collectives, files and one-sided operations call the executors themselves.
//!
//! Invariant: the elements of a supply or a sink are valid until its request is complete or detached. The callers of
//! `MessageEngine::send` and `MessageEngine::receive` guarantee this. Such callers are the blocking calls, the scopes,
//! the schedules and `Messages`, which demands it of its own callers.

use super::Tag;
use super::label::Sender;
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use std::ptr::NonNull;
use typepack_engine::reserve::Grow;
use typepack_engine::{Elements, contiguous, copy_raw};

/// A receive, made from the arguments of a call: the place for the data, and the messages that the receive
/// accepts.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'a> {
    /// The place for the data.
    pub layout: Elements<&'a Plan>,
    /// Number of packed bytes that the receive takes: those of the layout's elements, or those from the byte on at which
    /// the receive begins (`MessageEngine::receive_from`).
    pub capacity: u64,
    /// The context of accepted messages.
    pub context: u64,
    /// The source of accepted messages.
    pub source: Sender,
    /// The tag of accepted messages.
    pub tag: Tag,
}

impl<'a> Posting<'a> {
    /// Describes a receive into all elements of `layout`.
    ///
    /// # Errors
    /// Returns an engine error if the number of packed bytes exceeds 2^63 - 1.
    #[inline]
    pub fn new(layout: Elements<&'a Plan>, context: u64, source: Sender, tag: Tag) -> Result<Self> {
        let capacity = layout.plan.packed_bytes(layout.count)?;
        Ok(Self { layout, capacity, context, source, tag })
    }
}

/// The address at which a program lends memory for the packed bytes of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent(NonNull<u8>);

// SAFETY: the value is only an address. The program that lent the memory guarantees that any thread may use
// the memory until the operation is complete or detached (see `SendMode::Buffered`).
unsafe impl Send for Lent {}
// SAFETY: no safe function accesses the memory at the address.
unsafe impl Sync for Lent {}

/// The mode of a send (MPI-5.0 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// The send is complete as soon as the caller may change the memory.
    Standard,
    /// The send is complete only when a receive has matched the message, even if the message is short.
    #[doc(alias = "MPI_Ssend")]
    Synchronous,
    /// Like `Standard`. The caller promises that the receive is already posted.
    #[doc(alias = "MPI_Rsend")]
    Ready,
    /// The caller may change the memory when the call returns. Data that cannot be sent at once is copied: to memory of
    /// the library, or to memory that the caller lends ([`lent`](Self::lent)).
    #[doc(alias = "MPI_Bsend")]
    Buffered(Option<Lent>),
}

impl SendMode {
    /// Returns the buffered mode in which a copy lies at `start`. Until the send is complete or detached, the caller
    /// lends memory for the packed bytes at this address. If it is null, the library allocates the memory.
    pub fn lent(start: *mut u8) -> Self {
        Self::Buffered(NonNull::new(start).map(Lent))
    }

    /// Returns whether the send uses the caller's memory until it is complete.
    #[inline]
    pub(crate) fn uses_the_memory(self) -> bool {
        !matches!(self, Self::Buffered(_))
    }

    /// Returns whether the send is complete only when a receive has matched the message.
    #[inline]
    pub(crate) fn is_synchronous(self) -> bool {
        matches!(self, Self::Synchronous)
    }
}

/// The supply of a message: the memory from which the sender takes the packed bytes.
#[derive(Debug)]
pub enum Supply {
    /// The user's memory, from which the protocol packs.
    Memory(Elements<Plan>),
    /// Packed bytes in a private buffer. The send does not use the user's memory, because its mode asks for
    /// a copy or because it was detached from that memory.
    Packed(Vec<u8>),
    /// Packed bytes in a buffer that the program has lent for sends.
    Lent(Lent),
    /// Zeros in place of the data, because the send was detached and has no packed copy: there was no memory for the
    /// copy, or the receiver has died. A send is detached if its scope panics or a wait fails. A receiver that lives
    /// must still get the announced number of bytes.
    Lost,
}

impl Supply {
    /// Returns the supply of a send that has `bytes` packed bytes and stays in flight.
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable, and `bytes` is its packed size.
    /// - Memory that the mode lends has room for `bytes` bytes, and nobody else uses it until the send is
    ///   complete or detached.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    pub unsafe fn new(layout: &Elements<&Plan>, bytes: u64, mode: SendMode) -> Result<Self> {
        Ok(match mode {
            SendMode::Standard | SendMode::Synchronous | SendMode::Ready => {
                Self::Memory(layout.keep())
            }
            SendMode::Buffered(None) => {
                let mut packed = buffer(bytes)?;
                // SAFETY: the caller guarantees that the layout is readable and has `bytes` packed bytes
                // (first condition of `# Safety`). `packed` is a new buffer of `bytes` bytes, so it does not
                // overlap the layout.
                unsafe { layout.pack(0..bytes, packed.as_mut_ptr()) };
                Self::Packed(packed)
            }
            SendMode::Buffered(Some(Lent(start))) => {
                // SAFETY: the caller guarantees that the layout is readable and has `bytes` packed bytes
                // (first condition), and that the lent memory at `start` has room for `bytes` bytes and
                // nobody else uses it (second condition).
                unsafe { layout.pack(0..bytes, start.as_ptr()) };
                Self::Lent(Lent(start))
            }
        })
    }

    /// Packs the data: writes the packed bytes of `range` to `dst`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the message.
    /// - `dst` is writable for `range.end - range.start` bytes.
    /// - The bytes at `dst` do not overlap the memory of the supply.
    #[inline]
    pub unsafe fn pack(&self, range: Range<u64>, dst: *mut u8) {
        match self {
            // SAFETY: the layout's memory is valid (module invariant). The caller guarantees that `range`
            // lies within the message and that `dst` has room for it (the conditions of `# Safety`).
            Self::Memory(layout) => unsafe { layout.view().pack(range, dst) },
            Self::Packed(bytes) => {
                let part = &bytes[range.start as usize..range.end as usize];
                // SAFETY: the indexing above checked `range`. The caller guarantees that `dst` has room
                // for it and does not overlap the source (second and third condition).
                unsafe { contiguous::copy(part.as_ptr(), dst, part.len()) };
            }
            Self::Lent(Lent(start)) => {
                let len = (range.end - range.start) as usize;
                let from = start.as_ptr().wrapping_add(range.start as usize);
                // SAFETY: the lent memory holds the whole message (second condition of `new`), so `range`
                // lies within it. The caller guarantees that `dst` has room.
                unsafe { contiguous::copy(from, dst, len) };
            }
            Self::Lost => {
                // SAFETY: `dst` is writable for the length of `range` (second condition of `# Safety`).
                unsafe { std::ptr::write_bytes(dst, 0, (range.end - range.start) as usize) };
            }
        }
    }

    /// Returns whether the data lie in one run.
    #[inline]
    pub fn is_run(&self) -> bool {
        match self {
            Self::Memory(layout) => layout.plan.is_contiguous(),
            Self::Packed(_) | Self::Lent(_) => true,
            Self::Lost => false,
        }
    }

    /// Stops the use of the user's memory: packs all `bytes` bytes into a private buffer, which becomes the
    /// supply.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out. The supply is then unchanged.
    pub fn own(&mut self, bytes: u64) -> Result<()> {
        if matches!(self, Self::Memory(_) | Self::Lent(_)) {
            let mut packed = buffer(bytes)?;
            // SAFETY: the memory of the supply is valid (module invariant), and `0..bytes` is the whole message.
            // The new buffer has room for `bytes` bytes and does not overlap the memory of the supply.
            unsafe { self.pack(0..bytes, packed.as_mut_ptr()) };
            *self = Self::Packed(packed);
        }
        Ok(())
    }

    /// Stops the use of the user's memory, like [`own`](Self::own). If memory runs out, the data is lost.
    pub fn detach(&mut self, bytes: u64) {
        if self.own(bytes).is_err() {
            *self = Self::Lost;
        }
    }
}

/// The sink of a message: the memory to which the receiver unpacks the packed bytes.
#[derive(Debug)]
pub enum Sink {
    /// The user's memory, into which the protocol unpacks.
    Memory(Elements<Plan>),
    /// The user's memory from this packed byte on. The byte may lie within an element.
    From(Elements<Plan>, u64),
    /// No memory: the receive was detached from the user's memory, so the engine discards the data.
    Discard,
}

impl Sink {
    /// Unpacks data: reads the packed bytes of `range` from `src` and writes them to the layout's memory.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the receive.
    /// - `src` is readable for `range.end - range.start` bytes, and these bytes do not overlap the memory of
    ///   the sink.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        match self {
            // SAFETY: the layout's memory is valid (module invariant). The caller guarantees that `range`
            // lies within the receive, and that the bytes at `src` are readable and do not overlap the
            // layout (both conditions of `# Safety`).
            Self::Memory(layout) => unsafe { layout.view().unpack(range, src) },
            // SAFETY: the layout's memory is valid (module invariant). The receive begins at packed byte `first` of the
            // layout, so the moved range lies within it. The bytes at `src` are readable and apart (`# Safety`).
            Self::From(layout, first) => unsafe {
                layout.view().unpack(first + range.start..first + range.end, src);
            },
            Self::Discard => {}
        }
    }
}

/// The memory of a receive that is being started.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// The elements.
    pub layout: Elements<&'a Plan>,
    /// The packed byte of the elements at which the receive begins; `None` if the receive takes all of them.
    pub first: Option<u64>,
}

impl Room<'_> {
    /// Makes the sink of a receive that stays in flight.
    pub fn keep(&self) -> Sink {
        match self.first {
            None => Sink::Memory(self.layout.keep()),
            Some(first) => Sink::From(self.layout.keep(), first),
        }
    }

    /// Unpacks data like [`Sink::unpack`].
    ///
    /// # Safety
    ///
    /// - The conditions of [`Sink::unpack`] hold.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        let first = self.first.unwrap_or(0);
        // SAFETY: the caller guarantees that the range lies within the receive, which begins at packed byte `first` of
        // the elements, and that the bytes at `src` are readable and do not overlap them (the conditions of
        // `Sink::unpack`).
        unsafe { self.layout.unpack(first + range.start..first + range.end, src) };
    }
}

/// Number of bytes on the stack by which [`copy`] moves data where the engine has no copy from layout to layout.
const STAGE: u64 = 4096;

/// Copies the first `bytes` packed bytes of `supply` into `sink`, from layout to layout.
///
/// # Safety
///
/// - `bytes` is at most the packed size of `supply` and of `sink`.
/// - The two sides do not overlap, unless each of them is one run of bytes.
pub unsafe fn copy(supply: &Supply, sink: &Sink, bytes: u64) {
    let to = match sink {
        Sink::Memory(to) => to,
        // The two sides begin at different packed bytes.
        Sink::From(..) => {
            let mut stage = [0u8; STAGE as usize];
            for at in (0..bytes).step_by(STAGE as usize) {
                let range = at..bytes.min(at + STAGE);
                // SAFETY: the range lies within both sides (first condition of `# Safety`) and is no longer than the
                // local array, which overlaps neither.
                unsafe {
                    supply.pack(range.clone(), stage.as_mut_ptr());
                    sink.unpack(range, stage.as_ptr());
                }
            }
            return;
        }
        Sink::Discard => return,
    };
    match supply {
        // SAFETY: the memory of both layouts is valid (module invariant). The caller guarantees that both
        // layouts have at least `bytes` packed bytes, and that they do not overlap unless each is one run
        // (both conditions of `# Safety`).
        Supply::Memory(from) => unsafe { copy_layout(&from.view(), &to.view(), bytes) },
        // SAFETY: `packed` holds the whole message, and the sink has room for `bytes` bytes (first
        // condition). A private buffer overlaps no sink.
        Supply::Packed(packed) => unsafe { sink.unpack(0..bytes, packed.as_ptr()) },
        // SAFETY: the lent buffer holds the whole message (second condition of `Supply::new`). The caller
        // guarantees that the sink has room for `bytes` bytes and that the two do not overlap.
        Supply::Lent(Lent(start)) => unsafe { sink.unpack(0..bytes, start.as_ptr()) },
        Supply::Lost => {
            let zeros = [0u8; 4096];
            for at in (0..bytes).step_by(zeros.len()) {
                let end = bytes.min(at + zeros.len() as u64);
                // SAFETY: `at..end` lies within `0..bytes`, for which the sink has room (first condition).
                // The range is no longer than the local array `zeros`.
                unsafe { sink.unpack(at..end, zeros.as_ptr()) };
            }
        }
    }
}

/// Copies the first `bytes` packed bytes of `from` into `to`, from layout to layout.
///
/// # Safety
///
/// - `bytes` is at most the packed size of `from` and of `to`, and the memory of both is valid.
/// - The two sides do not overlap, unless each of them is one run of bytes.
#[inline]
pub unsafe fn copy_layout(from: &Elements<&Plan>, to: &Elements<&Plan>, bytes: u64) {
    // The two runs may overlap: it is an error of the program if a message overlaps its own receive, and the copy then
    // has the result of C's `memmove`.
    if let (Some(from), Some(to)) = (from.run(), to.run())
        && (bytes <= SHORT_COPY || (from as u64).abs_diff(to as u64) < bytes)
    {
        // SAFETY: `run` returned the first bytes of two runs in valid memory. Each run has at least
        // `bytes` bytes (first condition of `# Safety`). The two runs may overlap, because `ptr::copy`
        // allows overlapping runs.
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        return;
    }
    // SAFETY: `0..bytes` lies within `from` and within `to`, and their memory is valid (first condition).
    // The two do not overlap here, because the code above has dealt with overlapping runs, and the second
    // condition excludes every other overlap.
    unsafe { copy_raw(*from, *to, 0..bytes) };
}

/// Up to this number of bytes, a copy from run to run takes less time than the choice of a way.
const SHORT_COPY: u64 = 128;

/// Returns a zeroed buffer of `bytes` bytes.
///
/// # Errors
/// Returns `ErrorKind::NoMemory` if memory ran out.
pub fn buffer(bytes: u64) -> Result<Vec<u8>> {
    let refused = || {
        Error::new(
            ErrorKind::NoMemory,
            "memory",
            format!("cannot allocate {bytes} bytes for a buffered message"),
        )
    };
    let len = usize::try_from(bytes).map_err(|_| refused())?;
    let mut packed = Vec::new();
    packed.grow(len).map_err(|_| refused())?;
    packed.resize(len, 0);
    Ok(packed)
}

/// Length of the longest message that [`Kept`] holds without an allocation, in bytes.
pub const SHORT: usize = 64;

/// The packed bytes of a message that waits for its receive.
#[derive(Debug)]
pub enum Kept {
    /// An array that begins with the packed bytes, and the number of these bytes.
    Short([u8; SHORT], u8),
    /// A buffer that begins with the packed bytes, and the number of these bytes.
    Long(Vec<u8>, usize),
}

impl Kept {
    /// Makes room for `bytes` packed bytes, and calls `fill` with the address of the room. `fill` writes the
    /// bytes.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn new(bytes: u64, buffers: &mut Buffers, fill: impl FnOnce(*mut u8)) -> Result<Self> {
        if bytes <= SHORT as u64 {
            let mut short = [0; SHORT];
            fill(short.as_mut_ptr());
            return Ok(Self::Short(short, bytes as u8));
        }
        let mut long = buffers.take(bytes)?;
        fill(long.as_mut_ptr());
        Ok(Self::Long(long, bytes as usize))
    }

    /// Returns the number of bytes that the message occupies outside this value.
    #[inline]
    pub fn occupied(&self) -> usize {
        match self {
            Self::Short(..) => 0,
            Self::Long(buffer, _) => buffer.len(),
        }
    }

    /// Returns the packed bytes of the message, so that the caller can write them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Short(bytes, len) => &mut bytes[..usize::from(*len)],
            Self::Long(bytes, len) => &mut bytes[..*len],
        }
    }

    /// Returns the packed bytes of the message.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes, len) => &bytes[..usize::from(*len)],
            Self::Long(bytes, len) => &bytes[..*len],
        }
    }
}

/// Length of the buffers of the first class, in bytes. The buffers of each class are twice as long as those of
/// the class before.
const FIRST_CLASS: usize = 2 * SHORT;

/// Number of classes. The buffers of the last class have room for the longest message that a rank keeps (256 KiB).
const CLASSES: usize = 12;

/// Number of bytes in unused buffers above which a buffer that is given back is freed.
const UNUSED_MAX: usize = 2 << 20;

/// Buffers for the data of messages that wait for their receives. A buffer whose message has been
/// received is used again. This saves an allocation and the filling with zeros.
#[derive(Debug, Default)]
pub struct Buffers {
    unused: [Vec<Vec<u8>>; CLASSES],
    /// Number of bytes in unused buffers.
    bytes: usize,
}

impl Buffers {
    /// Returns a buffer of at least `bytes` bytes.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    fn take(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let Some((class, len)) = Self::class(bytes) else { return buffer(bytes) };
        match self.unused[class].pop() {
            Some(buffer) => {
                self.bytes -= len;
                Ok(buffer)
            }
            None => buffer(len as u64),
        }
    }

    /// Takes back the buffer of a message that has been received.
    #[inline]
    pub fn give_back(&mut self, kept: Kept) {
        if let Kept::Long(buffer, _) = kept {
            self.put(buffer);
        }
    }

    fn put(&mut self, buffer: Vec<u8>) {
        let class = Self::class(buffer.len() as u64).filter(|(_, len)| *len == buffer.len());
        if let Some((class, len)) = class
            && self.bytes + len <= UNUSED_MAX
        {
            self.bytes += len;
            self.unused[class].push(buffer);
        }
    }

    /// Returns the class of the buffers for messages of `bytes` bytes, and the length of these buffers; `None` if
    /// there is no such class.
    fn class(bytes: u64) -> Option<(usize, usize)> {
        let len = usize::try_from(bytes).ok()?.max(FIRST_CLASS).checked_next_power_of_two()?;
        let class = (len / FIRST_CLASS).trailing_zeros() as usize;
        (class < CLASSES).then_some((class, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again() {
        let mut buffers = Buffers::default();
        for bytes in [65_u64, 128, 129, 4096, 16 << 10] {
            let kept = Kept::new(bytes, &mut buffers, |_| ()).expect("memory");
            let Kept::Long(buffer, _) = &kept else { panic!("{bytes} bytes are long") };
            let address = buffer.as_ptr();
            assert_eq!(kept.bytes().len() as u64, bytes);
            buffers.give_back(kept);
            let again = |to: *mut u8| assert!(to.cast_const() == address);
            let kept = Kept::new(bytes, &mut buffers, again).expect("memory");
            buffers.give_back(kept);
        }
    }

    #[test]
    fn unused_buffers_are_bounded() {
        let mut buffers = Buffers::default();
        let all: Vec<Kept> =
            (0..1000).map(|_| Kept::new(5000, &mut buffers, |_| ()).expect("memory")).collect();
        for kept in all {
            buffers.give_back(kept);
        }
        assert_eq!(buffers.bytes, UNUSED_MAX);
        assert_eq!(buffers.unused.iter().map(Vec::len).sum::<usize>(), UNUSED_MAX / 8192);
        // A message that is longer than every class has a buffer of its own.
        let kept = Kept::new(300_000, &mut buffers, |_| ()).expect("memory");
        buffers.give_back(kept);
        assert_eq!(buffers.bytes, UNUSED_MAX);
    }
}
