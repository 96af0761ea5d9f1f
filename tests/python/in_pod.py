"""In a Pod: the Python client finds the server by itself. The argument is the user that it has to be. Prints "done"."""

import sys

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

config.load_incluster_config()
review = client.AuthenticationV1Api().create_self_subject_review({})
assert review.status.user_info.username == sys.argv[1], review
try:
    client.CoreV1Api().read_namespaced_config_map("kube-root-ca.crt", "t")
except ApiException as refused:
    assert refused.status == 403, refused.body
else:
    raise AssertionError("an account without rights has read a ConfigMap")
print("done")
