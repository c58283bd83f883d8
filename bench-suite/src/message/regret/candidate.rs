//! The forced ways of a message or of a collective call, and the environment variables that force them. The *way* of a
//! message is how its bytes get from one rank to the other: the transport and its copy method. The way of a collective
//! call is one of the methods of `TYPEPACK_COLL`.
//!
//! `mod.rs` starts a job for each candidate, and `command.rs` asks which candidates are possible for a row.

use crate::message::definition::{Definition, Definitions, Memory};
use crate::regret::report::{FREE, OFF, STATIC};
use crate::row::kind::Kind;
use typepack_engine::choice::{SHORT, WAITS};
use typepack_engine::contiguous::{self, Method};

/// The variables that force a way or influence the free choice. None of them may be set when a run begins,
/// because the free choice must be free.
pub const VARIABLES: [&str; 5] =
    ["TYPEPACK_TRANSPORT", "TYPEPACK_COPY", "TYPEPACK_COLL", "TYPEPACK_TUNE", "TYPEPACK_TUNE_FILE"];

/// The choices that a run judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choices {
    /// The ways of messages (`typepack-bench regret messages`).
    #[default]
    Messages,
    /// The methods of blocking collective calls (`typepack-bench regret collectives`).
    Collectives,
}

impl Choices {
    /// Returns the built-in rows.
    pub fn definitions(self) -> Definitions {
        match self {
            Self::Messages => Definitions::regret(),
            Self::Collectives => Definitions::of(Kind::Collectives),
        }
    }

    /// Returns the kinds of memory of the buffers.
    pub fn memories(self) -> Vec<Memory> {
        match self {
            Self::Messages => vec![Memory::User, Memory::Alloc],
            Self::Collectives => vec![Memory::User],
        }
    }

    /// Returns the names of all candidates of this machine, in the order of the columns.
    pub fn names(self) -> Vec<String> {
        match self {
            Self::Messages => names(),
            Self::Collectives => METHODS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

/// The methods of collective calls, with the values of `TYPEPACK_COLL` that force them.
const METHODS: [(&str, &str); 5] = [
    ("messages", "all:messages"),
    ("cells", "all:cells"),
    ("whole", "all:cells,all:whole"),
    ("slices", "all:cells,all:slices"),
    ("pieces", "all:cells,all:pieces"),
];

/// One way of a message or of a collective call, or the free choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name in rows: `free`, `ring-vector`, `heap-repeat`, `cma`, …
    pub name: String,
    variables: Vec<(&'static str, String)>,
}

impl Candidate {
    /// Returns the free choice, which has no variables.
    pub fn free() -> Self {
        Self { name: FREE.to_owned(), variables: Vec::new() }
    }

    /// Returns the static order: what the library does if it measures nothing.
    pub fn unmeasured() -> Self {
        Self { name: STATIC.to_owned(), variables: vec![("TYPEPACK_TUNE", "off".to_owned())] }
    }

    /// Returns the free choice without the chooser with this name.
    pub fn without(chooser: &str) -> Self {
        let name = format!("{OFF}{chooser}");
        Self { name: name.clone(), variables: vec![("TYPEPACK_TUNE", name)] }
    }

    fn forced(transport: &'static str, method: Option<Method>) -> Self {
        let mut variables = vec![("TYPEPACK_TRANSPORT", transport), ("TYPEPACK_TUNE", "off")];
        variables.extend(method.map(|method| ("TYPEPACK_COPY", method.name())));
        let variables =
            variables.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        let name = method.map_or(transport.to_owned(), |method| format!("{transport}-{method}"));
        Self { name, variables }
    }

    /// Returns the environment variables of the candidate's jobs.
    pub fn environment(&self) -> impl Iterator<Item = (String, String)> + use<'_> {
        self.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))
    }
}

/// Returns the candidates that are possible for `row` with buffers in `memory` on this machine. Copies through chunks
/// (`ring`) are possible for all rows, and copies out of the shared heap (`heap`) for memory of `MPI_Alloc_mem`; each
/// of them exists with every copy method of the machine. So do messages in `parts`, if the row's name says that a
/// message has more than 8 KiB and at most 256 KiB. Contiguous data can also be packed with each other method and
/// unpacked with streaming stores (`streamed`). Copies between private memories (`cma`) are possible for contiguous
/// user memory; the operating system carries them out with a method of its own.
///
/// Every collective call can go by messages or through cells. In the cells of a reduction whose result all ranks or one
/// rank need, the ranks combine all elements or a slice each (`whole`, `slices`). Most calls can cut longer data into
/// pieces of another length (`pieces`).
pub fn possible(row: &Definition, memory: Memory) -> Vec<Candidate> {
    if let Some(operation) = row.collective() {
        let operation = operation.trim_end_matches("user");
        let reduces = ["reduce", "allreduce"].contains(&operation);
        // The library cuts shorter data always alike.
        let is_cut = row.collective_bytes().is_some_and(|bytes| bytes >= 64 << 10);
        let is_possible = |name: &str| match name {
            "cells" => !reduces,
            "whole" | "slices" => reduces,
            // These calls have pieces of another length.
            "pieces" => {
                let cut = ["bcast", "scan", "exscan", "allgather", "alltoall"];
                is_cut && (reduces || cut.contains(&operation))
            }
            _ => true,
        };
        let found = METHODS.iter().filter(|(name, _)| is_possible(name));
        let candidate = |&(name, value): &(&str, &'static str)| Candidate {
            name: name.to_owned(),
            variables: vec![("TYPEPACK_COLL", value.to_owned())],
        };
        return found.map(candidate).collect();
    }
    let methods: Vec<Method> = contiguous::available().collect();
    let parts = row.message_bytes().is_some_and(|bytes| bytes > 8 << 10 && bytes <= 256 << 10);
    with(&methods, row.is_contiguous(), parts, memory)
}

/// Returns the names of the choosers that act in the job of the free choice of a row and decide a part of its time.
pub fn choosers(row: &Definition, memory: Memory) -> Vec<&'static str> {
    if let (Some(operation), Some(bytes)) = (row.collective(), row.collective_bytes()) {
        let keys = [
            "bcast",
            "reduce",
            "allreduce",
            "allreduceuser",
            "scan",
            "exscan",
            "allgather",
            "alltoall",
        ];
        // All ranks together have at least 16 KiB.
        let competes = keys.contains(&operation) && bytes * row.ranks as u64 >= 16 << 10;
        // Ranks that share CPUs copy their pieces in the static way. A job of more than two ranks has two CPUs
        // (`session.rs`).
        let shares = row.ranks > std::thread::available_parallelism().map_or(1, usize::from).min(2);
        let other = match bytes >= 4096 {
            true => (!shares).then_some("pieces"),
            false => Some(WAITS),
        };
        return competes.then_some("collective").into_iter().chain(other).collect();
    }
    match (row.message_bytes(), memory) {
        (Some(..=8192), _) => vec![SHORT, WAITS],
        // The copies in place of memory of `MPI_Alloc_mem` have no parts.
        (Some(..=262_144) | None, Memory::User) => vec!["messages", "parts"],
        _ => vec!["messages"],
    }
}

/// Returns the names of all candidates for messages on this machine.
fn names() -> Vec<String> {
    let methods: Vec<Method> = contiguous::available().collect();
    let mut list = with(&methods, true, true, Memory::Alloc);
    let user = with(&methods, true, true, Memory::User);
    list.extend(user.into_iter().filter(|candidate| candidate.name == "cma"));
    list.into_iter().map(|candidate| candidate.name).collect()
}

fn with(methods: &[Method], contiguous: bool, parts: bool, memory: Memory) -> Vec<Candidate> {
    let each =
        |transport| methods.iter().map(move |&method| Candidate::forced(transport, Some(method)));
    let mut list: Vec<Candidate> = each("ring").collect();
    if parts {
        list.extend(each("parts"));
    }
    if contiguous && methods.contains(&Method::Streaming) {
        let fills = |method: &&Method| matches!(method, Method::Vector | Method::Repeat);
        let fill = methods.iter().filter(fills);
        list.extend(fill.map(|&method| Candidate::forced("streamed", Some(method))));
    }
    match memory {
        Memory::Alloc => list.extend(each("heap")),
        Memory::User if contiguous => list.push(Candidate::forced("cma", None)),
        Memory::User => {}
    }
    list
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Choices, Memory, Method, choosers, possible, with};
    use crate::message::definition::Definitions;

    fn shown(list: &[Candidate]) -> Vec<&str> {
        list.iter().map(|candidate| candidate.name.as_str()).collect()
    }

    #[test]
    fn candidates_depend_on_memory_layout_and_machine() {
        let two = [Method::Vector, Method::Repeat];
        assert_eq!(
            shown(&with(&two, true, false, Memory::User)),
            ["ring-vector", "ring-repeat", "cma"]
        );
        assert_eq!(shown(&with(&two, false, false, Memory::User)), ["ring-vector", "ring-repeat"]);
        let all = ["ring-vector", "ring-repeat", "heap-vector", "heap-repeat"];
        assert_eq!(shown(&with(&two, true, false, Memory::Alloc)), all);
        assert_eq!(shown(&with(&two, false, false, Memory::Alloc)), all);
        let streams = with(&[Method::Vector, Method::Streaming], true, false, Memory::User);
        let all = ["ring-vector", "ring-streaming", "streamed-vector", "cma"];
        assert_eq!(shown(&streams), all);
        let parts = with(&two, false, true, Memory::User);
        let all = ["ring-vector", "ring-repeat", "parts-vector", "parts-repeat"];
        assert_eq!(shown(&parts), all);
        let one = with(&[Method::Vector], true, false, Memory::Alloc);
        assert_eq!(shown(&one), ["ring-vector", "heap-vector"]);
    }

    #[test]
    fn candidates_force_everything_and_the_free_choice_nothing() {
        let list = with(&[Method::Streaming], true, false, Memory::User);
        let of = |candidate: &Candidate| {
            let mut list: Vec<String> =
                candidate.environment().map(|(name, value)| format!("{name}={value}")).collect();
            list.sort();
            list
        };
        assert_eq!(
            of(&list[0]),
            ["TYPEPACK_COPY=streaming", "TYPEPACK_TRANSPORT=ring", "TYPEPACK_TUNE=off"]
        );
        assert_eq!(of(&list[1]), ["TYPEPACK_TRANSPORT=cma", "TYPEPACK_TUNE=off"]);
        assert!(of(&Candidate::free()).is_empty());
        assert_eq!(of(&Candidate::unmeasured()), ["TYPEPACK_TUNE=off"]);
        assert_eq!(of(&Candidate::without("parts")), ["TYPEPACK_TUNE=off:parts"]);
    }

    #[test]
    fn collective_calls_have_several_candidates() {
        let names = Choices::Collectives.names();
        for row in &Choices::Collectives.definitions().rows {
            let list = possible(row, Memory::User);
            assert!(list.iter().all(|candidate| names.contains(&candidate.name)), "{list:?}");
            let is_cut = row.collective_bytes().expect("a collective") >= 64 << 10;
            let wanted: &[&str] = match row.collective().expect("a collective") {
                "reduce" | "allreduce" | "allreduceuser" if is_cut => {
                    &["messages", "whole", "slices", "pieces"]
                }
                "reduce" | "allreduce" | "allreduceuser" => &["messages", "whole", "slices"],
                "bcast" | "scan" | "exscan" | "allgather" | "alltoall" if is_cut => {
                    &["messages", "cells", "pieces"]
                }
                _ => &["messages", "cells"],
            };
            assert_eq!(shown(&list), wanted, "{}", row.name);
        }
    }

    #[test]
    fn every_row_has_choosers_that_the_library_knows() {
        for choices in [Choices::Messages, Choices::Collectives] {
            for row in &choices.definitions().rows {
                for memory in [Memory::User, Memory::Alloc] {
                    let found = choosers(row, memory);
                    let known = |name| typepack_engine::choice::CHOOSERS.contains(name);
                    // Ranks that share CPUs decide less by measurement, here the two ranks of a machine of one CPU, too.
                    let is_one =
                        std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
                    assert!(!found.is_empty() || row.ranks > 2 || is_one, "{}", row.name);
                    assert!(found.iter().all(known), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn every_built_in_row_has_columns_for_its_candidates() {
        let names = Choices::Messages.names();
        assert_eq!(names.iter().filter(|name| *name == "cma").count(), 1);
        for row in &Definitions::regret().rows {
            for memory in [Memory::User, Memory::Alloc] {
                let list = possible(row, memory);
                assert!(list.iter().all(|candidate| names.contains(&candidate.name)), "{list:?}");
                let cma = list.iter().any(|candidate| candidate.name == "cma");
                let contiguous = row.name.starts_with("contig-");
                assert_eq!(cma, contiguous && memory == Memory::User, "{}", row.name);
            }
        }
    }
}
