//! Looks at what other programs do on this machine before a run measures anything.
//!
//! The averages in `/proc/loadavg` include what this program and the builds before it did a minute ago. So
//! [`Load::probe`] sleeps for a moment and looks only at this moment: how many tasks ran or waited for a CPU, and how
//! busy the CPUs were on which this process may run. If other programs leave fewer CPUs than the run needs, the figures
//! of the run are not usable. The run is not refused: it says so at its beginning, in its summary and in its
//! record.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::fmt;
use std::fs::read_to_string;
use std::time::Duration;

/// How many times the probe looks at the running tasks.
const LOOKS: u32 = 30;
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// The other programs of an idle machine use less than this, in CPUs. A run whose needs are missed by no more than
/// this is usable.
const SLACK: f64 = 0.25;
/// With this text begins the comment line of a record that states the load before a run.
const FACT: &str = "load of other programs, ";

/// The load that other programs cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The mean number of tasks of other programs that ran or waited for a CPU. `None` if the system does not say.
    pub tasks: Option<f64>,
    /// How many of the CPUs on which this process may run were busy. `None` if the system does not say.
    pub busy: Option<f64>,
    /// The number of CPUs on which this process may run.
    pub cpus: usize,
    /// The number of CPUs that the run needs.
    pub needed: usize,
}

impl Load {
    /// Looks at the machine for 0.3 seconds, in which this thread sleeps. `needed` is the number of CPUs that the run
    /// needs; if the process may run on fewer, it needs all of these. No other thread and no child of this process may
    /// work meanwhile.
    pub fn probe(needed: usize) -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let stat = || read_to_string("/proc/stat").unwrap_or_default();
        let before = stat();
        let mut looks = Vec::new();
        for _ in 0..LOOKS {
            std::thread::sleep(PAUSE);
            looks.extend(read_to_string("/proc/loadavg").ok().as_deref().and_then(others));
        }
        let cpus = (allowed.count() as usize).max(1);
        Self {
            tasks: (!looks.is_empty()).then(|| looks.iter().sum::<f64>() / looks.len() as f64),
            busy: busy(&before, &stat(), |cpu| cpu < CpuSet::MAX_CPU && allowed.is_set(cpu)),
            cpus,
            needed: needed.clamp(1, cpus),
        }
    }

    /// Looks at the machine at the beginning of a run. Calls `said` with a line if the run is not usable.
    pub fn begin(needed: usize, mut said: impl FnMut(&str)) -> Self {
        let load = Self::probe(needed);
        if load.is_too_high() {
            said(&load.to_string());
        }
        load
    }

    /// Returns true if other programs leave fewer CPUs than the run needs.
    pub fn is_too_high(&self) -> bool {
        let left = |busy: f64| self.cpus as f64 - busy + SLACK < self.needed as f64;
        // Where the system does not say how busy the CPUs are, each task counts as one busy CPU.
        self.busy.or(self.tasks).is_some_and(left)
    }

    /// Returns the comment line with which the record of the run `part` states the load.
    pub fn comment(&self, part: &str) -> String {
        format!("# {FACT}{part}: {self}\n")
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(number) = self.tasks.or(self.busy) else {
            return f.write_str("load unknown");
        };
        if self.is_too_high() {
            f.write_str("not usable: ")?;
        }
        let digits = if number < 9.95 && (number * 10.0).round() % 10.0 != 0.0 { 1 } else { 0 };
        write!(f, "load {number:.digits$}")?;
        if !self.is_too_high() {
            return Ok(());
        }
        let (cpus, needed) = (self.cpus, self.needed);
        let left = (cpus as f64 - self.busy.unwrap_or(number)).max(0.0);
        write!(f, " (other programs leave {left:.1} of {cpus} CPUs, and the run needs {needed})")
    }
}

/// Returns what a record says about the load before the run `part`, if the record calls this run not usable.
/// `machine` are the comment lines of the record.
pub fn refusal<'a>(machine: &'a [String], part: &str) -> Option<&'a str> {
    let of = |line: &'a String| line.strip_prefix(FACT)?.strip_prefix(part)?.strip_prefix(": ");
    machine.iter().find_map(of).filter(|text| text.starts_with("not usable"))
}

/// Returns the number of tasks that run or wait for a CPU, without the one that has read `loadavg`.
fn others(loadavg: &str) -> Option<f64> {
    let (running, _) = loadavg.split(' ').nth(3)?.split_once('/')?;
    Some((running.parse::<f64>().ok()? - 1.0).max(0.0))
}

/// Returns how many of the CPUs that `is_allowed` names were busy between two readings of `/proc/stat`.
fn busy(before: &str, after: &str, is_allowed: impl Fn(usize) -> bool) -> Option<f64> {
    let times = |line: &str| -> Option<(usize, [f64; 2])> {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let cpu = words.next()?.parse().ok()?;
        // User, nice, system, idle, waiting for devices, interrupts, soft interrupts, taken by the host of a virtual
        // machine. The rest is part of the first two.
        let all: Vec<f64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        Some((cpu, [all.iter().sum(), all.get(3)? + all.get(4)?]))
    };
    let mut sum = None;
    for (cpu, [end, end_idle]) in after.lines().filter_map(times) {
        let begin = before.lines().filter_map(times).find(|(other, _)| *other == cpu);
        if let Some((_, [begin, begin_idle])) = begin.filter(|_| is_allowed(cpu)) {
            let all = end - begin;
            let share = if all > 0.0 { 1.0 - (end_idle - begin_idle) / all } else { 0.0 };
            sum = Some(sum.unwrap_or(0.0) + share.clamp(0.0, 1.0));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{Load, busy, others, refusal};

    #[test]
    fn the_moment_is_read_and_not_the_average() {
        assert_eq!(others("7.30 4.16 3.30 12/171 8926"), Some(11.0));
        assert_eq!(others("7.30 4.16 3.30 0/171 8926"), Some(0.0));
        assert_eq!(others("7.30 4.16"), None);
        let before =
            "cpu  9 9 9 9\ncpu0 10 0 10 80 0 0 0 0 0 0\ncpu1 0 0 0 50 50 0 0 0 0 0\nintr 1\n";
        let after =
            "cpu  9 9 9 9\ncpu0 20 5 15 90 0 0 0 0 0 0\ncpu1 0 0 0 70 60 0 0 0 0 0\nintr 2\n";
        // CPU 0 was busy in 20 of 30 ticks, CPU 1 in none.
        let both = busy(before, after, |_| true).expect("two CPUs");
        assert!((both - 2.0 / 3.0).abs() < 1e-9, "{both}");
        assert_eq!(busy(before, after, |cpu| cpu == 1), Some(0.0));
        assert_eq!(busy(before, after, |_| false), None);
        assert_eq!(busy("", "", |_| true), None);
    }

    #[test]
    fn a_run_needs_its_cpus() {
        let load =
            |tasks, busy, needed| Load { tasks: Some(tasks), busy: Some(busy), cpus: 2, needed };
        let text = load(12.1, 2.0, 2).to_string();
        assert_eq!(
            text,
            "not usable: load 12 (other programs leave 0.0 of 2 CPUs, and the run needs 2)"
        );
        // One busy process leaves one CPU: enough for packing, and not for two ranks.
        assert!(!load(1.0, 1.0, 1).is_too_high() && load(1.0, 1.0, 2).is_too_high());
        assert_eq!(load(0.13, 0.1, 2).to_string(), "load 0.1");
        assert_eq!(load(0.0, 0.0, 2).to_string(), "load 0");
        let unknown = Load { tasks: None, busy: None, cpus: 2, needed: 1 };
        assert_eq!((unknown.to_string().as_str(), unknown.is_too_high()), ("load unknown", false));
        let comment = load(12.0, 2.0, 1).comment("pingpong");
        let machine = [comment.trim_start_matches("# ").trim_end().to_owned()];
        assert!(refusal(&machine, "pingpong").expect("a line").starts_with("not usable: load 12"));
        assert_eq!(refusal(&machine, "io"), None);
        let good = [load(0.0, 0.0, 1).comment("io").trim_start_matches("# ").trim_end().to_owned()];
        assert_eq!(refusal(&good, "io"), None);
    }

    #[test]
    fn this_machine_is_probed() {
        let load = Load::probe(1000);
        assert_eq!(load.needed, load.cpus);
        assert!(load.busy.is_none_or(|busy| (0.0..=load.cpus as f64).contains(&busy)), "{load:?}");
    }
}
