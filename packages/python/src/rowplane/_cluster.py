from __future__ import annotations

import datetime
import http.client
import json
import os
import ssl
import tempfile
import threading
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Union
from urllib.parse import urlencode, urlsplit

#: An object of the API, or the path of a file with some (YAML or JSON).
Object = Union[str, "os.PathLike[str]", Mapping[str, Any]]

BRANCHES = "/rowplane/v1/branches"


class ApiError(RuntimeError):
    """The server refused what a test wanted. The message is the server's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Requests of the administrator to a server, over one connection of each thread."""

    def __init__(self, url: str, ca: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 443)
        self._context = ssl.create_default_context(cafile=ca)
        pki = os.path.dirname(ca)
        self._context.load_cert_chain(os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key"))
        self._threads = threading.local()

    def ask(self, method: str, path: str, body: bytes | None = None, media: str = "application/json") -> bytes:
        headers = {"Content-Type": media, "Accept": "application/json"} if body is not None else {}
        for attempt in ("kept", "new"):
            open_one = getattr(self._threads, "connection", None)
            if open_one is None or attempt == "new":
                open_one = http.client.HTTPSConnection(*self._address, context=self._context)
                self._threads.connection = open_one
            try:
                open_one.request(method, path, body, headers)
                answer = open_one.getresponse()
                said = answer.read()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server has closed a connection that was idle.
                open_one.close()
                if attempt == "new":
                    raise
        if answer.status >= 300:
            raise ApiError(answer.status, _message(said, answer.status))
        return said

    def ask_json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.ask(method, path, None if body is None else json.dumps(body).encode()))
        return answer


def _message(said: bytes, code: int) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answers {code}"


class Cluster:
    """A cluster of a test: a server, or a fork of one."""

    kubeconfig: str
    """The path of the administrator's kubeconfig."""
    url: str
    """The address of the API."""
    ca: str
    """The path of the certificate (PEM) that vouches for the server's."""
    _directory: str
    _connection: Connection
    # The path of the cluster on its server.
    _path: str = ""

    def snapshot(self, name: str | None = None) -> Snapshot:
        """The cluster as it is now, to be forked and to go back to."""
        name = name or f"snapshot-{uuid.uuid4().hex[:12]}"
        taken = self._connection.ask_json("POST", f"{self._path}/rowplane/v1/snapshots", {"name": name})
        return Snapshot(self, taken["name"], taken["revision"])

    def fork(self, name: str | None = None) -> Fork:
        """A cluster that begins as this one is now, and writes beside it. Secrets keep their values."""
        return Fork(self, name, None)

    def reset(self, to: Snapshot | None = None) -> None:
        """Makes everything what it is in a snapshot, or what it was when the fork was made. Uids are those of then,
        resourceVersions go on, and watches end (410), so that informers list anew."""
        self._tell("POST", "reset", {} if to is None else {"to": to.name})

    def seed(self, *objects: Object) -> None:
        """Creates or replaces objects in one transaction, with the status, uids and times that they have. They are neither
        validated nor admitted."""
        items = [one for one in objects if isinstance(one, Mapping)]
        if items:
            self._tell("PUT", "objects", {"kind": "List", "apiVersion": "v1", "items": items})
        for path in (one for one in objects if not isinstance(one, Mapping)):
            with open(path, "rb") as file:
                self._connection.ask("PUT", self._endpoint("objects"), file.read(), "application/yaml")

    def advance(self, by: datetime.timedelta | None = None, **units: float) -> None:
        """Sets the cluster's time ahead (``advance(hours=1)``): that of creations and deletions, by which Events and tokens
        expire. Certificates go by the system's time as ever."""
        seconds = (by or datetime.timedelta(**units)).total_seconds()
        self._tell("POST", "time", {"advance": f"{seconds:.6f}s"})

    def freeze(self, at: datetime.datetime) -> None:
        """Lets the cluster's time stand still, until :meth:`unfreeze`."""
        self._tell("POST", "time", {"freeze": at.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")})

    def unfreeze(self) -> None:
        self._tell("POST", "time", {"run": True})

    def fault(
        self,
        verb: str | None = None,
        resource: str | None = None,
        user: str | None = None,
        *,
        code: int | str | None = None,
        delay: float | None = None,
        skip: int = 0,
        count: int | None = None,
        probability: float = 1.0,
    ) -> None:
        """Makes requests fail with a code (409, 429, 500 or ``"close"``), or late by so many seconds.

        :param resource: ``pods``, ``deployments.apps``, ``pods/status``.
        :param skip: how many requests that match pass before.
        :param count: how many requests it strikes; all unless it is given.
        """
        which = {"verb": verb, "resource": resource, "user": user}
        fault: dict[str, Any] = {"match": {key: value for key, value in which.items() if value is not None}}
        if code is not None:
            fault["answer"] = {"code": code}
        if delay is not None:
            fault["delay"] = f"{delay:.6f}s"
        if count is not None:
            fault["count"] = count
        self._tell("POST", "faults", {**fault, "skip": skip, "probability": probability})

    def clear_faults(self) -> None:
        self._tell("DELETE", "faults")

    def record_requests(self) -> None:
        """Begins to record requests, of which the last 10,000 are kept."""
        self._tell("POST", "requests", {"record": True})

    def requests(
        self, *, since: int = 0, user: str | None = None, verb: str | None = None, resource: str | None = None
    ) -> list[dict[str, Any]]:
        """The requests that were recorded, oldest first: ``verb``, ``path``, ``code``, ``request``, ``response`` and so on."""
        which = {"since": since, "user": user, "verb": verb, "resource": resource}
        query = urlencode({key: value for key, value in which.items() if value is not None})
        lines = self._connection.ask("GET", f"{self._endpoint('requests')}?{query}")
        return [json.loads(line) for line in lines.splitlines()]

    def close_watches(self, resource: str | None = None) -> int:
        """Ends watches as if their time were over. Returns how many there were."""
        body = {} if resource is None else {"resource": resource}
        ended: int = self._tell("POST", "watches/close", body)["ended"]
        return ended

    def expire_watches(self) -> None:
        """Ends all watches with 410 ``Expired``, and gives up the history before."""
        self._tell("POST", "watches/compact", {})

    def quiet(self, seconds: float = 0.2, timeout: float = 10.0) -> None:
        """Waits until nothing was written for so long.

        :raises ApiError: something was written all the time.
        """
        query = urlencode({"for": f"{seconds:.6f}s", "timeout": f"{timeout:.6f}s"})
        self._tell("GET", f"quiet?{query}")

    def _endpoint(self, rest: str) -> str:
        return f"{self._path}{BRANCHES}/-/{rest}"

    def _tell(self, method: str, rest: str, body: Any = None) -> dict[str, Any]:
        return self._connection.ask_json(method, self._endpoint(rest), body)


class Snapshot:
    """A cluster as it was at one time."""

    def __init__(self, cluster: Cluster, name: str, revision: str) -> None:
        self.name = name
        self.revision = revision
        self._cluster = cluster

    def fork(self, name: str | None = None) -> Fork:
        """A cluster that begins as it was then, and writes beside it."""
        return Fork(self._cluster, name, self.name)

    def delete(self) -> None:
        """Lets the server forget the snapshot. Forks of it go on."""
        self._cluster._connection.ask("DELETE", f"{self._cluster._path}/rowplane/v1/snapshots/{self.name}")


class Fork(Cluster):
    """A cluster that was made of another one. It ends with it, or when it is stopped. Nothing leaves it: no webhook is
    called, and no kubelet."""

    def __init__(self, parent: Cluster, name: str | None, snapshot: str | None) -> None:
        wanted = {"name": name or f"fork-{uuid.uuid4().hex[:12]}", "secrets": "keep"}
        if snapshot is not None:
            wanted["from"] = snapshot
        made = parent._connection.ask_json("POST", parent._path + BRANCHES, wanted)
        self.name = str(made["name"])
        self._parent, self._connection, self._directory = parent, parent._connection, parent._directory
        self._path = parent._path + str(made["path"])
        self.url = parent.url + str(made["path"])
        self.ca = parent.ca
        self._stopped = False
        with open(parent.kubeconfig, encoding="utf-8") as file:
            kubeconfig = file.read().replace(f"server: {parent.url}\n", f"server: {self.url}\n")
        handle, self.kubeconfig = tempfile.mkstemp(".kubeconfig", f"{self.name}-", self._directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(kubeconfig)

    def stop(self) -> None:
        """Throws the fork away. Nothing happens the second time."""
        if self._stopped:
            return
        self._stopped = True
        os.unlink(self.kubeconfig)
        self._connection.ask("DELETE", f"{self._parent._path}{BRANCHES}/{self.name}")

    def __enter__(self) -> Fork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
