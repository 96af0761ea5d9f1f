"""Servers that the measurements start and load: rowplane, and kube-apiserver with etcd."""

import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("BENCH_PROFILE", "release")
ROWPLANE = os.environ.get("ROWPLANE", RELEASE / "rowplane")
LOADGEN = os.environ.get("LOADGEN", RELEASE / "examples/loadgen")
TOKEN = "beside-token"


class Server:
    """A server that has just started, and the processes that it consists of."""

    def __init__(self, directory, port):
        self.directory, self.port, self.processes = directory, port, []

    def run(self, *command):
        log = open(self.directory / f"{pathlib.Path(command[0]).name}.log", "wb")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def wait_until_ready(self):
        context = ssl._create_unverified_context()
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        while True:
            if any(process.poll() is not None for process in self.processes):
                raise SystemExit(f"a server has ended: see {self.directory}")
            try:
                urllib.request.urlopen(request, context=context).read()
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)

    def kubeconfig(self, user=None):
        """One of `user`, whose name is a token, or of the administrator."""
        path = self.directory / f"kubeconfig{user or ''}"
        path.write_text(
            f"""apiVersion: v1
kind: Config
clusters: [{{name: s, cluster: {{server: "https://127.0.0.1:{self.port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: s, user: {{token: {user or TOKEN}}}}}]
contexts: [{{name: s, context: {{cluster: s, user: s}}}}]
current-context: s
"""
        )
        return path

    def resident_mb(self):
        pages = 0
        for process in self.processes:
            pages += int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def seconds_of_processors(self):
        """What the processes have used so far, user and system."""
        ticks = 0
        for process in self.processes:
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self, how=signal.SIGKILL):
        """Ends the processes, the one that was started last first, and keeps their files."""
        for process in reversed(self.processes):
            process.send_signal(how)
            process.wait()
        self.processes = []

    def stop(self):
        self.end()
        shutil.rmtree(self.directory)


def rowplane(directory, port, datastore=None, program=ROWPLANE, more=()):
    server = Server(directory, port)
    store = ["--datastore", datastore] if datastore else []
    server.run(
        program, "--data-dir", directory / "data", "--secure-port", str(port),
        "--token-auth-file", tokens(directory), *store, *more,
    )
    return server


def kube_apiserver(directory, port):
    server = Server(directory, port)
    etcd = f"http://127.0.0.1:{port + 1}"
    server.run(
        os.environ["ETCD"], "--data-dir", directory / "etcd", "--listen-client-urls", etcd,
        "--advertise-client-urls", etcd, "--listen-peer-urls", f"http://127.0.0.1:{port + 2}",
    )
    key = directory / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
    server.run(
        os.environ["KUBE_APISERVER"], "--etcd-servers", etcd, "--secure-port", str(port),
        "--bind-address", "127.0.0.1", "--cert-dir", directory / "certs", "--token-auth-file", tokens(directory),
        "--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "AlwaysAllow",
        "--disable-admission-plugins", "ServiceAccount", "--service-account-issuer", "https://beside",
        "--service-account-key-file", key, "--service-account-signing-key-file", key,
    )
    return server


def tokens(directory):
    path = directory / "tokens.csv"
    path.write_text(f'{TOKEN},admin,admin,"system:masters"\nflooder,flooder,flooder\nother,other,other\n')
    return path


def started_load(server, *arguments, user=None, preexec=None):
    command = [LOADGEN, "--kubeconfig", server.kubeconfig(user), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=preexec)


def load(server, *arguments, user=None, preexec=None):
    """The rows of the tables that the load generator prints, by their columns' names."""
    process = started_load(server, *arguments, user=user, preexec=preexec)
    output, _ = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args, output)
    return rows_of(output)


def rows_of(output):
    rows, columns = [], None
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = cells
        elif not re.fullmatch(r"[|: -]+", line):
            rows.append(dict(zip(columns, cells)))
    return rows


def number(text):
    return float(text.replace(",", ""))
