"""Runs the test programs of a suite on both servers in turns, and keeps the verdicts and the times in `results.json`."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from builder import file_name
from verdicts import verdicts

# A difference counts when it shows in two of three runs.
ENOUGH = 3


def judge(folder, suite, tests, programs, rounds):
    (folder / "logs").mkdir(exist_ok=True)
    results = {}
    for number, (package, (program, where)) in enumerate(tests.items()):
        runs = {server: [] for server in programs}
        while len(runs["rowplane"]) < rounds or (differs(runs) and len(runs["rowplane"]) < ENOUGH):
            turn = len(runs["rowplane"])
            # The one that begins differs from round to round, and from package to package.
            for server in sorted(programs, reverse=(turn + number) % 2 == 1):
                log = folder / "logs" / f"{file_name(package)}.{server}.{turn}.log"
                outcome = run(suite, program, where, programs[server], log)
                runs[server].append(outcome)
                passed = list(outcome["verdicts"].values()).count("PASS")
                print(f"{folder.name} {package} {server}: {passed} of {len(outcome['verdicts'])} pass, {outcome['wall']:.1f} s", flush=True)
        results[package] = runs
        (folder / "results.json").write_text(json.dumps(results, indent=1))


def differs(runs):
    """Whether a test passed on the control and not here, in any turn."""
    return any(
        verdict == "PASS" and here["verdicts"].get(name) != "PASS"
        for there, here in zip(runs["kube-apiserver"], runs["rowplane"])
        for name, verdict in there["verdicts"].items()
    )


def run(suite, program, where, assets, log):
    """One run of a test program: its verdicts, and seconds of wall time, of its own computing, and of the servers that it started."""
    scratch = tempfile.mkdtemp(prefix="suite-")
    junit = log.with_suffix(".xml")
    junit.unlink(missing_ok=True)
    arguments = ["-test.v=test2json", f"-test.timeout={suite.get('seconds', '900')}s", *suite.get("arguments", "").split()]
    if b"junit-report" in program.read_bytes():
        # Both servers get the tests in the same order.
        arguments += [f"-ginkgo.junit-report={junit}", "-ginkgo.no-color", "-ginkgo.seed=1"]
    environment = os.environ | {
        "KUBEBUILDER_ASSETS": str(assets),
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "120s",
        "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": "60s",
        "TMPDIR": scratch,
    }
    environment |= dict(line.split("=", 1) for line in suite.get("environment", "").split())
    with log.open("wb") as out:
        begin = time.monotonic()
        process = subprocess.Popen(
            [program, *arguments], cwd=where, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        # Its children's times are in its own line only once it has waited for them; both are read before it is gone.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.monotonic() - begin
    own, servers = times(process.pid)
    process.wait()
    end_session(process.pid)
    shutil.rmtree(scratch, ignore_errors=True)
    return {"wall": wall, "own": own, "servers": servers, "status": process.returncode, "verdicts": verdicts(log, junit)}


def stat(process):
    """The fields of a process in /proc that follow its name."""
    with open(f"/proc/{process}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def times(process):
    """The seconds of processor time that a process has taken, and those of the children that it has waited for."""
    fields, tick = stat(process), os.sysconf("SC_CLK_TCK")
    user, system, of_children, system_of_children = (int(field) / tick for field in fields[11:15])
    return user + system, of_children + system_of_children


def end_session(session):
    """Ends what a test program has left behind."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(stat(process)[3]) == session:
                os.kill(int(process), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue
