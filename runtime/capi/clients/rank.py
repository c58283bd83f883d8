"""One rank of a job that runs one module of mpi4py's tests; jobs.py starts it under mpiexec.

    rank.py TESTS MODULE RECORD only|without [NAMES]

TESTS is the directory of mpi4py's tests, and MODULE is one of them. NAMES is a file of test names
(module.class.test, one per line). With "only", rank.py runs only these tests; with "without", it leaves them
out. It appends a line to RECORD.<rank> for each event of a test, so that the last line of a job that hung
names the test:

    known NAME          the module has this test
    start NAME          before it runs
    end NAME OUTCOME    passed, failed, or skipped and why
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

# The launcher's variable has the rank before MPI is initialised.
log = open(f"{record}.{os.environ.get('TYPEPACK_RANK', '0')}", "a", buffering=1, encoding="utf-8")


class Loader(suite.TestLoader):
    """mpi4py's loader, with exact names."""

    def getTestCaseNames(self, case):
        chosen = []
        for name in super().getTestCaseNames(case):
            full = f"{case.__module__}.{case.__qualname__}.{name}"
            log.write(f"known {full}\n")
            if (full in names) == (mode == "only"):
                chosen.append(name)
        return chosen


class Result(unittest.TextTestResult):
    """The usual report on stderr, and the record."""

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
