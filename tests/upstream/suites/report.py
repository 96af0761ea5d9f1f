"""The table of the suites, and what passes on the control and not here."""

import collections
import json
import statistics


def report(folder, names, list_of_left_out):
    """Prints both; 1 if a difference is in no list."""
    reasons, rows, found = left_out(list_of_left_out), [], []
    for name in names:
        path = folder / name / "results.json"
        if not path.exists():
            print(f"{name}: not run")
            continue
        packages = json.loads(path.read_text())
        rows.append(Row(name, packages))
        found += [(name, package, test) for package, runs in packages.items() for test in differences(runs)]
    table([*rows, sum_of(rows)])
    unlisted = [one for one in found if one not in reasons]
    for one in found:
        print(" | ".join([*one, reasons.get(one, "in no list")]))
    print(f"{len(found)} tests pass on kube-apiserver and not on rowplane; {len(unlisted)} of them are in no list")
    return 1 if unlisted else 0


def left_out(path):
    """The reason for each difference, by suite, package and test. A line is `SUITE | PACKAGE | TEST | REASON`."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {tuple(parts[:3]): parts[3] for parts in (line.split(" | ") for line in lines)}


def passes(runs):
    """The tests that pass in more than half of the runs."""
    counts = collections.Counter(name for run in runs for name, verdict in run["verdicts"].items() if verdict == "PASS")
    return {name for name, count in counts.items() if 2 * count > len(runs)}


def differences(runs):
    """The tests that pass there and not here, without those that only have such parts."""
    found = passes(runs["kube-apiserver"]) - passes(runs["rowplane"])
    return sorted(name for name in found if not any(other.startswith(name + "/") for other in found))


class Row:
    """The sums of a suite: tests that were run, how many passed, seconds."""

    def __init__(self, name, packages=None):
        self.name, self.tests, self.there, self.here, self.both = name, 0, 0, 0, 0
        # Seconds by server: of the whole, of the test programs' own computing, of the servers'.
        self.times = {kind: collections.Counter() for kind in ("wall", "own", "servers")}
        for runs in (packages or {}).values():
            there, here = passes(runs["kube-apiserver"]), passes(runs["rowplane"])
            ran = {name for run in sum(runs.values(), []) for name, verdict in run["verdicts"].items() if verdict != "SKIP"}
            self.tests += len(ran)
            self.there, self.here, self.both = self.there + len(there), self.here + len(here), self.both + len(there & here)
            for server, outcomes in runs.items():
                for kind, sums in self.times.items():
                    sums[server] += statistics.median(outcome[kind] for outcome in outcomes)


def sum_of(rows):
    whole = Row("all")
    for row in rows:
        whole.tests, whole.there, whole.here, whole.both = (
            whole.tests + row.tests,
            whole.there + row.there,
            whole.here + row.here,
            whole.both + row.both,
        )
        for kind, sums in whole.times.items():
            sums += row.times[kind]
    return whole


def table(rows):
    print("| suite | tests | pass on kube-apiserver | pass on rowplane | of the former | s there | s here | ratio | own s | servers' s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        there, here = (row.times["wall"][server] for server in ("kube-apiserver", "rowplane"))
        share = f"{100 * row.both / row.there:.1f} %" if row.there else ""
        ratio = f"{here / there:.2f}" if there else ""
        own, servers = (f"{times['kube-apiserver']:.0f}, {times['rowplane']:.0f}" for times in (row.times["own"], row.times["servers"]))
        print(f"| {row.name} | {row.tests} | {row.there} | {row.here} | {share} | {there:.0f} | {here:.0f} | {ratio} | {own} | {servers} |")
