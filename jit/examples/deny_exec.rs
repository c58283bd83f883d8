//! Runs a command that cannot make memory executable: `deny_exec PROGRAM ARGUMENTS…`.
//!
//! `scripts/test` uses this program to show that the test programs also pass on the interpreter. The
//! operating system denies executable memory (`PR_SET_MDWE`, Linux 6.3), and all descendants inherit the
//! denial. The exit code is 2 if the argument PROGRAM is missing, 125 if the system does not support the
//! denial, and 127 if the command cannot be started. Otherwise it is the exit code of PROGRAM.

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
    // SAFETY: `prctl` with this option takes only integers, no pointers, and all five arguments are
    // given.
    let answer = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, zero, zero, zero) };
    if answer != 0 {
        eprintln!("deny_exec: cannot set PR_SET_MDWE: {}", std::io::Error::last_os_error());
        return ExitCode::from(125);
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("deny_exec: cannot start {}: {error}", program.to_string_lossy());
    ExitCode::from(127)
}
