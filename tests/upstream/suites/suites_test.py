"""What the runner reads and decides, without a server: `python3 suites_test.py`."""

import pathlib
import tempfile
import unittest

from judge import differs
from report import Row, differences, left_out
from verdicts import named_alike, verdicts

LOG = """\x16=== RUN   TestPlain
\x16=== RUN   TestPlain/part
    some output\x16--- FAIL: TestPlain/part (0.00s)
\x16--- FAIL: TestPlain (0.00s)
\x16=== RUN   TestSpecs
Running Suite: Specs
\x16--- PASS: TestSpecs (0.10s)
\x16=== RUN   TestCut
panic: the end
"""
JUNIT = """<testsuites><testsuite>
<testcase name="[BeforeSuite]" status="passed"/>
<testcase name="[AfterSuite]" status="failed"/>
<testcase name="[It] does a thing" status="passed"/>
<testcase name="[It] does a thing" status="panicked"/>
<testcase name="[It] waits" status="pending"/>
</testsuite></testsuites>"""


def runs(*turns):
    """Verdicts of (there, here) in turns."""
    outcome = lambda found: {"verdicts": found, "wall": 1, "own": 0, "servers": 0}
    there, here = zip(*turns)
    return {"kube-apiserver": list(map(outcome, there)), "rowplane": list(map(outcome, here))}


class Verdicts(unittest.TestCase):
    def test_specs_stand_for_the_test_that_runs_them(self):
        with tempfile.TemporaryDirectory() as folder:
            log, junit = pathlib.Path(folder, "log"), pathlib.Path(folder, "xml")
            log.write_text(LOG)
            go = {"TestPlain": "FAIL", "TestPlain/part": "FAIL", "TestCut": "FAIL"}
            self.assertEqual(verdicts(log, junit), go | {"TestSpecs": "PASS"})
            junit.write_text(JUNIT)
            specs = {"[AfterSuite]": "FAIL", "[It] does a thing": "PASS", "[It] does a thing #2": "FAIL", "[It] waits": "SKIP"}
            self.assertEqual(verdicts(log, junit), go | specs)


    def test_seeds_are_no_part_of_a_name(self):
        found = {"TestA/random(1795916449914401480)": "PASS", "TestA/random(1795916436452894581)": "FAIL", "TestA/random(3)": "PASS"}
        self.assertEqual(named_alike(found), {"TestA/random(N)": "FAIL", "TestA/random(3)": "PASS"})
        self.assertEqual(named_alike(dict(reversed(found.items())))["TestA/random(N)"], "FAIL")


class Differences(unittest.TestCase):
    def test_two_of_three_runs_count(self):
        good, bad = {"TestA": "PASS", "TestA/part": "PASS"}, {"TestA": "FAIL", "TestA/part": "FAIL"}
        self.assertEqual(differences(runs((good, bad), (good, good), (good, good))), [])
        self.assertEqual(differences(runs((good, bad), (good, good), (good, bad))), ["TestA/part"])
        self.assertEqual(differences(runs((bad, bad))), [])

    def test_what_is_skipped_or_missing_here_differs(self):
        good = {"TestA": "PASS"}
        self.assertTrue(differs(runs((good, {"TestA": "SKIP"}))))
        self.assertTrue(differs(runs((good, {}))))
        self.assertFalse(differs(runs(({"TestA": "FAIL"}, {}))))

    def test_tests_that_nobody_ran_are_not_counted(self):
        row = Row("suite", {".": runs(({"TestA": "PASS", "TestB": "SKIP"}, {"TestA": "PASS", "TestB": "SKIP"}))})
        self.assertEqual((row.tests, row.there, row.here, row.both), (1, 1, 1, 1))

    def test_each_line_of_the_list_has_a_reason(self):
        for names, reason in left_out(pathlib.Path(__file__).parent / "left-out").items():
            self.assertEqual(len(names), 3)
            self.assertTrue(reason)


if __name__ == "__main__":
    unittest.main()
