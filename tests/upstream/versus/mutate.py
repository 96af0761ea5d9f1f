"""Random changes of objects, each sent once: as a new object, as an update and as a patch, without a trace. And random
changes of definitions, each with objects of what it defines."""

import copy
import json
import random

import definition
import lives

JUNK = [
    None, "", "x", "X", "1", "-1", 0, 1, -1, 70000, 2147483648, 9007199254740993, 1.5, 1e3, True, False, [], {}, [None], [{}], {"a": None},
    {"": ""}, "a" * 64, "a" * 254, "A_b", "a.b", "1Gi", "10%", "é", " ", "2020-01-01T00:00:00Z", "127.0.0.1", "::1", "01.2.3.4",
]
VALIDATION = ["", "Strict", "Warn", "Ignore"]
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def scenarios(comparison, seed, count):
    chosen = random.Random(seed)
    pool = [(p, r, d) for p, r, d in lives.bases(comparison) if d["metadata"].get("name")]
    if count == 0:
        return
    for place, resource, document in pool:
        if document["kind"] == "Namespace":
            # That of its life never goes from a kube-apiserver that has no controllers beside it.
            document["metadata"]["name"] += "-random"
        steps = [{f"POST {lives.short(resource)}?fieldManager=m": document}]
        one = f"{lives.short(resource)}/{document['metadata']['name']}"
        steps += [step(chosen, resource, document) for _ in range(count // len(pool) + 1)]
        # What is left would be in the way of others of this name.
        steps += [{f"MERGE {one}": {"metadata": {"finalizers": None}}}, {f"DELETE {one}?gracePeriodSeconds=0": None}]
        yield f"random {document['kind']} ({place})", steps


def definitions(seed, count):
    """Each in a group of its own, since the reference takes a while to forget one."""
    chosen = random.Random(seed)
    documents = [document for _, document in lives.documents(lives.CUSTOM)]
    for number in range(count):
        place = chosen.choice([n for n, document in enumerate(documents) if lives.is_definition(document)])
        of_it = [d for d in documents if d["kind"] == documents[place]["spec"]["names"]["kind"]]
        yield f"random definition {number}", list(defined(chosen, copy.deepcopy(documents[place]), of_it))


def defined(chosen, document, objects):
    group = document["spec"]["group"]
    own = lambda value: dump(value).replace(group, f"{{ns}}.{group}")
    plural, namespaced = document["spec"]["names"]["plural"], document["spec"]["scope"] == "Namespaced"
    note = change_schema(chosen, document)
    yield {f"POST {definition.RESOURCE}": own(document), "note": note}
    one = f"{definition.RESOURCE}/{plural}.{{ns}}.{group}"
    for object in objects:
        version = object["apiVersion"].rpartition("/")[2]
        many = f"/apis/{{ns}}.{group}/{version}/{'namespaces/{ns}/' if namespaced else ''}{plural}"
        name = object["metadata"]["name"]
        yield {f"POST {many}": own(object), "note": note}
        for _ in range(4):
            changed = copy.deepcopy(object)
            what = f"{note} {change(chosen, changed)}"
            yield {f"APPLY {many}/{name}?fieldManager=a&force=true": own(changed), "note": what}
            yield {f"POST {many}?dryRun=All": own(renamed(changed, name)), "note": what}
        yield {f"GET {many}": None, "accept": TABLE, "note": note}
    yield {f"GET {many}?fieldSelector=spec.color%3Dblue": None, "note": note}
    note = f"{note} {change_schema(chosen, document)}"
    yield {f"MERGE {one}": own({"spec": document["spec"]}), "note": note}
    yield {f"GET {many}": None, "note": note}
    yield {f"MERGE {many}/{name}": {"metadata": {"labels": {"a": "b"}}}, "note": note}
    yield {f"DELETE {one}": None}


def change_schema(chosen, document):
    """Most changes are made within the schemas, which have most to say."""
    versions = document["spec"].get("versions")
    if chosen.random() < 0.3 or not isinstance(versions, list) or not versions or not isinstance(versions[0], dict):
        return "spec" + change(chosen, document["spec"])
    return "versions[0]" + change(chosen, versions[0])


def dump(value):
    return json.dumps(value, separators=(",", ":"))


def step(chosen, resource, document):
    many, name = lives.short(resource), document["metadata"]["name"]
    query = f"?dryRun=All&fieldValidation={chosen.choice(VALIDATION)}"
    changed = copy.deepcopy(document)
    places = []
    for _ in range(chosen.choice([1, 1, 1, 2])):
        places.append(change(chosen, changed))
    note = " ".join(places)
    verb = chosen.choice(["POST", "POST", "PUT", "PUT", "MERGE", "STRATEGIC", "APPLY", "STATUS"])
    if verb == "POST":
        return {f"POST {many}{query}": body(chosen, renamed(changed, name)), "note": note}
    if verb == "STATUS" and "status" in resource["subresources"]:
        return {f"PUT {many}/{name}/status{query}": body(chosen, changed), "note": note}
    if verb in ("MERGE", "STRATEGIC"):
        changed.pop("apiVersion", None), changed.pop("kind", None)
        return {f"{verb} {many}/{name}{query}": dump(changed), "note": note}
    if verb == "APPLY":
        return {f"APPLY {many}/{name}{query}&fieldManager=a&force=true": dump(changed), "note": note}
    return {f"PUT {many}/{name}{query}": body(chosen, changed), "note": note}


def renamed(changed, name):
    """An object of this name is there already."""
    if isinstance(changed.get("metadata"), dict) and changed["metadata"].get("name") == name:
        changed["metadata"]["name"] = name + "x"
    return changed


def body(chosen, changed):
    text = dump(changed)
    if chosen.random() < 0.05:
        # A member of the object twice.
        text = text[:-1] + ', "metadata": ' + dump(changed.get("metadata")) + "}"
    return text


def junk(chosen):
    """A value of its own: what is put into one object may be changed there, and must not become part of others, or of itself."""
    return copy.deepcopy(chosen.choice(JUNK))


def change(chosen, value):
    """Changes something somewhere within, and says what."""
    parents = list(containers(value, ""))
    path, parent = chosen.choice(parents)
    keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    if not keys:
        if isinstance(parent, dict):
            parent["unknownField"] = junk(chosen)
        else:
            parent.append(junk(chosen))
        return f"{path} filled"
    key = chosen.choice(keys)
    what = chosen.choice(["junk", "junk", "junk", "junk", "remove", "remove", "rename", "unknown", "repeat", "text"])
    if what == "remove":
        del parent[key]
    elif what == "rename" and isinstance(parent, dict):
        parent[str(key).swapcase()] = parent.pop(key)
    elif what == "unknown" and isinstance(parent, dict):
        parent["unknownField"] = junk(chosen)
    elif what == "repeat" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif what == "text":
        parent[key] = str(parent[key]) + chosen.choice(["", "-", "!", "A", " "])
    else:
        parent[key] = junk(chosen)
    return f"{path}.{key} {what}"


def containers(value, path):
    if isinstance(value, dict):
        yield path, value
        for key, member in value.items():
            if path == "" and key in ("apiVersion", "kind"):
                continue
            yield from containers(member, f"{path}.{key}")
    elif isinstance(value, list):
        yield path, value
        for n, member in enumerate(value):
            yield from containers(member, f"{path}[{n}]")
