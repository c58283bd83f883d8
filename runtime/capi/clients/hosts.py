"""Runs modules of mpi4py's tests on another MPI library, with typepack's kernels before it and without, and compares
what each test did on each rank. scripts/clients --hosts runs this program.

    hosts.py --mpiexec PATH --library PATH --tests DIR --work DIR --sizes 1,2,4 [--excluded NAME,...] [--seconds N]
             [--libraries DIR] [MODULE ...]

Each module runs three times at each size: without typepack, with it, and with TYPEPACK_INTERPOSE=all. The program
prints a line for each module and size, and each difference. A job that differs runs again, together with the plain job,
because a test may depend on time. A difference counts only if it appears in both runs. A module that takes longer than
N seconds without typepack is not compared; the program says so. If the library ends a job in a test, the tests count that
have ended in both jobs. The ranks take the MPI library from DIR, if one is given.
The exit code is 1 if a difference counts, or if no test ran.
"""

import argparse
import sys
from pathlib import Path

from jobs import timed

# The exit codes of timeout if the time has passed: by its first signal, and by its second one.
TIMED_OUT = (124, 137)

MODES = {
    "plain": [],
    "on": [],
    "all": ["-env", "TYPEPACK_INTERPOSE", "all"],
}


def outcomes(options, module, size, mode):
    """Runs a module. Returns what each test did on each rank: a table from (rank, test) to the outcome."""
    record = options.work / f"{module}-{size}-{mode}"
    for old in options.work.glob(f"{record.name}.*"):
        old.unlink()
    command = [options.mpiexec, "-n", size, *MODES[mode]]
    if options.libraries:
        command += ["-env", "LD_LIBRARY_PATH", options.libraries]
    if mode != "plain":
        command += ["-env", "LD_PRELOAD", options.library]
    command = ["timeout", "-k", "5", options.seconds, *command]
    command += [sys.executable, Path(__file__).with_name("rank.py"), options.tests, f"test_{module}", record, "without"]
    code, output, _ = timed(list(map(str, command)))
    Path(f"{record}.output").write_text(output, encoding="utf-8")
    found = {}
    for rank in range(size):
        file = Path(f"{record}.{rank}")
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            what, name, *outcome = line.split(maxsplit=2)
            if what == "start":
                found[rank, name] = "did not end"
            elif what == "end":
                found[rank, name] = outcome[0]
    found["job"] = "ended with 0" if code == 0 else "took too long" if code in TIMED_OUT else "failed"
    return found


def differences(plain, other):
    """Returns the tests whose outcomes differ, with both outcomes."""
    nothing = "did not start"
    names = sorted(plain.keys() | other.keys(), key=str)
    pairs = {name: (plain.get(name, nothing), other.get(name, nothing)) for name in names}
    # If the library itself ends the job in a test of one rank, where the other ranks are is a matter of time. Then only
    # the tests count that have ended in both jobs.
    is_cut = "did not end" in plain.values()
    if is_cut:
        pairs.pop("job")
    cut = ("did not start", "did not end")
    return {
        name: pair for name, pair in pairs.items()
        if pair[0] != pair[1] and not (is_cut and (pair[0] in cut or pair[1] in cut))
    }


def main():
    parser = argparse.ArgumentParser(prog="hosts")
    for name in ("--mpiexec", "--library", "--tests", "--work"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--excluded", default="")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--libraries", type=Path)
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    # The ranks change their directory.
    for name in ("mpiexec", "library", "tests", "work"):
        setattr(options, name, getattr(options, name).resolve())
    if options.libraries:
        options.libraries = options.libraries.resolve()
    excluded = options.excluded.split(",")
    there = sorted(file.stem.removeprefix("test_") for file in options.tests.glob("test_*.py"))
    unknown = [name for name in options.modules if name not in there]
    if unknown:
        sys.exit(f"clients: mpi4py has no test module 'test_{unknown[0]}'")
    modules = options.modules or [name for name in there if name not in excluded]
    equal, failed, different, left_out = 0, 0, 0, 0
    for size in map(int, options.sizes.split(",")):
        for module in modules:
            plain = outcomes(options, module, size, "plain")
            if plain["job"] == "took too long":
                print(f"{module:<18} np {size}: not compared: takes longer than {options.seconds} s without typepack",
                      flush=True)
                left_out += 1
                continue
            for mode in ("on", "all"):
                other = outcomes(options, module, size, mode)
                found = differences(plain, other)
                if found:
                    again = outcomes(options, module, size, "plain"), outcomes(options, module, size, mode)
                    twice = differences(*again)
                    for name in found.keys() - twice.keys():
                        where = f"clients: test_{module}, {size} ranks, {mode}"
                        print(f"{where}: {name}: differs now and then: {found[name]}")
                    found = {name: pair for name, pair in found.items() if name in twice}
                for name, (expected, got) in found.items():
                    print(f"clients: test_{module}, {size} ranks, {mode}: {name}: {expected}, but {got} with typepack")
                different += len(found)
                equal += len(plain) - 1 - sum(name in plain and name != "job" for name in found)
            bad = sum(not outcome.startswith(("passed", "skipped", "ended with 0")) for outcome in plain.values())
            failed += bad
            print(f"{module:<18} np {size}: {len(plain) - 1} outcomes, {bad} not good without typepack", flush=True)
    print(f"{equal} outcomes are equal, {different} differ; {failed} are not good without typepack; "
          f"{left_out} jobs took too long without typepack")
    return 1 if different or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
