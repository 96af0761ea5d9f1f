"""Random changes of objects, each sent once: as a new object, as an update and as a patch, without a trace."""

import copy
import json
import random

import lives

JUNK = [
    None, "", "x", "X", "1", "-1", 0, 1, -1, 70000, 2147483648, 9007199254740993, 1.5, 1e3, True, False, [], {}, [None], [{}], {"a": None},
    {"": ""}, "a" * 64, "a" * 254, "A_b", "a.b", "1Gi", "10%", "é", " ", "2020-01-01T00:00:00Z", "127.0.0.1", "::1", "01.2.3.4",
]
VALIDATION = ["", "Strict", "Warn", "Ignore"]


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
        if isinstance(changed.get("metadata"), dict) and changed["metadata"].get("name") == name:
            changed["metadata"]["name"] = name + "x"
        return {f"POST {many}{query}": body(chosen, changed), "note": note}
    if verb == "STATUS" and "status" in resource["subresources"]:
        return {f"PUT {many}/{name}/status{query}": body(chosen, changed), "note": note}
    if verb in ("MERGE", "STRATEGIC"):
        changed.pop("apiVersion", None), changed.pop("kind", None)
        return {f"{verb} {many}/{name}{query}": dump(changed), "note": note}
    if verb == "APPLY":
        return {f"APPLY {many}/{name}{query}&fieldManager=a&force=true": dump(changed), "note": note}
    return {f"PUT {many}/{name}{query}": body(chosen, changed), "note": note}


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
