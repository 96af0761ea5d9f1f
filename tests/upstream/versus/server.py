"""A server that is asked: its resources, and what it answers."""

import copy
import http.client
import json
import re
import ssl
import urllib.parse

from definition import resources as resources_of

PATCHES = {
    "JSON": "application/json-patch+json",
    "MERGE": "application/merge-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "APPLY": "application/apply-patch+yaml",
}


class Resources:
    """What the resources of a server are called, so that cases can be short."""

    def __init__(self, server):
        self.by_name = {}
        self.by_kind = {}
        # What the definitions of the scenario at hand serve.
        self.defined = {}
        document = server.send("GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        core = server.send("GET", "/api", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        for group in core.body["items"] + document.body["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for resource in version.get("resources", []):
                    self.add(name, version["version"], resource)

    def add(self, group, version, resource):
        found = {
            "group_version": f"{group}/{version}" if group else version,
            "kind": resource["responseKind"]["kind"],
            "namespaced": resource["scope"] == "Namespaced",
            "plural": resource["resource"],
            "subresources": {s["subresource"] for s in resource.get("subresources", [])},
            "virtual": "get" not in resource["verbs"],
        }
        for name in (found["plural"], f"{found['plural']}.{group}", f"{found['plural']}.{version}.{group}"):
            self.by_name.setdefault(name, found)
        self.by_kind.setdefault((found["group_version"], found["kind"]), found)

    def define(self, definition, namespace):
        self.defined.update(resources_of(definition, namespace))

    def path(self, short, namespace):
        """`pods/a/status` as a path of HTTP; what begins with a slash is one already."""
        short = short.replace("{ns}", namespace)
        if short.startswith("/"):
            return short, None
        short, _, query = short.partition("?")
        plural, *rest = short.split("/")
        resource = self.defined.get(plural) or self.by_name[plural]
        root = "/apis/" if "/" in resource["group_version"] else "/api/"
        place = f"/namespaces/{namespace}" if resource["namespaced"] else ""
        path = "/".join([root + resource["group_version"] + place, resource["plural"], *rest])
        return path + ("?" + query if query else ""), resource


class Answer:
    def __init__(self, status, headers, raw):
        self.status = status
        self.warnings = [value for name, value in headers if name.lower() == "warning"]
        try:
            self.body = json.loads(raw)
        except ValueError:
            self.body = raw.decode("utf-8", "replace")


class Server:
    def __init__(self, name, url, token, words):
        self.name = name
        self.address = urllib.parse.urlsplit(url)
        self.token = token
        # What other words than those of the last answer stand for, such as `$hook`.
        self.words = words
        self.connection = None
        # What the answer before said, for bodies that mention it.
        self.last = {}

    def connect(self):
        context = ssl._create_unverified_context()
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, context=context, timeout=70)

    def send(self, method, path, body=None, content_type=None, accept=None, headers=None):
        all_headers = {"Accept": accept or "application/json", "Authorization": f"Bearer {self.token}", "User-Agent": "versus/1"}
        if content_type is not None:
            all_headers["Content-Type"] = content_type
        all_headers.update(headers or {})
        data = self.fill(body).encode() if body is not None else None
        target = self.fill(path)
        try:
            answer = self.ask(method, target, data, all_headers)
        except (OSError, http.client.HTTPException):
            # A server may have closed a connection that it has answered on; the second one is new.
            self.connection = None
            try:
                answer = self.ask(method, target, data, all_headers)
            except (OSError, http.client.HTTPException):
                # It panicked; kube-apiserver does, of some definitions.
                self.connection = None
                answer = Answer(0, [], b"no answer")
        if isinstance(answer.body, dict) and isinstance(answer.body.get("metadata"), dict):
            if answer.body.get("kind") != "Status":
                self.last = copy.copy(answer.body["metadata"])
        return answer

    def ask(self, method, target, data, headers):
        self.connection = self.connection or self.connect()
        self.connection.putrequest(method, target, skip_accept_encoding=True)
        for name, values in headers.items():
            for value in values if isinstance(values, list) else [values]:
                self.connection.putheader(name, value.encode())
        if data is not None or method in ("POST", "PUT", "PATCH"):
            self.connection.putheader("Content-Length", str(len(data or b"")))
        self.connection.endheaders(data)
        response = self.connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())

    def fill(self, text):
        """`$uid` and `$rv` are those of the last object that was answered."""
        text = re.sub(r"\$(uid|rv)\b", lambda found: self.mentioned(found[1]), text)
        for word, meaning in self.words.items():
            text = text.replace(word, meaning)
        return text

    def mentioned(self, name):
        return str(self.last.get({"uid": "uid", "rv": "resourceVersion"}[name], "none"))
