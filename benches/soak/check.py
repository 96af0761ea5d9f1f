"""Whether growth would be found: samples that stay the same up to noise pass, and each figure that grows is named."""

import copy
import random

import curves

SECONDS, STEP = 1200, 5
WARM_UP = 240
# What grows in an hour to four times as much, so by a seventh between the quarters that are compared here.
GROWTH = 3 / 3600


def flat():
    """Samples of servers that use the same all the time, but for noise and the ups and downs of compaction."""
    noise = random.Random(7)
    found = []
    for seconds in range(STEP, SECONDS + 1, STEP):
        about = lambda value: value * noise.uniform(0.97, 1.03)
        revision, saw = 500 * seconds, 60 + seconds % 30
        server = {
            "resident_mb": about(200), "anonymous_mb": about(180), "descriptors": about(140), "threads": 9,
            "cpu_seconds": 0.4 * seconds, "log_bytes": 3000, "watches": about(1000),
        }
        found.append({
            "seconds": seconds,
            "servers": [server, dict(server)],
            "store": {
                "revision": revision, "oldest": max(1, revision - 500 * saw),
                "rows": {"changes": 500 * saw, "objects": 4000 + 450 * saw},
                "bytes": {"changes": about(20e6), "audit_events": about(90e6), "-wal": 16e6},
            },
            "load": {"watchers": 1000, "errors": {"watch: broken": 1}, "late": 0, "events": 900 * seconds},
        })
    return found


def with_growth(change):
    """The samples after a change that gets how much more there is by now."""
    found = copy.deepcopy(flat())
    for sample in found:
        change(sample, 1 + GROWTH * sample["seconds"])
    return found


def grows(*path):
    """What lets one figure of the samples grow, which stands at this path."""
    def change(sample, factor):
        for part in path[:-1]:
            sample = sample[part]
        sample[path[-1]] *= factor
    return change


def spent(sample, factor):
    sample["servers"][1]["cpu_seconds"] *= factor


def chatty(sample, _):
    """A line for every tenth request, from the middle of the time on."""
    sample["servers"][0]["log_bytes"] += max(0, sample["seconds"] - SECONDS / 2) * 5000


def kept(sample, _):
    """Nothing is compacted any more from a third of the time on."""
    sample["store"]["oldest"] = min(sample["store"]["oldest"], 500 * SECONDS // 3)


def failing(sample, _):
    sample["load"]["errors"] = {"watch: broken": 1, "create: 500": int(sample["seconds"] > SECONDS / 2)}


def late(sample, _):
    sample["load"]["late"] = sample["seconds"] * 2


CASES = {
    "server 1: resident MB grows": grows("servers", 0, "resident_mb"),
    "server 2: anonymous MB grows": grows("servers", 1, "anonymous_mb"),
    "server 1: descriptors grows": grows("servers", 0, "descriptors"),
    "server 2: threads grows": lambda sample, factor: sample["servers"][1].update(threads=9 + sample["seconds"] // 50),
    "server 2: watches grows": grows("servers", 1, "watches"),
    "server 2: processors used grows": spent,
    "server 1: log bytes a minute grows": chatty,
    "changes MB grows": lambda sample, factor: sample["store"]["bytes"].update(changes=20e6 * factor**2),
    "audit_events MB grows": grows("store", "bytes", "audit_events"),
    "-wal MB grows": lambda sample, factor: sample["store"]["bytes"].update({"-wal": 16e6 * sample["seconds"] / 300}),
    "rows of changes grows": grows("store", "rows", "changes"),
    "rows of objects grows": grows("store", "rows", "objects"),
    "oldest change, seconds grows": kept,
    "clients' watches grows": grows("load", "watchers"),
    "1 errors of clients: create: 500": failing,
    "events came more than five seconds late": late,
}


def run():
    wrong, _ = curves.verdict(flat(), WARM_UP)
    assert not wrong, f"nothing grows, and yet: {wrong}"
    for expected, change in CASES.items():
        wrong, _ = curves.verdict(with_growth(change), WARM_UP)
        assert len(wrong) == 1 and expected in wrong[0], f"{expected} was to be found, alone: {wrong}"
    judged = {curve.kind for curve in curves.curves(flat())}
    assert judged == set(curves.TOLERANCES), f"kinds of curves that nobody tests: {judged ^ set(curves.TOLERANCES)}"
    print(f"{len(CASES)} kinds of growth and of trouble were found")
