"""Prints one line about the results of a client of scripts/clients --more, and the names of the tests that failed.

    more.py CLIENT VERSION SECONDS RESULTS EXCLUDED

RESULTS has a line for each test: PASS, FAIL, SKIP or another word that counts as FAIL, and the name of the test.
EXCLUDED lists tests that may fail: CLIENT TEST # REASON. The exit code is 1 if another test failed, if no test ran, or
if EXCLUDED is wrong. A listed test that passed is named, so that it can be removed from the list.
"""

import sys
from pathlib import Path


def read_excluded(path, client):
    """Returns the tests of a client that may fail. A line without a reason ends the program with an error."""
    names = set()
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        entry, _, reason = line.partition("#")
        if not entry.strip():
            continue
        owner, _, test = entry.strip().partition(" ")
        if not test or not reason.strip():
            sys.exit(f"clients: {path}:{number}: a line must be CLIENT TEST # REASON")
        if owner == client:
            names.add(test.strip())
    return names


def main():
    client, version, seconds, results, excluded = sys.argv[1:]
    may_fail = read_excluded(excluded, client)
    passed, failed, skipped, expected = [], [], [], []
    for line in Path(results).read_text(encoding="utf-8").splitlines():
        verdict, _, test = line.partition(" ")
        if verdict == "PASS":
            passed.append(test)
        elif verdict == "SKIP":
            skipped.append(test)
        else:
            (expected if test in may_fail else failed).append(test)
    print(
        f"clients: {client} {version}: {len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped, "
        f"{len(expected)} failed as expected, {seconds} s"
    )
    for test in failed:
        print(f"clients: {client}: FAILED {test}")
    for test in sorted(may_fail & set(passed)):
        print(f"clients: {client}: {test} passed; remove it from {Path(excluded).name}")
    return 1 if failed or not passed else 0


sys.exit(main())
