"""Informers of client-go over 10,000 objects (tests/upstream/live outlive), and a watch of kubectl, which run while the
server behind their address is replaced."""

import os
import subprocess
import threading

from programs import ROOT, run


class Informers:
    def __init__(self, site):
        live = os.environ.get("LIVE") or run(ROOT / "tests/tools/get-live", ROOT / "target/tools").strip()
        log = open(site.dir / "informers.log", "ab")
        self.process = subprocess.Popen(
            [live, "outlive", site.kubeconfig], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True)
        site.running.append(self.process)
        self.expect("following")

    def expect(self, word):
        line = self.process.stdout.readline().strip()
        if line != word:
            raise SystemExit(f"informers: {line!r} instead of {word!r}; see informers.log")

    def tell(self, order):
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def write(self):
        """2,000 changes, each of which has been answered."""
        self.begin_writing()
        self.expect("written")

    def begin_writing(self):
        self.tell("write")
        self.expect("writing")

    def end(self):
        """Fails unless each informer holds what the server lists."""
        self.tell("end")
        if self.process.wait() != 0:
            raise SystemExit("informers differ from a list; see informers.log")
        print("  informers of client-go hold what the server lists")
