"""Reads what Go's test programs print with -test.v:

    results.py LOG failed       the top-level tests that have failed, a regular expression of them
    results.py LOG finished     nothing, and 0, if the program has run all tests; else the expression of those it has begun
"""

import os
import re
import sys

BEGUN = re.compile(r"=== (RUN|NAME|CONT)\s+(\S+)")
PAUSED = re.compile(r"=== PAUSE\s+(\S+)")
VERDICT = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+)")
REASON = re.compile(r"OUTSIDE: (.*)")
ENDED = re.compile(r"(PASS|FAIL|ok\s.*|testing: warning: no tests to run)$")


class Log:
    """The verdict on each test and subtest by name, and why the starter has left some out."""

    def __init__(self, path):
        self.verdicts, self.reasons, self.finished = {}, {}, True
        if not os.path.exists(path):
            return
        self.finished, at = False, None
        with open(path, errors="replace") as lines:
            for line in lines:
                if match := BEGUN.match(line):
                    at = match[2]
                    # One that never ends has failed.
                    self.verdicts.setdefault(at, "FAIL")
                elif match := PAUSED.match(line):
                    self.verdicts.pop(match[1], None)
                elif match := VERDICT.match(line):
                    self.verdicts[match[2]] = match[1]
                elif ENDED.match(line):
                    self.finished = True
                elif (match := REASON.search(line)) and at:
                    self.reasons.setdefault(at, match[1].strip())

    def count(self, wanted):
        return sum(verdict == wanted for name, verdict in self.verdicts.items() if "/" not in name)

    def top_level(self, *wanted):
        return sorted({name for name, verdict in self.verdicts.items() if "/" not in name and (not wanted or verdict in wanted)})


def main(path, question):
    log = Log(path)
    if question == "failed":
        print("|".join(log.top_level("FAIL")))
    elif not log.finished:
        print("|".join(log.top_level()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
