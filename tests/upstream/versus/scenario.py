"""Cases as data.

A file holds documents `name:` and `steps:`. A step is a request with its body, `POST pods: {...}`; bodies that are text
are sent as they are, others get apiVersion and kind of the resource, unless `bare: true` stands beside. `JSON`, `MERGE`,
`STRATEGIC` and `APPLY` are PATCH; `type:` is another Content-Type, `accept:` another Accept. `DEFINE` and `REDEFINE` write
a CustomResourceDefinition (`definition.py`). With `later: true` the reference, whose documents follow its definitions
after a while, is asked until it answers what rowplane answers. Every scenario has a namespace of its own.
"""

import json

import yaml

import definition
from server import PATCHES

METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", *PATCHES}
DEFINES = {"DEFINE", "REDEFINE"}
TYPED = {"POST", "PUT", "APPLY"}


def read(directory):
    for path in sorted(directory.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield f"{path.stem}: {document['name']}", document["steps"]


def line(step):
    return next(key for key in step if key.split(" ")[0] in METHODS | DEFINES)


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
        "headers": step.get("headers"),
        "accept": step.get("accept"),
    }


def with_kind(body, resource):
    return {"apiVersion": resource["group_version"], "kind": resource["kind"], **body}
