"""Runs one module of mpi4py's tests as one rank of a job. jobs.py starts the ranks with mpiexec.

    rank.py TESTS MODULE RECORD only|without [NAMES]

TESTS is the directory of mpi4py's tests, and MODULE is one of them. NAMES is a file of test names
(module.class.test, or module.class for all tests of a class; one per line). With "only", rank.py runs only these tests; with "without", it leaves them
out. rank.py appends a line to RECORD.<rank> for each event of a test. If the job hangs, the last line of the file
names the test that did not end. The lines are:

    known NAME          the module has this test
    start NAME          the test begins
    end NAME OUTCOME    the test has ended; OUTCOME is passed, failed, or skipped with a reason
"""

import os
import sys
import unittest

tests, module, record, mode = sys.argv[1:5]
names = set()
if len(sys.argv) > 5:
    with open(sys.argv[5], encoding="utf-8") as file:
        names = set(file.read().split())
sys.dont_write_bytecode = True
sys.path.insert(0, tests)
os.chdir(os.path.dirname(tests))

import main as suite  # noqa: E402  (mpi4py's own test program)

# The rank comes from a variable that the launcher sets, because MPI is not initialised yet.
rank = os.environ.get("TYPEPACK_RANK") or os.environ.get("PMI_RANK") or "0"
log = open(f"{record}.{rank}", "a", buffering=1, encoding="utf-8")


class Loader(suite.TestLoader):
    """mpi4py's test loader, except that it selects tests by their names."""

    def getTestCaseNames(self, case):
        chosen = []
        for name in super().getTestCaseNames(case):
            full = f"{case.__module__}.{case.__qualname__}.{name}"
            log.write(f"known {full}\n")
            listed = full in names or full.rpartition(".")[0] in names
            if listed == (mode == "only"):
                chosen.append(name)
        return chosen


class Result(unittest.TextTestResult):
    """Reports the tests on stderr as usual, and also writes the record."""

    def startTest(self, test):
        self.outcome = "passed"
        log.write(f"start {test.id()}\n")
        super().startTest(test)

    def addSkip(self, test, reason):
        self.outcome = "skipped " + " ".join(str(reason).split())
        super().addSkip(test, reason)

    def addError(self, test, error):
        self.outcome = "failed"
        super().addError(test, error)

    def addFailure(self, test, error):
        self.outcome = "failed"
        super().addFailure(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.outcome = "failed"
        super().addSubTest(test, subtest, error)

    def addUnexpectedSuccess(self, test):
        self.outcome = "failed"
        super().addUnexpectedSuccess(test)

    def stopTest(self, test):
        log.write(f"end {test.id()} {self.outcome}\n")
        super().stopTest(test)


suite.TestLoader = Loader
runner = unittest.TextTestRunner(resultclass=Result, verbosity=0)
suite.main(
    module=None,
    argv=["rank.py", "--no-builddir", "-q", module],
    testRunner=runner,
)
