"""Tests how suite.py judges programs and reads settings, and how jobs.py reads exclusions and measures jobs.

scripts/suite and scripts/clients run these tests first.
"""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

from jobs import read_excluded, timed
from suite import judge, read_settings

UNBUILT = (
    "typepack: rank 0: MPI_Win_create: this version of typepack does not have this function "
    "(MPI_ERR_UNSUPPORTED_OPERATION: not supported)\nmpiexec: rank 0 (pid 7) exited with code 55\n"
)
CRASH = "mpiexec: rank 1 (pid 8) killed by signal 11 (SIGSEGV)\n"
HANG = "mpiexec: the job exceeded its time limit of 180 s\n"
ENDING = Path(__file__).parents[2] / "launcher/src/ending.rs"


class Judge(unittest.TestCase):
    def ends(self, code, output, wanted=""):
        return judge(code, output, wanted, {"MPI_Win_create"})

    def test_what_is_wanted_passes(self):
        self.assertEqual(self.ends(0, " No Errors\n"), "passed")
        self.assertEqual(self.ends(10, "fatal\n", "TestErrFatal"), "passed")
        self.assertEqual(self.ends(1, "found 3 errors\n"), "failed with exit code 1")
        self.assertEqual(self.ends(1, " No Errors\n"), "failed with exit code 1")
        self.assertEqual(self.ends(0, "nothing\n", "TestStatus"), "failed with exit code 0")
        self.assertEqual(self.ends(0, "all data is correct\n", "Prints data is correct"), "passed")
        self.assertEqual(self.ends(0, " No Errors\n", "Prints data is correct"), "failed with exit code 0")
        self.assertEqual(self.ends(1, "data is correct\n", "Prints data is correct"), "failed with exit code 1")

    def test_crashes_and_hangs_fail_whatever_is_wanted(self):
        for wanted in ("", "TestStatus", "TestErrFatal"):
            for output in (CRASH, " No Errors\n" + CRASH, UNBUILT + CRASH):
                self.assertEqual(self.ends(139, output, wanted), "crashes: signal 11 (SIGSEGV)")
            self.assertEqual(self.ends(124, UNBUILT, wanted), "hangs")
            self.assertEqual(self.ends(1, UNBUILT + HANG, wanted), "hangs")
        # CRASH and HANG imitate lines of the launcher, so the launcher's source must contain the words.
        self.assertIn("the job exceeded its time limit of", ENDING.read_text())
        self.assertIn("bug", self.ends(1, "typepack bug: ...\n", "TestStatus"))

    def test_a_program_can_be_a_test_of_the_time_limit(self):
        for wanted in ("", "TestErrFatal"):
            self.assertEqual(judge(124, HANG, wanted, set(), limited=True), "passed")
            self.assertEqual(judge(139, HANG + CRASH, wanted, set(), limited=True), "crashes: signal 11 (SIGSEGV)")
            for code in (0, 1):
                end = judge(code, " No Errors\n", wanted, set(), limited=True)
                self.assertEqual(end, f"failed: ended before the time limit with exit code {code}")

    def test_only_functions_that_are_missing_are_not_built(self):
        for wanted in ("", "TestStatus"):
            self.assertEqual(self.ends(55, UNBUILT, wanted), "not built: MPI_Win_create")
            other = UNBUILT.replace("Win_create", "Send")
            self.assertEqual(self.ends(55, other, wanted), "failed with exit code 55")
        half = "MPI_Reduce: op: this version of typepack has no Sum of x (MPI_ERR_UNSUPPORTED_OPERATION)\n"
        self.assertEqual(self.ends(0, half + " No Errors\n"), "failed with exit code 0")


class Processor(unittest.TestCase):
    def test_a_job_that_waits_is_told_from_a_job_that_computes(self):
        # A process that measures its own processor time, in a child of the job, as a rank is a child of mpiexec.
        works = "import time\nwhile time.process_time() < 2: pass"
        nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {works!r}])"
        self.assertGreaterEqual(timed([sys.executable, "-c", nested])[2], 2)
        code, output, seconds = timed([sys.executable, "-c", "import time; time.sleep(0.5); print('slept')"])
        self.assertEqual((code, output), (0, "slept\n"))
        self.assertLess(seconds, 2)


class Excluded(unittest.TestCase):
    def test_every_name_needs_a_reason(self):
        with tempfile.NamedTemporaryFile("w", suffix=".excluded") as file:
            file.write("# a comment\na # one\nb.c # two # three\n")
            file.flush()
            self.assertEqual(read_excluded(Path(file.name)), {"a": "one", "b.c": "two # three"})
            for line in ("d\n", "d #\n", "a # again\n"):
                file.write(line)
                file.flush()
                with self.assertRaises(SystemExit), contextlib.redirect_stdout(io.StringIO()):
                    read_excluded(Path(file.name))
                file.truncate(file.tell() - len(line))
                file.seek(0, io.SEEK_END)


class Settings(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".settings") as file:
            file.write(text)
            file.flush()
            return read_settings(Path(file.name))

    def test_settings_are_variables_and_options(self):
        settings = self.read("a/b -initial-errhandler=mpi_errors_return X=1=2 # why\na/c -timeout=5 # why\n")
        self.assertEqual(settings["a/b"].options, ["-initial-errhandler", "mpi_errors_return"])
        self.assertEqual((settings["a/b"].variables, settings["a/b"].limit), ({"X": "1=2"}, None))
        self.assertEqual((settings["a/c"].options, settings["a/c"].limit), ([], 5))
        for text in ("a/b X # why\n", "a/b -x= # why\n", "a/b X=1\n", "a/b X=1 # why\na/b X=2 # why\n"):
            with self.assertRaises(SystemExit):
                self.read(text)


if __name__ == "__main__":
    unittest.main(argv=["selftest"], verbosity=0)
