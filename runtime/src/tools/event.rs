//! Events (MPI-5.0 section 15.3.8): what has happened, with its time, for functions of tools.
//!
//! All events have one source, the clock of the machine, and come in the order of their times. They wait in `raised.rs`
//! until a thread begins its next call; [`deliver`] then calls the functions, one at a time, outside all locks of the
//! library. So a function may do whatever the program may do in the same place, and each function that a tool has
//! registered suits, whatever it promises. A call that the program makes in a function where it may not do everything
//! (that of an operation, for example) delivers nothing; the C library knows when that is the case.

use super::counting::{self, Subject};
use super::raised::{self, KINDS, Raised, VALUES};
use super::{Fault, Result, new_number};
use crate::sys::fork;
use crate::variables::{Audience, Topic};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The form of a value of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A C integer.
    Int,
    /// An `unsigned long`.
    Long,
}

/// A kind of events.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The name.
    pub name: &'static str,
    /// When such an event happens.
    pub meaning: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// For whom it is meant.
    pub audience: Audience,
    /// The names and the forms of its values.
    pub elements: &'static [(&'static str, Element)],
    subject: Subject,
}

use Element::{Int, Long};

/// The kinds. Each has its place in [`Subject::event`].
static EVENTS: [Event; KINDS] = [
    Event {
        name: "message_matched",
        meaning: "A receive of the program has matched a message. \"unexpected\" is 1 if the message has waited for \
                  it. \"source\" is the number of the sender among the processes of the job.",
        topic: Topic::Messages,
        audience: Audience::Tuner,
        elements: &[("source", Int), ("tag", Int), ("bytes", Long), ("unexpected", Int)],
        subject: Subject::MessageMatched,
    },
    Event {
        name: "message_unexpected",
        meaning: "A message for the program has arrived, and no receive matches it.",
        topic: Topic::Messages,
        audience: Audience::Tuner,
        elements: &[("source", Int), ("tag", Int), ("bytes", Long)],
        subject: Subject::MessageUnexpected,
    },
    Event {
        name: "protocol_chosen",
        meaning: "It is known how a message of the program travels. \"protocol\" is 0 for eager, 1 for parts, 2 for \
                  pipeline, 3 for heap, 4 for cma, and 5 for a message to this rank itself.",
        topic: Topic::Messages,
        audience: Audience::Tuner,
        elements: &[("destination", Int), ("tag", Int), ("bytes", Long), ("protocol", Int)],
        subject: Subject::ProtocolChosen,
    },
    Event {
        name: "kernel_compiled",
        meaning: "The code generator has compiled a kernel. \"nanoseconds\" is the time that it took, and \"code\" the \
                  number of bytes of machine code.",
        topic: Topic::Compiler,
        audience: Audience::Tuner,
        elements: &[("nanoseconds", Long), ("code", Long)],
        subject: Subject::KernelCompiled,
    },
    Event {
        name: "wait_begun",
        meaning: "A call begins to wait, because what it needs is not there yet. \"operations\" is the number of \
                  operations of this rank that are under way.",
        topic: Topic::Waiting,
        audience: Audience::Tuner,
        elements: &[("operations", Long)],
        subject: Subject::WaitBegun,
    },
    Event {
        name: "wait_ended",
        meaning: "A call stops waiting. \"operations\" is the number of operations of this rank that are under way.",
        topic: Topic::Waiting,
        audience: Audience::Tuner,
        elements: &[("operations", Long)],
        subject: Subject::WaitEnded,
    },
];

/// Returns all kinds of events. The place of a kind in the list is its index.
#[doc(alias = "MPI_T_event_get_info")]
pub fn events() -> &'static [Event] {
    &EVENTS
}

/// A function of a tool, which is called with the number of the event and that of the registration.
pub type Happened = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A function of a tool, which is called with the number of events that have been lost, that of the registration, and
/// the data of the function of the registration.
pub type Lost = Arc<dyn Fn(u64, u64, usize) + Send + Sync>;

/// A function of a tool, which is called when a registration has ended, with its number.
pub type Freed = Box<dyn FnOnce(u64) + Send>;

/// A function that a tool has registered.
#[derive(Clone)]
struct Function {
    call: Happened,
    /// What the tool gets back.
    data: usize,
}

/// What a tool has registered for a kind of events.
#[derive(Clone)]
struct Registration {
    kind: usize,
    /// The functions, by the number of the safety level that they promise.
    functions: BTreeMap<i32, Function>,
    lost: Option<Lost>,
    /// Number of events of the kind that had been dropped when the tool was last told.
    told: u64,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("kind", &self.kind).finish_non_exhaustive()
    }
}

static REGISTRATIONS: Mutex<BTreeMap<u64, Registration>> = Mutex::new(BTreeMap::new());

/// The event whose functions run now, with its number.
static CURRENT: Mutex<Option<(u64, Raised)>> = Mutex::new(None);

/// Functions that are to be called because their registrations have ended.
static FREED: Mutex<Vec<(u64, Freed)>> = Mutex::new(Vec::new());

/// Held while functions of tools run.
static DELIVERY: Mutex<()> = Mutex::new(());

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` with a registration.
fn with<R>(registration: u64, work: impl FnOnce(&mut Registration) -> R) -> Result<R> {
    locked(&REGISTRATIONS).get_mut(&registration).map(work).ok_or(Fault::Handle)
}

/// Makes a registration for a kind of events.
///
/// # Errors
/// Returns [`Fault::Index`] if there is no such kind.
#[doc(alias = "MPI_T_event_handle_alloc")]
pub fn open_event(index: usize) -> Result<u64> {
    let event = EVENTS.get(index).ok_or(Fault::Index)?;
    let (functions, lost, told) = (BTreeMap::new(), None, raised::dropped(index));
    let number = new_number();
    locked(&REGISTRATIONS).insert(number, Registration { kind: index, functions, lost, told });
    counting::want(event.subject);
    Ok(number)
}

/// Checks that there is a registration.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is none.
pub fn check_event(registration: u64) -> Result {
    with(registration, |_| ())
}

/// Returns whether a registration has a function for a safety level.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such registration.
pub fn has_function(registration: u64, safety: i32) -> Result<bool> {
    with(registration, |of| of.functions.contains_key(&safety))
}

/// Registers a function for a safety level, with data that the tool gets back, or removes the function of that level.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such registration.
#[doc(alias = "MPI_T_event_register_callback")]
pub fn register(registration: u64, safety: i32, function: Option<(Happened, usize)>) -> Result {
    let old = with(registration, |of| match function {
        Some((call, data)) => of.functions.insert(safety, Function { call, data }),
        None => of.functions.remove(&safety),
    })?;
    drop(old);
    Ok(())
}

/// Sets or removes the function that is told how many events have been lost.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such registration.
#[doc(alias = "MPI_T_event_set_dropped_handler")]
pub fn set_lost(registration: u64, lost: Option<Lost>) -> Result {
    with(registration, |of| {
        of.told = raised::dropped(of.kind);
        of.lost = lost;
    })
}

/// Ends a registration. Its functions are not called any more, but one of them may run in another thread now; `freed`
/// is called afterwards, by the next [`deliver`], even if all uses of the tool interface end before.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is no such registration.
#[doc(alias = "MPI_T_event_handle_free")]
pub fn close_event(registration: u64, freed: Option<Freed>) -> Result {
    let ended = locked(&REGISTRATIONS).remove(&registration).ok_or(Fault::Handle)?;
    counting::release(EVENTS[ended.kind].subject);
    if let Some(freed) = freed {
        locked(&FREED).push((registration, freed));
        raised::call_soon();
    }
    Ok(())
}

/// Ends all registrations.
pub(super) fn end() {
    let all = std::mem::take(&mut *locked(&REGISTRATIONS));
    all.values().for_each(|ended| counting::release(EVENTS[ended.kind].subject));
    // The events that wait are for nobody.
    while raised::take().is_some() {}
    // But the functions for the registrations that have ended are still to be called.
    if !locked(&FREED).is_empty() {
        raised::call_soon();
    }
}

/// What has happened, as a function of a tool sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Instance {
    /// The index of the kind.
    pub kind: usize,
    /// The time in nanoseconds, as [`event_time`] returns it.
    pub time: u64,
    values: [u64; VALUES],
}

impl Instance {
    /// Returns the values, each with its form.
    pub fn values(&self) -> impl Iterator<Item = (Element, u64)> {
        let elements = EVENTS[self.kind].elements.iter();
        elements.zip(self.values).map(|((_, form), value)| (*form, value))
    }
}

/// Returns the event with this number. There is one only while a function of a tool runs for it.
///
/// # Errors
/// Returns [`Fault::Handle`] if there is none.
#[doc(alias = "MPI_T_event_read")]
pub fn instance(number: u64) -> Result<Instance> {
    match *locked(&CURRENT) {
        Some((current, Raised { kind, time, values })) if current == number => {
            Ok(Instance { kind, time, values })
        }
        _ => Err(Fault::Handle),
    }
}

/// Returns the time in nanoseconds by which the times of events are measured.
#[doc(alias = "MPI_T_source_get_timestamp")]
pub fn event_time() -> u64 {
    raised::now()
}

/// Calls the functions of tools for the events that wait now. Events that happen meanwhile wait for the next call. If
/// another thread does so already, or if this thread is in a function of a tool, returns at once.
pub fn deliver() {
    // A forked child has a copy of the events, which are its parent's.
    if fork::is_child() {
        return;
    }
    loop {
        let turn = match DELIVERY.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        for _ in 0..raised::waiting() {
            let Some(event) = raised::take() else { break };
            happened(event);
        }
        raised::rest();
        tell_lost();
        let freed = std::mem::take(&mut *locked(&FREED));
        freed.into_iter().for_each(|(registration, freed)| freed(registration));
        drop(turn);
        // A thread that has found the turn taken may have left a function.
        if locked(&FREED).is_empty() {
            return;
        }
    }
}

/// Calls the functions that are registered for an event: of each registration the one that promises least.
fn happened(event: Raised) {
    let number = new_number();
    *locked(&CURRENT) = Some((number, event));
    let all = locked(&REGISTRATIONS);
    let meant: Vec<u64> =
        all.iter().filter(|(_, of)| of.kind == event.kind).map(|(number, _)| *number).collect();
    drop(all);
    for registration in meant {
        // An earlier function may have ended the registration.
        let function = with(registration, |of| of.functions.values().next().cloned());
        if let Ok(Some(function)) = function {
            (function.call)(number, registration);
        }
    }
    *locked(&CURRENT) = None;
}

/// Tells tools how many events have been lost since they were told last.
fn tell_lost() {
    let mut all = locked(&REGISTRATIONS);
    let mut told = Vec::new();
    for (number, of) in all.iter_mut() {
        let dropped = raised::dropped(of.kind);
        if let (Some(lost), true) = (&of.lost, dropped > of.told) {
            let data = of.functions.values().next().map_or(0, |function| function.data);
            told.push((lost.clone(), dropped - of.told, *number, data));
            of.told = dropped;
        }
    }
    drop(all);
    told.into_iter().for_each(|(lost, count, number, data)| lost(count, number, data));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place() {
        for (at, event) in EVENTS.iter().enumerate() {
            assert_eq!(event.subject.event(), Some(at), "{}", event.name);
            assert!(!event.elements.is_empty() && event.elements.len() <= VALUES);
        }
        assert_eq!(Subject::Files.event(), None);
    }
}
