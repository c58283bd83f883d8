//! Runs a command in which no memory can be made executable: `deny_exec PROGRAM ARGUMENTS…`.
//!
//! `scripts/test` runs test programs under it to show that everything passes on the interpreter.
//! The denial is the kernel's own (`PR_SET_MDWE`, Linux 6.3) and is inherited by all descendants.
//! Exit code 125 when the kernel cannot deny, 127 when the command cannot be started.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// `PR_SET_MDWE` and `PR_MDWE_REFUSE_EXEC_GAIN` of `linux/prctl.h`; libc has no names for them.
const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: deny_exec PROGRAM ARGUMENTS…");
        return ExitCode::from(2);
    };
    let zero: libc::c_ulong = 0;
    // SAFETY: prctl with integer arguments only; this option reads exactly these.
    let answer = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, zero, zero, zero) };
    if answer != 0 {
        eprintln!("deny_exec: PR_SET_MDWE: {}", std::io::Error::last_os_error());
        return ExitCode::from(125);
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("deny_exec: {}: {error}", program.to_string_lossy());
    ExitCode::from(127)
}
