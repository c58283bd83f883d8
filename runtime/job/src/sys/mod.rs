//! Every system call of the runtime and of the launcher, one file per kernel facility.
//!
//! Above: `../shm/segment.rs` (memory, futex, channel) and the launcher (process, signal, stream,
//! poll, channel). Below: rustix where it covers the call, libc where it does not. Nothing here knows
//! ranks or messages; callers turn the `io::Error`s of this folder into sentences.
//!
//! # Safety
//!
//! `unsafe` in this folder is a system call, or memory that a system call handed out. Each file
//! says in its header what it promises to safe callers.

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
