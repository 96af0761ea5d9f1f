"""Prints a line for each package, and below it each test that passes on the real server and fails on rowplane, or that the starter
has left out, unless it stands in the list of what is left out. Exits with 1 if there is one:

    compare.py DIR LEFT_OUT PACKAGE...
"""

import sys

from results import Log


def listed(path):
    """The reason for each test, by package and name. A line is `PACKAGE TEST REASON`."""
    with open(path) as lines:
        lines = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {(package, test): reason.strip() for package, test, reason in lines}


def differences(here, real):
    """What failed here, without what fails there too and without tests that only have failed parts."""
    failed = {name for name, verdict in here.verdicts.items() if verdict == "FAIL"}
    for name in sorted(failed):
        if any(other.startswith(name + "/") for other in failed):
            continue
        if not real.verdicts:
            yield name, "fails; the real server was not asked"
        elif real.verdicts.get(name, real.verdicts.get(name.split("/")[0])) == "PASS":
            yield name, "fails, and passes on the real server"


def with_parents(test):
    """The name of a test, and those of the tests that it is a part of."""
    names = test.split("/")
    return ["/".join(names[:length]) for length in range(len(names), 0, -1)]


def main(folder, list_of_left_out, packages):
    reasons = listed(list_of_left_out)
    sums, new = [0, 0, 0, 0], 0
    for package in packages:
        name = package.replace("/", "_")
        here, real = (Log(f"{folder}/{server}/{name}.log") for server in ("rowplane", "upstream"))
        found = sorted([*differences(here, real), *here.reasons.items()])
        unlisted = [(test, why) for test, why in found if not any((package, whole) in reasons for whole in with_parents(test))]
        counts = [here.count("PASS"), here.count("FAIL"), here.count("SKIP"), real.count("FAIL")]
        sums = [a + b for a, b in zip(sums, counts)]
        print("{}: {} pass, {} fail ({} of them there, too), {} skipped".format(package, counts[0], counts[1], counts[3], counts[2]))
        if not here.verdicts or not here.finished:
            print("  not all tests were run")
            new += 1
        for test, why in unlisted:
            print(f"  {package} {test} {why}")
        new += len(unlisted)
    print("all: {} pass, {} fail ({} of them there, too), {} skipped; {} not listed".format(sums[0], sums[1], sums[3], sums[2], new))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
