"""A Kubernetes API server for tests.

>>> from rowplane import Server
>>> with Server() as server:
...     print(server.kubeconfig)

The module starts the program `rowplane`, which comes with it, and needs nothing but Python.
"""

from rowplane._cluster import ApiError, Cluster, Fork, Snapshot
from rowplane._server import Server, StartError, find_program

__all__ = ["ApiError", "Cluster", "Fork", "Server", "Snapshot", "StartError", "find_program"]
