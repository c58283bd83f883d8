//! Estimates how much memory this process can still get from the machine and from its cgroups.
//!
//! `shm/segment.rs` derives the size of the heaps from the machine's memory and from the largest allowed
//! file. `shm/budget.rs` calls [`tightest`] before memory is promised, because a cgroup that is out of
//! memory does not refuse an allocation; the kernel kills a process instead. The numbers come from `/proc`
//! and from the mounted cgroup file systems, both the old hierarchy (cgroup v1) and the new one (cgroup v2).
//! A process is subject to the limits of its group and of all groups above that group. The paths of these groups are
//! kept until the process has other groups.
//!
//! This file guarantees nothing to safe callers except estimates: a result may already be out of date when
//! the caller gets it. A limit that cannot be read is assumed not to exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};

/// Reads a small file; the result is empty if the file cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    #[cfg(test)]
    READS.set(READS.get() + 1);
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
thread_local! {
    /// How many files this thread has read.
    pub static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the text of a system error, and the limit that has been reached if there are no descriptors left.
pub fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            let most = getrlimit(Resource::Nofile).current;
            let most = most.map_or_else(|| "all".to_owned(), |most| most.to_string());
            format!(
                "EMFILE: this process has no descriptor left; its limit is {most} (`ulimit -n`)"
            )
        }
        Some(libc::ENFILE) => {
            let most = fs::read_to_string("/proc/sys/fs/file-max").unwrap_or_default();
            let most = most.trim();
            format!(
                "ENFILE: the machine has no open file left; its limit is {most} (/proc/sys/fs/file-max)"
            )
        }
        _ => error.to_string(),
    }
}

/// Returns the size of the machine's memory in bytes.
pub fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    // `c_ulong` is `u64` on this platform, but not on every platform.
    #[expect(clippy::useless_conversion, reason = "the type differs between machines")]
    u64::from(info.totalram).saturating_mul(u64::from(info.mem_unit))
}

/// Returns the maximum size in bytes of a file that this process may make (`ulimit -f`), or `u64::MAX` if
/// there is no limit. If the process makes a larger file, the kernel sends it a signal.
pub fn file_size() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Returns whether the address space of this process is limited (`ulimit -v`).
pub fn limits_addresses() -> bool {
    getrlimit(Resource::As).current.is_some()
}

/// Returns a text that names the limit for which the kernel has refused to map `len` bytes into this process. `private`
/// says whether the memory is private.
pub fn refusing_map(len: u64, private: bool) -> String {
    let status = read("/proc/self/status");
    let kilobytes = |name: &str| field(&status, name).unwrap_or(0).saturating_mul(1024);
    let over = |resource, used: u64| {
        getrlimit(resource).current.filter(|limit| used.saturating_add(len) > *limit)
    };
    let used = kilobytes("VmSize:");
    if let Some(limit) = over(Resource::As, used) {
        return format!("RLIMIT_AS (ulimit -v) of {limit} bytes, {used} of them in use");
    }
    let used = kilobytes("VmData:");
    if let Some(limit) = over(Resource::Data, used).filter(|_| private) {
        return format!("RLIMIT_DATA (ulimit -d) of {limit} bytes, {used} of them in use");
    }
    let most = read("/proc/sys/vm/max_map_count").trim().parse().unwrap_or(usize::MAX);
    if read("/proc/self/maps").lines().count() >= most {
        return format!("vm.max_map_count of {most} mappings");
    }
    match read("/proc/sys/vm/overcommit_memory").trim() {
        "2" if private => {
            "vm.overcommit_memory=2, with which the machine promises no more memory".to_owned()
        }
        _ => "the address space of a process".to_owned(),
    }
}

/// Returns the number behind `name` in a text of lines like `MemFree: 12 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Returns the number of bytes of memory that this process and the other processes of its cgroups can
/// have together: the smallest limit of these groups, or the size of the machine's memory if that is
/// smaller.
pub fn memory_limit() -> u64 {
    groups().iter().filter_map(Group::limit).fold(machine_memory(), u64::min)
}

/// Returns the number of bytes that this process can still get before the machine or one of the process's
/// cgroups runs out of memory. The number includes free memory, caches that the kernel can drop, and swap.
pub fn available_memory() -> u64 {
    tightest().0
}

/// Returns the result of [`available_memory`], and a text that names the limit from which it results.
pub fn tightest() -> (u64, String) {
    let machine = meminfo(&read("/proc/meminfo"));
    let groups = groups();
    // Without swap, the machine itself is tighter than a group whose limit is as large as the machine.
    let whole = if machine.swap == 0 { machine_memory() } else { u64::MAX };
    let left = groups.iter().filter_map(|group| Some((group.left(machine.swap, whole)?, group)));
    match left.min_by_key(|(left, _)| *left).filter(|(left, _)| *left < machine.total()) {
        Some((left, group)) => {
            let limits = group.names.limits.iter();
            let least = limits.min_by_key(|name| group.number(name).unwrap_or(u64::MAX));
            let name = least.copied().unwrap_or_default();
            (left, format!("{} of {}", name, group.folder.display()))
        }
        None => (machine.total(), "the memory of the machine".to_owned()),
    }
}

struct Machine {
    memory: u64,
    swap: u64,
}

impl Machine {
    fn total(&self) -> u64 {
        self.memory.saturating_add(self.swap)
    }
}

/// Returns the values of `MemAvailable` and `SwapFree` in `text`, in bytes. If `MemAvailable` is missing, the
/// memory counts as unlimited; if `SwapFree` is missing, the free swap counts as 0.
fn meminfo(text: &str) -> Machine {
    let kilobytes = |name| field(text, name).map(|n| n.saturating_mul(1024));
    Machine {
        memory: kilobytes("MemAvailable:").unwrap_or(u64::MAX),
        swap: kilobytes("SwapFree:").unwrap_or(0),
    }
}

/// A cgroup of this process: the folder that contains the group's files, and the names of these files.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    names: &'static Names,
}

/// The names of a group's files in one of the two hierarchies.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    limits: &'static [&'static str],
    usage: &'static str,
    swap: &'static str,
    swap_usage: &'static str,
    /// True if the limit in the file `swap` applies to the sum of memory and swap, as in the old hierarchy.
    swap_has_memory: bool,
    /// Names of the fields of `memory.stat` that count the memory that the kernel can reclaim.
    caches: &'static [&'static str],
}

const NEW: Names = Names {
    // `memory.high` is treated as a limit, because above it the kernel slows processes down until they almost
    // stop.
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    swap: "memory.swap.max",
    swap_usage: "memory.swap.current",
    swap_has_memory: false,
    caches: &["inactive_file", "active_file"],
};

const OLD: Names = Names {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    swap: "memory.memsw.limit_in_bytes",
    swap_usage: "memory.memsw.usage_in_bytes",
    swap_has_memory: true,
    caches: &["total_inactive_file", "total_active_file"],
};

impl Group {
    fn number(&self, name: &str) -> Option<u64> {
        // If there is no limit, the file contains the word "max", which is not a number.
        read(self.folder.join(name)).trim().parse().ok()
    }

    /// Returns the smallest limit on the group's memory, or `None` if the group has no limit.
    fn limit(&self) -> Option<u64> {
        self.names.limits.iter().filter_map(|name| self.number(name)).min()
    }

    /// Returns the number of bytes that the group can still get if the machine has `swap` bytes of free swap.
    /// Returns `None` if the group has no limit on memory below `whole`, or if its memory usage cannot be read.
    fn left(&self, swap: u64, whole: u64) -> Option<u64> {
        let names = self.names;
        let limit = self.limit().filter(|limit| *limit < whole)?;
        let used = self.number(names.usage)?;
        let stat = read(self.folder.join("memory.stat"));
        let caches: u64 = stat
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| names.caches.contains(name))
            .filter_map(|(_, value)| value.parse::<u64>().ok())
            .sum();
        let memory = limit.saturating_sub(used.saturating_sub(caches));
        let room = self.number(names.swap).zip(self.number(names.swap_usage));
        let room = room.map(|(limit, used)| limit.saturating_sub(used));
        Some(match (room, names.swap_has_memory) {
            (None, _) => memory,
            (Some(room), false) => memory.saturating_add(room.min(swap)),
            (Some(room), true) => room.saturating_add(caches).min(memory.saturating_add(swap)),
        })
    }
}

/// The groups of this process, and the text from which they come.
static GROUPS: Mutex<Option<(String, Arc<[Group]>)>> = Mutex::new(None);

/// Returns the groups of this process in the hierarchies that limit memory. Inner groups come before outer
/// groups.
fn groups() -> Arc<[Group]> {
    let own = read("/proc/self/cgroup");
    let mut known = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, groups)) = known.as_ref().filter(|(text, _)| *text == own) {
        return groups.clone();
    }
    let groups: Arc<[Group]> = groups_of(&own, &read("/proc/self/mountinfo")).into();
    *known = Some((own, groups.clone()));
    groups
}

fn groups_of(own: &str, mounts: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in own.lines() {
        // A line has the form "number:controllers:path".
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let names = if controllers.is_empty() {
            &NEW
        } else if controllers.split(',').any(|name| name == "memory") {
            &OLD
        } else {
            continue;
        };
        let Some((root, point)) = mounts.lines().find_map(|line| mounted(line, names)) else {
            continue;
        };
        // In a container, only a part of the hierarchy may be mounted, and `path` may lie outside that part.
        // In that case, use the root of the mounted part.
        let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
        let folder = point.join(below);
        let up = folder.ancestors().take_while(|folder| folder.starts_with(&point));
        groups.extend(up.map(|folder| Group { folder: folder.to_owned(), names }));
    }
    groups
}

/// If `line`, a line of `mountinfo`, describes a mount of the hierarchy whose files have the names `names`,
/// returns the root and the mount point of that mount.
fn mounted(line: &str, names: &Names) -> Option<(PathBuf, PathBuf)> {
    let (place, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let kind = system.next()?;
    let options = system.nth(1).unwrap_or_default();
    let wanted = if *names == NEW {
        kind == "cgroup2"
    } else {
        kind == "cgroup" && options.split(',').any(|option| option == "memory")
    };
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    wanted.then(|| (unescaped(root), unescaped(point)))
}

/// Decodes the octal escapes that `mountinfo` uses for blanks and some other bytes.
fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_machine_has_memory() {
        assert!(machine_memory() > MIB);
        let available = available_memory();
        assert!(available > 0 && available < u64::MAX);
        assert!((MIB..=machine_memory()).contains(&memory_limit()));
    }

    /// Checks that a second look does not search for the groups again.
    #[test]
    fn the_groups_are_searched_for_once() {
        let _first = groups();
        let before = READS.get();
        assert!(!groups().is_empty() || before > 0);
        assert_eq!(READS.get(), before + 1);
    }

    #[test]
    fn the_limit_that_refuses_a_mapping_has_a_name() {
        let text = refusing_map(1 << 20, false);
        assert!(!text.contains("RLIMIT") || getrlimit(Resource::As).current.is_some(), "{text}");
    }

    #[test]
    fn meminfo_is_read_in_kilobytes() {
        let machine = meminfo("MemTotal: 9 kB\nMemAvailable:     5 kB\nSwapFree:   2 kB\n");
        assert_eq!((machine.memory, machine.swap, machine.total()), (5 << 10, 2 << 10, 7 << 10));
        assert_eq!(meminfo("").total(), u64::MAX);
    }

    #[test]
    fn groups_are_found_where_they_are_mounted() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 /docker/7 /a\\040b shared:3 - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "8:pids:/x\n4:memory:/a/b\n0::/docker/7/inner\n";
        let folders: Vec<(PathBuf, bool)> = groups_of(own, mounts)
            .into_iter()
            .map(|group| (group.folder, *group.names == NEW))
            .collect();
        let old = ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"];
        let new = ["/a b/inner", "/a b"];
        let expected = old.map(|f| (f.into(), false)).into_iter();
        let expected: Vec<_> = expected.chain(new.map(|f| (f.into(), true))).collect();
        assert_eq!(folders, expected);
        // In the first check no hierarchy is mounted. In the second check the group's path lies outside the
        // mounted part.
        assert_eq!(groups_of(own, ""), []);
        assert_eq!(groups_of("0::/elsewhere\n", mounts)[0].folder, Path::new("/a b"));
    }

    #[test]
    fn what_is_left_counts_caches_and_swap() {
        let folder = std::env::temp_dir().join(format!("typepack-limits-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), format!("{text}\n")).expect("a file");
        };
        let left = |names, swap| Group { folder: folder.clone(), names }.left(swap, 2000);
        assert_eq!(left(&NEW, 0), None);
        write("memory.max", "max");
        write("memory.current", "300");
        assert_eq!(left(&NEW, 0), None);
        write("memory.high", "1000");
        assert_eq!(left(&NEW, 0), Some(700));
        write("memory.high", "2000");
        assert_eq!(left(&NEW, 0), None);
        write("memory.high", "1000");
        write("memory.max", "900");
        assert_eq!(Group { folder: folder.clone(), names: &NEW }.limit(), Some(900));
        write("memory.stat", "anon 200\ninactive_file 50\nactive_file 20\nfile 90");
        assert_eq!(left(&NEW, 0), Some(670));
        write("memory.swap.max", "110");
        write("memory.swap.current", "10");
        assert_eq!((left(&NEW, 1000), left(&NEW, 40)), (Some(770), Some(710)));
        write("memory.current", "5000");
        assert_eq!(left(&NEW, 0), Some(0));

        assert_eq!(left(&OLD, 0), None);
        write("memory.limit_in_bytes", "1000");
        write("memory.usage_in_bytes", "400");
        write("memory.stat", "inactive_file 9\ntotal_inactive_file 100");
        assert_eq!(left(&OLD, 5), Some(700));
        write("memory.memsw.limit_in_bytes", "1000");
        write("memory.memsw.usage_in_bytes", "500");
        assert_eq!((left(&OLD, 5), left(&OLD, 0)), (Some(600), Some(600)));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
