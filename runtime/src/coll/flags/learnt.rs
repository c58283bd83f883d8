//! What a process has learnt about blocking collective calls, for later communicators and, through the file of
//! `TYPEPACK_TUNE_FILE`, for later jobs.
//!
//! `choices.rs` and `copies.rs` measure for one communicator. When they have compared all ways, they note the best one
//! here, and when a communicator makes its first call of a kind, they begin with the way that is noted here. They go on
//! measuring as they do without it. `tuned/file.rs` defines the file. There are two kinds of lines:
//!
//! ```text
//! collective near alone allreduce 2 65536 slices
//! pieces near alone 16384 repeat
//! ```
//!
//! Both kinds begin with the site of the ranks ([`Site`]). The first kind goes on with the operation, the number of
//! ranks, the least number of bytes of each rank (in an alltoall, of each part), and the best way. The second kind is
//! about pieces of data in the rings: the least number of bytes, and the method with which a rank writes them.

use super::MOST;
use super::choices::{Key, Way};
use super::copies;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typepack_engine::contiguous::Method;

const COLLECTIVE: &str = "collective";
const PIECES: &str = "pieces";

/// The words for the two values of [`Site::far`] and of [`Site::share_cpus`].
const DISTANCE: [&str; 2] = ["near", "far"];
const CPUS: [&str; 2] = ["alone", "crowded"];

/// Where the ranks of a communicator run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    /// True if the core of this rank and the core of another rank share no cache, by the table of the launcher.
    pub(super) far: bool,
    /// True if ranks share CPUs. The pieces then have other lengths.
    pub(super) share_cpus: bool,
}

impl Site {
    fn words(self) -> String {
        format!("{} {}", DISTANCE[usize::from(self.far)], CPUS[usize::from(self.share_cpus)])
    }

    fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut flag = |names: [&str; 2]| {
            let word = words.next()?;
            names.iter().position(|name| *name == word).map(|at| at == 1)
        };
        Some(Self { far: flag(DISTANCE)?, share_cpus: flag(CPUS)? })
    }
}

/// What a process has learnt about one kind of calls or pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// The best way of the calls with a key among `size` ranks.
    Way { site: Site, key: Key, size: usize, way: Way },
    /// The best method for the pieces of a size class.
    Pieces { site: Site, class: usize, method: Method },
}

/// The subject of a [`Learnt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Calls { site: Site, operation: u8, size: usize, class: u8 },
    Pieces { site: Site, class: usize },
}

impl Learnt {
    fn subject(&self) -> Subject {
        match *self {
            Self::Way { site, key: Key { operation, class }, size, .. } => {
                Subject::Calls { site, operation, size, class }
            }
            Self::Pieces { site, class, .. } => Subject::Pieces { site, class },
        }
    }

    /// Returns the line of the file.
    pub(crate) fn line(&self) -> String {
        match *self {
            Self::Way { site, key, size, way } => {
                let (operation, way) = (word(key.name()), word(way.name(key.reduces())));
                format!("{COLLECTIVE} {} {operation} {size} {} {way}", site.words(), key.bytes())
            }
            Self::Pieces { site, class, method } => {
                format!("{PIECES} {} {} {method}", site.words(), copies::least(class))
            }
        }
    }

    /// Reads a line of the file. Returns `None` if the line is not one that typepack writes, or if this machine does
    /// not have the method.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let site = Site::parse(&mut words)?;
        let learnt = match kind {
            COLLECTIVE => {
                let operation = words.next()?;
                let size = words.next()?.parse().ok().filter(|size| (2..=MOST).contains(size))?;
                let bytes: u64 = words.next()?.parse().ok()?;
                let is_this = |key: &Key| key.bytes() == bytes && word(key.name()) == operation;
                let key = Key::all().find(is_this)?;
                let way = words.next()?;
                let way =
                    key.ways(size).into_iter().find(|of| word(of.name(key.reduces())) == way)?;
                Self::Way { site, key, size, way }
            }
            PIECES => {
                let bytes: u64 = words.next()?.parse().ok()?;
                let class = (0..copies::CLASSES).find(|class| copies::least(*class) == bytes)?;
                Self::Pieces { site, class, method: words.next()?.parse().ok()? }
            }
            _ => return None,
        };
        words.next().is_none().then_some(learnt)
    }
}

/// Says for people where the ranks run, if it is not the usual place: near each other, each with a CPU of its own.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let far = if self.far { ", far" } else { "" };
        let shared = if self.share_cpus { ", CPUs shared" } else { "" };
        write!(f, "{far}{shared}")
    }
}

/// Says what was learnt, for people.
impl fmt::Display for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Way { site, key, size, way } => {
                let (from, name) = (key.bytes() as f64 / 1024.0, key.name());
                let way = way.name(key.reduces());
                write!(f, "from {from} KiB, collective {name} of {size} ranks{site}: {way}")
            }
            Self::Pieces { site, class, method } => {
                let from = copies::least(class) >> 10;
                write!(f, "from {from} KiB, pieces of collective calls{site}: {method}")
            }
        }
    }
}

/// Returns a name as one word of the file.
fn word(name: &str) -> String {
    name.replace(", ", "-").replace(' ', "-")
}

/// What a process has learnt in this job and has from earlier jobs.
#[derive(Debug, Default)]
pub(crate) struct Store {
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    earlier: BTreeMap<Subject, Learnt>,
    found: BTreeMap<Subject, Learnt>,
}

impl Store {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses what earlier jobs have learnt.
    pub(crate) fn know(&self, learnt: &[Learnt]) {
        let learnt = learnt.iter().map(|learnt| (learnt.subject(), *learnt));
        self.lists().earlier.extend(learnt);
    }

    /// Notes the best of the ways that this process has compared.
    pub(super) fn note(&self, learnt: Learnt) {
        self.lists().found.insert(learnt.subject(), learnt);
    }

    fn get(&self, subject: Subject) -> Option<Learnt> {
        let lists = self.lists();
        lists.found.get(&subject).or_else(|| lists.earlier.get(&subject)).copied()
    }

    /// Returns the best way of the calls with a key among `size` ranks, if it is known.
    pub(super) fn way(
        &self,
        site: Site,
        Key { operation, class }: Key,
        size: usize,
    ) -> Option<Way> {
        match self.get(Subject::Calls { site, operation, size, class })? {
            Learnt::Way { way, .. } => Some(way),
            Learnt::Pieces { .. } => None,
        }
    }

    /// Returns the best method for the pieces of a size class, if it is known.
    pub(super) fn method(&self, site: Site, class: usize) -> Option<Method> {
        match self.get(Subject::Pieces { site, class })? {
            Learnt::Pieces { method, .. } => Some(method),
            Learnt::Way { .. } => None,
        }
    }

    /// Returns what this job and earlier jobs have learnt.
    pub(crate) fn learnt(&self) -> Vec<Learnt> {
        let lists = self.lists();
        let mut all = lists.earlier.clone();
        all.extend(lists.found.iter().map(|(subject, learnt)| (*subject, *learnt)));
        all.into_values().collect()
    }

    /// Returns one line for each thing that earlier jobs have learnt.
    pub(crate) fn loaded(&self) -> Vec<String> {
        self.lists().earlier.values().map(Learnt::to_string).collect()
    }
}

/// Returns the store of this process.
pub(crate) fn store() -> &'static Store {
    static STORE: Store =
        Store { lists: Mutex::new(Lists { earlier: BTreeMap::new(), found: BTreeMap::new() }) };
    &STORE
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Site = Site { far: true, share_cpus: false };

    /// Returns everything that a file can say about one site.
    fn all(site: Site) -> Vec<Learnt> {
        let keys = Key::all().flat_map(|key| (2..=MOST).map(move |size| (key, size)));
        let ways = keys.flat_map(|(key, size)| {
            key.ways(size).into_iter().map(move |way| Learnt::Way { site, key, size, way })
        });
        let methods = (0..copies::CLASSES).map(|class| Learnt::Pieces {
            site,
            class,
            method: Method::Vector,
        });
        ways.chain(methods).collect()
    }

    #[test]
    fn every_line_is_read_back() {
        for (far, share_cpus) in [(false, false), (false, true), (true, false), (true, true)] {
            for learnt in all(Site { far, share_cpus }) {
                assert_eq!(Learnt::parse(&learnt.line()), Some(learnt), "{learnt}");
            }
        }
    }

    #[test]
    fn other_lines_are_no_lines() {
        let way = "collective near alone allreduce 8 1048576 slices-other-pieces";
        let pieces = "pieces far crowded 16384 vector";
        for (good, old, new) in [
            (way, "collective", "Collective"),
            (way, "near ", ""),
            (way, "near", "nearby"),
            (way, "alone", "far"),
            (way, "allreduce", "barrier"),
            (way, " 8 ", " 1 "),
            (way, " 8 ", " 33 "),
            (way, " 8 ", " -8 "),
            (way, "1048576", "1048577"),
            (way, "1048576", "99999999999999999999"),
            (way, "slices-other-pieces", "cells"),
            (way, "slices-other-pieces", ""),
            (way, "pieces", "pieces more"),
            (pieces, "16384", "16385"),
            (pieces, "vector", "memcpy"),
            (pieces, "vector", "vector "),
            (pieces, " vector", ""),
        ] {
            assert!(Learnt::parse(good).is_some(), "{good}");
            let damaged = good.replacen(old, new, 1);
            assert_ne!(damaged, good);
            assert_eq!(Learnt::parse(&damaged), None, "{damaged}");
        }
    }

    #[test]
    fn what_this_job_finds_comes_before_what_earlier_jobs_have_learnt() {
        let store = Store::default();
        let key = Key::all().next().expect("a key");
        assert_eq!((store.way(SITE, key, 2), store.method(SITE, 1)), (None, None));
        let [first, second, ..] = key.ways(2)[..] else { panic!("two ways") };
        let of = |way| Learnt::Way { site: SITE, key, size: 2, way };
        let pieces = Learnt::Pieces { site: SITE, class: 1, method: Method::Vector };
        store.know(&[of(first), pieces]);
        let known = (store.way(SITE, key, 2), store.method(SITE, 1));
        assert_eq!(known, (Some(first), Some(Method::Vector)));
        assert_eq!((store.way(SITE, key, 3), store.method(SITE, 2)), (None, None));
        let near = Site::default();
        assert_eq!((store.way(near, key, 2), store.method(near, 1)), (None, None));
        store.note(of(second));
        assert_eq!(store.way(SITE, key, 2), Some(second));
        assert_eq!(store.learnt(), [of(second), pieces]);
        assert_eq!(store.loaded(), [of(first).to_string(), pieces.to_string()]);
    }
}
