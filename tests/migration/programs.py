"""Programs of a migration: kube-apiserver, etcd, kine, PostgreSQL and rowplane, each until the run ends."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOKEN = "migration-token"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: m, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: m, user: {{token: {token}}}}}]
contexts: [{{name: m, context: {{cluster: m, user: m}}}}]
current-context: m
"""


class Site:
    """A directory, a range of ports, and the programs that run there."""

    def __init__(self, directory, programs, rowplane, port):
        self.dir, self.programs, self.rowplane, self.port = Path(directory), Path(programs), rowplane, port
        self.running = []
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.key = self.dir / "sa.key"
        run("openssl", "genrsa", "-out", self.key, "2048")
        (self.dir / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self.kubeconfig = self.dir / "kubeconfig"
        self.kubeconfig.write_text(KUBECONFIG.format(port=port, token=TOKEN))
        self.etcd_url = f"http://127.0.0.1:{port + 1}"
        # The flags of etcd and of its clients for TLS.
        self.etcd_tls, self.etcd_files = [], []

    def start(self, name, *command, env=None, **options):
        """Starts a program, whose output goes to a file with its name."""
        log = open(self.dir / f"{name}.log", "ab")
        command = [str(part) for part in command]
        env = {**os.environ, **(env or {})}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True, **options)
        self.running.append(process)
        return process

    def stop(self, process, how=signal.SIGTERM):
        # With what it has started.
        if process.poll() is None:
            os.killpg(process.pid, how)
        process.wait()
        self.running.remove(process)

    def end(self):
        for process in reversed(self.running[:]):
            # PostgreSQL's files are removed by what has started it.
            self.stop(process, signal.SIGTERM if "with-postgres" in str(process.args) else signal.SIGKILL)

    def secure_etcd(self, files):
        """From now on, etcd takes only clients with certificates."""
        self.etcd_url = self.etcd_url.replace("http:", "https:")
        self.etcd_files = [
            "--etcd-cafile", files / "ca.crt", "--etcd-certfile", files / "client.crt", "--etcd-keyfile",
            files / "client.key"]
        self.etcd_tls = [
            "--client-cert-auth", "--trusted-ca-file", files / "ca.crt", "--cert-file", files / "server.crt",
            "--key-file", files / "server.key"]

    def etcd(self, data="etcd", program=None):
        etcd = self.start(
            "etcd", program or self.programs / "etcd", "--data-dir", self.dir / data, "--unsafe-no-fsync",
            "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
            "--listen-peer-urls", f"http://127.0.0.1:{self.port + 2}", *self.etcd_tls)
        wait_for(lambda: connects(self.port + 1), etcd)
        return etcd

    def kine(self, endpoint, *flags):
        """kine, which serves etcd's API where etcd would."""
        kine = self.start(
            "kine", self.programs / "kine", "--listen-address", self.etcd_url, "--metrics-bind-address=0",
            "--endpoint", endpoint, *flags)
        wait_for(lambda: connects(self.port + 1), kine)
        return kine

    def api_flags(self):
        """Flags that kube-apiserver and rowplane take alike."""
        return [
            "--etcd-servers", self.etcd_url, *self.etcd_files, "--secure-port", str(self.port), "--bind-address", "127.0.0.1",
            "--cert-dir", self.dir / "certs", "--service-cluster-ip-range", "10.0.0.0/24",
            "--authorization-mode", "RBAC", "--token-auth-file", self.dir / "tokens.csv",
            "--service-account-issuer", "https://migration", "--service-account-key-file", self.key,
            "--service-account-signing-key-file", self.key, "--disable-admission-plugins", "ServiceAccount",
            "--allow-privileged"]

    def kube_apiserver(self, *flags):
        server = self.start("kube-apiserver", self.programs / "kube-apiserver", *self.api_flags(), *flags)
        return self.ready(server)

    def serve(self, datastore, *flags):
        """rowplane with kube-apiserver's own flags, at the same port."""
        server = self.start(
            "rowplane", self.rowplane, "kube-apiserver", *self.api_flags(), "--data-dir", self.dir / "rowplane",
            "--datastore", datastore, *flags)
        return self.ready(server)

    def ready(self, server):
        # What a kube-apiserver makes at its start is there once /readyz says so.
        wait_for(lambda: self.raw("/readyz") == b"ok", server)
        return server

    def postgres(self, *options, query=""):
        """A PostgreSQL at a port of its own, with two databases; its URL without that of a database."""
        port = self.port + 4
        server = self.start(
            "postgres", ROOT / "tests/support/with-postgres", "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}",
            *options, "--", "sleep", "infinity", env={"TMPDIR": "/tmp"})
        url = f"postgres://rowplane@127.0.0.1:{port}"
        wait_for(lambda: quiet("psql", f"{url}/postgres{query}", "-c", "CREATE DATABASE rowplane"), server)
        return url

    def postgres_with_tls(self, files):
        """The same, for clients with certificates only."""
        certificate = [f"ssl_{name}_file={files / file}" for name, file in
                       [("ca", "ca.crt"), ("cert", "server.crt"), ("key", "server.key")]]
        rules = self.dir / "pg_hba.conf"
        rules.write_text("local all all trust\nhostssl all all 127.0.0.1/32 cert\n")
        # PostgreSQL reads its key as another user.
        (files / "server.key").chmod(0o640)
        shutil.chown(files / "server.key", group="postgres")
        options = ["ssl=on", *certificate, f"hba_file={rules}"]
        flags = [flag for option in options for flag in ("-c", option)]
        return self.postgres(*flags, query=self.query(files))

    @staticmethod
    def query(files):
        return f"?sslmode=require&sslcert={files}/client.crt&sslkey={files}/client.key"

    def refused(self, *arguments):
        """A subcommand of rowplane, which fails; what it prints."""
        done = subprocess.run([str(part) for part in (self.rowplane, *arguments)], capture_output=True, text=True)
        if done.returncode == 0:
            raise SystemExit(f"rowplane {' '.join(map(str, arguments))} did not fail:\n{done.stdout}")
        return done.stdout + done.stderr

    def tool(self, *arguments, **options):
        """A subcommand of rowplane, which succeeds; its standard output."""
        return run(self.rowplane, *arguments, **options)

    def kubectl(self, *arguments, **options):
        return run(self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *arguments, **options)

    def raw(self, path):
        while True:
            try:
                return get(f"https://127.0.0.1:{self.port}{path}", {"Authorization": f"Bearer {TOKEN}"})
            except urllib.error.HTTPError as refused:
                # kube-apiserver's watch caches are still being filled.
                if refused.code != 429:
                    raise
                time.sleep(0.2)

    def read(self, path):
        return json.loads(self.raw(path))


def run(*command, **options):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def quiet(*command):
    return subprocess.run([str(part) for part in command], capture_output=True).returncode == 0


UNVERIFIED = ssl.create_default_context()
UNVERIFIED.check_hostname = False
UNVERIFIED.verify_mode = ssl.CERT_NONE


def get(url, headers={}):
    context = UNVERIFIED if url.startswith("https") else None
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), context=context) as answer:
        return answer.read()


def connects(port):
    with socket.create_connection(("127.0.0.1", port)):
        return True


def wait_for(condition, process=None):
    """Waits for a condition, for as long as a process lives that can bring it about."""
    while True:
        try:
            if found := condition():
                return found
        except (OSError, urllib.error.URLError):
            pass
        if process and process.poll() is not None:
            raise SystemExit(f"{process.args[0]} has ended with status {process.returncode}")
        time.sleep(0.1)
