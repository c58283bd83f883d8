"""Runs the programs of MPICH's test suite under typepack's mpiexec, and reports how they ended. scripts/suite
runs this program.

    suite.py --prefix P --tests DIR --excluded FILE --settings FILE DIRECTORY ...

Each directory has a list of programs. A line of the list has a program, the number of ranks, and sometimes
arguments (arg=), variables (env=), a time limit (timeLimit=) and an expected result other than "No Errors"
(resultTest=). Our own list of ROMIO's programs (romio.list) also has `resultTest=Prints TEXT`: the output must contain
TEXT. In that list, memory= is the number of GB that the program needs. How the run of a line ended follows from the
exit code and the output of mpiexec. The result is the first of these that applies:

    crashes       a signal ended a rank, or the library reported a bug of its own (a failure in any case)
    hangs         the time limit ended the job (a failure in any case)
    not built     the program called a function that `typepack info --functions` lists as not built
    passed        the program ended as the list expects
    failed        the run ended in any other way, or the program cannot be compiled

The file of --excluded names programs that may fail (DIRECTORY/NAME # REASON). If such a program passes in all its
lines, suite.py says so, because the program can then be removed from the file. The exit code is 1 if a program failed
that the file does not name.

The file of --settings names programs that need a setting (DIRECTORY/NAME SETTING ... # REASON). A setting is a variable
(NAME=VALUE) or an option of mpiexec (-NAME=VALUE). These programs must pass. If a setting is `-timeout=SECONDS`, the
program passes if mpiexec ends it at this time limit.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from jobs import read_excluded

# The time limit of a program in seconds. On two busy processors, only programs that wait by spinning need longer.
SECONDS = 180
# The time limit of an excluded program in seconds. It is short, because such a program may hang.
BRIEF = 30
# Programs that need more ranks than this are not run.
RANKS = 33
# The exit code with which mpiexec ends a job at its time limit.
TIMED_OUT = 124


class Line:
    """A line of a list: a program and how to run it."""

    def __init__(self, words):
        self.name, self.ranks = words[0], int(words[1])
        pairs = [word.split("=", 1) for word in words[2:] if "=" in word]
        self.arguments = [value for key, value in pairs if key == "arg"]
        self.variables = dict(value.split("=", 1) for key, value in pairs if key == "env" and "=" in value)
        self.seconds = max([SECONDS] + [int(value) for key, value in pairs if key == "timeLimit"])
        self.memory = max([0] + [int(value) for key, value in pairs if key == "memory"])
        self.wanted = next((value for key, value in pairs if key == "resultTest"), "")

    def __str__(self):
        return " ".join([self.name, f"np={self.ranks}", *self.arguments])


class Settings:
    """Options of mpiexec and variables with which a program runs."""

    def __init__(self, words=()):
        self.options, self.variables, self.limit = [], {}, None
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or not value:
                sys.exit(f"suite: '{word}' is not a setting (NAME=VALUE or -NAME=VALUE)")
            if name == "-timeout":
                self.limit = int(value)
            elif name.startswith("-"):
                self.options += [name, value]
            else:
                self.variables[name] = value


def read_settings(path):
    """Returns the names in a file of settings with their settings."""
    settings = {}
    for words in map(str.split, read_excluded(path)):
        if words[0] in settings:
            sys.exit(f"suite: {path}: '{words[0]}' is listed twice")
        settings[words[0]] = Settings(words[1:])
    return settings


def lines_of(directory):
    """Returns the lines of a directory's list. If lines differ only in settings of MPICH, only the first
    counts."""
    seen = {}
    for text in (directory / "testlist").read_text(encoding="utf-8").splitlines():
        words = shlex.split(text, comments=True)
        if len(words) > 1 and words[1].isdigit():
            line = Line(words)
            seen.setdefault(str(line), line)
    return seen.values()


def unbuilt(prefix):
    """Returns the functions that are not built in this installation."""
    command = [prefix / "bin/typepack", "info", "--functions"]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return set(re.findall(r"^ +- (MPI_\w+)$", text, re.MULTILINE))


def judge(code, output, wanted, missing, limited=False):
    """Returns how a run of a program ended. `limited` says that mpiexec must end the program at its time limit. `run`
    handles the case that mpiexec itself hangs."""
    signal_line = re.search(r"^mpiexec: rank \d+ .*killed by (signal .*)$", output, re.MULTILINE)
    if signal_line:
        return f"crashes: {signal_line[1]}"
    if "typepack bug" in output:
        return "crashes: a bug that the library reports"
    # mpiexec ends a job at its time limit with this code and says so (runtime/launcher/src/ending.rs).
    if code == TIMED_OUT or re.search(r"^mpiexec: the job exceeded its time limit of", output, re.MULTILINE):
        return "passed" if limited else "hangs"
    if limited:
        return f"failed: ended before the time limit with exit code {code}"
    ended_by = re.findall(r"(MPI_\w+): this version of typepack does not have this function", output)
    if ended_by and missing.issuperset(ended_by):
        return f"not built: {', '.join(sorted(set(ended_by)))}"
    if wanted in ("TestStatus", "TestErrFatal"):
        good = code != 0
    elif wanted.startswith("Prints "):
        good = code == 0 and wanted.removeprefix("Prints ") in output
    else:
        good = code == 0 and "no errors" in output.lower()
    # If a function is built but does not support an operation, the run failed, even if the list expects an error.
    if good and "MPI_ERR_UNSUPPORTED_OPERATION" not in output:
        return "passed"
    return f"failed with exit code {code}"


def available():
    """Returns the size of the memory that programs can have, in GB."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(r"^MemAvailable: +(\d+) kB$", text, re.MULTILINE)[1]) * 1024 // 10**9


def run(options, directory, line, seconds, missing, settings=None):
    """Runs the program of a line. Returns how the run ended, and the output."""
    settings = settings or Settings()
    seconds = settings.limit or seconds
    program = options.tests / directory / line.name
    if line.ranks > RANKS:
        return "too many ranks", ""
    if line.memory > available():
        return "too much memory", ""
    if not program.exists():
        return "cannot be compiled", ""
    command = [options.prefix / "bin/mpiexec", "-n", line.ranks, "-timeout", seconds, *settings.options, program]
    process = subprocess.Popen(
        list(map(str, command + line.arguments)),
        cwd=program.parent, env={**os.environ, **line.variables, **settings.variables}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=seconds + 30)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        # mpiexec did not end the job at its own time limit, so mpiexec itself hangs.
        os.killpg(process.pid, signal.SIGKILL)
        return "hangs, and mpiexec with it", process.communicate()[0].decode(errors="replace")
    return judge(process.returncode, output, line.wanted, missing, settings.limit is not None), output


def main():
    parser = argparse.ArgumentParser()
    for name in ("--prefix", "--tests", "--excluded", "--settings"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    excluded, settings = read_excluded(options.excluded), read_settings(options.settings)
    for name in excluded.keys() & settings.keys():
        sys.exit(f"suite: {name} is in {options.excluded.name} and in {options.settings.name}")
    ends, failed, missing = Counter(), [], unbuilt(options.prefix)
    for directory in options.directories:
        here, whole = Counter(), {}
        for line in lines_of(options.tests / directory):
            name = f"{directory}/{line.name}"
            seconds = BRIEF if name in excluded else line.seconds
            end, output = run(options, directory, line, seconds, missing, settings.get(name))
            good = end == "passed"
            whole[name] = whole.get(name, True) and good
            # FILE excuses a crash only if the reason in FILE begins with the word crashes.
            crash = end.startswith("crashes") and not excluded.get(name, "").startswith("crashes")
            if not good and name in excluded and not crash:
                end = "excluded"
            elif end.startswith("not built"):
                print(f"{directory}/{line}: {end}", flush=True)
                end = "not built"
            elif not good and end not in ("too many ranks", "too much memory"):
                failed.append(f"{directory}/{line}: {end}")
                shown = "\n    ".join(output.strip().splitlines()[-12:])
                print(f"{failed[-1]}\n    {shown}", flush=True)
                end = "failed"
            here[end] += 1
        for name in sorted(name for name, good in whole.items() if good and name in excluded):
            print(f"suite: {name} is excluded, but passes: remove it from {options.excluded.name}")
        print(f"{directory}: " + ", ".join(f"{count} {end}" for end, count in here.most_common()), flush=True)
        ends += here
    print("suite: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    for line in failed:
        print(f"suite: {line}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
