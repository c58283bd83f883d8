//! How each argument of a function is converted between MPICH's ABI and the standard ABI.

use crate::rows::{Callback, Function, HANDLES, Parameter};
use crate::rule::Rule;

/// What the generators of the library need.
#[derive(Clone, Debug)]
pub struct Mpich<'a> {
    /// The functions.
    pub functions: &'a [Function],
    /// The names of the callback types.
    pub callbacks: &'a [Callback],
    /// What the prototypes do not tell.
    pub rules: &'a [Rule],
}

/// The direction of what is behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The call reads it.
    In,
    /// The call writes it.
    Out,
    /// The call reads and writes it.
    Both,
}

/// How an argument is converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Not at all.
    Same,
    /// A constant by value; holds the name of its table.
    Number(String),
    /// A constant behind a pointer.
    NumberAt(String, Way),
    /// An array of numbers with constants among them; holds the parameter that is their count.
    Numbers(String, Way, String),
    /// `MPI_Offset`, which may be `MPI_DISPLACEMENT_CURRENT`.
    Displacement,
    /// A handle by value. Holds the Rust name of the kind.
    Handle(String),
    /// A handle behind a pointer.
    HandleAt(String, Way),
    /// An array of handles; holds the Rust expression of their count.
    Handles(String, Way, String),
    /// A status behind a pointer.
    Status(Way),
    /// An array of statuses; holds the parameter that is their count.
    Statuses(String),
    /// A buffer that may be `MPI_IN_PLACE` or `MPI_BUFFER_AUTOMATIC`.
    Buffer,
    /// The address where the call writes the address of a buffer.
    Detached,
    /// A string that is shorter in MPICH; holds the name of its lengths.
    Text(String),
    /// The length of such a string.
    Clipped(String),
    /// The address where the call writes the value of an attribute.
    Attribute,
    /// The error codes of spawned processes.
    Errcodes,
}

impl Mpich<'_> {
    /// Returns the rule about a parameter.
    pub(super) fn rule(&self, function: &str, parameter: &str) -> Option<&str> {
        let found = self.rules.iter().find(|rule| rule.fits(function, parameter));
        found.map(|rule| rule.class.as_str())
    }

    /// Says whether the library has the function from its own source.
    pub(super) fn by_hand(&self, f: &Function) -> bool {
        self.rule(&f.name, "*") == Some("hand")
    }

    /// Returns how a parameter is converted.
    ///
    /// # Panics
    /// Panics if a rule does not fit the parameter.
    pub(super) fn class(&self, f: &Function, p: &Parameter) -> Class {
        let (rule, more) = match self.rule(&f.name, &p.name) {
            Some(text) => text.split_once(' ').unwrap_or((text, "")),
            None => ("", ""),
        };
        let pointed = p.c_type.strip_suffix('*').unwrap_or("");
        let (is_const, target) = match pointed.strip_prefix("const ") {
            Some(target) => (true, target),
            None => (false, pointed),
        };
        let way = match (is_const, rule == "inout" || more == "inout") {
            (true, _) => Way::In,
            (false, true) => Way::Both,
            (false, false) => Way::Out,
        };
        let short = |name: &str| name.trim_start_matches("MPI_").to_owned();
        if HANDLES.contains(&p.c_type.as_str()) {
            return Class::Handle(short(&p.c_type));
        }
        if HANDLES.contains(&target) {
            // An array of requests that a call completes or starts is read and written.
            return match p.array {
                true if is_const || target != "MPI_Request" => {
                    Class::Handles(short(target), way, self.count(f, p))
                }
                true => Class::Handles(short(target), Way::Both, self.count(f, p)),
                false => Class::HandleAt(short(target), way),
            };
        }
        if target == "MPI_Status" {
            return match p.name.as_str() {
                "array_of_statuses" => Class::Statuses(self.count(f, p)),
                _ => Class::Status(way),
            };
        }
        let table = rule.to_uppercase();
        match (rule, p.c_type.as_str()) {
            ("" | "same" | "inout", _) => Class::Same,
            ("buffer", _) => Class::Buffer,
            ("detached", _) => Class::Detached,
            ("text", _) => Class::Text(more.to_owned()),
            ("clipped", _) => Class::Clipped(more.to_owned()),
            ("attribute", _) => Class::Attribute,
            ("errcodes", _) => Class::Errcodes,
            ("displacement", _) => Class::Displacement,
            (_, "int" | "MPI_T_cb_safety") => Class::Number(table),
            (_, "int*" | "const int*") if p.array => Class::Numbers(table, way, more.to_owned()),
            (_, "int*" | "MPI_T_source_order*") => Class::NumberAt(table, way),
            (_, c_type) => panic!("mpich_rules.csv: {}: {}: {rule} for {c_type}", f.name, p.name),
        }
    }

    /// Returns the Rust expression of the number of entries of an array.
    fn count(&self, f: &Function, p: &Parameter) -> String {
        let has = |name: &str| f.parameters.iter().any(|p| p.name == name);
        if let Some(side) = p.name.strip_suffix("types").filter(|side| !side.is_empty())
            && (side == "send" || side == "recv")
        {
            let near = f.name.contains("eighbor");
            let peers = format!("crate::peers::count(comm_c, {}, {near})", side == "send");
            // With `MPI_IN_PLACE`, the types to send say nothing.
            return match side == "send" && !near {
                true => format!("if crate::buffer::in_place(sendbuf) {{ 0 }} else {{ {peers} }}"),
                false => peers,
            };
        }
        if f.name == "MPI_Comm_spawn_multiple" {
            return "crate::peers::at_root(comm_c, root, count)".into();
        }
        // The elements of an event have as many types as the caller has room for.
        let found = ["incount", "count", "num_elements"].into_iter().find(|name| has(name));
        match found {
            Some("num_elements") => "crate::array::room(num_elements)".into(),
            Some(name) => format!("i64::from({name})"),
            None => panic!("{}: {}: no length", f.name, p.name),
        }
    }
}
