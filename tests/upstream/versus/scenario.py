"""Cases as data.

A file holds documents `name:` and `steps:`. A step is a request with its body, `POST pods: {...}`; bodies that are text
are sent as they are, others get apiVersion and kind of the resource, unless `bare: true` stands beside. `JSON`, `MERGE`,
`STRATEGIC` and `APPLY` are PATCH; `type:` is another Content-Type, `accept:` another Accept. `DEFINE` and `REDEFINE` write
a CustomResourceDefinition (`definition.py`). With `later: true` the reference, whose documents follow its definitions
after a while, is asked until it answers what rowplane answers. Every scenario has a namespace of its own.

`as: alice` or `as: [alice, group, ...]` sends a request in the name of somebody else. `only: reference` (or `rowplane`)
sends it to one server, and compares nothing. `SEEN hook` compares what webhooks (`hooks.py`) were asked since the last
time; `$hook` is the URL of the webhooks, `$ca` their authority. `QUOTA name: spec` makes a ResourceQuota, and writes for
the reference the status that its controller would write.
"""

import json

import yaml

import definition
from server import PATCHES

METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", *PATCHES}
DEFINES = {"DEFINE", "REDEFINE"}
OTHERS = {"SEEN", "QUOTA"}
TYPED = {"POST", "PUT", "APPLY"}


def read(directory):
    for path in sorted(directory.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield f"{path.stem}: {document['name']}", document["steps"]


def line(step):
    return next(key for key in step if key.split(" ")[0] in METHODS | DEFINES | OTHERS)


def title(step):
    return line(step)


def request(step, resources, namespace):
    key = line(step)
    verb, short = key.split(" ", 1)
    body = step[key]
    if verb in DEFINES:
        key, body = definition.written(verb, short, body)
        resources.define(body, namespace)
        verb, short = key.split(" ", 1)
    path, resource = resources.path(short, namespace)
    content_type = "application/json"
    if verb in PATCHES:
        content_type = PATCHES[verb]
    if isinstance(body, (dict, list)):
        typed = verb in TYPED and resource and not step.get("bare") and isinstance(body, dict)
        body = json.dumps(with_kind(body, resource) if typed else body, separators=(",", ":"))
    if isinstance(body, str):
        body = body.replace("{ns}", namespace)
    return {
        "method": "PATCH" if verb in PATCHES else verb,
        "path": path,
        "body": body,
        "content_type": step.get("type", content_type) if body is not None else None,
        "headers": headers(step, namespace),
        "accept": step.get("accept"),
    }


def headers(step, namespace):
    """A list of values stands for as many headers."""
    user, *groups = step["as"] if isinstance(step.get("as"), list) else [step.get("as")]
    all_headers = {**step.get("headers", {}), "Impersonate-User": user, "Impersonate-Group": groups}
    all_headers = {name: value for name, value in all_headers.items() if value not in (None, [])}
    own = lambda value: value.replace("{ns}", namespace) if isinstance(value, str) else value
    return {name: own(value) for name, value in all_headers.items()} or None


def with_kind(body, resource):
    return {"apiVersion": resource["group_version"], "kind": resource["kind"], **body}
