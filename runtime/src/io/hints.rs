//! Hints: advice of the program about a file (MPI-5.0 section 14.2.8).
//!
//! A hint that this library does not know is ignored and not returned. A known hint whose value is not in
//! its range is ignored too. The ranks agree on every value: if they give different values, the value of the
//! hint does not change.

use super::agree::{verdict, word};
use crate::Result;
use crate::coll::Op;
use crate::comm::Communicator;

/// A hint that is a number: its name, and the range of its values.
struct Number {
    name: &'static str,
    least: i64,
    most: i64,
}

/// The hints that this library knows, in the order in which [`Hints::all`] returns them. So far they are
/// kept and returned, and do not change how data moves.
const NUMBERS: [Number; 6] = [
    Number { name: "access_buffer_size", least: 1, most: i64::MAX - 1 },
    Number { name: "cb_buffer_size", least: 1, most: i64::MAX - 1 },
    Number { name: "cb_nodes", least: 1, most: i64::MAX - 1 },
    Number { name: "num_io_nodes", least: 1, most: i64::MAX - 1 },
    Number { name: "striping_factor", least: 1, most: i64::MAX - 1 },
    Number { name: "striping_unit", least: 1, most: i64::MAX - 1 },
];

/// The value of a hint that is not set.
const UNSET: i64 = i64::MIN;

/// The hints of a file.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    numbers: [i64; NUMBERS.len()],
    /// The permissions of a new file, which only the call that opens the file uses.
    pub permissions: u32,
}

impl Default for Hints {
    fn default() -> Self {
        Self { numbers: [UNSET; NUMBERS.len()], permissions: 0o666 }
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
    /// `given` is the error if this rank has found one in its arguments; then all ranks return an error.
    pub fn set(&mut self, comm: &Communicator, given: Result<&[(String, String)]>) -> Result<()> {
        let failed = word(given.as_ref().err(), comm.rank());
        let list = given.as_ref().map_or(&[][..], |given| given);
        let mine = NUMBERS.map(|hint| {
            let number = value(list, hint.name).and_then(|text| text.parse::<i64>().ok());
            number.filter(|number| (hint.least..=hint.most).contains(number)).unwrap_or(UNSET)
        });
        let permissions =
            value(list, "file_perm").and_then(|text| i64::from_str_radix(text, 8).ok());
        let permissions = permissions.filter(|&bits| (1..=0o777).contains(&bits)).unwrap_or(UNSET);
        let mine = mine.into_iter().chain([permissions]);
        // The greatest of the complements is the complement of the least.
        let mut words = vec![failed];
        words.extend(mine.flat_map(|value| [value, !value]));
        comm.allreduce(&mut words, Op::Max)?;
        verdict(words[0], given)?;
        let mut agreed = words[1..].chunks(2).map(|pair| (pair[0] == !pair[1]).then_some(pair[0]));
        for number in &mut self.numbers {
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

    /// Returns the hints that are in force.
    pub fn all(&self) -> Vec<(String, String)> {
        let set = NUMBERS.iter().zip(self.numbers).filter(|(_, value)| *value != UNSET);
        set.map(|(hint, value)| (hint.name.to_owned(), value.to_string())).collect()
    }
}
