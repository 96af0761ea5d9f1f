"""Fixtures of pytest: `rowplane`, a server for the session, and `rowplane_cluster`, a server of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowplane import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("rowplane_crds", "files and folders of CustomResourceDefinitions, relative to this file", type="paths")
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
