"""What a team's program does with its token, by Python's client."""

import sys

from kubernetes import client, config, watch

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()


def refused(text, status, call):
    try:
        call()
    except client.ApiException as error:
        assert error.status == status and text in error.body, error
    else:
        raise AssertionError(f"not refused: {text}")


def pod(**spec):
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "securityContext": context}
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "metadata": {"generateName": "python-"},
        "spec": {"containers": [container], "securityContext": security, **spec},
    }


def main():
    quota = core.read_namespaced_resource_quota("team", "team")
    assert quota.status.used["pods"] == "4", quota.status.used
    refused("exceeded quota: team, requested: pods=1", 403, lambda: core.create_namespaced_pod("team", pod()))
    refused("violates PodSecurity", 403, lambda: core.create_namespaced_pod("team", pod(hostNetwork=True)))
    refused("is forbidden", 403, lambda: core.list_node())
    pods = core.list_namespaced_pod("team", label_selector="app=web")
    name = pods.items[0].metadata.name
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=name))
    refused("disruption budget", 429, lambda: core.create_namespaced_pod_eviction(name, "team", eviction))
    # A Pod that is deleted is replaced; the quota lets its successor in.
    seen = core.list_namespaced_pod("team", label_selector="app=other")
    core.delete_namespaced_pod(seen.items[0].metadata.name, "team")
    known = {each.metadata.name for each in seen.items}
    changes = watch.Watch().stream(
        core.list_namespaced_pod,
        "team",
        label_selector="app=other",
        resource_version=seen.metadata.resource_version,
        timeout_seconds=60,
    )
    for change in changes:
        found = change["object"]
        ready = [each.status for each in found.status.conditions or [] if each.type == "Ready"]
        if found.metadata.name not in known and ready == ["True"]:
            print("python: all right")
            return
    raise AssertionError("no successor was ready")


main()
