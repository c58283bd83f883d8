//! Makes chosen system calls fail in a rank of a test's job.

/// Makes every later use of the system call `call` fail in this process with the error number `error`.
pub fn forbid(call: libc::c_long, error: i32) {
    filter(call, libc::SECCOMP_RET_ERRNO | error as u32);
}

/// Makes every later use of the system call `call` end this process.
pub fn end_at(call: libc::c_long) {
    filter(call, libc::SECCOMP_RET_KILL_PROCESS);
}

fn filter(call: libc::c_long, action: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32)
        },
        statement(libc::BPF_RET | libc::BPF_K, action),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` contains the length and the address of `filter`. The kernel reads `filter` only
    // during the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
