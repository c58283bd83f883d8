//! Every system call of the runtime and of the launcher, one file per facility of the kernel.
//!
//! `../shm/segment.rs` (memory, futex, channel) and the launcher (process, signal, stream, poll, channel)
//! use this folder. It calls rustix if rustix has the call, and libc otherwise. It does not know ranks or
//! messages; callers turn the `io::Error`s of this folder into sentences.
//!
//! # Safety
//!
//! All `unsafe` code of this folder is a system call, or an access to memory from a system call. The header
//! of each file says what the file promises to safe callers.

pub mod channel;
pub mod clock;
pub mod cma;
pub mod fork;
pub mod futex;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod name_lock;
pub mod poll;
pub mod process;
pub mod signal;
pub mod stream;
