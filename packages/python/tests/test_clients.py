"""Operators' libraries on a server each: what they create is read back, and a watch or a handler sees it."""

import json
import os
import subprocess
import sys
import textwrap

import kr8s
import kubernetes
import lightkube
import lightkube.config.kubeconfig
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from rowplane import Server


def test_kubernetes(rowplane_cluster):
    client = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(rowplane_cluster.kubeconfig))
    made = client.create_namespaced_config_map("default", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    changes = kubernetes.watch.Watch().stream(client.list_namespaced_config_map, "default", field_selector="metadata.name=a")
    first = next(changes)
    assert first["type"] == "ADDED" and first["object"].metadata.uid == made.metadata.uid


def test_kr8s(rowplane_cluster):
    api = kr8s.api(kubeconfig=rowplane_cluster.kubeconfig)
    kr8s.objects.ConfigMap({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}, api=api).create()
    [found] = kr8s.objects.ConfigMap.list(api=api, namespace="default", field_selector="metadata.name=a")
    assert found.data.k == "v"


def test_lightkube(rowplane_cluster):
    config = lightkube.config.kubeconfig.KubeConfig.from_file(rowplane_cluster.kubeconfig)
    client = lightkube.Client(config=config)
    client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
    names = [change.metadata.name for change in client.list(ConfigMap, namespace="default")]
    assert "a" in names


def test_kopf(tmp_path, widgets):
    operator = tmp_path / "operator.py"
    operator.write_text(textwrap.dedent("""
        import kopf

        @kopf.on.create("example.com", "v1", "widgets")
        def created(spec, patch, **_):
            patch.status["size"] = spec["size"] * 2
    """))
    with Server(crds=[widgets]) as server:
        api = kubernetes.config.new_client_from_config(server.kubeconfig)
        objects = kubernetes.client.CustomObjectsApi(api)
        place = ("example.com", "v1", "default", "widgets")
        objects.create_namespaced_custom_object(*place, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 21}})
        kopf = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-n", "default", str(operator)],
            env={**os.environ, "KUBECONFIG": server.kubeconfig},
        )
        try:
            for change in kubernetes.watch.Watch().stream(objects.list_namespaced_custom_object, *place):
                if "size" in change["object"].get("status", {}):
                    assert change["object"]["status"]["size"] == 42
                    break
        finally:
            kopf.terminate()
            kopf.wait()


@pytest.mark.parametrize("number", range(8))
def test_clusters_are_empty_and_side_by_side(rowplane_cluster, number):
    client = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(rowplane_cluster.kubeconfig))
    assert [space.metadata.name for space in client.list_namespace().items if space.metadata.name.startswith("own")] == []
    client.create_namespace({"metadata": {"name": f"own-{number}"}})


def test_settings_of_the_fixtures(tmp_path, widgets):
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "widgets.json").write_text(json.dumps(widgets))
    (tmp_path / "pytest.ini").write_text("[pytest]\nrowplane_crds = crds\nrowplane_flags = --cluster-controllers=false\n")
    (tmp_path / "test_settings.py").write_text(textwrap.dedent("""
        import kubernetes

        def test_settings(rowplane, rowplane_cluster):
            for server in (rowplane, rowplane_cluster):
                api = kubernetes.config.new_client_from_config(server.kubeconfig)
                assert kubernetes.client.CustomObjectsApi(api).list_namespaced_custom_object("example.com", "v1", "default", "widgets")["items"] == []
                accounts = kubernetes.client.CoreV1Api(api).list_namespaced_service_account("default").items
                # A controller would have made one.
                assert accounts == []
    """))
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], check=True)


@pytest.mark.parametrize("number", range(2))
def test_the_server_of_a_session_is_one(rowplane, number, request):
    client = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(rowplane.kubeconfig))
    client.create_namespace({"metadata": {"name": f"shared-{number}"}})
    assert request.config.stash.setdefault(URL, rowplane.url) == rowplane.url


URL = pytest.StashKey[str]()
