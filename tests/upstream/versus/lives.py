"""The life of an object of every kind: made, made again, changed in each way, and gone."""

import copy
import pathlib

import yaml

BASES = pathlib.Path(__file__).parents[3] / "testdata" / "validation" / "bases"
# Definitions, which both servers have from the start, and objects of them.
CUSTOM = pathlib.Path(__file__).parent / "custom"


def documents(directory):
    for path in sorted(directory.glob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            if document:
                yield f"{path.stem} {number}", document


def is_definition(document):
    return document["kind"] == "CustomResourceDefinition"


def definitions():
    return [document for _, document in documents(CUSTOM) if is_definition(document)]


def bases(comparison):
    """A resource and an object of it, for all kinds that both servers have."""
    custom = [(place, document) for place, document in documents(CUSTOM) if not is_definition(document)]
    for place, document in [*documents(BASES), *custom]:
        kind = (document["apiVersion"], document["kind"])
        if comparison.both_serve(kind):
            document["metadata"].pop("namespace", None)
            yield place, comparison.resources.by_kind[kind], document


def short(resource):
    group, _, version = resource["group_version"].rpartition("/")
    return f"{resource['plural']}.{version}.{group}" if group else resource["plural"]


def scenarios(comparison):
    for place, resource, document in bases(comparison):
        name = document["metadata"].get("name")
        if name:
            yield f"life of {document['kind']} ({place})", list(life(resource, document, name))


# Metadata that upstream refuses, or takes from some kinds only.
METADATA = [
    {"finalizers": ["bare"]}, {"finalizers": ["a/b/c"]}, {"finalizers": ["orphan", "foregroundDeletion"]},
    {"labels": {"a b": "c"}}, {"labels": {"a": "b c"}}, {"annotations": {"a b": ""}}, {"annotations": {"A.b/c": ""}},
    {"ownerReferences": [{}]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "a"}]},
    {"generation": -1}, {"name": "a_b"}, {"name": "a/b"}, {"name": "A:b"}, {"name": "-a"}, {"name": None},
    {"name": None, "generateName": "a_b"}, {"name": "a" * 254}, {"name": "b" * 64},
]


def metadata(comparison):
    """Bad metadata of all kinds, which upstream's kinds look at in three ways."""
    for place, resource, document in bases(comparison):
        if name := document["metadata"].get("name"):
            many, steps = short(resource), []
            for bad in METADATA:
                changed = copy.deepcopy(document)
                changed["metadata"].update({"name": name + "-x", **bad})
                steps.append({f"POST {many}?dryRun=All&fieldManager=m": changed})
            yield f"metadata of {document['kind']} ({place})", steps


def life(resource, document, name):
    many, one = short(resource), f"{short(resource)}/{name}"
    mapping = {"labels": {"versus": "a"}, "annotations": {"versus.example.com/a": "b"}}
    changed = copy.deepcopy(document)
    changed["metadata"].setdefault("labels", {})["versus"] = "b"
    changed["metadata"]["resourceVersion"] = "$rv"
    nothing = {"metadata": {"name": name}}
    yield {f"POST {many}?dryRun=All": document}
    yield {f"POST {many}?fieldManager=m": document}
    yield {f"POST {many}": document}
    yield {f"GET {one}": None}
    yield {f"PUT {one}": {**document, "metadata": {**document["metadata"], "resourceVersion": "$rv"}}}
    yield {f"PUT {one}?fieldManager=n": document}
    yield {f"PUT {one}?fieldManager=n": changed}
    yield {f"PUT {one}": nothing}
    yield {f"PUT {one}": {"metadata": {"name": name, "resourceVersion": "$rv"}}}
    yield {f"MERGE {one}?fieldManager=p": {"metadata": mapping}}
    yield {f"MERGE {one}?fieldManager=p": {"spec": None, "data": None}}
    yield {f"MERGE {one}?fieldManager=p": {"spec": {"unknown": 1}, "status": {"unknown": 2}}}
    yield {f"STRATEGIC {one}?fieldManager=s": {"metadata": {"labels": {"versus": None}}}}
    yield {f"JSON {one}?fieldManager=j": [{"op": "add", "path": "/metadata/labels", "value": {"j": "1"}}]}
    yield {f"APPLY {one}?fieldManager=a": {"metadata": {"name": name, "labels": {"applied": "yes"}}}}
    yield {f"APPLY {one}?fieldManager=a&force=true": bare(document)}
    for part in sorted(resource["subresources"] & {"status", "scale"}):
        yield {f"GET {one}/{part}": None}
    if "status" in resource["subresources"]:
        with_status = {**document, "metadata": {**document["metadata"], "resourceVersion": "$rv"}}
        yield {f"PUT {one}/status?fieldManager=t": with_status}
        yield {f"PUT {one}/status?fieldManager=t": nothing}
        yield {f"MERGE {one}/status?fieldManager=u": {"metadata": mapping, "spec": None}}
        yield {f"MERGE {one}/status?fieldManager=u": {"status": None}}
        yield {f"MERGE {one}/status?fieldManager=u": {"status": {"conditions": [{"type": "A"}]}}}
        yield {f"APPLY {one}/status?fieldManager=w": nothing}
    yield {f"DELETE {one}?dryRun=All": None}
    yield {f"DELETE {one}": None}
    yield {f"MERGE {one}": {"metadata": {"finalizers": None}}}
    yield {f"GET {one}": None}
    yield {f"APPLY {one}-b?fieldManager=a": {**bare(document), "metadata": {"name": name + "-b"}}}
    yield {f"DELETE {one}-b": None}


def bare(document):
    return {key: value for key, value in document.items() if key != "status"}
