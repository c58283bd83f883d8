//! A launcher for tests that speaks PMI, and gives odd answers where a test wants them. Unlike real ones, it ends no rank
//! when another one fails.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// The number of the descriptor that the ranks inherit.
const FD: i32 = 77;

/// What a test does to the lines: it gets the rank and its command, and returns an answer instead of the right one.
pub type Odd = fn(usize, &str) -> Option<String>;

#[derive(Default)]
struct State {
    table: HashMap<String, String>,
    /// The number of ranks in the barrier, and of barriers that are over.
    barrier: (usize, usize),
    /// The number of ranks that have ended.
    ended: usize,
    seen: Vec<(usize, String)>,
}

impl State {
    /// Lets the ranks go on if all of the `size` ranks that have not ended are in the barrier.
    fn open_barrier(&mut self, size: usize, news: &Condvar) {
        if self.barrier.0 + self.ended >= size {
            self.barrier = (0, self.barrier.1 + 1);
            news.notify_all();
        }
    }
}

/// A launcher whose ranks run.
pub struct Launcher {
    /// The ranks.
    pub ranks: Vec<Child>,
    state: Arc<(Mutex<State>, Condvar)>,
    servers: Vec<thread::JoinHandle<()>>,
    ends: Vec<UnixStream>,
}

/// Starts `size` ranks by `command`, which gets the number of a rank.
pub fn start(size: usize, command: impl Fn(usize) -> Command, odd: Odd) -> Launcher {
    let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
    let (mut ranks, mut servers, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..size {
        let (ours, theirs) = UnixStream::pair().expect("a connection");
        let mut command = command(rank);
        command.env("PMI_FD", FD.to_string()).env("PMI_RANK", rank.to_string());
        command.env("PMI_SIZE", size.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let raw = theirs.as_raw_fd();
        let inherit = move || {
            // SAFETY: dup2 touches no memory, and may be called between fork and exec. `theirs` is open in the child.
            match unsafe { libc::dup2(raw, FD) } {
                FD => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: `inherit` only calls dup2 and reads errno.
        unsafe { command.pre_exec(inherit) };
        ranks.push(command.spawn().expect("a rank"));
        drop(theirs);
        ends.push(ours.try_clone().expect("a descriptor"));
        let state = state.clone();
        servers.push(thread::spawn(move || serve(rank, size, &ours, &state, odd)));
    }
    Launcher { ranks, state, servers, ends }
}

impl Launcher {
    /// Waits until all ranks have ended. Returns their exit codes (`None` for a signal), outputs and errors.
    pub fn finish(self) -> Vec<(Option<i32>, String, String)> {
        let ends: Vec<_> = self
            .ranks
            .into_iter()
            .map(|rank| {
                let done = rank.wait_with_output().expect("an end");
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                (done.status.code(), text(&done.stdout), text(&done.stderr))
            })
            .collect();
        drop(self.ends);
        self.servers.into_iter().for_each(|server| server.join().expect("a server"));
        ends
    }

    /// Returns the commands of a rank so far.
    pub fn commands(&self, rank: usize) -> Vec<String> {
        let state = self.state.0.lock().expect("no panic");
        state.seen.iter().filter(|(of, _)| *of == rank).map(|(_, line)| line.clone()).collect()
    }

    /// Ends as a launcher does that is killed: all connections close.
    pub fn vanish(&self) {
        for end in &self.ends {
            end.shutdown(std::net::Shutdown::Both).expect("a connection");
        }
    }
}

fn serve(rank: usize, size: usize, stream: &UnixStream, state: &(Mutex<State>, Condvar), odd: Odd) {
    let (state, news) = state;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let mut locked = state.lock().expect("no panic");
        locked.seen.push((rank, line.clone()));
        let word = |key: &str| {
            let mut words = line.split(' ').filter_map(|word| word.split_once('='));
            words
                .find(|(found, _)| *found == key)
                .map(|(_, value)| value.to_owned())
                .unwrap_or_default()
        };
        let answer = match word("cmd").as_str() {
            _ if odd(rank, &line).is_some() => odd(rank, &line).unwrap_or_default(),
            "init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n".into(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=256\n".into(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=fake\n".into(),
            "get_appnum" => format!("cmd=appnum appnum={}\n", rank / 2),
            "get_universe_size" => "cmd=universe_size size=16\n".into(),
            "put" => {
                locked.table.insert(word("key"), word("value"));
                "cmd=put_result rc=0\n".into()
            }
            "get" => match locked.table.get(&word("key")) {
                Some(value) => format!("cmd=get_result rc=0 value={value}\n"),
                None => "cmd=get_result rc=-1 msg=unknown_key\n".into(),
            },
            "barrier_in" => {
                let round = locked.barrier.1;
                locked.barrier.0 += 1;
                locked.open_barrier(size, news);
                while locked.barrier.1 == round {
                    locked = news.wait(locked).expect("no panic");
                }
                "cmd=barrier_out rc=0\n".into()
            }
            "finalize" => "cmd=finalize_ack rc=0\n".into(),
            // A command without an answer.
            _ => String::new(),
        };
        drop(locked);
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
    // A rank that has ended no longer comes to a barrier, so the others may go: they then find that it is not there.
    let mut locked = state.lock().expect("no panic");
    locked.ended += 1;
    locked.open_barrier(size, news);
}
