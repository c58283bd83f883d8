//! What an operation of this rank is, for a debugger that has stopped the process.
//!
//! `record.rs` describes the operation, as it does for mpiexec; this file adds the elements, and writes the text. The
//! stopped threads may hold locks, so nothing here waits for a lock of the library. (A text needs memory, and the allocator
//! may wait for a lock of its own.)

use super::record::describe;
use super::*;
use crate::endpoint::requests::Request;
use crate::message::payload::{Sink, Supply};
use crate::shm::waiting::{Named, Progress};
use typepack_engine::text;

impl Endpoint {
    /// Describes the operation with the number `id`: its peer, tag, length and elements, and how far it is. `rank` turns
    /// the slot of a process into its rank, if it has one. Returns `None` if a thread holds the endpoint's lock.
    pub fn described(&self, id: u64, rank: impl Fn(usize) -> Option<usize>) -> Option<String> {
        if fork::is_child() {
            // Another thread of the parent may have held the lock at the fork.
            return None;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let wait = describe(&mut state.core, &Awaited::Request(id, ""));
        let (is_send, elements) = match state.core.engine.requests().get(id) {
            Some(Request::Send(send)) => (true, of_supply(&send.supply)),
            Some(Request::Receive(receive)) => (false, of_sink(&receive.sink)),
            Some(Request::Done(_)) | None => return Some("complete".to_owned()),
            Some(Request::Source(_)) => {
                let name = wait.name.shown();
                let on = if name.is_empty() { String::new() } else { format!(" on {name}") };
                return Some(format!("under way{on}"));
            }
        };
        let peer = match wait.peer {
            Named::One(slot) if is_send => format!("to {}", of_peer(slot, rank)),
            Named::One(slot) => format!("from {}", of_peer(slot, rank)),
            Named::Any | Named::None => "from any rank".to_owned(),
        };
        let tag = match wait.tag {
            Named::One(tag) => format!("tag {tag}"),
            Named::Any | Named::None => "any tag".to_owned(),
        };
        let at_most = if wait.progress == Progress::NoMessage { "at most " } else { "" };
        let bytes = amount(wait.bytes);
        let of = elements.map_or_else(String::new, |elements| format!(" of {elements}"));
        let progress = match wait.progress {
            Progress::NotReceived => "; no receive has matched it".to_owned(),
            Progress::NotTaken => "; it waits for room".to_owned(),
            Progress::NoMessage => "; no message has come".to_owned(),
            Progress::Moving => format!("; {} have moved", amount(wait.done)),
            Progress::Working | Progress::Unknown => String::new(),
        };
        let name = wait.name.shown();
        let on = if name.is_empty() { name } else { format!("; {name}") };
        Some(format!("{peer}, {tag}, {at_most}{bytes}{of}{progress}{on}"))
    }
}

/// Returns a number of bytes in the largest unit that leaves at least 1.
fn amount(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Returns the rank of the process in a slot; its number in the job if it has no rank in the communicator.
fn of_peer(slot: u32, rank: impl Fn(usize) -> Option<usize>) -> String {
    rank(slot as usize)
        .map_or_else(|| format!("process {slot} of the job"), |rank| rank.to_string())
}

fn of_supply(supply: &Supply) -> Option<String> {
    match supply {
        Supply::Memory(elements) => of_elements(elements),
        Supply::Packed(_) | Supply::Lent(_) | Supply::Lost => None,
    }
}

fn of_sink(sink: &Sink) -> Option<String> {
    match sink {
        Sink::Memory(elements) | Sink::From(elements, _) => of_elements(elements),
        Sink::Discard => None,
    }
}

/// Returns the number and the type of elements.
fn of_elements(elements: &Elements<Plan>) -> Option<String> {
    let ty = text::abridge(elements.plan.datatype()?);
    Some(if elements.count == 1 { ty } else { format!("{} x {ty}", elements.count) })
}

#[cfg(test)]
mod tests {
    use super::{amount, of_peer};

    #[test]
    fn bytes_are_told_in_a_unit_that_fits() {
        let told = [0, 999, 1000, 1_234_567, 5_000_000_000].map(amount);
        assert_eq!(told, ["0 bytes", "999 bytes", "1.0 kB", "1.2 MB", "5.0 GB"]);
    }

    /// A process outside the communicator was once shown as the largest integer.
    #[test]
    fn a_process_without_a_rank_has_its_number_in_the_job() {
        let rank = |slot: usize| slot.checked_sub(4);
        assert_eq!(of_peer(7, rank), "3");
        assert_eq!(of_peer(2, rank), "process 2 of the job");
    }
}
