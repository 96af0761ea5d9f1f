"""The curves that the samples of a soak make, and the verdict on them."""

import dataclasses
import statistics

# By how much a curve's median in the last quarter may be above that in the second one: a share of it, and a slack for
# what is small. Each has its reason; without it any growth that an hour can show would pass.
TOLERANCES = {
    # The allocator returns memory late, and what is kept per connection depends on which of them are there.
    "resident MB": (0.10, 8),
    "anonymous MB": (0.10, 8),
    # Connections come and go with watchers, a tenth of which have one of their own.
    "descriptors": (0.05, 20),
    # The runtime starts threads for blocking work when there is some, and lets them go after ten seconds.
    "threads": (0.10, 4),
    # The same work costs the same, where no other program wants the processors: beside others the same
    # load took a third, probably since a server that waits commits more in each batch. So this is not judged on a machine that is shared.
    "processors used": (0.20, 0.05),
    # A server says something when it starts and when something is wrong, and nothing about single requests.
    "log bytes a minute": (0.10, 2000),
    # SQLite's log has the size that it once needed, and grows only when a reader holds up its folding.
    "-wal MB": (0.25, 8),
    # Rows that are deleted leave room, which is taken again; PostgreSQL's needs autovacuum, which comes once a minute.
    "MB": (0.10, 4),
    "rows": (0.10, 2000),
    # History is cut at intervals, so its length goes up and down by one of these.
    "oldest change, seconds": (0.15, 15),
    "watches": (0.03, 20),
}
QUARTERS = 4


@dataclasses.dataclass
class Curve:
    name: str
    kind: str
    points: list  # of (seconds, value)

    def growth(self, warm_up):
        """The medians of the second and the last quarter after the warm-up, and what the last one may be."""
        first, last = max(warm_up, self.points[0][0]), self.points[-1][0]
        quarter = (last - first) / QUARTERS
        median = lambda n: statistics.median(
            value for seconds, value in self.points if n * quarter <= seconds - first <= (n + 1) * quarter
        )
        before, after = median(1), median(QUARTERS - 1)
        share, slack = TOLERANCES[self.kind]
        return before, after, before * (1 + share) + slack


def curves(samples):
    """All curves that are judged."""
    found = []
    times = [sample["seconds"] for sample in samples]
    add = lambda name, kind, values, at=times: found.append(Curve(name, kind, list(zip(at, values))))
    for number in range(len(samples[0]["servers"])):
        name = f"server {number + 1}: "
        values = lambda field: [sample["servers"][number][field] for sample in samples]
        add(name + "resident MB", "resident MB", values("resident_mb"))
        add(name + "anonymous MB", "anonymous MB", values("anonymous_mb"))
        add(name + "descriptors", "descriptors", values("descriptors"))
        add(name + "threads", "threads", values("threads"))
        add(name + "watches", "watches", values("watches"))
        add(name + "processors used", "processors used", rates(times, values("cpu_seconds")), times[1:])
        per_minute = [60 * rate for rate in rates(times, values("log_bytes"))]
        add(name + "log bytes a minute", "log bytes a minute", per_minute, times[1:])
    for table in samples[0]["store"]["bytes"]:
        megabytes = [sample["store"]["bytes"][table] / 1e6 for sample in samples]
        add(f"{table} MB", "-wal MB" if table == "-wal" else "MB", megabytes)
    for table in samples[0]["store"]["rows"]:
        add(f"rows of {table}", "rows", [sample["store"]["rows"][table] for sample in samples])
    add("oldest change, seconds", "oldest change, seconds", ages(samples))
    add("clients' watches", "watches", [sample["load"]["watchers"] for sample in samples])
    return found


def of_load(samples):
    """Curves of what clients did and saw, which are drawn and not judged."""
    times = [sample["seconds"] for sample in samples]
    load = [sample["load"] for sample in samples]
    rate = lambda *names: list(zip(times[1:], rates(times, [sum(each[name] for name in names) for each in load])))
    found = [
        Curve("a second: writes", "a second", rate("creates", "updates", "deletes")),
        Curve("a second: lists", "a second", rate("lists")),
        Curve("a second: new watches", "a second", rate("watches")),
    ]
    for name, field in (("a write", "write_ms"), ("a list", "list_ms"), ("a write to its event", "event_ms")):
        found.append(Curve(f"p99, ms: {name}", "p99, ms", [(s, each[field]["p99"]) for s, each in zip(times, load)]))
    errors = [sum(each["errors"].values()) for each in load]
    found.append(Curve("trouble: errors", "trouble", list(zip(times, errors))))
    found.append(Curve("trouble: late events", "trouble", list(zip(times, [each["late"] for each in load]))))
    return found


def figure(value):
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def rates(times, values):
    pairs = zip(zip(times, values), zip(times[1:], values[1:]))
    return [(after - before) / (end - start) for (start, before), (end, after) in pairs]


def ages(samples):
    """For each sample, how long ago the oldest change that is kept was made."""
    known, found = [(sample["seconds"], sample["store"]["revision"]) for sample in samples], []
    place = 0
    for sample in samples:
        oldest = sample["store"]["oldest"]
        while place + 1 < len(known) and known[place + 1][1] <= oldest:
            place += 1
        (start, low), (end, high) = known[place], known[min(place + 1, len(known) - 1)]
        made = start + (end - start) * max(0, oldest - low) / (high - low) if high > low else start
        found.append(max(0, sample["seconds"] - made))
    return found


def verdict(samples, warm_up, shared=False):
    """What is wrong, a line each, and a table of all curves. Errors and late events count from the end of the warm-up on."""
    wrong, rows = [], ["| curve | second quarter | last quarter | at most |", "|---|---:|---:|---:|"]
    for curve in curves(samples):
        before, after, most = curve.growth(warm_up)
        if shared and curve.kind == "processors used":
            rows.append(f"| {curve.name} | {figure(before)} | {figure(after)} | not judged |")
            continue
        rows.append(f"| {curve.name} | {figure(before)} | {figure(after)} | {figure(most)} |")
        if after > most:
            wrong.append(f"{curve.name} grows: {figure(before)} in the second quarter, {figure(after)} in the last one")
    first = next(sample["load"] for sample in samples if sample["seconds"] >= warm_up)
    last = samples[-1]["load"]
    for what, count in last["errors"].items():
        more = count - first["errors"].get(what, 0)
        if more:
            wrong.append(f"{more} errors of clients: {what}")
    late, events = last["late"] - first["late"], last["events"] - first["events"]
    # A machine with other programs on it has its pauses.
    if late > events / 1000:
        wrong.append(f"{late} of {events} events came more than five seconds late")
    return wrong, "\n".join(rows)


def reached(samples, warm_up):
    """What the load was, in a sentence."""
    judged = [sample for sample in samples if sample["seconds"] >= warm_up]
    first, last = judged[0], judged[-1]
    seconds = last["seconds"] - first["seconds"]
    rate = lambda *names: sum(last["load"][name] - first["load"][name] for name in names) / seconds
    middle = lambda of, which: statistics.median(sample["load"][of][which] for sample in judged)
    return (
        f"in {seconds:,.0f} s after the warm-up: {rate('creates', 'updates', 'deletes'):,.0f} writes/s "
        f"({rate('creates'):,.0f} creates, {rate('updates'):,.0f} updates, {rate('deletes'):,.0f} deletes), "
        f"{rate('lists'):,.0f} lists/s, {rate('watches'):,.1f} new watches/s, "
        f"{statistics.median(sample['load']['watchers'] for sample in judged):,.0f} watchers, {rate('events'):,.0f} events/s; "
        f"p99 of writes {middle('write_ms', 'p99'):,.0f} ms, of lists {middle('list_ms', 'p99'):,.0f} ms, "
        f"from a write to its event {middle('event_ms', 'p99'):,.0f} ms; {last['load']['late']} late events, "
        f"{last['load']['missed_writes']} writes and {last['load']['missed_lists']} lists not made in time"
    )
