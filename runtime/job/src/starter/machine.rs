//! On which machine a rank runs, and as which process, as a value of the launcher's table.
//!
//! The ranks of a job share memory, so all must run under one kernel, and must see each other's processes and sockets.
//! Names of machines do not tell that: containers have names of their own. So a rank gives the number that its kernel drew
//! when it started, and the numbers of its namespaces; the name is for messages.

use std::collections::BTreeSet;

use super::messages::Process;
use crate::sys::{inspect, machine, process};

/// Maximum length in bytes of what identifies a machine, and of its name.
const PART_MAX: usize = 100;

/// The machine of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Two ranks with the same text can share memory.
    identity: String,
    name: String,
    /// The rank's process. Its number is 0 if the value had none.
    pub process: Process,
}

impl Machine {
    /// Returns the machine of this process.
    pub fn own() -> Self {
        let name = String::from_utf8_lossy(&machine::host_name()).into_owned();
        let boot = machine::boot_number();
        // Without a number of the kernel, only the name is left.
        let kernel = if boot.is_empty() { &name } else { &boot };
        let (net, pid) = (machine::namespace("net"), machine::namespace("pid"));
        let identity = clean(&format!("{kernel}-{net}-{pid}"));
        Self { identity, name: clean(&name), process: own_process() }
    }

    /// Returns the value for the table.
    pub fn to_value(&self) -> String {
        let Process { pid, started } = self.process;
        format!("{}/{}/{pid}/{started}", self.identity, self.name)
    }

    /// Reads a value of the table.
    pub fn parse(value: &str) -> Self {
        let mut parts = value.split('/');
        let mut part = || parts.next().unwrap_or_default();
        let (identity, name) = (clean(part()), clean(part()));
        let (pid, started) = (part().parse().unwrap_or(0), part().parse().unwrap_or(0));
        Self { identity, name, process: Process { pid, started } }
    }
}

/// Returns this process.
pub fn own_process() -> Process {
    let pid = process::own_id();
    Process { pid: pid.unsigned_abs(), started: inspect::started(pid).unwrap_or(0) }
}

/// Returns the text without characters that a table or a terminal may take for something else.
fn clean(text: &str) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    text.chars().map(|c| if ok(c) { c } else { '_' }).take(PART_MAX).collect()
}

/// Returns the line that says that the ranks are on several machines, or `None` if they are on one.
pub fn several(machines: &[Machine]) -> Option<String> {
    /// Maximum number of names in the line.
    const SHOWN: usize = 8;
    let identities: BTreeSet<&str> =
        machines.iter().map(|machine| machine.identity.as_str()).collect();
    if identities.len() <= 1 {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for machine in machines {
        if !names.contains(&machine.name.as_str()) {
            names.push(&machine.name);
        }
    }
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let (ranks, count) = (machines.len(), identities.len());
    Some(if names.len() < count {
        format!(
            "the {ranks} ranks of this job run in {count} containers or namespaces of {shown}{more}; the ranks of a job share \
             memory and must see each other's processes: start them in one"
        )
    } else {
        format!(
            "the {ranks} ranks of this job run on {count} machines ({shown}{more}); the ranks of typepack run on one \
             machine: the guide's chapter \"On clusters\" (running/clusters.md) says what to use on several"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart() {
        let own = Machine::own();
        assert!(own.to_value().len() <= super::super::pmi::VALUE_MAX);
        assert_eq!(Machine::parse(&own.to_value()), own);
        let of = Machine::parse;
        assert_eq!(several(&[of("k/a"), of("k/a")]), None);
        assert_eq!(several(&[of("k/a"), of("k/b")]), None, "only the name differs");
        let line = several(&[of("k/a"), of("l/b"), of("k/a")]).expect("two");
        assert!(line.contains("3 ranks") && line.contains("2 machines (a, b)"), "{line}");
        let line = several(&[of("k-1-1/a"), of("k-2-1/a")]).expect("two");
        assert!(line.contains("2 containers"), "{line}");
        let hostile = of("x\u{1b}[2J/\u{7}beep");
        assert_eq!(hostile.to_value(), "x__2J/_beep/0/0");
        let many: Vec<Machine> =
            (0..100).map(|n| of(&format!("k{n}/{}", "n".repeat(90)))).collect();
        assert!(several(&many).expect("many").len() < 1200);
    }
}
