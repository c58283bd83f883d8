//! Rules about arguments: what a function's prototype does not tell.
//!
//! The rows of such a table are patterns (`*` stands for any text), and the first row that matches a function and a
//! parameter decides.

use crate::rows::records;
use std::path::Path;

/// One row of a table of rules.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The pattern of the names of functions.
    pub(crate) function: String,
    /// The pattern of the names of parameters.
    pub(crate) parameter: String,
    /// The class.
    pub(crate) class: String,
}

impl Rule {
    /// Returns the rows of a table, in order.
    pub(crate) fn read(file: &Path) -> Vec<Self> {
        let row = |row: &csv::StringRecord| Self {
            function: row[0].to_owned(),
            parameter: row[1].to_owned(),
            class: row[2].to_owned(),
        };
        records(file).iter().map(row).collect()
    }

    /// Says whether the row is about a parameter of a function.
    pub(crate) fn fits(&self, function: &str, parameter: &str) -> bool {
        matches(&self.function, function) && matches(&self.parameter, parameter)
    }
}

/// Says whether `text` matches `pattern`, in which `*` stands for any text. Upper and lower case are the same.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    fn rest_matches(pattern: &str, text: &str) -> bool {
        match pattern.split_once('*') {
            None => pattern == text,
            Some((start, rest)) => text
                .strip_prefix(start)
                .is_some_and(|text| (0..=text.len()).any(|at| rest_matches(rest, &text[at..]))),
        }
    }
    rest_matches(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}
