from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping
from importlib import metadata
from types import TracebackType
from typing import IO, Any, Union

from rowplane._cluster import Cluster, Connection

#: A CustomResourceDefinition, or the path of a file (YAML or JSON) or of a folder of them.
Definition = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: Seconds that a server may take to end after its standard input has, before it is killed.
STOP_TIMEOUT = 15


class StartError(RuntimeError):
    """The server did not start. The message is the program's own."""


class Server(Cluster):
    """A Kubernetes API server in memory, which serves on a free port of 127.0.0.1 as long as this object is not stopped.

    Any number of servers run side by side. A server ends with the process that started it, also when that is killed.

    :param crds: CustomResourceDefinitions, as paths of files and folders or as objects; they are served once this returns.
    :param flags: more flags of ``rowplane serve``, such as ``--secure-port=6443`` or ``--cluster-controllers=false``.
    :raises StartError: a definition is invalid, a flag unknown, a port taken, the program missing or for another machine.
    """

    def __init__(self, *, crds: Iterable[Definition] = (), flags: Iterable[str] = ()) -> None:
        if isinstance(crds, (str, os.PathLike, Mapping)):
            crds = [crds]
        directory = tempfile.mkdtemp(prefix="rowplane-")
        self._finish: weakref.finalize[..., Server] = weakref.finalize(self, _remove, directory)
        try:
            process = _spawn(directory, [*_crd_flags(directory, crds), *flags])
            self._finish.detach()
            self._finish = weakref.finalize(self, _end, process, directory, os.getpid())
            self.url = _url(process, directory)
        except BaseException:
            self.stop()
            raise
        self.kubeconfig = os.path.join(directory, "admin.kubeconfig")
        self.ca = os.path.join(directory, "pki", "ca.crt")
        self._directory = directory
        self._connection = Connection(self.url, self.ca)

    def stop(self) -> None:
        """Ends the server at once, watches and all, and removes its files. Nothing happens the second time."""
        self._finish()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def find_program() -> str:
    """The path of the program: ``ROWPLANE_PROGRAM``, the one installed with this module, or the one on the ``PATH``."""
    named = os.environ.get("ROWPLANE_PROGRAM")
    if named:
        return named
    try:
        installed = metadata.files("rowplane") or []
    except metadata.PackageNotFoundError:
        installed = []
    for file in installed:
        if file.parent.name in ("bin", "Scripts") and file.stem == "rowplane":
            path = pathlib.Path(str(file.locate()))
            if path.exists():
                return str(path.resolve())
    found = shutil.which("rowplane")
    if found is None:
        raise StartError("the program `rowplane` is not installed: `pip install rowplane` brings it, or set ROWPLANE_PROGRAM")
    return found


def _crd_flags(directory: str, crds: Iterable[Definition]) -> list[str]:
    flags = []
    for number, crd in enumerate(crds):
        if isinstance(crd, Mapping):
            path = os.path.join(directory, f"crd-{number}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(crd, file)
        else:
            path = os.fspath(crd)
        flags += ["--crds", path]
    return flags


def _spawn(directory: str, flags: list[str]) -> subprocess.Popen[str]:
    # In the environment, so that flags can say otherwise. Clients that are still connected at the end are not waited for.
    environment = {
        "ROWPLANE_DATASTORE": "memory:",
        "ROWPLANE_SECURE_PORT": "0",
        "ROWPLANE_SHUTDOWN_GRACE_PERIOD": "0s",
        "ROWPLANE_TEST_ENDPOINTS": "true",
        "ROWPLANE_MAX_BRANCHES": "10000",
    }
    program = find_program()
    with open(os.path.join(directory, "log"), "wb") as log:
        try:
            return subprocess.Popen(
                [program, "serve", "--exit-with-stdin", "--data-dir", directory, *flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **environment},
                # Control-C is for the tests, which still need the server to clean up.
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"cannot run {program}: {error.strerror}") from None


def _url(process: subprocess.Popen[str], directory: str) -> str:
    """Waits until the server says where it is. Further output is read and dropped, since a full pipe would halt the server."""
    output = process.stdout
    assert output is not None
    for line in output:
        word, _, value = line.strip().partition(" ")
        if word == "url":
            threading.Thread(target=_drain, args=[output], daemon=True, name="rowplane-output").start()
            return value.strip()
    process.wait()
    with open(os.path.join(directory, "log"), encoding="utf-8", errors="replace") as log:
        said = [line for line in log.read().splitlines() if line]
    raise StartError(_reason(said, process.returncode))


def _reason(said: list[str], status: int) -> str:
    """The program's own last words; the dynamic linker's need an explanation."""
    text = next((line for line in reversed(said) if line.startswith("rowplane: ")), "\n".join(said[-5:]))
    if "GLIBC_" in text:
        return f"the C library of this machine is too old for this program: {text}"
    return text.removeprefix("rowplane: ") or f"rowplane ended with status {status} and said nothing"


def _drain(output: IO[str]) -> None:
    for _ in output:
        pass


def _end(process: subprocess.Popen[str], directory: str, owner: int) -> None:
    if os.getpid() != owner:
        # A fork of the process that started the server, which goes on.
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _remove(directory)


def _remove(directory: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
