"""`Server` itself, with nothing but Python's library."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.request

import pytest

from rowplane import Server, StartError, find_program


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which servers of the test keep their files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def ready(server):
    context = ssl.create_default_context(cafile=server.ca)
    with urllib.request.urlopen(server.url + "/readyz", context=context) as answer:
        return answer.read() == b"ok"


def test_members(folder):
    server = Server()
    assert ready(server)
    assert server.url in open(server.kubeconfig).read()
    server.stop()
    server.stop()
    assert list(folder.iterdir()) == []
    with pytest.raises(OSError):
        ready(server)


def test_definitions_are_files_folders_and_objects(tmp_path, widgets):
    def named(plural):
        names = {"plural": plural, "kind": plural.title()}
        return {**widgets, "metadata": {"name": f"{plural}.example.com"}, "spec": {**widgets["spec"], "names": names}}

    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "two.yaml").write_text("\n---\n".join(json.dumps(named(plural)) for plural in ("as", "bs")))
    (tmp_path / "c.json").write_text(json.dumps(named("cs")))
    with Server(crds=[tmp_path / "crds", str(tmp_path / "c.json"), named("ds")]) as server:
        context = ssl.create_default_context(cafile=server.ca)
        pki = os.path.dirname(server.ca)
        context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
        with urllib.request.urlopen(f"{server.url}/apis/example.com/v1", context=context) as answer:
            assert sorted(one["name"] for one in json.load(answer)["resources"]) == ["as", "bs", "cs", "ds"]


def test_flags_go_before_what_is_set_here(folder):
    # None of those that are given to who asks for a free one.
    port = 26000 + os.getpid() % 1000
    with Server(flags=[f"--secure-port={port}"]) as server:
        assert server.url == f"https://127.0.0.1:{port}" and ready(server)
        with pytest.raises(StartError, match=f"{port}.*in use"):
            Server(flags=["--secure-port", str(port)])


def test_bad_input_is_one_line_and_leaves_nothing(folder, widgets):
    invalid = {**widgets, "metadata": {"name": "other.example.com"}}
    for message, arguments in [
        ("unexpected argument '--wrong'", {"flags": ["--wrong"]}),
        ("no-such-folder.*No such file", {"crds": ["no-such-folder"]}),
        (r"must be spec.names.plural\+\"\.\"\+spec.group", {"crds": [invalid]}),
    ]:
        with pytest.raises(StartError, match=message) as raised:
            Server(**arguments)
        assert "\n" not in str(raised.value)
        assert list(folder.iterdir()) == []


def test_a_program_that_cannot_run(folder, monkeypatch):
    program = folder / "program"
    monkeypatch.setenv("ROWPLANE_PROGRAM", str(program))
    with pytest.raises(StartError, match="cannot run .*program: No such file"):
        Server()
    program.write_text("#!/bin/sh\necho \"rowplane: /lib/libc.so.6: version 'GLIBC_2.39' not found (required by rowplane)\" >&2; exit 1")
    program.chmod(0o755)
    with pytest.raises(StartError, match="C library of this machine is too old.*GLIBC_2.39"):
        Server()
    assert list(folder.iterdir()) == [program]


@pytest.mark.parametrize("end", ["SIGKILL", "exit"])
def test_a_server_ends_with_its_process(end, tmp_path):
    code = "import os, rowplane, sys; s = rowplane.Server(); print(s.url, flush=True); sys.stdin.read()"
    # What a process that is killed leaves behind.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, **pipes)
    port = int(process.stdout.readline().rpartition(":")[2])
    # Open until the server is gone, which ends it.
    with socket.create_connection(("127.0.0.1", port)) as connection:
        if end == "SIGKILL":
            process.send_signal(signal.SIGKILL)
        process.stdin.close()
        process.wait()
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            pass
    with pytest.raises(ConnectionRefusedError):
        # It has closed its listener before its connections.
        socket.create_connection(("127.0.0.1", port))


def test_a_fork_leaves_the_server_alone():
    code = "import os, rowplane, sys; s = rowplane.Server(); os.fork() or sys.exit(); os.wait(); print(os.path.exists(s.kubeconfig))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "True\n"


def test_the_program_is_also_a_command():
    for command in ([find_program()], [sys.executable, "-m", "rowplane"]):
        said = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True).stdout
        assert said.startswith("rowplane ")
