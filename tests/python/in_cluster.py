"""A Pod's view: the configuration that the Python client finds in a cluster.

Arguments: a directory with the files `token` and `ca.crt`, the server's host, its port, and the name of the user that the
token is for. Prints "done".
"""

import pathlib
import sys

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.config.incluster_config import InClusterConfigLoader

directory, host, port, user = sys.argv[1:]
files = pathlib.Path(directory)
InClusterConfigLoader(
    token_filename=str(files / "token"),
    cert_filename=str(files / "ca.crt"),
    environ={"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port},
).load_and_set()
assert client.VersionApi().get_code().major == "1"
try:
    client.CoreV1Api().delete_namespace("kube-system")
except ApiException as refused:
    assert refused.status == 403 and f'User \\"{user}\\" cannot delete' in refused.body, refused.body
else:
    raise AssertionError("an account without rights has deleted a namespace")
print("done")
