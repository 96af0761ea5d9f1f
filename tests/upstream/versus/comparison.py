"""Sends requests to a reference and to rowplane, and tells what is different in their answers."""

import collections
import concurrent.futures
import copy
import json
import pathlib
import re
import sys
import time

import yaml

import definition
import lives
import scenario
from compare import Normalizer, differences, same_order
from hooks import Hooks
from server import Answer, Resources, Server

HERE = pathlib.Path(__file__).parent
NAMES = ("reference", "rowplane")
# Seconds until a write counts at the reference, by words of its path.
SETTLING = {
    "/rbac.authorization": 0.3, "policies": 2.5, "policybindings": 2.5, "webhookconfigurations": 0.5, "/limitranges": 0.4, "/resourcequotas": 0.4,
    "/namespaces/": 0.2, "/priorityclasses": 0.3, "/serviceaccounts": 0.3, "/storageclasses": 0.3, "/ingressclasses": 0.3, "/runtimeclasses": 0.3,
    "/customresourcedefinitions": 0.3,
}


class Known:
    """Differences that are meant to be, and how often each was seen. One that is `whole` explains all that differs in an
    answer. After one that `ends` a scenario, too, the two servers have other objects, and nothing more is compared in it."""

    def __init__(self):
        self.entries = yaml.safe_load((HERE / "known.yaml").read_text()) or []
        self.seen = collections.Counter()

    def rest(self, title, found):
        """The lines that nobody knows, and whether the scenario ends."""
        for entry in self.entries:
            if ("whole" in entry or "ends" in entry) and any(holds(entry, title, line) for line in found):
                self.seen[entry["why"]] += 1
                return [], "ends" in entry
        return [line for line in found if not self.reason(title, line)], False

    def reason(self, title, line):
        for entry in self.entries:
            if holds(entry, title, line):
                self.seen[entry["why"]] += 1
                return entry["why"]
        return None


def holds(entry, title, line):
    return entry.get("title", "") in title and all(word in title + line for word in entry["words"])


class Comparison:
    """`definitions` are there before anything else is asked."""

    def __init__(self, token, urls, verbose, definitions, guarded=False):
        self.hooks = Hooks()
        # When the reference's informers and pollers have taken in what was written.
        self.known_at = 0
        self.guarded = guarded
        words = lambda name: {"$hook": self.hooks.url(name), "$ca": self.hooks.ca}
        self.servers = [Server(name, url, token, words(name)) for name, url in zip(NAMES, urls)]
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.known = Known()
        self.verbose = verbose
        self.records = collections.defaultdict(list)
        self.compared = self.differing = self.differing_status = self.left_out = 0
        self.is_over = False
        self.define(definitions)

    def define(self, definitions):
        for document in definitions:
            body = json.dumps(document)
            request = dict(method="POST", path=definition.RESOURCE, body=body, content_type="application/json")
            answers = self.ask(request)
            normalizers = [Normalizer(), Normalizer()]
            step = {f"POST {document['metadata']['name']}": document}
            self.compare("definition", step, request, answers, normalizers)
        # Discovery of the reference follows its definitions.
        time.sleep(2)
        self.resources, self.others = [Resources(server) for server in self.servers]

    def both_serve(self, kind):
        return kind in self.resources.by_kind and kind in self.others.by_kind

    def settling(self, request, answers):
        """How long the reference needs for what was written, if it needs a while."""
        if request["method"] == "GET" or "dryRun" in request["path"] or answers[0].status not in (200, 201):
            return 0
        path = request["path"].partition("?")[0]
        short = "/namespaces/" if re.fullmatch(r"/api/v1/namespaces/[^/]+", path) else path
        return max([seconds for word, seconds in SETTLING.items() if word in path and (word != "/namespaces/" or word == short)], default=0)

    def ask_guarded(self, request):
        """Waits before a request that what was written before may decide."""
        configures = any(word in request["path"] for word in SETTLING if word != "/namespaces/")
        if not configures or "Impersonate-User" in (request.get("headers") or {}):
            time.sleep(max(0, self.known_at - time.monotonic()))
        answers = self.ask(request)
        self.known_at = max(self.known_at, time.monotonic() + self.settling(request, answers))
        return answers

    def ask(self, request):
        answers = list(self.pool.map(lambda server: answered(server, request), self.servers))
        path = definition.written_by(request)
        if path and answers[0].status in (200, 201):
            name = answers[0].body["metadata"].get("name")
            settle = lambda server: definition.settled(server, path, name)
            if request["method"] == "DELETE":
                list(self.pool.map(settle, self.servers))
            else:
                # rowplane's answer holds already what controllers of the reference add.
                answers[0].body = settle(self.servers[0]).body
        return answers

    def ask_later(self, request, normalizers):
        for _ in range(20):
            answers = self.ask(request)
            if not differences("", *[copy.deepcopy(n).answer(copy.deepcopy(a)) for n, a in zip(normalizers, answers)]):
                break
            time.sleep(0.5)
        return answers

    def scenario(self, number, name, steps):
        namespace = f"v{number}"
        body = f'{{"metadata": {{"name": "{namespace}"}}}}'
        post = lambda path, body: self.ask(dict(method="POST", path=path, body=body, content_type="application/json"))
        post("/api/v1/namespaces", body)
        if self.guarded:
            post(f"/api/v1/namespaces/{namespace}/serviceaccounts", '{"metadata": {"name": "default"}}')
            self.known_at = max(self.known_at, time.monotonic() + 0.3)
        normalizers = [Normalizer(), Normalizer()]
        self.resources.defined = {}
        self.is_over = False
        record = {"name": name, "steps": []}
        self.records[name.split(":")[0]].append(record)
        for step in steps:
            if self.aside(step, namespace, name, normalizers):
                continue
            request = scenario.request(step, self.resources, namespace)
            prefix = generated(step)
            for normalizer in normalizers if prefix else []:
                normalizer.prefixes.add(prefix)
            answers = self.ask_later(request, normalizers) if step.get("later") else self.ask_step(request)
            normal = self.compare(name, step, request, answers, normalizers)
            record["steps"].append(recorded({**request, "later": step.get("later")}, normal, namespace))

    def ask_step(self, request):
        return self.ask_guarded(request) if self.guarded else self.ask(request)

    def aside(self, step, namespace, name, normalizers):
        """Does what is no request to both servers; false for others."""
        verb, rest = scenario.line(step).split(" ", 1)
        if verb == "SEEN":
            reviews = [Answer(200, [], json.dumps(self.hooks.take(server)).encode()) for server in NAMES]
            for aside in (True, False):
                for normalizer in normalizers:
                    normalizer.is_aside = aside
                if aside:
                    self.compare(name, step, "what webhooks were asked", reviews, normalizers)
        elif verb == "QUOTA":
            self.quota(namespace, rest, step[scenario.line(step)])
        elif "only" in step:
            request = scenario.request(step, self.resources, namespace)
            answer = self.servers[NAMES.index(step["only"])].send(**request)
            assert answer.status < 300, (request, answer.body)
            self.known_at = time.monotonic() + 2
        else:
            return False
        return True

    def quota(self, namespace, name, spec):
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        send = lambda **request: self.ask(dict(content_type="application/json", **request))
        made = send(method="POST", path=path, body=json.dumps({"metadata": {"name": name}, "spec": spec}))
        assert [answer.status for answer in made] == [201, 201], [answer.body for answer in made]
        status = made[1].body["status"]
        self.servers[0].send("PATCH", f"{path}/{name}/status", json.dumps({"status": status}), "application/merge-patch+json")
        self.known_at = time.monotonic() + 0.5

    def compare(self, name, step, request, answers, normalizers):
        if self.is_over:
            self.left_out += 1
            return None
        self.compared += 1
        normal = [n.answer(a) for n, a in zip(normalizers, answers)]
        certain = not any(n.shortened for n in normalizers)
        if all(isinstance(side["body"], dict) for side in normal):
            certain &= not same_order(*[side["body"] for side in normal])
        all_found = differences("", *normal)
        reference = normal[0] if certain and not all_found else None
        title = f"{name}: {scenario.title(step)}"
        found, self.is_over = self.known.rest(f"{title} changed {step.get('note', '')}", all_found)
        if self.verbose:
            print(f"{'same' if not found else 'DIFF'} {answers[0].status} {title}")
            for warning in answers[0].warnings:
                print(f"      {warning}")
            if answers[0].status >= 400 and isinstance(answers[0].body, dict):
                print(f"      {answers[0].body.get('message')}")
        if found:
            self.tell(title, step, request, found)
        return reference

    def sum_up(self, what):
        print(f"{self.compared} requests, {self.differing} differ, {self.differing_status} in the status code ({what}); {self.left_out} follow a known difference, and are not compared")
        for why, count in self.known.seen.most_common():
            print(f"{count:6} known: {why}")

    def tell(self, title, step, request, found):
        self.differing += 1
        self.differing_status += any(map(about_status, found))
        print(f"--- {title}")
        for line in sorted(found, key=about_status, reverse=True)[:12]:
            print(f"    {line}")
        if step.get("note"):
            print(f"    changed {step['note']}")
        if self.verbose:
            print(f"    request {request}")
        sys.stdout.flush()


def answered(server, request):
    """The reference reads a resource anew when its definition has changed, and asks for patience meanwhile."""
    for _ in range(50):
        answer = server.send(**request)
        if answer.status != 429 or "storage is (re)initializing" not in str(answer.body):
            break
        time.sleep(0.1)
    return answer


def about_status(line):
    return line.startswith(".status:")


def recorded(request, answer, namespace):
    """A request, and what was answered; nothing where the two servers need not agree."""
    step = {key: value for key, value in request.items() if value is not None}
    if answer:
        step["answer"] = answer
    text = json.dumps(step, ensure_ascii=False).replace(namespace, "{ns}")
    # It depends on the group, which is called after the namespace.
    return json.loads(re.sub(r'("storageVersionHash": )"[^"]*"', r'\1"«hash»"', text))


def shown(scenarios):
    """JSON with a line for each request."""
    dump = lambda value: json.dumps(value, ensure_ascii=False)
    lines = lambda steps: ",\n".join(dump(step) for step in steps)
    told = [f'{{"name": {dump(s["name"])}, "steps": [\n{lines(s["steps"])}\n]}}' for s in scenarios]
    return "[" + ",\n".join(told) + "]\n"


def generated(step):
    body = step[scenario.line(step)]
    metadata = body.get("metadata") if isinstance(body, dict) else None
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
    return prefix if isinstance(prefix, str) else None
