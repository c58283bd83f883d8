//! The registry of all counters: performance variables for tools (MPI-5.0 section 15.3.7), and the numbers of
//! `TYPEPACK_REPORT`.
//!
//! Most counters are kept by the library for itself; a row of the table says how to read them. A counter that is only
//! kept on request belongs to a subject of `counting.rs`, which a handle switches on (`session.rs`).

use super::counting::{CALL_KINDS, CallKind, Counter, Subject};
use super::{Fault, Result, endpoint};
use crate::comm::{Communicator, Space, WeakCommunicator};
use crate::commit::{KernelCounters, counters as kernels};
use crate::endpoint::engine::Traffic;
use crate::endpoint::matching::QueueCounts;
use crate::settings::COLLECTIVES;
use crate::variables::{Audience, Topic};
use std::sync::LazyLock;
use typepack_engine::choice::store;
use typepack_engine::stats::{self, Bytes};

/// What a counter means (`MPI_T_PVAR_CLASS_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// How much of something there is now. Cannot be started, stopped, or changed.
    Level,
    /// The number of times that something has happened.
    Counter,
    /// A sum of amounts.
    Aggregate,
    /// A time in seconds.
    Timer,
}

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A number.
    Whole(u64),
    /// A time in seconds.
    Seconds(f64),
}

/// How a counter is read.
#[derive(Clone, Copy, Debug)]
enum Source {
    Traffic(fn(&Traffic) -> u64),
    Queues(fn(&QueueCounts) -> u64),
    UnexpectedBytes,
    Moved(fn(&Bytes) -> u64),
    Kernels(fn(&KernelCounters) -> u64),
    /// A time of the code generator in nanoseconds.
    KernelTime(fn(&KernelCounters) -> u64),
    Counted(Subject, Counter),
    /// A time in nanoseconds that is only counted on request.
    CountedTime(Subject, Counter),
    LateNews,
    Choices,
    /// Of a communicator: the number of its collective calls.
    Calls,
    /// Of a communicator: the number of its unexpected messages.
    Unexpected,
}

/// A counter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Performance {
    /// The name.
    pub name: String,
    /// What is counted, and in which unit.
    pub meaning: String,
    /// What the number means.
    pub class: Class,
    /// What the counter is about.
    pub topic: Topic,
    /// For whom it is meant.
    pub audience: Audience,
    /// Its name in the report.
    label: &'static str,
    source: Source,
}

impl Performance {
    /// Returns whether each communicator has a counter of its own.
    pub fn is_of_communicator(&self) -> bool {
        matches!(self.source, Source::Calls | Source::Unexpected)
    }

    /// Returns whether the counter always counts, so that it cannot be started or stopped, and cannot be changed.
    pub fn is_level(&self) -> bool {
        self.class == Class::Level
    }

    /// Returns the value after which the count begins anew.
    pub(super) fn greatest(&self) -> u64 {
        if matches!(self.source, Source::Calls) { u64::from(u32::MAX) } else { u64::MAX }
    }

    /// Returns the subject that must be switched on for this counter.
    pub(super) fn subject(&self) -> Option<Subject> {
        match self.source {
            Source::Counted(subject, _) | Source::CountedTime(subject, _) => Some(subject),
            _ => None,
        }
    }

    /// Returns the value since the process began, or now if it is a level.
    ///
    /// # Errors
    /// Returns [`Fault::NotAccessible`] in a forked child, and [`Fault::Handle`] if the communicator has been freed.
    pub(super) fn now(&self, object: Option<&WeakCommunicator>) -> Result<Amount> {
        let of_engine = |look: &dyn Fn(&crate::endpoint::engine::MessageEngine) -> u64| {
            // Before the process joins the job, nothing has happened.
            let value = endpoint().map_or(Some(0), |endpoint| endpoint.inspect(|e| look(e)));
            value.ok_or(Fault::NotAccessible)
        };
        let of_communicator = |look: &dyn Fn(&Communicator) -> Result<u64>| {
            let comm = object.and_then(WeakCommunicator::upgrade).ok_or(Fault::Handle)?;
            look(&comm)
        };
        let value = match self.source {
            Source::Traffic(of) => of_engine(&|engine| of(&engine.traffic()))?,
            Source::Queues(of) => of_engine(&|engine| of(&engine.queues().0))?,
            Source::UnexpectedBytes => of_engine(&|engine| engine.queues().1)?,
            Source::Moved(of) => of(&stats::bytes()),
            Source::Kernels(of) => of(&kernels()),
            Source::KernelTime(of) => return Ok(seconds(of(&kernels()))),
            Source::Counted(_, counter) => counter.get(),
            Source::CountedTime(_, counter) => return Ok(seconds(counter.get())),
            Source::LateNews => {
                let unrung = endpoint().map_or(Some(0), |endpoint| endpoint.late_news());
                unrung.ok_or(Fault::NotAccessible)?
            }
            Source::Choices => store().remembered().len() as u64,
            Source::Calls => of_communicator(&|comm| Ok(comm.calls()))?,
            Source::Unexpected => of_communicator(&|comm| {
                let waiting =
                    comm.endpoint().inspect(|engine| engine.unexpected_in(comm.space(Space::User)));
                waiting.ok_or(Fault::NotAccessible)
            })?,
        };
        Ok(Amount::Whole(value))
    }
}

fn seconds(nanoseconds: u64) -> Amount {
    Amount::Seconds(nanoseconds as f64 / 1e9)
}

/// Returns all counters. The place of a counter in the list is its index.
#[doc(alias = "MPI_T_pvar_get_info")]
pub fn counters() -> &'static [Performance] {
    static COUNTERS: LazyLock<Vec<Performance>> = LazyLock::new(|| {
        let mut all = Vec::new();
        messages(&mut all);
        packing(&mut all);
        others(&mut all);
        collectives(&mut all);
        all
    });
    &COUNTERS
}

/// Adds rows to the list: name, name in the report, class, source, meaning.
fn add<const N: usize>(
    all: &mut Vec<Performance>,
    (topic, audience): (Topic, Audience),
    rows: [(&str, &'static str, Class, Source, &str); N],
) {
    all.extend(rows.map(|(name, label, class, source, meaning)| Performance {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        class,
        topic,
        audience,
        label,
        source,
    }));
}

#[rustfmt::skip]
fn messages(all: &mut Vec<Performance>) {
    use Class::{Aggregate, Counter, Level};
    use Source::{Queues, Traffic as Sent, Unexpected, UnexpectedBytes};
    add(all, (Topic::Messages, Audience::User), [
        ("messages_sent", "", Counter, Sent(|t| t.messages),
            "Messages that this rank has sent, also to itself, and also those of the library's own."),
        ("bytes_sent", "", Aggregate, Sent(|t| t.bytes), "Packed bytes of the messages that this rank has sent."),
    ]);
    add(all, (Topic::Messages, Audience::Tuner), [
        ("messages_eager", "eager", Counter, Sent(|t| t.eager),
            "Messages that this rank has packed into the ring as one piece."),
        ("messages_parts", "parts", Counter, Sent(|t| t.fragments),
            "Messages that have gone through the ring in fragments."),
        ("messages_pipeline", "pipeline", Counter, Sent(|t| t.pipelined),
            "Messages that this rank has packed into chunks."),
        ("messages_heap", "heap", Counter, Sent(|t| t.fused),
            "Messages that have been copied in place out of the shared heap."),
        ("messages_cma", "cma", Counter, Sent(|t| t.private),
            "Messages that the receiver has copied out of this rank's private memory."),
        ("messages_to_itself", "to itself", Counter, Sent(|t| t.own), "Messages of this rank to itself."),
        ("messages_not_delivered", "not delivered", Counter, Sent(|t| t.undelivered),
            "Messages to other ranks that the receiver has refused, or that this rank has cancelled in time."),
        ("messages_under_way", "under way", Level, Sent(Traffic::under_way),
            "Messages that no protocol has carried yet, for example because no receive matches them."),
        ("unexpected_messages", "", Level, Queues(|q| q.messages),
            "Messages that have arrived and that no receive has matched yet."),
        ("unexpected_bytes", "", Level, UnexpectedBytes,
            "Bytes of memory that the unexpected messages of other ranks occupy."),
        ("unexpected_messages_of_communicator", "", Level, Unexpected,
            "Messages of a communicator that have arrived and that no receive has matched yet."),
        ("posted_receives", "", Level, Queues(|q| q.receives), "Receives that wait for their messages."),
        ("messages_queued", "", Counter, Queues(|q| q.messages_queued),
            "Messages that were put into the queue of unexpected messages, because no receive matched them."),
        ("receives_queued", "", Counter, Queues(|q| q.receives_queued),
            "Receives that were put into the queue of posted receives, because no message matched them."),
    ]);
}

#[rustfmt::skip]
fn packing(all: &mut Vec<Performance>) {
    use Class::{Aggregate, Counter, Level, Timer};
    use Source::{KernelTime, Kernels, Moved};
    add(all, (Topic::Packing, Audience::Tuner), [
        ("bytes_memcpy", "memcpy", Aggregate, Moved(|b| b.memcpy), "Packed bytes of contiguous types."),
        ("bytes_rows", "rows", Aggregate, Moved(|b| b.rows), "Packed bytes of rows of at least 8 KiB."),
        ("bytes_leaf_kernels", "leaf kernels", Aggregate, Moved(|b| b.leaf),
            "Packed bytes that the library's own kernels have moved."),
        ("bytes_compiled_kernels", "compiled kernels", Aggregate, Moved(|b| b.kernel),
            "Packed bytes that compiled kernels have moved."),
        ("bytes_fused_copies", "fused copies", Aggregate, Moved(|b| b.fused),
            "Packed bytes that were copied straight from one layout to another."),
        ("bytes_compiled_copies", "compiled copies", Aggregate, Moved(|b| b.fused_kernel),
            "Packed bytes that compiled kernels have copied straight from one layout to another."),
        ("bytes_interpreter", "interpreter", Aggregate, Moved(|b| b.interpreter),
            "Packed bytes that the interpreter has moved."),
        ("kernel_disagreements", "", Counter, Moved(|b| b.disagreements),
            "Wrong results of kernels that were found with TYPEPACK_VERIFY=1."),
    ]);
    add(all, (Topic::Compiler, Audience::Tuner), [
        ("kernels_compiled", "", Counter, Kernels(|k| k.kernels), "Kernels that were compiled."),
        ("kernel_cache_hits", "hits", Counter, Kernels(|k| k.hits), "Kernels that were found in the cache."),
        ("kernel_refusals", "refusals", Counter, Kernels(|k| k.refusals),
            "Requests for kernels that the code generator has refused."),
        ("kernel_compile_time", "", Timer, KernelTime(|k| k.compile_ns), "Time of all compilations in seconds."),
        ("kernel_code_bytes", "", Level, Kernels(|k| k.code_bytes), "Bytes of machine code that were made."),
    ]);
}

#[rustfmt::skip]
fn others(all: &mut Vec<Performance>) {
    use Class::{Aggregate, Counter, Level, Timer};
    use Source::{Choices, Counted, CountedTime, LateNews};
    use super::counting::Counter as Count;
    add(all, (Topic::Messages, Audience::Tuner), [
        ("partitions_ready", "ready", Counter, Counted(Subject::Partitions, Count::PARTITIONS_READY),
            "Partitions of sends that were marked ready and have gone to a process."),
        ("partitions_arrived", "arrived", Counter, Counted(Subject::Partitions, Count::PARTITIONS_ARRIVED),
            "Partitions of receives that have arrived."),
        ("partition_bytes_sent", "bytes", Aggregate, Counted(Subject::Partitions, Count::PARTITION_BYTES),
            "Packed bytes of the partitions that were marked ready."),
    ]);
    add(all, (Topic::Windows, Audience::Tuner), [
        ("window_puts", "puts", Counter, Counted(Subject::Windows, Count::PUTS), "Puts into windows."),
        ("window_gets", "gets", Counter, Counted(Subject::Windows, Count::GETS), "Gets from windows."),
        ("window_accumulates", "accumulates", Counter, Counted(Subject::Windows, Count::ACCUMULATES),
            "Updates of windows: accumulates, fetches and compare-and-swaps."),
    ]);
    add(all, (Topic::Files, Audience::Tuner), [
        ("file_reads", "reads", Counter, Counted(Subject::Files, Count::READS), "Accesses that read files."),
        ("file_writes", "writes", Counter, Counted(Subject::Files, Count::WRITES), "Accesses that write files."),
        ("file_bytes_read", "bytes read", Aggregate, Counted(Subject::Files, Count::BYTES_READ),
            "Bytes of memory that accesses have read from files."),
        ("file_bytes_written", "bytes written", Aggregate, Counted(Subject::Files, Count::BYTES_WRITTEN),
            "Bytes of memory that accesses have written to files."),
        ("file_accesses_mapped", "mapped", Counter, Counted(Subject::Files, Count::MAPPED),
            "Accesses whose data have gone through the mapped window of the file."),
    ]);
    add(all, (Topic::Waiting, Audience::Tuner), [
        ("sleeps", "sleeps", Counter, Counted(Subject::Waits, Count::SLEEPS),
            "Times that a thread of this rank has slept in a call, after it had looked in vain for a while."),
        ("sleep_time", "", Timer, CountedTime(Subject::Waits, Count::ASLEEP),
            "Time that the threads of this rank have slept in calls, in seconds."),
        ("sleeps_without_wake_up", "", Counter, LateNews,
            "Sleeps that ended by their time limit although there was news."),
    ]);
    add(all, (Topic::Library, Audience::TunerDetail), [
        ("choices", "", Level, Choices, "Choices between several ways that measurements have decided."),
    ]);
}

fn collectives(all: &mut Vec<Performance>) {
    let meaning = "Collective calls on a communicator, also those that the library makes itself.";
    let calls = ("collective_calls", "", Class::Counter, Source::Calls, meaning);
    add(all, (Topic::Collectives, Audience::User), [calls]);
    let kinds = [
        (CallKind::Flags, "Blocking calls of {} through memory that the ranks share."),
        (CallKind::Messages, "Blocking calls of {} by messages."),
        (CallKind::Nonblocking, "Nonblocking calls of {}."),
        (CallKind::Persistent, "Starts of persistent operations of {}."),
    ];
    for (operation, name) in COLLECTIVES.into_iter().enumerate() {
        all.extend(kinds.map(|(kind, meaning)| Performance {
            name: format!("collective_{name}_{}", CALL_KINDS[kind as usize]),
            meaning: meaning.replace("{}", name),
            class: Class::Counter,
            topic: Topic::Collectives,
            audience: Audience::Tuner,
            label: name,
            source: Source::Counted(Subject::Collectives, Counter::of_collective(operation, kind)),
        }));
    }
}

/// Returns the values and the names of those counters that the report prints together.
fn parts(is_part: impl Fn(&Performance) -> bool) -> Vec<(&'static str, u64)> {
    let parts = counters().iter().filter(|counter| !counter.label.is_empty() && is_part(counter));
    let value = |counter: &Performance| match counter.now(None) {
        Ok(Amount::Whole(value)) => value,
        Ok(Amount::Seconds(_)) | Err(_) => 0,
    };
    parts.map(|counter| (counter.label, value(counter))).collect()
}

/// Returns the number of sent messages of each protocol.
pub(crate) fn sent_messages() -> Vec<(&'static str, u64)> {
    parts(|counter| matches!(counter.source, Source::Traffic(_)))
}

/// Returns the bytes that each executor has moved.
pub(crate) fn moved_bytes() -> Vec<(&'static str, u64)> {
    parts(|counter| matches!(counter.source, Source::Moved(_)))
}

/// Returns what was counted on request: a title for each line, and the counters of the line.
pub(crate) fn counted_calls() -> Vec<(String, Vec<(&'static str, u64)>)> {
    let of = |subject| parts(|counter| counter.subject() == Some(subject));
    let kinds = CALL_KINDS.into_iter().map(|kind| {
        let ends = |counter: &Performance| {
            counter.subject() == Some(Subject::Collectives) && counter.name.ends_with(kind)
        };
        (format!("collective calls, {kind}:"), parts(ends))
    });
    let lines = [
        ("partitions:".to_owned(), of(Subject::Partitions)),
        ("one-sided calls:".to_owned(), of(Subject::Windows)),
        ("accesses to files:".to_owned(), of(Subject::Files)),
        ("waits:".to_owned(), of(Subject::Waits)),
    ];
    kinds.chain(lines).filter(|(_, parts)| parts.iter().any(|(_, value)| *value > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_can_be_read_before_the_process_joins_a_job() {
        for counter in counters().iter().filter(|counter| !counter.is_of_communicator()) {
            let value = counter.now(None).expect(&counter.name);
            assert_eq!(matches!(value, Amount::Seconds(_)), counter.class == Class::Timer);
        }
        let of_communicator: Vec<_> =
            counters().iter().filter(|c| c.is_of_communicator()).collect();
        assert_eq!(of_communicator.len(), 2);
        assert!(of_communicator.iter().all(|counter| counter.now(None) == Err(Fault::Handle)));
    }

    #[test]
    fn the_parts_of_the_report_are_all_counters_of_a_kind() {
        let names = |parts: Vec<(&'static str, u64)>| -> Vec<&str> {
            parts.into_iter().map(|(name, _)| name).collect()
        };
        let bytes = Bytes::default();
        let wanted: Vec<&str> = bytes.parts().iter().map(|(name, _)| *name).collect();
        assert_eq!(names(moved_bytes()), wanted);
        assert_eq!(names(sent_messages()).len(), 8);
    }
}
