//! Threads of the library's own. `std::thread` takes the memory for a thread's handle from the system's allocator and
//! ends the process if there is none. [`start`] returns an error instead.

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

type Work = Box<dyn FnOnce() + Send>;

/// Number of bytes of a thread's stack: as many as a thread of the standard library has.
const STACK: usize = 2 << 20;

/// Starts a thread that does `work` and then ends. Nobody waits for it. A panic of `work` ends only the thread. The
/// system keeps the first 15 bytes of the name.
///
/// # Errors
/// Returns the error of the system if it cannot start a thread.
pub fn start(name: &'static CStr, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work: Work = Box::new(move || {
        let mut short = [0_u8; 16];
        let bytes = name.to_bytes();
        let length = bytes.len().min(short.len() - 1);
        short[..length].copy_from_slice(&bytes[..length]);
        // SAFETY: the name ends with a zero byte and outlives the call. A thread without a name does its work, too.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), short.as_ptr().cast()) };
        work();
    });
    let work = Box::into_raw(Box::new(work));
    let code = |result: i32| match result {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the calls get attributes that the first call initialises and that the last one destroys. The address of
    // the thread's number is writable. `run` gets a box that it may turn back, once.
    let started = unsafe {
        code(libc::pthread_attr_init(attributes.as_mut_ptr())).and_then(|()| {
            let attributes = attributes.as_mut_ptr();
            let mut number = MaybeUninit::uninit();
            let started = code(libc::pthread_attr_setstacksize(attributes, STACK))
                .and_then(|()| {
                    let detached = libc::PTHREAD_CREATE_DETACHED;
                    code(libc::pthread_attr_setdetachstate(attributes, detached))
                })
                .and_then(|()| {
                    code(libc::pthread_create(number.as_mut_ptr(), attributes, run, work.cast()))
                });
            libc::pthread_attr_destroy(attributes);
            started
        })
    };
    if started.is_err() {
        // SAFETY: `work` comes from `into_raw`, and no thread has got it.
        drop(unsafe { Box::from_raw(work) });
    }
    started
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a box of this type to each thread, and keeps no pointer to it.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    // The panic has been reported, and nobody waits for the thread.
    let _ended = catch_unwind(AssertUnwindSafe(*work));
    null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_does_its_work_and_has_its_name() {
        let (says, hears) = channel();
        let work = move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
            says.send(name).expect("a receiver");
            panic!("this ends only the thread");
        };
        start(c"typepack-a-long-name", work).expect("a thread");
        assert_eq!(hears.recv().expect("a name").trim_end(), "typepack-a-long");
        assert!(hears.recv().is_err(), "the work is dropped when the thread ends");
    }
}
