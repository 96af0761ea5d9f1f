"""The verdicts of one run of a test program, by test: Go's tests and their parts, and Ginkgo's specs."""

import collections
import re
import xml.etree.ElementTree

# Lines of the testing package begin so with -test.v=test2json, wherever they stand in the output.
BEGUN = re.compile(rb"\x16=== RUN\s+(\S+)")
ENDED = re.compile(rb"\x16\s*--- (PASS|FAIL|SKIP): (\S+) \(")
RUNNING_SUITE = re.compile(rb"Running Suite: ")
CHANCE = re.compile(r"\d{10,}")
STATES = {"passed": "PASS", "skipped": "SKIP", "pending": "SKIP"}


def verdicts(log, junit):
    """PASS, FAIL or SKIP by the name of a test. One that has begun and not ended has failed."""
    found, current, entry = {}, None, None
    with log.open("rb") as lines:
        for line in lines:
            if match := BEGUN.search(line):
                current = match[1].decode()
                found[current] = "FAIL"
            for match in ENDED.finditer(line):
                found[match[2].decode()] = match[1].decode()
            if RUNNING_SUITE.search(line):
                entry = current
    specs = list(of_ginkgo(junit)) if junit.exists() else []
    if specs:
        # The Go test that runs the specs is none beside them.
        found.pop(entry, None)
    return named_alike(found | dict(specs))


def named_alike(found):
    """Verdicts by names without times and seeds, which differ in each run. Tests that have one name then count once, by the worst."""
    alike = {}
    for name, verdict in found.items():
        name = CHANCE.sub("N", name)
        alike[name] = verdict if verdict == "FAIL" else alike.get(name, verdict)
    return alike


def of_ginkgo(junit):
    """The specs of a report; of the nodes around them (BeforeSuite and such) those that have failed."""
    seen = collections.Counter()
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        name, verdict = case.get("name"), STATES.get(case.get("status"), "FAIL")
        if not name.startswith("[It]") and verdict != "FAIL":
            continue
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), verdict
