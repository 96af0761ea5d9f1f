"""CustomResourceDefinitions: their short form in cases, and when a server has finished with a write of one.

    DEFINE widgets: {v1: {spec: {color: {type: string}}, subresources: {status: {}}}, scope: Cluster}

creates `widgets.{ns}.ex.io` of kind Widget. `v1` and its like are versions, the first of them stored unless one says
`storage`; `spec` and `status` in a version are properties of the schema, `schema` is the whole one; other members of a
version and of the definition's spec stand as they are. `REDEFINE` is a merge patch of the same form.
"""

import re
import time
import urllib.parse

GROUP = "{ns}.ex.io"
RESOURCE = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VERSION = re.compile(r"v\d\w*")


def written(verb, plural, short):
    """The step of HTTP that `DEFINE` or `REDEFINE` stands for."""
    whole = expanded(plural, short)
    if verb == "DEFINE":
        return f"POST {RESOURCE}", whole
    return f"MERGE {RESOURCE}/{whole['metadata']['name']}", whole


def expanded(plural, short):
    short = dict(short)
    versions = [version(name, short.pop(name)) for name in list(short) if VERSION.fullmatch(name)]
    if versions and not any(v["storage"] for v in versions):
        versions[0]["storage"] = True
    kind = plural.removesuffix("s").capitalize()
    metadata = {"name": f"{plural}.{GROUP}", **short.pop("metadata", {})}
    names = {"plural": plural, "kind": kind, **short.pop("names", {})}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, **short}
    if versions:
        spec["versions"] = versions
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def version(name, short):
    short = dict(short or {})
    parts = {part: {"type": "object", "properties": short.pop(part)} for part in ("spec", "status") if part in short}
    schema = short.pop("schema", {"type": "object", "properties": parts})
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}, **short}


def resources(definition, namespace):
    """How cases call what a definition serves: `widgets` in its first version, `widgets.v2` in another."""
    spec = definition["spec"]
    for number, version in enumerate(spec.get("versions") or []):
        found = {
            "group_version": f"{spec['group']}/{version['name']}".replace("{ns}", namespace),
            "kind": spec["names"]["kind"],
            "namespaced": spec["scope"] == "Namespaced",
            "plural": spec["names"]["plural"],
        }
        if number == 0:
            yield found["plural"], found
        yield f"{found['plural']}.{version['name']}", found


def written_by(request):
    """The path of the definition that a request may change; None for other requests."""
    path, _, query = request["path"].partition("?")
    if request["method"] == "GET" or "dryRun" in query or not path.startswith(RESOURCE):
        return None
    return path.removesuffix("/status")


def settled(server, path, name):
    """What a definition looks like once the controllers of the reference have finished with it. Their watches tell the
    handler of custom resources a moment later, and nothing shows when."""
    if path == RESOURCE:
        path = f"{RESOURCE}/{urllib.parse.quote(str(name), safe='')}"
    for _ in range(100):
        answer = server.send("GET", path)
        if finished(answer):
            break
        time.sleep(0.05)
    time.sleep(0.3)
    return answer


def finished(answer):
    if answer.status != 200:
        return True
    conditions = {c["type"]: c for c in answer.body["status"].get("conditions") or []}
    if "deletionTimestamp" in answer.body["metadata"]:
        return conditions.get("Terminating", {}).get("reason") == "InstanceDeletionFailed"
    names, established = conditions.get("NamesAccepted"), conditions.get("Established")
    if not names or not established or established["reason"] == "Installing":
        return False
    return names["status"] == "False" or answer.body["status"]["acceptedNames"] == answer.body["spec"]["names"]
