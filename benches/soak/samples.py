"""What a soak looks at every few seconds: the servers' processes, what they write of their own, and their database."""

import contextlib
import json
import os
import pathlib
import sqlite3
import ssl
import subprocess
import urllib.request

import servers

TABLES = """
SELECT json_build_object(
    'revision', (SELECT revision FROM clock),
    'oldest', (SELECT min(resource_version) FROM changes),
    'rows', json_build_object('changes', (SELECT count(*) FROM changes), 'objects', (SELECT count(*) FROM objects)),
    'bytes', (SELECT json_object_agg(relname, pg_total_relation_size(oid)) FROM pg_class
              WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace))
"""


def process(pid):
    """Memory, descriptors, threads and processor time of one process, from /proc."""
    base = pathlib.Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (base / "status").read_text().splitlines() if ":" in line)
    fields = (base / "stat").read_text().rpartition(")")[2].split()
    kilobytes = lambda name: int(status[name].split()[0])
    return {
        "resident_mb": kilobytes("VmRSS") / 1024,
        "anonymous_mb": kilobytes("RssAnon") / 1024,
        "descriptors": len(os.listdir(base / "fd")),
        "threads": int(status["Threads"]),
        "cpu_seconds": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
    }


def watches(server):
    """How many watches the server says it has."""
    context = ssl._create_unverified_context()
    url = f"https://127.0.0.1:{server.port}/metrics"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {servers.TOKEN}"})
    text = urllib.request.urlopen(request, context=context, timeout=30).read().decode()
    lines = (line for line in text.splitlines() if line.startswith("apiserver_longrunning_requests{"))
    return sum(float(line.rpartition(" ")[2]) for line in lines if 'verb="WATCH"' in line)


def of_server(server):
    sample = process(server.processes[0].pid)
    sample["log_bytes"] = sum(path.stat().st_size for path in server.directory.glob("*.log"))
    sample["watches"] = watches(server)
    return sample


class Sqlite:
    """The files of the only server's database."""

    def __init__(self, path):
        self.path = path

    def sample(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)) as connection:
            number = lambda query: connection.execute(query).fetchone()[0]
            page, free = number("PRAGMA page_size"), number("PRAGMA freelist_count")
            rows = {table: number(f"SELECT count(*) FROM {table}") for table in ("changes", "objects", "audit_events")}
            found = {
                "revision": number("SELECT revision FROM clock"),
                "oldest": number("SELECT min(resource_version) FROM changes"),
                "rows": rows,
                "bytes": {"used pages": number("PRAGMA page_count") * page - free * page},
            }
        size = lambda suffix: pathlib.Path(f"{self.path}{suffix}").stat().st_size
        found["bytes"] |= {"file": size(""), "-wal": size("-wal")}
        return found


class Postgres:
    """The tables of a PostgreSQL database."""

    def __init__(self, url):
        self.url = url

    def sample(self):
        command = ["psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", TABLES]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
