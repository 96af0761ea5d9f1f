"""What a test does with its cluster: snapshots, forks, resets, time, faults, requests. With nothing but Python's library."""

import datetime
import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rowplane import ApiError, Server

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, **data):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "data": data}


def ask(cluster, path, body=None, method=None):
    """The status and the object of an answer."""
    context = ssl.create_default_context(cafile=cluster.ca)
    pki = Path(cluster.ca).parent
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster.url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def names(cluster):
    return [one["metadata"]["name"] for one in ask(cluster, MAPS)[1]["items"] if one["metadata"]["name"] != "kube-root-ca.crt"]


@pytest.fixture(scope="session")
def rowplane_base():
    with Server() as server:
        server.seed(config_map("seeded", k="0"))
        yield server.snapshot()


@pytest.mark.parametrize("number", range(3))
def test_every_test_has_a_fork_of_its_own(rowplane_fork, number):
    assert names(rowplane_fork) == ["seeded"]
    assert ask(rowplane_fork, MAPS, config_map("mine"))[0] == 201
    assert ask(rowplane_fork, f"{MAPS}/seeded", method="DELETE")[0] == 200
    assert names(rowplane_fork) == ["mine"]
    text = Path(rowplane_fork.kubeconfig).read_text()
    assert f"server: {rowplane_fork.url}\n" in text and rowplane_fork.url.endswith(f"/branches/{rowplane_fork.name}")


def test_a_reset_goes_back(rowplane_fork):
    ask(rowplane_fork, MAPS, config_map("new"))
    rowplane_fork.reset()
    assert names(rowplane_fork) == ["seeded"]
    rowplane_fork.seed(config_map("later"))
    later = rowplane_fork.snapshot()
    rowplane_fork.reset()
    rowplane_fork.reset(later)
    assert names(rowplane_fork) == ["later", "seeded"]
    with later.fork() as other:
        assert names(other) == ["later", "seeded"]
        other.stop()
    later.delete()
    with pytest.raises(ApiError, match="not found") as refused:
        rowplane_fork.reset(later)
    assert refused.value.code == 404


def test_objects_of_files(rowplane_fork, tmp_path):
    file = tmp_path / "objects.yaml"
    file.write_text("kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: of-a-file\n---\n" + json.dumps(config_map("second")))
    rowplane_fork.seed(file)
    assert names(rowplane_fork) == ["of-a-file", "second", "seeded"]
    with pytest.raises(ApiError, match="nothing of kind"):
        rowplane_fork.seed({"kind": "Nothing", "apiVersion": "v1"})


def test_time(rowplane_fork):
    rowplane_fork.freeze(datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc))
    rowplane_fork.advance(hours=1)
    assert ask(rowplane_fork, MAPS, config_map("a"))[1]["metadata"]["creationTimestamp"] == "2030-01-01T01:00:00Z"
    rowplane_fork.unfreeze()
    stamp = ask(rowplane_fork, MAPS, config_map("b"))[1]["metadata"]["creationTimestamp"]
    assert stamp < "2030" and stamp > time.strftime("%Y-%m-%d", time.gmtime())


def test_faults_and_requests(rowplane_fork):
    rowplane_fork.record_requests()
    rowplane_fork.fault("create", "configmaps", code=409, count=1)
    assert [ask(rowplane_fork, MAPS, config_map("a"))[0] for _ in range(2)] == [409, 201]
    rowplane_fork.fault("list", "configmaps", code=500)
    assert ask(rowplane_fork, MAPS)[0] == 500
    rowplane_fork.clear_faults()
    rowplane_fork.fault(delay=0.01, count=1)
    assert names(rowplane_fork) == ["a", "seeded"]
    made = rowplane_fork.requests(verb="create", resource="configmaps")
    assert [(one["code"], one["request"]["metadata"]["name"]) for one in made] == [(409, "a"), (201, "a")]
    assert rowplane_fork.requests(since=made[-1]["number"], verb="create") == []
    rowplane_fork.quiet(0.02)
    rowplane_fork.expire_watches()
    assert rowplane_fork.close_watches() == 0


def test_a_fork_of_what_a_server_is_now():
    with Server() as server:
        with server.fork("named") as fork:
            fork.seed(config_map("there"))
            with fork.fork() as deeper:
                assert names(deeper) == ["there"]
            assert (names(server), names(fork)) == ([], ["there"])
        with pytest.raises(ApiError, match="already exists"):
            with server.fork("twice"), server.fork("twice"):
                pass
