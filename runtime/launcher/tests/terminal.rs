//! Tests of `mpiexec` in the foreground of a terminal. A signal from the keyboard must reach each rank
//! exactly once, through `mpiexec`. Typed input must reach rank 0, even though rank 0 is in the background of
//! the terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::harness::{Job, PATIENT, mpiexec, start_as_is};

/// Starts a job of 2 shells with labelled output on a new terminal. Returns the job and the master side of
/// the terminal.
fn on_terminal(script: &str) -> (Job, File) {
    let (mut master, mut slave) = (-1, -1);
    let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: `master` and `slave` are writable. The other pointers are null, which openpty allows and takes
    // as a request for default values.
    let code = unsafe { libc::openpty(&mut master, &mut slave, name, settings, size) };
    assert_eq!(code, 0, "a terminal");
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // Continue with a copy made by `try_clone`, because the copy is close-on-exec and the original is not.
    let master = master.try_clone().expect("the descriptor is copied");
    let mut command = mpiexec(&[&PATIENT[..], &["-n", "2", "-l", "sh", "-c", script]].concat());
    let copy = || Stdio::from(slave.try_clone().expect("the descriptor is copied"));
    command.stdin(copy()).stdout(copy()).stderr(copy());
    // SAFETY: the closure only calls setsid and ioctl, which are async-signal-safe. When the closure runs,
    // descriptor 0 is already the terminal.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    (start_as_is(command), master)
}

/// Reads from the terminal until `text` has appeared `count` times, and returns everything that was read. Returns an
/// error if the job ends before.
fn read_until(terminal: &mut File, text: &str, count: usize) -> Result<String, String> {
    let mut seen = String::new();
    let mut buffer = [0; 256];
    while seen.matches(text).count() < count {
        // If the job neither writes nor ends, the poll times out.
        let mut ready = [PollFd::new(terminal, PollFlags::IN)];
        let limit = Timespec { tv_sec: crate::harness::LIMIT.as_secs() as i64, tv_nsec: 0 };
        let events =
            rustix::event::poll(&mut ready, Some(&limit)).expect("the terminal can be polled");
        assert_eq!(events, 1, "nothing more after {seen:?}");
        let n = terminal.read(&mut buffer).map_err(|e| format!("{e} after {seen:?}"))?;
        seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    Ok(seen)
}

#[test]
fn control_c_reaches_each_rank_once() {
    let script = "trap 'echo asked; exit 0' TERM; trap 'echo wrong' INT; \
                  echo ready; while :; do sleep 0.01; done";
    let (mut job, mut terminal) = on_terminal(script);
    // Both ranks print each text, in any order.
    read_until(&mut terminal, "ready", 2).expect("the ranks start");
    terminal.write_all(b"\x03").expect("the key is written");
    let text = read_until(&mut terminal, "asked", 2).expect("both ranks are asked");
    assert!(text.contains("[0] asked") && text.contains("[1] asked"), "{text}");
    assert!(!text.contains("wrong"), "{text}");
    assert_eq!(job.wait(), 130);
    assert!(job.processes().is_empty());
}

#[test]
fn what_is_typed_reaches_rank_0() {
    let (mut job, mut terminal) = on_terminal("read line; echo got $line");
    terminal.write_all(b"hello\n").expect("the keys are written");
    let text = read_until(&mut terminal, "[0] got hello", 1).expect("the line");
    assert!(!text.contains("[1] got hello"), "{text}");
    assert_eq!(job.wait(), 0);
}
