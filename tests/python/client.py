"""Python's client against a running, empty rowplane whose history is short:

    python client.py KUBECONFIG

Creates, reads, patches, applies, pages, watches and resumes, by the typed and by the dynamic client, and checks what
errors look like to it.
"""

import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "default"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def configmap(name, data=None, **metadata):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **metadata), data=data)


def fails(status, reason, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == status, error
        body = client.ApiClient().deserialize(error.body, "V1Status", "application/json")
        assert (body.code, body.reason, body.kind) == (status, reason, "Status"), error
        return body
    raise AssertionError(f"{call.__name__} has not failed")


def reads_and_writes(core):
    made = core.create_namespaced_config_map(NAMESPACE, configmap("a", {"k": "v"}, labels={"l": "1"}))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo, made
    assert core.read_namespaced_config_map("a", NAMESPACE) == made
    fails(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE, configmap("a"))
    missing = fails(404, "NotFound", core.read_namespaced_config_map, "none", NAMESPACE)
    assert (missing.details.name, missing.details.kind) == ("none", "configmaps"), missing

    made.data["k"] = "w"
    replaced = core.replace_namespaced_config_map("a", NAMESPACE, made)
    assert replaced.data == {"k": "w"}, replaced
    fails(409, "Conflict", core.replace_namespaced_config_map, "a", NAMESPACE, made)
    made.data = {"k": "x"}
    tried = core.create_namespaced_config_map(NAMESPACE, configmap("tried"), dry_run="All")
    assert tried.metadata.resource_version is None, tried
    fails(404, "NotFound", core.read_namespaced_config_map, "tried", NAMESPACE)
    invalid = fails(422, "Invalid", core.create_namespaced_config_map, NAMESPACE, configmap("Not valid"))
    assert invalid.details.causes[0].field == "metadata.name", invalid
    fails(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE, label_selector="a b")


def patches(core, apps):
    def patch(body, content_type):
        return core.patch_namespaced_config_map("a", NAMESPACE, body, _content_type=content_type)

    assert patch({"data": {"merged": "1", "k": None}}, MERGE).data == {"merged": "1"}
    # The client takes a list for a JSON patch by itself.
    added = core.patch_namespaced_config_map(
        "a", NAMESPACE, [{"op": "add", "path": "/data/added", "value": "2"}]
    )
    assert added.data == {"merged": "1", "added": "2"}, added
    assert patch([{"op": "remove", "path": "/data/merged"}], JSON).data == {"added": "2"}
    fails(422, "Invalid", patch, [{"op": "remove", "path": "/data/none"}], JSON)

    container = {"name": "app", "image": "i:1"}
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    made = apps.create_namespaced_deployment(NAMESPACE, deployment)
    assert made.spec.replicas == 1 and made.spec.strategy.type == "RollingUpdate", made
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "j"}]}}}}
    merged = apps.patch_namespaced_deployment("web", NAMESPACE, sidecar, _content_type=STRATEGIC)
    assert sorted(c.name for c in merged.spec.template.spec.containers) == ["app", "log"], merged
    replaced = apps.patch_namespaced_deployment("web", NAMESPACE, sidecar, _content_type=MERGE)
    assert [c.name for c in replaced.spec.template.spec.containers] == ["log"], replaced
    scaled = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    assert (scaled.kind, scaled.spec.replicas) == ("Scale", 3), scaled
    status = {"status": {"replicas": 3, "readyReplicas": 2}}
    reported = apps.patch_namespaced_deployment_status("web", NAMESPACE, status)
    assert (reported.status.ready_replicas, reported.spec.replicas) == (2, 3), reported
    assert reported.metadata.generation == scaled_generation(apps), reported


def scaled_generation(apps):
    return apps.read_namespaced_deployment("web", NAMESPACE).metadata.generation


def applies(core):
    def apply(manager, data, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
        return core.patch_namespaced_config_map(
            "applied", NAMESPACE, body, field_manager=manager, _content_type=APPLY, **options
        )

    first = apply("one", {"a": "1", "b": "1"})
    assert apply("one", {"a": "1", "b": "1"}).metadata.resource_version == first.metadata.resource_version
    conflict = fails(409, "Conflict", apply, "two", {"a": "2"})
    assert conflict.details.causes[0].field == ".data.a", conflict
    assert apply("two", {"a": "2"}, force=True).data == {"a": "2", "b": "1"}
    assert apply("one", {}).data == {"a": "2"}
    managers = core.read_namespaced_config_map("applied", NAMESPACE).metadata.managed_fields
    assert [entry.manager for entry in managers if "f:a" in entry.fields_v1["f:data"]] == ["two"], managers


def pages(core):
    for n in range(5):
        core.create_namespaced_config_map(NAMESPACE, configmap(f"page-{n}", labels={"page": "yes"}))
    names, token, revisions = [], None, set()
    while token != "":
        page = core.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        revisions.add(page.metadata.resource_version)
        token = page.metadata._continue or ""
    assert names == ["a", "applied", *(f"page-{n}" for n in range(5))] and len(revisions) == 1, names
    deleted = core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page=yes")
    assert deleted is not None
    assert len(core.list_namespaced_config_map(NAMESPACE).items) == 2


def watches(core):
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def write():
        for n in range(20):
            core.create_namespaced_config_map(NAMESPACE, configmap(f"w-{n:02}"))
        core.delete_namespaced_config_map("w-00", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    # Every fifth event the watch is given up, and resumed from what was seen last.
    seen, at = [], start
    while len(seen) < 21:
        stream = watch.Watch()
        events = stream.stream(core.list_namespaced_config_map, NAMESPACE, resource_version=at)
        for count, event in enumerate(events, 1):
            assert isinstance(event["object"], client.V1ConfigMap), event
            seen.append((event["type"], event["object"].metadata.name))
            at = event["object"].metadata.resource_version
            if count == 5 or len(seen) == 21:
                stream.stop()
    writer.join()
    wanted = [("ADDED", f"w-{n:02}") for n in range(20)] + [("DELETED", "w-00")]
    assert seen == wanted, seen

    # It starts at nowhere by itself: the state comes first.
    stream = watch.Watch()
    found = []
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, field_selector="metadata.name=w-01"):
        found.append((event["type"], event["object"].metadata.name))
        stream.stop()
    assert found == [("ADDED", "w-01")], found

    # A clean end after the time asked for, without an error.
    ended = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, timeout_seconds=1, label_selector="none=such"
    )
    assert list(ended) == []

    # Once history is gone, the client is told so in the stream, tries once more, and gives up.
    while True:
        try:
            core.list_namespaced_config_map(NAMESPACE, limit=1, resource_version=start)
        except ApiException as error:
            assert error.status == 410, error
            break
    try:
        list(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=start))
        raise AssertionError("history is back")
    except ApiException as error:
        assert error.status == 410 and "Expired" in error.reason, error


def logs(core):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    core.create_namespaced_pod(NAMESPACE, pod)
    # Nothing has run it yet, so there is nothing to read.
    assert not core.read_namespaced_pod_log("p", NAMESPACE)
    fails(404, "NotFound", core.read_namespaced_pod_log, "q", NAMESPACE)
    gone = core.delete_namespaced_pod("p", NAMESPACE, grace_period_seconds=0)
    assert gone.metadata.name == "p", gone


def dynamically(api):
    found = dynamic.DynamicClient(api)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dynamic"}, "data": {"k": "v"}}
    made = maps.create(body=body, namespace=NAMESPACE)
    assert made.data.k == "v" and maps.get(name="dynamic", namespace=NAMESPACE).to_dict() == made.to_dict()
    patched = maps.patch(
        body={"metadata": {"name": "dynamic"}, "data": {"k": "w"}},
        namespace=NAMESPACE,
        content_type=MERGE,
    )
    assert patched.data.k == "w", patched
    body["data"] = {"k": "x"}
    applied = maps.server_side_apply(
        body=body, name="dynamic", namespace=NAMESPACE, field_manager="dyn", force_conflicts=True
    )
    assert applied.data.k == "x", applied
    assert [item.metadata.name for item in maps.get(namespace=NAMESPACE, field_selector="metadata.name=dynamic").items] == ["dynamic"]
    watched = maps.watch(namespace=NAMESPACE, field_selector="metadata.name=dynamic", timeout=1)
    assert [(event["type"], event["object"].data.k) for event in watched] == [("ADDED", "x")]
    maps.delete(name="dynamic", namespace=NAMESPACE)
    try:
        maps.get(name="dynamic", namespace=NAMESPACE)
        raise AssertionError("it is still there")
    except dynamic.exceptions.NotFoundError as error:
        assert error.summary() == 'configmaps "dynamic" not found', error.summary()
    kinds = {resource.kind for resource in found.resources.search(group="apps", api_version="v1")}
    assert {"Deployment", "StatefulSet", "DaemonSet"} <= kinds, kinds


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "image": {"type": "string"},
                                    "replicas": {"type": "integer", "default": 1, "maximum": 9},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def custom_resources(api):
    """What is defined is there at once, for the dynamic client and for the one of custom objects."""
    extensions = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(DEFINITION)
    found = dynamic.DynamicClient(api)
    crontabs = found.resources.get(api_version="example.com/v1", kind="CronTab")
    assert crontabs.short_names == ["ct"], crontabs
    body = {"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}, "spec": {"image": "i"}}
    made = crontabs.create(body=body, namespace=NAMESPACE)
    assert made.spec.replicas == 1 and made.metadata.generation == 1, made
    patched = crontabs.patch(
        body={"metadata": {"name": "a"}, "spec": {"replicas": 3}}, namespace=NAMESPACE, content_type=MERGE
    )
    assert (patched.spec.replicas, patched.metadata.generation) == (3, 2), patched
    watched = crontabs.watch(namespace=NAMESPACE, timeout=1)
    assert [(event["type"], event["object"].spec.image) for event in watched] == [("ADDED", "i")]

    custom = client.CustomObjectsApi(api)
    where = ("example.com", "v1", NAMESPACE, "crontabs")
    told = custom.patch_namespaced_custom_object_status(
        *where, "a", {"status": {"ready": True}}, _content_type=MERGE
    )
    assert told["status"] == {"ready": True} and told["metadata"]["generation"] == 2, told
    too_many = {"spec": {"replicas": 10}}
    refused = fails(422, "Invalid", custom.patch_namespaced_custom_object, *where, "a", too_many, _content_type=MERGE)
    assert refused.details.causes[0].field == "spec.replicas", refused
    assert [item["spec"]["replicas"] for item in custom.list_namespaced_custom_object(*where)["items"]] == [3]
    custom.delete_namespaced_custom_object(*where, "a")
    fails(404, "NotFound", custom.get_namespaced_custom_object, *where, "a")
    extensions.delete_custom_resource_definition("crontabs.example.com")


def main():
    config.load_kube_config(sys.argv[1])
    api = client.ApiClient()
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    assert client.VersionApi(api).get_code().major == "1"
    reads_and_writes(core)
    patches(core, apps)
    applies(core)
    pages(core)
    watches(core)
    logs(core)
    dynamically(api)
    custom_resources(api)
    print("done")


main()
