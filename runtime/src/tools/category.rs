//! Categories (MPI-5.0 section 15.3.9): one for the library, and below it one for each [`Topic`].

use super::control::controls;
use super::event::events;
use super::performance::counters;
use crate::variables::Topic;
use std::sync::LazyLock;

/// A category.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Category {
    /// The name.
    pub name: &'static str,
    /// What is in the category.
    pub meaning: &'static str,
    /// The indices of its settings.
    pub controls: Vec<usize>,
    /// The indices of its counters.
    pub counters: Vec<usize>,
    /// The indices of its kinds of events.
    pub events: Vec<usize>,
    /// The indices of the categories in it.
    pub categories: Vec<usize>,
}

/// The topics, with the names and the descriptions of their categories.
const TOPICS: [(Topic, &str, &str); 9] = [
    (Topic::Library, "library", "Checks, reports, warnings, and what the library measures."),
    (Topic::Packing, "packing", "Packing, unpacking, and copies from one layout to another."),
    (Topic::Compiler, "compiler", "The code generator, which compiles kernels for datatypes."),
    (Topic::Messages, "messages", "Messages between ranks, and the queues in which they wait."),
    (
        Topic::Collectives,
        "collectives",
        "Collective calls, also those that the library makes itself.",
    ),
    (Topic::Windows, "windows", "One-sided calls."),
    (Topic::Files, "files", "Files, also those of nonblocking and collective accesses."),
    (Topic::Waiting, "waiting", "How ranks wait."),
    (Topic::Programs, "programs", "What mpiexec, mpicc and other programs read."),
];

/// Returns all categories. The place of a category in the list is its index. The list never changes.
#[doc(alias = "MPI_T_category_get_info")]
pub fn categories() -> &'static [Category] {
    static CATEGORIES: LazyLock<Vec<Category>> = LazyLock::new(|| {
        let all = Category {
            name: "typepack",
            meaning: "Everything.",
            controls: Vec::new(),
            counters: Vec::new(),
            events: Vec::new(),
            categories: (1..=TOPICS.len()).collect(),
        };
        let of = |(topic, name, meaning): (Topic, &'static str, &'static str)| {
            let places = |topics: Vec<Topic>| {
                let all = topics.into_iter().enumerate();
                all.filter(|(_, other)| *other == topic).map(|(at, _)| at).collect()
            };
            Category {
                name,
                meaning,
                controls: places(controls().iter().map(|control| control.topic).collect()),
                counters: places(counters().iter().map(|counter| counter.topic).collect()),
                events: places(events().iter().map(|event| event.topic).collect()),
                categories: Vec::new(),
            }
        };
        [all].into_iter().chain(TOPICS.map(of)).collect()
    });
    &CATEGORIES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everything_is_in_one_category() {
        let all = categories();
        let sum = |of: fn(&Category) -> &Vec<usize>| -> Vec<usize> {
            let mut all: Vec<usize> =
                all.iter().flat_map(|category| of(category).clone()).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sum(|c| &c.controls), (0..controls().len()).collect::<Vec<_>>());
        assert_eq!(sum(|c| &c.counters), (0..counters().len()).collect::<Vec<_>>());
        assert_eq!(sum(|c| &c.events), (0..events().len()).collect::<Vec<_>>());
        assert_eq!(sum(|c| &c.categories), (1..all.len()).collect::<Vec<_>>());
        let names: BTreeSet<&str> = all.iter().map(|category| category.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn names_are_unique_and_everything_is_described() {
        let names: BTreeSet<&str> =
            counters().iter().map(|counter| counter.name.as_str()).collect();
        assert_eq!(names.len(), counters().len());
        assert!(counters().iter().all(|counter| counter.meaning.ends_with('.')));
        assert!(controls().iter().all(|control| !control.meaning.is_empty()));
        assert!(categories().iter().all(|category| category.meaning.ends_with('.')));
    }
}
