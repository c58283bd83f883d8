//! Hints: advice of the program about a file (MPI-5.0 section 14.2.8).
//!
//! A hint is known only if it has an effect here. Hints for aggregators and for stripes of files
//! (`cb_nodes`, `striping_unit`, ...) mean nothing on one machine, whose ranks share a page cache. A hint that this
//! library does not know is ignored and not returned. A known hint whose value is not in its range is ignored too. The
//! ranks agree on every value: if they give different values, the value of the hint does not change.

use super::agree::{settled, word};
use super::transfer::{Sieve, Target};
use crate::Result;
use crate::coll::Op;
use crate::comm::Communicator;
use crate::sys::files::{self, Order};

/// What the values of a hint are.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// Integers from `least` to `most`.
    Number { least: i64, most: i64 },
    /// One of these words. Its number is the index of the word.
    Word(&'static [&'static str]),
    /// A list of some of these words, separated by commas. Its number has bit `i` set if the list has word `i`.
    Words(&'static [&'static str]),
}

/// A hint that this library knows.
struct Hint {
    name: &'static str,
    values: Values,
    /// The value that is in force if the program gives none.
    default: i64,
}

/// The words of `access_style`.
const STYLES: [&str; 7] = [
    "read_once",
    "write_once",
    "read_mostly",
    "write_mostly",
    "sequential",
    "reverse_sequential",
    "random",
];
const SEQUENTIAL: i64 = 1 << 4;
const RANDOM: i64 = 1 << 6;

/// The known hints, in the order in which [`Hints::all`] returns them.
const HINTS: [Hint; 3] = [
    // The order in which the program accesses the file. It decides how far the kernel reads ahead.
    Hint { name: "access_style", values: Values::Words(&STYLES), default: UNSET },
    // The size in bytes of the windows in which system calls read close pieces of a view.
    Hint {
        name: "ind_rd_buffer_size",
        values: Values::Number { least: 1, most: 1 << 30 },
        default: Sieve::WINDOW as i64,
    },
    // Whether system calls read pieces of a view in windows, or each piece by itself.
    Hint {
        name: "romio_ds_read",
        values: Values::Word(&["automatic", "enable", "disable"]),
        default: 0,
    },
];
const STYLE: usize = 0;
const WINDOW: usize = 1;
const SIEVE: usize = 2;

/// The value of a hint that is not set.
const UNSET: i64 = i64::MIN;

impl Values {
    /// Returns the number for a value; `None` if the value is not allowed.
    fn parse(self, text: &str) -> Option<i64> {
        match self {
            Self::Number { least, most } => {
                text.parse::<i64>().ok().filter(|number| (least..=most).contains(number))
            }
            Self::Word(words) => {
                words.iter().position(|word| *word == text).and_then(|at| i64::try_from(at).ok())
            }
            Self::Words(words) => text.split(',').try_fold(0, |sum, word| {
                let at = words.iter().position(|known| *known == word.trim())?;
                Some(sum | 1 << at)
            }),
        }
    }

    /// Returns the value for a number that [`parse`](Self::parse) has returned.
    fn print(self, number: i64) -> String {
        match self {
            Self::Number { .. } => number.to_string(),
            Self::Word(words) => {
                let word = usize::try_from(number).ok().and_then(|at| words.get(at));
                word.copied().unwrap_or_default().to_owned()
            }
            Self::Words(words) => {
                let set = words.iter().enumerate().filter(|(at, _)| number >> at & 1 == 1);
                set.map(|(_, word)| *word).collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// The hints of a file.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    values: [i64; HINTS.len()],
    /// The permissions of a new file, which only the call that opens the file uses.
    pub permissions: u32,
}

impl Default for Hints {
    fn default() -> Self {
        Self { values: HINTS.map(|hint| hint.default), permissions: 0o666 }
    }
}

/// Returns the value of `name` in a list of hints. If a key occurs twice, the last one counts.
fn value<'a>(given: &'a [(String, String)], name: &str) -> Option<&'a str> {
    given.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.trim())
}

impl Hints {
    /// Sets the hints that all ranks give alike. Collective. Ranks may give different sets of keys, because
    /// all ranks exchange one value for each known hint, given or not.
    ///
    /// `given` has the hints of this rank, or the error that this rank has found in its arguments. If a rank has an
    /// error, all ranks return an error.
    pub fn set(&mut self, comm: &Communicator, given: Result<&[(String, String)]>) -> Result<()> {
        let failed = word(&given, comm.rank());
        let list = given.as_ref().map_or(&[][..], |given| given);
        let mine = HINTS.map(|hint| {
            value(list, hint.name).and_then(|text| hint.values.parse(text)).unwrap_or(UNSET)
        });
        let permissions =
            value(list, "file_perm").and_then(|text| i64::from_str_radix(text, 8).ok());
        let permissions = permissions.filter(|&bits| (1..=0o777).contains(&bits)).unwrap_or(UNSET);
        let mine = mine.into_iter().chain([permissions]);
        // The greatest of the complements is the complement of the least.
        let mut words = vec![failed];
        words.extend(mine.flat_map(|value| [value, !value]));
        comm.all_reduce_in_place(&mut words, Op::Max)?;
        settled(comm, words[0], given)?;
        let mut agreed = words[1..].chunks(2).map(|pair| (pair[0] == !pair[1]).then_some(pair[0]));
        for number in &mut self.values {
            match agreed.next().flatten() {
                Some(value) if value != UNSET => *number = value,
                _ => {}
            }
        }
        if let Some(bits) = agreed.next().flatten().filter(|&bits| bits != UNSET) {
            self.permissions = bits as u32;
        }
        Ok(())
    }

    /// Puts the hints in force for an open file.
    pub fn apply(&self, target: &Target) {
        let used = match self.values[SIEVE] {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
        target.sieve.set(self.values[WINDOW].unsigned_abs(), used);
        let style = self.values[STYLE];
        if style != UNSET {
            let order = match (style & SEQUENTIAL != 0, style & RANDOM != 0) {
                (true, false) => Order::Sequential,
                (false, true) => Order::Random,
                _ => Order::Unknown,
            };
            // A file system that takes no advice gives the same data.
            let _ = files::advise(&target.fd, order);
        }
    }

    /// Returns the hints that are in force.
    pub fn all(&self) -> Vec<(String, String)> {
        let set = HINTS.iter().zip(self.values).filter(|(_, value)| *value != UNSET);
        set.map(|(hint, value)| (hint.name.to_owned(), hint.values.print(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_printed() {
        let [style, window, sieve] = HINTS.map(|hint| hint.values);
        for (values, text, printed) in [
            (style, "random", "random"),
            (style, "random, read_once,read_once", "read_once,random"),
            (window, "+4096", "4096"),
            (sieve, "disable", "disable"),
        ] {
            assert_eq!(values.parse(text).map(|value| values.print(value)), Some(printed.into()));
        }
        for (values, text) in [
            (style, ""),
            (style, "random,fast"),
            (style, "random,"),
            (window, "0"),
            (window, "1073741825"),
            (window, "1e3"),
            (sieve, "Enable"),
        ] {
            assert_eq!(values.parse(text), None, "{text}");
        }
        let all = [("ind_rd_buffer_size", "1048576"), ("romio_ds_read", "automatic")];
        let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Hints::default().all(), all);
    }
}
