"""Runs the programs of MPICH's test suite under our mpiexec and says how they ended; scripts/suite calls it.

    suite.py --prefix P --tests DIR --excluded FILE DIRECTORY ...

Each directory has a list: a program, the number of ranks, and sometimes arguments (arg=), variables (env=), a
time limit (timeLimit=) and what else than "No Errors" is right (resultTest=). How a line ended is told by what
mpiexec and the library say, in this order:

    crashes       a signal ended a rank, or the library reported a bug of its own: failed, whatever was wanted
    hangs         the time was over: failed, whatever was wanted
    not built     a function ended it that `typepack info --functions` lists as not built; printed with its name
    passed        as the list wants
    failed        everything else, a program that cannot be compiled included

FILE names programs (DIRECTORY/NAME # REASON) that may fail; one that passes with every line of its list is
reported, so that the file can shrink. Exit code 1 if another one failed.
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

# More than a program of the suite takes on two busy processors, but for those that wait by spinning.
SECONDS = 180
# For one that is excluded, which may well hang.
BRIEF = 30
# More ranks on two processors prove nothing that eight do not.
RANKS = 10


class Line:
    """A line of a list."""

    def __init__(self, words):
        self.name, self.ranks = words[0], int(words[1])
        pairs = [word.split("=", 1) for word in words[2:] if "=" in word]
        self.arguments = [value for key, value in pairs if key == "arg"]
        self.variables = dict(value.split("=", 1) for key, value in pairs if key == "env" and "=" in value)
        self.seconds = max([SECONDS] + [int(value) for key, value in pairs if key == "timeLimit"])
        self.wanted = next((value for key, value in pairs if key == "resultTest"), "")

    def __str__(self):
        return " ".join([self.name, f"np={self.ranks}", *self.arguments])


def lines_of(directory):
    """The lines of a directory, each once, however often it stands there with settings of MPICH's."""
    seen = {}
    for text in (directory / "testlist").read_text(encoding="utf-8").splitlines():
        words = shlex.split(text, comments=True)
        if len(words) > 1 and words[1].isdigit():
            line = Line(words)
            seen.setdefault(str(line), line)
    return seen.values()


def unbuilt(prefix):
    """The functions that this installation does not have."""
    command = [prefix / "bin/typepack", "info", "--functions"]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return set(re.findall(r"^ +- (MPI_\w+)$", text, re.MULTILINE))


def judge(code, output, wanted, missing):
    """How a program ended that mpiexec has seen to its end."""
    signal_line = re.search(r"^mpiexec: rank \d+ .*killed by (signal .*)$", output, re.MULTILINE)
    if signal_line:
        return f"crashes: {signal_line[1]}"
    if "typepack bug" in output:
        return "crashes: a bug that the library reports"
    if re.search(r"^mpiexec: the job was ended after its", output, re.MULTILINE):
        return "hangs"
    ended_by = re.findall(r"(MPI_\w+): this version of typepack does not have this function", output)
    if ended_by and missing.issuperset(ended_by):
        return f"not built: {', '.join(sorted(set(ended_by)))}"
    if wanted in ("TestStatus", "TestErrFatal"):
        good = code != 0
    else:
        good = code == 0 and "no errors" in output.lower()
    # An operation that is missing in a function that is there is a failure, also where one was wanted.
    if good and "MPI_ERR_UNSUPPORTED_OPERATION" not in output:
        return "passed"
    return f"failed with exit code {code}"


def run(options, directory, line, seconds, missing):
    """How a line ended, and what it wrote."""
    program = options.tests / directory / line.name
    if line.ranks > RANKS:
        return "too many ranks", ""
    if not program.exists():
        return "cannot be compiled", ""
    command = [options.prefix / "bin/mpiexec", "-n", line.ranks, "-timeout", seconds, program]
    process = subprocess.Popen(
        list(map(str, command + line.arguments)),
        cwd=program.parent, env={**os.environ, **line.variables}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=seconds + 30)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        # The launcher itself hangs.
        os.killpg(process.pid, signal.SIGKILL)
        return "hangs, and mpiexec with it", process.communicate()[0].decode(errors="replace")
    return judge(process.returncode, output, line.wanted, missing), output


def main():
    parser = argparse.ArgumentParser()
    for name in ("--prefix", "--tests", "--excluded"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    excluded = read_excluded(options.excluded)
    ends, failed, missing = Counter(), [], unbuilt(options.prefix)
    for directory in options.directories:
        here, whole = Counter(), {}
        for line in lines_of(options.tests / directory):
            name = f"{directory}/{line.name}"
            seconds = BRIEF if name in excluded else line.seconds
            end, output = run(options, directory, line, seconds, missing)
            good = end == "passed"
            whole[name] = whole.get(name, True) and good
            if not good and name in excluded:
                end = "excluded"
            elif end.startswith("not built"):
                print(f"{directory}/{line}: {end}", flush=True)
                end = "not built"
            elif not good and end != "too many ranks":
                failed.append(f"{directory}/{line}: {end}")
                shown = "\n    ".join(output.strip().splitlines()[-12:])
                print(f"{failed[-1]}\n    {shown}", flush=True)
                end = "failed"
            here[end] += 1
        for name in sorted(name for name, good in whole.items() if good and name in excluded):
            print(f"suite: {name} is excluded and passes: take it out of {options.excluded.name}")
        print(f"{directory}: " + ", ".join(f"{count} {end}" for end, count in here.most_common()), flush=True)
        ends += here
    print("suite: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    for line in failed:
        print(f"suite: {line}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
