"""Prints one line for each test in the results that pytest wrote on the ranks of a job: PASS, SKIP or FAIL, and its name.

    junit.py RANKS FILE...

A test counts as failed if it failed on one rank, and as skipped if all ranks skipped it. If a rank wrote no results, the
job ended before its end, which is a failure.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

ranks, files = int(sys.argv[1]), [file for file in sys.argv[2:] if Path(file).exists()]
verdicts = {}
for file in files:
    for case in ElementTree.parse(file).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        verdict = "PASS"
        for child in case:
            if child.tag in ("failure", "error"):
                verdict = "FAIL"
            elif child.tag == "skipped" and verdict == "PASS":
                verdict = "SKIP"
        verdicts.setdefault(name, []).append(verdict)
for name, found in verdicts.items():
    verdict = "FAIL" if "FAIL" in found else "PASS" if "PASS" in found else "SKIP"
    print(verdict, f"{name}@{ranks}")
if len(files) < ranks:
    print("FAIL", f"results@{ranks}: {len(files)} of {ranks} ranks wrote results")
