"""Fixtures of pytest: `rowplane`, a server for the session; `rowplane_cluster`, a server of its own for each test; and
`rowplane_fork`, a fork of `rowplane_base` for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowplane import Fork, Server, Snapshot


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("rowplane_crds", "files and folders of CustomResourceDefinitions, relative to this file", type="paths")
    parser.addini("rowplane_objects", "files with the objects that `rowplane_base` begins with", type="paths")
    parser.addini("rowplane_flags", "flags of `rowplane serve`", type="args")


def _start(config: pytest.Config) -> Server:
    return Server(crds=config.getini("rowplane_crds"), flags=config.getini("rowplane_flags"))


@pytest.fixture(scope="session")
def rowplane(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that all tests of a session (with pytest-xdist: of a worker) share, with what they have left on it."""
    with _start(request.config) as server:
        yield server


@pytest.fixture
def rowplane_cluster(request: pytest.FixtureRequest) -> Iterator[Server]:
    """An empty cluster: a server that is started for this test and stopped after it."""
    with _start(request.config) as server:
        yield server


@pytest.fixture(scope="session")
def rowplane_base(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    """What the forks of a session's tests begin with: a server with the objects of `rowplane_objects`. A conftest.py may say
    otherwise: a fixture of this name and scope that yields the snapshot of a cluster."""
    with _start(request.config) as server:
        server.seed(*request.config.getini("rowplane_objects"))
        yield server.snapshot()


@pytest.fixture
def rowplane_fork(rowplane_base: Snapshot) -> Iterator[Fork]:
    """A cluster of this test alone, which begins as `rowplane_base` is. It is made in milliseconds; nothing leaves it, so
    that webhooks are not called."""
    with rowplane_base.fork() as fork:
        yield fork
