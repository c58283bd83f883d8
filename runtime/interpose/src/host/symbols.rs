//! Addresses of symbols, from the dynamic linker. This is the only file of the crate with system calls.

use libc::{RTLD_LAZY, RTLD_NEXT, RTLD_NOLOAD, c_char, c_int, c_void, dl_phdr_info, size_t};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A symbol that every copy of this library exports, so that one copy finds another.
const MARKER: &CStr = c"typepack_interpose_version";

/// The version of this library, as C text. Another copy of this library looks for the symbol.
#[unsafe(no_mangle)]
pub static typepack_interpose_version: [u8; 6] = *b"0.1.0\0";

const _: () = {
    let (text, version) = (typepack_interpose_version, env!("CARGO_PKG_VERSION").as_bytes());
    assert!(text.len() == version.len() + 1);
    let mut at = 0;
    while at < version.len() {
        assert!(text[at] == version[at], "typepack_interpose_version must be the crate's version");
        at += 1;
    }
};

/// Returns the version of this library: major, minor, patch. The bytes of the symbol are what counts, so that a test
/// can make a copy of another version.
pub fn version() -> [i64; 3] {
    // SAFETY: the address is that of the static, which nothing writes.
    let text = unsafe { std::ptr::read_volatile(&raw const typepack_interpose_version) };
    let mut parts = text.split(|&byte| byte == b'.' || byte == 0).map(|digits| {
        digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0')))
    });
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// A function of a shim: returns the function with a name, with the types of the ABI; null if there is none.
pub type Find = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// The shim that has opened this library (`attach.rs`). Without a shim, the host has the ABI.
pub static SHIM: OnceLock<Find> = OnceLock::new();

/// Looks up symbols behind this library.
pub struct Finder {
    /// The object in which a private host was found (`dlopen` without `RTLD_GLOBAL`); null if there is none.
    private: *mut c_void,
}

impl Finder {
    /// Finds the host: next in line, or else among the objects that the program has loaded privately, as Python
    /// loads its extension modules.
    pub fn new() -> Self {
        if SHIM.get().is_some() {
            return Self { private: std::ptr::null_mut() };
        }
        // Only MPI libraries define this name. Tools define names that begin with `MPI_`, and this library, of which
        // another copy may be loaded, some that begin with `PMPI_`.
        let probe = c"PMPI_Comm_rank";
        if !following(probe).is_null() {
            return Self { private: std::ptr::null_mut() };
        }
        let found = objects().into_iter().find_map(|name| {
            let handle = loaded(&name)?;
            if symbol(handle, probe).is_null() {
                close(handle);
                return None;
            }
            Some(handle)
        });
        Self { private: found.unwrap_or(std::ptr::null_mut()) }
    }

    /// Returns the address of a symbol; null if there is none.
    pub fn find(&self, name: &CStr) -> *mut c_void {
        if let Some(find) = SHIM.get() {
            // SAFETY: the function of a shim takes a C string.
            return unsafe { find(name.as_ptr()) };
        }
        let address = following(name);
        if !address.is_null() || self.private.is_null() {
            return address;
        }
        symbol(self.private, name)
    }
}

/// Returns the name of a function by which tools call it: `PMPI_Send` for `MPI_Send`.
pub fn profiled(name: &CStr) -> CString {
    let bytes = [b"P", name.to_bytes()].concat();
    // The bytes of a C string contain no zero.
    CString::new(bytes).unwrap_or_default()
}

/// Returns true if another copy of this library is next in line. A library that a shim has opened is in no line.
pub fn is_doubled() -> bool {
    SHIM.get().is_none() && !following(MARKER).is_null()
}

/// How the names of the files of device runtimes begin. What follows is a version, or nothing.
const DEVICES: [&[u8]; 4] =
    [b"libcuda.so", b"libamdhip64.so", b"libhsa-runtime64.so", b"libze_loader.so"];

/// How many ticks of the processor's clock a thread relies on its last look at the loaded objects.
///
/// A look takes a lock of the dynamic linker, which all threads share. The period is shorter than what must happen
/// between a look that finds no device runtime and a call with memory of a device: the linker maps a runtime and
/// relocates it, and the runtime asks its driver for memory. (The smallest possible library takes 25 us to load. The
/// clocks of processors tick one to five times in a nanosecond, so the period is 4 to 20 us.)
const PERIOD: u64 = 20_000;

/// Returns the ticks of the processor's clock; `None` on processors whose clock has no function in Rust.
fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Returns true if a device runtime is loaded, or was at an earlier call.
pub fn has_devices() -> bool {
    thread_local! {
        static LOOKED: Cell<Option<u64>> = const { Cell::new(None) };
    }
    if FOUND.load(Ordering::Relaxed) {
        return true;
    }
    let now = ticks();
    // A thread that ends has no variables any more, and looks.
    let last = LOOKED.try_with(Cell::get).ok().flatten();
    // A difference below zero, because the thread has moved to another processor, is a large number here.
    if now.zip(last).is_some_and(|(now, last)| now.wrapping_sub(last) < PERIOD) {
        return false;
    }
    let found = look_for_devices();
    // The time before the look: what is loaded during the look may be missed.
    let _ends = LOOKED.try_with(|looked| looked.set(now));
    found
}

/// True if a device runtime was found.
static FOUND: AtomicBool = AtomicBool::new(false);

/// Looks for device runtimes among the loaded objects, if the dynamic linker has loaded another one since the last
/// look.
fn look_for_devices() -> bool {
    /// The number of objects that had been loaded when this function last looked at them.
    static SEEN: AtomicU64 = AtomicU64::new(0);
    struct Look {
        loads: u64,
        found: bool,
    }
    unsafe extern "C" fn look(info: *mut dl_phdr_info, _: size_t, to: *mut c_void) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid `info`, which has `dlpi_adds` since glibc 2.4, and `to`, which is
        // the variable below. Nothing else uses the variable during the call.
        let (info, to) = unsafe { (&*info, &mut *to.cast::<Look>()) };
        to.loads = info.dlpi_adds;
        if SEEN.load(Ordering::Acquire) == to.loads {
            return 1;
        }
        if !info.dlpi_name.is_null() {
            // SAFETY: the linker's name of an object is a C string.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
            let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
            to.found |= DEVICES.iter().any(|name| file.starts_with(name));
        }
        0
    }
    let mut seen = Look { loads: 0, found: false };
    // SAFETY: `look` has the type that the function expects, and uses its last argument as the variable that it is.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut seen).cast()) };
    if seen.found {
        FOUND.store(true, Ordering::Relaxed);
    }
    // A thread that finds this number stops looking, and then reads `FOUND`.
    SEEN.store(seen.loads, Ordering::Release);
    seen.found || FOUND.load(Ordering::Relaxed)
}

/// Returns the address of a symbol in the objects after this library; null if there is none.
fn following(name: &CStr) -> *mut c_void {
    // SAFETY: `name` is a C string, and `RTLD_NEXT` is a handle of `dlsym`.
    unsafe { libc::dlsym(RTLD_NEXT, name.as_ptr()) }
}

/// Returns the address of a symbol in an object or in the objects that it needs; null if there is none.
fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: `name` is a C string, and `handle` comes from `dlopen` and was not closed.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Returns a handle of an object that is already loaded.
fn loaded(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is a C string. With `RTLD_NOLOAD`, nothing is loaded and no code runs.
    let handle = unsafe { libc::dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    (!handle.is_null()).then_some(handle)
}

/// Closes a handle of `loaded` that is not kept. The object stays loaded, because others hold it.
fn close(handle: *mut c_void) {
    // SAFETY: the handle comes from `dlopen`, and nothing uses it any more.
    unsafe { libc::dlclose(handle) };
}

/// Returns the names of the loaded objects, in the order in which they were loaded.
fn objects() -> Vec<CString> {
    unsafe extern "C" fn push(info: *mut dl_phdr_info, _: size_t, names: *mut c_void) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid `info`, and `names`, which is the vector below. Nothing else
        // uses the vector during the call.
        let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<CString>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: the linker's name of an object is a C string.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            // The main program has an empty name. Its scope was searched before.
            if !name.is_empty() {
                names.push(name.to_owned());
            }
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: `push` has the type that the function expects, and uses its last argument as the vector that it is.
    unsafe { libc::dl_iterate_phdr(Some(push), (&raw mut names).cast()) };
    names
}
