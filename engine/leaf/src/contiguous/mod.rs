//! Copies of contiguous bytes.
//!
//! The executors, the fused copy and the transports of the runtime move contiguous runs with [`copy`]. None
//! of them calls libc's `memcpy`: that function chooses its method for long runs by the processor's model.
//! On Zen 3 its choice (`rep movsb`) was ten times slower than vector moves for lines that another core
//! holds, and on Zen 5 it was 2.5 times faster.
//!
//! There are four methods ([`Method`]), one file each: `vector.rs`, `pages.rs`, `repeat.rs` and `streaming.rs`. Runs
//! below [`LONG`] bytes always take vector moves. For longer runs the caller can ask for a method with
//! [`with`]; a transport does so for the messages whose copies it times. If no caller has asked, the
//! method is the one that [`set_fixed`] has fixed. Otherwise, the function that the engine has given to
//! [`set_choice`] copies runs of at least [`WATCHED`] bytes and picks the method itself; all other runs take
//! vector moves.
//!
//! No method writes a byte outside the destination, and none reads a byte outside the source.

mod pages;
mod repeat;
mod streaming;
#[cfg(test)]
mod tests;
mod vector;

use crate::isa::Isa;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Minimum length, in bytes, of a run that may be copied with a method other than vector moves. For a
/// shorter run, starting `rep movsb` or flushing streaming stores costs more time than the method saves.
pub const LONG: usize = 2 << 10;

/// Length in bytes from which the choice function ([`set_choice`]) copies a run. The payloads of short messages
/// are shorter. The copy of such a payload ends in memory that another rank reads soon. The method also
/// changes the time of that read, and the time of the copy does not show this effect.
pub const WATCHED: usize = 16 << 10;

/// A method to copy a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    /// Loads and stores of the widest registers.
    Vector = 0,
    /// The instruction `rep movsb` of x86-64. The processor moves whole cache lines, and need not fetch
    /// the old contents of the destination.
    Repeat = 1,
    /// Stores that bypass the caches. The method ends with a store fence, so the bytes are visible to
    /// other processors before any later store.
    Streaming = 2,
    /// Like `Vector`, but in two memory pages by turns, so that more cache lines are on their way.
    Pages = 3,
}

impl Method {
    /// All methods, in the order in which they are tried. The first is available on every machine.
    pub const ALL: [Self; 4] = [Self::Vector, Self::Pages, Self::Repeat, Self::Streaming];

    /// Returns whether this machine has the method.
    pub fn is_available(self) -> bool {
        match self {
            Self::Vector | Self::Pages => true,
            Self::Repeat => repeat::is_available(),
            Self::Streaming => streaming::is_available(),
        }
    }

    /// Returns the method with the number `code`, or `None` if there is no such method.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Vector),
            1 => Some(Self::Repeat),
            2 => Some(Self::Streaming),
            3 => Some(Self::Pages),
            _ => None,
        }
    }

    /// Returns the number of the method, by which ranks name it to each other.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the name of the method, as it is written in `TYPEPACK_COPY`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Repeat => "repeat",
            Self::Streaming => "streaming",
            Self::Pages => "pages",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a text that is not the name of a copy method of this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseMethodError {
    text: String,
}

impl fmt::Display for ParseMethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = available().map(Method::name).collect::<Vec<_>>().join(", ");
        write!(f, "\"{}\" is not a copy method of this machine; its methods are {names}", self.text)
    }
}

impl fmt::Debug for ParseMethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ParseMethodError {}

impl FromStr for Method {
    type Err = ParseMethodError;

    fn from_str(text: &str) -> Result<Self, ParseMethodError> {
        available()
            .find(|method| method.name() == text)
            .ok_or_else(|| ParseMethodError { text: text.to_owned() })
    }
}

/// Returns the methods that this machine has, in the order in which they are tried.
pub fn available() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|method| method.is_available())
}

/// The value of [`ASKED`] that asks for no method.
const NOTHING: u8 = u8::MAX;

/// The method that a caller has asked for, as a code, or [`NOTHING`].
///
/// All threads of the process share this word. A thread-local variable would cost a call per access in a
/// shared library, and a transport copies pieces of a few KiB. If two threads copy at the same time, one of
/// them may use the other's method; that changes the time of its copy and nothing else.
static ASKED: AtomicU8 = AtomicU8::new(NOTHING);

/// The method that is fixed, as a code, or [`NOTHING`].
static FIXED: AtomicU8 = AtomicU8::new(NOTHING);

/// Fixes the method of all long copies for which no caller asks for one. With `None`, no method is fixed.
pub fn set_fixed(method: Option<Method>) {
    FIXED.store(method.map_or(NOTHING, Method::code), Ordering::Relaxed);
}

/// Who has written the bytes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Source {
    /// Anybody, usually this process.
    Any = 0,
    /// Another process.
    Other = 1,
}

/// A function that copies a run and picks the method itself.
///
/// # Safety
///
/// - The conditions of [`copy`] hold, and the run has at least [`WATCHED`] bytes.
pub type Choice = unsafe fn(Source, *const u8, *mut u8, usize);

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// Sets the function that copies the runs whose method is neither asked for nor fixed. Only the first call has an
/// effect. Without such a function, these runs take vector moves.
///
/// # Safety
///
/// - Under the conditions of [`Choice`], the function copies the run as [`copy`] does.
pub unsafe fn set_choice(choice: Choice) {
    let _first = CHOICE.set(choice);
}

/// A word that several threads share: [`ASKED`], or in the tests a word of a loom model.
trait Asked {
    fn get(&self) -> u8;
    fn set(&self, code: u8);
}

impl Asked for AtomicU8 {
    #[inline]
    fn get(&self) -> u8 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn set(&self, code: u8) {
        self.store(code, Ordering::Relaxed);
    }
}

/// Calls `f`. During the call, `copy` copies long runs with `method`. Calls of this function must not be
/// nested: at the end of the inner call, the request of the outer call would end too.
#[inline]
pub fn with<R>(method: Method, f: impl FnOnce() -> R) -> R {
    asking(&ASKED, method, f)
}

#[inline]
fn asking<R>(asked: &impl Asked, method: Method, f: impl FnOnce() -> R) -> R {
    /// Ends the request, also if `f` panics.
    struct End<'a, A: Asked>(&'a A);
    impl<A: Asked> Drop for End<'_, A> {
        #[inline]
        fn drop(&mut self) {
            self.0.set(NOTHING);
        }
    }
    asked.set(method.code());
    let _end = End(asked);
    f()
}

/// Copies `bytes` bytes.
///
/// # Safety
///
/// - `from` is valid for reads and `to` for writes of `bytes` bytes.
/// - The two ranges do not overlap.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: `short` and `beyond_short` require the two conditions of this function, which the caller
    // guarantees. `short` gets at most 64 bytes, and `beyond_short` gets more than 64.
    unsafe {
        if bytes <= 64 { vector::short(from, to, bytes) } else { beyond_short(from, to, bytes) }
    }
}

/// Copies a run of more than 64 bytes.
///
/// # Safety
///
/// - The conditions of [`copy`] hold, and `bytes` is more than 64.
#[inline(never)]
unsafe fn beyond_short(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes < LONG {
        // SAFETY: the caller guarantees the conditions of `copy` and more than 64 bytes.
        return unsafe { vector::copy(from, to, bytes) };
    }
    // SAFETY: the caller guarantees the conditions of `copy`, and `bytes` is at least `LONG`.
    unsafe {
        match Method::from_code(ASKED.get()) {
            Some(method) => copy_by(method, from, to, bytes),
            None => chosen(Source::Any, from, to, bytes),
        }
    }
}

/// Copies a run for whose method no caller has asked.
///
/// # Safety
///
/// - The conditions of [`copy`] hold, and `bytes` is at least [`LONG`].
#[inline]
unsafe fn chosen(source: Source, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees the conditions of `copy`. `vector::copy` gets more than 64 bytes, and the choice
    // function at least `WATCHED`.
    unsafe {
        if let Some(fixed) = Method::from_code(FIXED.load(Ordering::Relaxed)) {
            return copy_by(fixed, from, to, bytes);
        }
        match CHOICE.get() {
            Some(choice) if bytes >= WATCHED => choice(source, from, to, bytes),
            _ => vector::copy(from, to, bytes),
        }
    }
}

/// Copies `bytes` bytes that another process has written, as far as the caller knows. The choice of the method is
/// measured apart from that of [`copy`].
///
/// # Safety
///
/// - The conditions of [`copy`] hold. Other processes may write to the bytes at `from` meanwhile.
pub unsafe fn fetch(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees the conditions of `copy`. `chosen` gets at least `LONG` bytes.
    unsafe {
        match bytes {
            LONG.. => chosen(Source::Other, from, to, bytes),
            _ => copy(from, to, bytes),
        }
    }
}

/// Copies `bytes` bytes with `method`. If this machine does not have the method, or if the run is shorter
/// than [`LONG`], the function uses vector moves.
///
/// # Safety
///
/// - The conditions of [`copy`] hold.
pub unsafe fn copy_by(method: Method, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees that both ranges are valid for `bytes` bytes and do not overlap.
    // `vector::short` gets at most 64 bytes and `vector::copy` more than 64. The other methods get at least `LONG`
    // bytes, and are called only if the machine has them.
    unsafe {
        match method {
            _ if bytes <= 64 => vector::short(from, to, bytes),
            Method::Repeat if bytes >= LONG && method.is_available() => {
                repeat::copy(from, to, bytes);
            }
            Method::Streaming if bytes >= LONG && method.is_available() => {
                streaming::copy(from, to, bytes);
            }
            Method::Pages if bytes >= LONG => pages::copy(from, to, bytes),
            _ => vector::copy(from, to, bytes),
        }
    }
}

/// Limits vector moves of more than 64 bytes to the instruction set `isa`, for the whole process. Only the
/// first call has an effect, and only if no run has been copied with such moves yet.
pub fn limit(isa: Isa) {
    vector::limit(isa);
    pages::limit(isa);
}
