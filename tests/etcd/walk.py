"""Does the same to two API servers, and compares what they answer: walk.py OURS THEIRS write|read|change"""

import json
import ssl
import sys
import threading
import urllib.error
import urllib.request

CONTEXT = ssl._create_unverified_context()
HEADERS = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
CONFIGS = "/api/v1/namespaces/walk/configmaps"
CUSTOM = "/apis/walk.example.com/v1/namespaces/walk/things"
COUNT = 300


class Server:
    def __init__(self, url):
        self.url = url

    def open(self, method, path, body=None, content_type=None):
        data = json.dumps(body).encode() if body is not None else None
        headers = HEADERS | ({"Content-Type": content_type} if content_type else {})
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=CONTEXT)

    def call(self, method, path, body=None, content_type=None):
        try:
            with self.open(method, path, body, content_type) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def list_all(self, path, query, limit):
        """All pages, with how many objects each has and how many are said to remain."""
        pages, token = [], ""
        while True:
            code, page = self.call("GET", f"{path}?{query}&limit={limit}&continue={token}")
            if code != 200:
                return pages + [(code, page["reason"])]
            meta = page["metadata"]
            pages.append(([plain(item) for item in page["items"]], meta.get("remainingItemCount")))
            token = meta.get("continue", "")
            if not token:
                return pages


def plain(value):
    """The value without what differs from one server to the other."""
    if isinstance(value, dict):
        skipped = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "time", "token", "continue"}
        return {key: plain(part) for key, part in value.items() if key not in skipped}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value


def same(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what} differs:\nours:   {str(ours)[:2000]}\ntheirs: {str(theirs)[:2000]}")
    same.count += 1


same.count = 0


def config(number, **labels):
    labels = {"third": str(number % 3), "tenth": str(number % 10)} | labels
    return {"metadata": {"name": f"c{number:04}", "labels": labels}, "data": {"number": str(number)}}


def crd():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "walk.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return kind | {"metadata": {"name": "things.walk.example.com"}, "spec": spec}


def write(both):
    def step(method, path, body=None, content_type=None):
        answers = [server.call(method, path, body, content_type) for server in both]
        same(f"{method} {path}", *[(code, plain(answer)) for code, answer in answers])
        return answers

    step("POST", "/api/v1/namespaces", {"metadata": {"name": "walk"}})
    step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
    for number in range(COUNT):
        step("POST", CONFIGS, config(number))
    step("POST", CONFIGS, config(1))
    for number in range(0, COUNT, 7):
        patch = {"data": {"patched": "yes"}}
        step("PATCH", f"{CONFIGS}/c{number:04}", patch, "application/merge-patch+json")
    for number in range(0, COUNT, 11):
        step("DELETE", f"{CONFIGS}/c{number:04}")
        step("DELETE", f"{CONFIGS}/c{number:04}")
    stale = config(1)
    stale["metadata"]["resourceVersion"] = "1"
    answers = [server.call("PUT", f"{CONFIGS}/c0001", stale) for server in both]
    same("a stale update", *[(code, answer["reason"]) for code, answer in answers])
    for server in both:
        while server.call("GET", CUSTOM)[0] != 200:
            pass
    for number in range(20):
        kind = {"apiVersion": "walk.example.com/v1", "kind": "Thing"}
        step("POST", CUSTOM, kind | {"metadata": {"name": f"t{number}"}, "spec": {"n": [number] * number}})


def read(both):
    queries = [f"labelSelector=third%3D{n}" for n in range(3)] + [f"labelSelector=tenth%3D{n}" for n in range(10)]
    queries += ["", "fieldSelector=metadata.name%3Dc0042", "labelSelector=third%21%3D1,tenth+in+(1,2)"]
    for query in queries:
        for limit in (0, 1, 2, 7, 50, 100, 299, 500):
            if limit == 1 and query == "":
                limit = 3
            pages = [server.list_all(CONFIGS, query, limit) for server in both]
            same(f"list {query} limit {limit}", *pages)
        for version in ("0", "1"):
            lists = [server.call("GET", f"{CONFIGS}?{query}&resourceVersion={version}") for server in both]
            same(f"list {query} from {version}", *[(code, plain(answer)) for code, answer in lists])
    code, groups = both[1].call("GET", "/apis")
    versions = ["/api/v1"] + [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups["groups"]]
    for version in versions:
        code, found = both[1].call("GET", version)
        for resource in found["resources"]:
            # Events and leases tell of the servers themselves.
            if "list" in resource["verbs"] and resource["name"] not in ("events", "leases", "endpoints", "endpointslices"):
                path = f"{version}/{resource['name']}"
                answers = [server.call("GET", path) for server in both]
                same(path, *[names(answer) for answer in answers])


def names(answer):
    code, body = answer
    # Names made of an address or at random.
    items = [item["metadata"] for item in body.get("items", [])]
    return code, sorted((item.get("namespace"), item["name"]) for item in items if "generateName" not in item)


def watch(server, path, count, events, started):
    with server.open("GET", path) as stream:
        started.set()
        for line in stream:
            event = json.loads(line)
            if event["type"] != "BOOKMARK":
                events.append((event["type"], plain(event["object"])))
            if len(events) == count:
                return


def change(both):
    """Watches with selectors and without, from now and from before, while objects come, change and go."""
    selectors = [f"&labelSelector=tenth%3D{n}" for n in range(10)] + ["", "&fieldSelector=metadata.name%3Dw7"]
    begins = [server.call("GET", f"{CONFIGS}?limit=1")[1]["metadata"]["resourceVersion"] for server in both]
    watches, total = [], 120
    for selector in selectors:
        for server, begin in zip(both, begins):
            events, started = [], threading.Event()
            path = f"{CONFIGS}?watch=1&resourceVersion={begin}{selector}"
            count = {"": total, selectors[-1]: 3}.get(selector, total // 10)
            arguments = (server, path, count, events, started)
            thread = threading.Thread(target=watch, args=arguments)
            thread.start()
            started.wait()
            watches.append((selector, thread, events))
    for server in both:
        for number in range(40):
            made = config(number)
            made["metadata"]["name"] = f"w{number}"
            assert server.call("POST", CONFIGS, made)[0] == 201
            path, patch = f"{CONFIGS}/w{number}", {"data": {"more": "yes"}}
            assert server.call("PATCH", path, patch, "application/merge-patch+json")[0] == 200
        for number in range(40):
            assert server.call("DELETE", f"{CONFIGS}/w{number}")[0] == 200
    for _, thread, _ in watches:
        thread.join()
    for ours, theirs in zip(watches[::2], watches[1::2]):
        same(f"watch {ours[0]}", ours[2], theirs[2])
    # The same again, from the past.
    for selector in selectors:
        seen = []
        for server, begin in zip(both, begins):
            events = []
            count = {"": total, selectors[-1]: 3}.get(selector, total // 10)
            watch(server, f"{CONFIGS}?watch=1&resourceVersion={begin}{selector}", count, events, threading.Event())
            seen.append(events)
        same(f"watch {selector} of the past", *seen)


if __name__ == "__main__":
    both = [Server(url) for url in sys.argv[1:3]]
    {"write": write, "read": read, "change": change}[sys.argv[3]](both)
    print(f"{sys.argv[3]}: {same.count} answers alike")
