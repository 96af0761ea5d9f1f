"""What two servers may not agree on is taken out of their answers, and the rest is held together."""

import datetime
import re

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TOKEN_VOLUME = re.compile(r"\bkube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
HOOK = re.compile(r"https://127\.0\.0\.1:\d+/(reference|rowplane)/")
ALLOCATED = re.compile(r"\b10\.0\.0\.\d+\b")
AGE = re.compile(r"\d+s")
ROOT_CA = "kube-root-ca.crt"
# The reference shows ports beyond its range in dry runs.
NODE_PORT = range(30000, 36000)


class Normalizer:
    """One for each server and scenario: the same uid or resourceVersion is the same word again."""

    def __init__(self):
        # What generated names begin with.
        self.prefixes = set()
        self.uids, self.revisions = {}, {}
        # What is not told as it was answered.
        self.shortened = False
        # Whether uids that are new are all the same word, since what is compared may have objects that nobody else sees.
        self.is_aside = False

    def uid(self, text):
        if self.is_aside and text not in self.uids:
            return "«new»"
        return self.uids.setdefault(text, f"«uid{len(self.uids) + 1}»")

    def answer(self, answer):
        self.shortened = False
        if isinstance(answer.body, dict) and answer.body.get("kind") == "Status":
            before = repr(answer.body)
            structs(answer.body)
            unsorted_errors(answer.body)
            unsorted_amounts(answer.body)
            self.shortened = before != repr(answer.body)
        if isinstance(answer.body, dict) and ("items" in answer.body or answer.body.get("kind") == "Table"):
            listed(answer.body)
        if isinstance(answer.body, dict) and answer.body.get("kind") == "SelfSubjectRulesReview":
            # Bindings are looked at in the order of Go's maps.
            for rules in ("resourceRules", "nonResourceRules"):
                answer.body.get("status", {}).get(rules, []).sort(key=repr)
        if isinstance(answer.body, dict) and answer.body.get("kind") == "ResourceQuota":
            # Its status is written by another here than there.
            answer.body["metadata"].pop("managedFields", None)
            answer.body["metadata"].pop("resourceVersion", None)
        if isinstance(answer.body, dict) and answer.body.get("kind") == "TokenRequest":
            answer.body["status"]["token"] = "«token»"
        if isinstance(answer.body, dict) and answer.body.get("kind") == "APIResourceList":
            # The reference lists definitions in the order of Go's maps.
            answer.body["resources"].sort(key=lambda resource: resource["name"])
        if isinstance(answer.body, dict) and answer.body.get("kind") == "CustomResourceDefinition":
            # Several controllers of the reference write them.
            (answer.body.get("status", {}).get("conditions") or []).sort(key=lambda condition: condition["type"])
        if isinstance(answer.body, dict) and "openapi" in answer.body:
            published(answer.body)
        return {
            "status": answer.status,
            "warnings": [self.text(w) for w in answer.warnings],
            "body": self.value(answer.body, ""),
        }

    def value(self, value, key):
        if isinstance(value, dict):
            # Managers own elements by their uids.
            return {UUID.sub(lambda m: self.uid(m[0]), k): self.value(v, k) for k, v in value.items()}
        if isinstance(value, list):
            values = [self.value(v, key) for v in value]
            # Their order is that of their times, which may be the same or not.
            return sorted(values, key=manager) if key == "managedFields" and all(map(is_manager, values)) else values
        if isinstance(value, str):
            return self.revision(value) if key == "resourceVersion" else self.text(value)
        if key in ("nodePort", "healthCheckNodePort") and value in NODE_PORT:
            return "«port»"
        return value

    def revision(self, text):
        return self.revisions.setdefault(text, f"«rv{len(self.revisions) + 1}»") if text.isdigit() and text != "0" else text

    def text(self, text):
        text = UUID.sub(lambda m: self.uid(m[0]), text)
        text = TIME.sub(recent, text)
        for prefix in self.prefixes:
            text = re.sub(re.escape(prefix[:58]) + r"[bcdfghjklmnpqrstvwxz2456789]{5}\b", prefix[:58] + "«generated»", text)
        text = re.sub(r'(resourceVersion\\*":\\*")\d+', r"\1«version»", text)
        text = re.sub(r"(ResourceVersion in object meta: )\d+", r"\1«version»", text)
        text = TOKEN_VOLUME.sub("kube-api-access-«generated»", text)
        return ALLOCATED.sub("«address»", HOOK.sub("«hook»/", text))


def is_manager(entry):
    return isinstance(entry, dict)


def manager(entry):
    return [str(entry.get(field, "")) for field in ("operation", "manager", "apiVersion", "subresource")]


def listed(body):
    """A list is as old as the newest of all writes, and the reference makes some of its own."""
    if isinstance(body.get("items"), list):
        # rowplane's controller of root certificates makes it, and no controllers run beside the reference.
        body["items"] = [item for item in body["items"] if (item.get("metadata") or {}).get("name") != ROOT_CA]
    for name, word in (("resourceVersion", "«list»"), ("continue", "«token»")):
        if body.get("metadata", {}).get(name):
            body["metadata"][name] = word
    for row in body.get("rows") or []:
        row["cells"] = ["«age»" if isinstance(cell, str) and AGE.fullmatch(cell) else cell for cell in row["cells"]]


def published(document):
    """A document of OpenAPI: what it shares with built-in kinds is as in the version of the server, and the parameters
    of paths are described in words of our own."""
    schemas = document.get("components", {}).get("schemas", {})
    for name in [name for name in schemas if name.startswith(("io.k8s.api.", "io.k8s.apimachinery."))]:
        del schemas[name]
    document["paths"] = undescribed(document.get("paths"))
    document.pop("info", None)


def undescribed(value):
    if isinstance(value, dict):
        return {key: undescribed(member) for key, member in value.items() if key != "description"}
    return [undescribed(member) for member in value] if isinstance(value, list) else value


def structs(status):
    """What errors show of whole structs are upstream's internal ones, in Go's names; only the rest is compared. Nor is how
    often the same cause is told."""
    details = status.get("details") or {}
    causes = details.get("causes") or []
    if causes:
        details["causes"] = causes = [cause for n, cause in enumerate(causes) if cause not in causes[:n]]
    for cause in causes:
        short = re.sub(r"^(\w+ value: )[\[{].*[\]}](: |$)", r"\1STRUCT\2", cause["message"], flags=re.S)
        short = short.split("\n@@")[0]
        status["message"] = status["message"].replace(cause["message"], short)
        cause["message"] = short


def unsorted_amounts(status):
    """What is wrong with amounts of resources is told in the order of Go's maps."""
    message = status.get("message") or ""
    causes = (status.get("details") or {}).get("causes") or []
    amounts = [cause for cause in causes if ".resources." in cause.get("field", "")]
    if len(amounts) > 1 and " is invalid: [" in message:
        first = causes.index(amounts[0])
        others = [cause for cause in causes if cause not in amounts]
        causes[:] = others[:first] + sorted(amounts, key=repr) + others[first:]
        told = ", ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
        status["message"] = f"{message.partition(' is invalid: [')[0]} is invalid: [{told}]"
    start, mark, limits = message.partition(" is forbidden: [")
    if mark:
        status["message"] = start + mark + ", ".join(sorted(limits.removesuffix("]").split(", "))) + "]"


def unsorted_errors(status):
    """What does not fit the schema of apply is told in the order of Go's maps."""
    start, mark, errors = (status.get("message") or "").partition(": errors:\n  ")
    if mark:
        status["message"] = start + mark + "\n  ".join(sorted(errors.split("\n  ")))


def same_order(reference, other):
    """Causes that stand in the order of Go's maps are put in one order; whether they were."""
    lists = [(body.get("details") or {}).get("causes") for body in (reference, other)]
    if not all(lists) or lists[0] == lists[1]:
        return False
    key = lambda cause: (cause.get("field", ""), cause.get("message", ""))
    if sorted(lists[0], key=key) == sorted(lists[1], key=key):
        other["details"]["causes"] = lists[0]
        if sorted(reference["message"]) == sorted(other["message"]):
            other["message"] = reference["message"]
        return True
    return False


def recent(found):
    """Times of this hour are the server's."""
    try:
        time = datetime.datetime.fromisoformat(found[0].replace("Z", "+00:00"))
    except ValueError:
        return found[0]
    age = datetime.datetime.now(datetime.timezone.utc) - time
    return "«now»" if abs(age) < datetime.timedelta(hours=1) else found[0]


def differences(path, reference, other):
    """Lines that say where two values are not the same."""
    if isinstance(reference, dict) and isinstance(other, dict):
        lines = []
        for key in sorted(reference.keys() | other.keys()):
            at = f"{path}.{key}"
            if key not in other:
                lines.append(f"{at}: only the reference has {show(reference[key])}")
            elif key not in reference:
                lines.append(f"{at}: only rowplane has {show(other[key])}")
            else:
                lines += differences(at, reference[key], other[key])
        return lines
    if isinstance(reference, list) and isinstance(other, list) and len(reference) == len(other):
        pairs = enumerate(zip(reference, other))
        return [line for n, (a, b) in pairs for line in differences(f"{path}[{n}]", a, b)]
    if isinstance(reference, list) and isinstance(other, list):
        missing = [v for v in reference if v not in other]
        added = [v for v in other if v not in reference]
        if missing or added:
            return [f"{path}: reference alone {show(missing)}\n      rowplane alone {show(added)}"]
    # JSON's true and 1 are not the same.
    if type(reference) is type(other) and reference == other:
        return []
    start = common(reference, other) if isinstance(reference, str) and isinstance(other, str) else 0
    return [f"{path}:\n      reference {show(reference, start)}\n      rowplane  {show(other, start)}"]


def common(one, other):
    """Where long texts begin to differ, and a little before."""
    one, other = repr(one), repr(other)
    same = next((n for n, (a, b) in enumerate(zip(one, other)) if a != b), 0)
    return max(0, same - 80) if len(one) > 400 else 0


def show(value, start=0):
    text = ("…" if start else "") + repr(value)[start:]
    return text if len(text) < 700 else text[:700] + "…"
