"""kubectl, run on both servers."""

import json
import os
import re
import subprocess

from compare import differences

# What both print in their own way: times, ages, numbers that count all writes.
SHOWN = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "«time»"),
    (re.compile(r"\b\d+(s|m\d*s?)\b"), "«age»"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "«uid»"),
    (re.compile(r"(?i)(resource ?version\"?: *\"?)\d+"), r"\1«version»"),
    (re.compile(r"127\.0\.0\.1:\d+"), "«server»"),
    (re.compile(r"/tmp/\S+"), "«file»"),
]


class Tool:
    def __init__(self, kubectl, kubeconfigs, comparison):
        self.kubectl, self.kubeconfigs, self.comparison = kubectl, kubeconfigs, comparison

    def run(self, name, arguments, documents):
        """Tells what the two print differently, and returns what the reference prints."""
        text = "\n---\n".join(map(json.dumps, documents)) if documents is not None else ""
        started = [self.start(kubeconfig, arguments) for kubeconfig in self.kubeconfigs]
        ended = [(*map(shown, command.communicate(text)), command.returncode) for command in started]
        self.comparison.compared += 1
        title = f"{name}: kubectl {' '.join(arguments)}"
        sides = [{"out": out.splitlines(), "err": err.splitlines(), "code": code} for out, err, code in ended]
        found, _ = self.comparison.known.rest(title, differences("", *sides))
        if found:
            self.comparison.tell(title, {}, {}, found)
        return ended[0][0]

    def start(self, kubeconfig, arguments):
        pipe = subprocess.PIPE
        # The editor adds a label.
        environment = {**os.environ, "KUBE_EDITOR": "sed -i 's/^  name: /  labels: {edited: \"yes\"}\\n  name: /'"}
        command = [self.kubectl, "--kubeconfig", kubeconfig, *arguments]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)

    def edits(self, project):
        """The first object of each kind, as a person would treat it."""
        first = {}
        for _, document in project.objects:
            if document["metadata"].get("name"):
                document["metadata"].pop("namespace", None)
                first.setdefault(document["kind"], document)
        for kind, document in first.items():
            whole = {key: value for key, value in document.items() if key != "status"}
            of_it = [f"{kind.lower()}.{document['apiVersion'].partition('/')[0]}", document["metadata"]["name"]]
            for arguments in (["apply"], ["apply"], ["diff"], ["apply", "--server-side", "--force-conflicts"], ["replace"]):
                self.run(project.name, [*arguments, "-f", "-"], [whole])
            self.run(project.name, ["edit", *of_it], None)
            for arguments in (["get"], ["get", "-o", "wide"], ["describe"], ["get", "-o", "yaml"]):
                self.run(project.name, [*arguments, *of_it], None)
            self.run(project.name, ["label", *of_it, "versus=1"], None)
            self.run(project.name, ["delete", *of_it], None)


def shown(text):
    for pattern, word in SHOWN:
        text = pattern.sub(word, text)
    return text
