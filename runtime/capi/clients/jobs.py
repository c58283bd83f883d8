"""Runs modules of mpi4py's tests as jobs of several sizes, and prints a table. scripts/clients runs this program.

    jobs.py --prefix P --tests DIR --excluded FILE --work DIR --sizes 1,2,4 [MODULE ...]

Without a MODULE, the program runs all modules of DIR except those that FILE excludes. FILE names excluded
modules and excluded tests, one per line, with a reason after '#'. Excluded tests also run, in separate jobs. If
such a test passes at every size, the program says so, because the test can then be removed from FILE. NAME@N excludes
a test, or all tests of a class, only from jobs of N ranks, and these do not run there at all. A name in FILE that no
module, no class and no test has is an error. The program prints the output of a job only if the job failed.
It lists the tests that skip themselves, with their reasons. The exit code is 1 if a job failed or a name is
unknown.
"""

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

# The time limit of a job in seconds. The slowest job, test_util_dtlib with 4 ranks, uses 102 seconds of processor time,
# and did not end within 300 seconds on 2 processors that had other work to do.
SECONDS = 900


def read_excluded(path):
    """Returns the names in a file with their reasons. A name without a reason ends the program with an error."""
    names = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, _, reason = line.partition("#")
        name = name.strip()
        if not name:
            continue
        if not reason.strip():
            sys.exit(f"clients: {path}:{number}: '{name}' has no reason (NAME # REASON)")
        if name in names:
            sys.exit(f"clients: {path}:{number}: '{name}' is listed twice")
        names[name] = reason.strip()
    return names


class Job:
    """A job that has run one module at one size, with the contents of the records of its ranks."""

    def __init__(self, options, module, size, mode):
        self.module, self.size, self.mode = module, size, mode
        record = options.work / f"{module}-{size}-{mode}"
        names = options.work / f"excluded-{size}"
        names.write_text("\n".join(options.everywhere + options.at.get(size, [])) + "\n", encoding="utf-8")
        if mode == "only":
            names.write_text("\n".join(options.everywhere) + "\n", encoding="utf-8")
        for old in options.work.glob(f"{record.name}.*"):
            old.unlink()
        command = [options.prefix / "bin/mpiexec", "-n", size, "-timeout", SECONDS]
        command += [sys.executable, Path(__file__).with_name("rank.py")]
        command += [options.tests, f"test_{module}", record, mode, names]
        begun = time.monotonic()
        self.code, self.output, self.processor = timed(list(map(str, command)))
        self.seconds = time.monotonic() - begun
        self.known, self.ends, self.hung, self.skips = set(), [], [], {}
        for rank in range(size):
            ends, running = {}, None
            file = Path(f"{record}.{rank}")
            for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
                what, name, *outcome = line.split(maxsplit=3)
                if what == "known":
                    self.known.add(name)
                elif what == "start":
                    running = name
                else:
                    ends[name], running = outcome[0], None
                    if outcome[0] == "skipped":
                        self.skips[name] = outcome[1] if outcome[1:] else "no reason given"
            self.ends.append(ends)
            self.hung += [running] if running else []

    def outcome(self, name):
        """Returns the outcome of a test. A test has failed if it failed on one rank or did not end on every rank."""
        outcomes = [ends.get(name, "failed") for ends in self.ends]
        return next((o for o in ("failed", "skipped") if o in outcomes), "passed")

    def count(self, wanted):
        return sum(self.outcome(name) == wanted for name in self.names())

    def names(self):
        return sorted(set().union(*self.ends, self.hung))

    def failed(self):
        return self.code != 0 or not self.known or self.count("failed") > 0


def timed(command):
    """Returns the exit code, the output, and the seconds of processor time that all ranks together used. A job that
    is slow although it used little processor time has waited: for another rank, or for a processor that other programs
    used. mpiexec ends the job at its own time limit; the limit here ends mpiexec
    if mpiexec hangs."""
    before = used()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")},
    )
    try:
        output, _ = process.communicate(timeout=SECONDS + 30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return process.returncode, output.decode(errors="replace"), used() - before


def used():
    """Returns the processor time in seconds of all descendants of this process that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def show(job):
    """Prints why a job failed, with the first 200 lines of its output."""
    print(f"clients: test_{job.module}, {job.size} ranks: exit code {job.code} after {job.seconds:.0f} s "
          f"(processor time: {job.processor:.0f} s)")
    for name in dict.fromkeys(job.hung):
        print(f"clients:   a rank ended or was stopped in {name}")
    for name in job.names():
        if job.outcome(name) == "failed":
            print(f"clients:   failed: {name}")
    lines = job.output.splitlines()
    for line in lines[:200]:
        print(f"    {line}")
    if len(lines) > 200:
        print(f"    ... and {len(lines) - 200} more lines")


def main():
    parser = argparse.ArgumentParser(prog="clients")
    for name in ("--prefix", "--tests", "--excluded", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.sizes.split(",")]
    excluded = read_excluded(options.excluded)
    there = sorted(file.stem.removeprefix("test_") for file in options.tests.glob("test_*.py"))
    whole = {name.removeprefix("test_"): reason for name, reason in excluded.items() if "." not in name}
    excluded = [name for name in excluded if "." in name]
    options.at = {}
    for name in [name for name in excluded if "@" in name]:
        excluded.remove(name)
        name, _, size = name.partition("@")
        options.at.setdefault(int(size), []).append(name)
    options.everywhere = excluded
    for module in options.modules:
        if module not in there:
            sys.exit(f"clients: mpi4py has no test module 'test_{module}'")
    unknown = [f"test_{module}" for module in whole if module not in there]
    # A module that the command line names runs even if FILE excludes it.
    if options.modules:
        whole = {}
    else:
        options.modules = [module for module in there if module not in whole]

    by_module = {module: [] for module in options.modules}
    for name in excluded:
        module = re.sub("^test_", "", name.split(".")[0])
        if module in by_module:
            by_module[module].append(name)
        elif not (options.tests / f"test_{module}.py").exists():
            unknown.append(name)

    rows, failures, passing, skips = [], 0, {}, {}
    for module in options.modules:
        for size in sizes:
            job = Job(options, module, size, "without")
            row = [job.count("passed"), job.count("failed"), job.count("skipped")]
            rows.append((module, size, *row, len(by_module[module]), job.seconds, job.processor))
            skips.update(job.skips)
            if job.failed():
                failures += 1
                show(job)
            if size == sizes[0] and job.known:
                unknown += [name for name in by_module[module] if name not in job.known]
            for name in options.at.get(size, []):
                if name.startswith(f"test_{module}.") and job.known:
                    known = any(known == name or known.startswith(f"{name}.") for known in job.known)
                    unknown += [] if known else [name]
            if by_module[module]:
                alone = Job(options, module, size, "only")
                for name in by_module[module]:
                    passing.setdefault(name, []).append(alone.outcome(name) == "passed")

    titles = f"{'module':<16} {'np':>3} {'passed':>7} {'failed':>7} {'skipped':>8} {'excluded':>9}"
    print(f"{titles} {'seconds':>8} {'processor':>9}")
    for module, size, passed, failed, skipped, out, seconds, processor in rows:
        print(f"{module:<16} {size:>3} {passed:>7} {failed:>7} {skipped:>8} {out:>9} {seconds:>8.1f} {processor:>9.1f}")
    for name, reason in skips.items():
        print(f"clients: skipped: {name}: {reason}")
    for module, reason in whole.items():
        print(f"clients: not run: test_{module}: {reason}")
    for name in unknown:
        print(f"clients: {options.excluded}: no test is called '{name}'")
    for name, each in passing.items():
        if all(each):
            print(f"clients: {options.excluded}: '{name}' passes; remove it from the list")
    total = [sum(row[column] for row in rows) for column in (2, 3, 4)]
    # A job may fail although every test passed, because a rank may crash after its last test.
    failed = max(total[1], failures)
    left = sum(len(names) for names in by_module.values())
    print(f"{total[0]} passed, {failed} failed, {total[2]} skipped; {left} tests and {len(whole)} modules excluded")
    return 1 if failures or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
