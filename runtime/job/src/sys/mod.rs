//! All system calls of the runtime and of the launcher. Each file contains the calls for one facility of the
//! kernel.
//!
//! `../shm/` uses `barrier`, `memory`, `futex`, `channel`, `process`, `signal`, `limits` and `fork`. The
//! launcher uses `process`, `signal`, `stream`, `poll`, `channel`, `clock`, `inspect`, `machine`, `name_lock` and
//! `named`. The runtime uses `clock`, `cma`, `files`, `fork`, `limits`, `machine`, `mapped`, `memory`, `named`,
//! `process`, `signal`, `text_file` and `thread`; the tool uses `named`. `../starter/` uses `detach`, `helper`, `inspect`,
//! `local_socket`, `machine` and `name_lock`; the launcher uses `detach` and `local_socket`, too. The files call rustix where rustix offers the
//! system call, and libc otherwise. They contain nothing about ranks or messages; their functions return `io::Error`s,
//! which the callers turn into error messages.
//!
//! # Safety
//!
//! All `unsafe` code of this folder makes a system call, or accesses memory that a system call has returned
//! or filled. If safe callers rely on a guarantee of a file, the header of the file states the guarantee.

pub mod barrier;
pub mod channel;
pub mod clock;
pub mod cma;
pub mod detach;
pub mod files;
pub mod fork;
pub mod futex;
pub mod helper;
pub mod inspect;
pub mod limits;
pub mod local_socket;
pub mod machine;
pub mod mapped;
pub mod memory;
pub mod name_lock;
pub mod named;
pub mod poll;
pub mod process;
pub mod signal;
pub mod stream;
pub mod text_file;
pub mod thread;
