"""Admission webhooks that both servers call: one HTTPS server, whose paths say who calls and what to answer.

    /reference/label/x    the server `reference` calls the hook `x`, which adds a label

What was asked is kept until somebody takes it.
"""

import base64
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time


# No controller of the reference makes this object.
ROOT_CA = "kube-root-ca.crt"


class Hooks:
    def __init__(self):
        self.reviews = {}
        self.lock = threading.Lock()
        directory = pathlib.Path(tempfile.mkdtemp())
        self.ca = base64.b64encode(certificates(directory)).decode()
        handler = type("Asked", (Asked,), {"hooks": self})
        self.server = Server(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "leaf.pem", directory / "leaf.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, caller):
        return f"https://127.0.0.1:{self.server.server_address[1]}/{caller}"

    def keep(self, caller, path, review):
        with self.lock:
            self.reviews.setdefault(caller, []).append((path, review))

    def take(self, caller):
        """What this server has asked since the last time, in an order that does not depend on threads."""
        with self.lock:
            reviews = self.reviews.pop(caller, [])
        numbered = {}
        for path, review in reviews:
            object = review["request"]["object"] or review["request"]["oldObject"] or {}
            if object.get("metadata", {}).get("name") == ROOT_CA:
                continue
            name = f"{path} {review['request']['operation']} {object.get('kind')} {object.get('metadata', {}).get('name')}"
            n = sum(key.startswith(f"{name} #") for key in numbered)
            numbered[f"{name} #{n}"] = review
        return dict(sorted(numbered.items()))


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Callers that do not trust the certificate hang up, and so do those that have waited too long."""


class Asked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        caller, _, path = self.path.lstrip("/").partition("/")
        path, _, query = path.partition("?")
        self.hooks.keep(caller, path, review)
        status, kind, body = answer(path.split("/")[0], review)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            pass


def answer(behavior, review):
    """Status, content type and body of what a webhook of this behavior answers."""
    response = {"uid": review["request"]["uid"], "allowed": True}
    whole = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
    changed = BEHAVIORS[behavior](whole, response, review["request"])
    if isinstance(changed, tuple):
        return changed
    return 200, "application/json", whole


def patched(response, *operations):
    response["patchType"] = "JSONPatch"
    response["patch"] = base64.b64encode(json.dumps(operations).encode()).decode()


def label(_, response, request):
    labels = (request["object"] or {}).get("metadata", {}).get("labels")
    first = [] if labels else [{"op": "add", "path": "/metadata/labels", "value": {}}]
    patched(response, *first, {"op": "add", "path": "/metadata/labels/hooked", "value": "yes"})


def count(_, response, request):
    """Changes the object in each call, so that others are called again."""
    annotations = (request["object"] or {}).get("metadata", {}).get("annotations")
    first = [] if annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    calls = int((annotations or {}).get("calls", "0")) + 1
    patched(response, *first, {"op": "add", "path": "/metadata/annotations/calls", "value": str(calls)})


def sidecar(_, response, request):
    patched(response, {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "side"}})


def without(*members):
    """Takes away what the object says that it is."""
    return lambda _, response, request: patched(response, *[{"op": "remove", "path": f"/{member}"} for member in members])


def nameless(_, response, request):
    patched(response, {"op": "replace", "path": "/kind", "value": ""}, {"op": "add", "path": "/apiVersion", "value": None})


def spoil(_, response, request):
    patched(response, {"op": "add", "path": "/metadata/labels", "value": {"-bad-": "!"}})


def unfit(_, response, request):
    patched(response, {"op": "replace", "path": "/metadata/none/deep", "value": 1})


def wrong_type(_, response, request):
    patched(response, {"op": "add", "path": "/metadata/labels", "value": ["a"]})


def rename(_, response, request):
    patched(response, {"op": "replace", "path": "/metadata/name", "value": "renamed"})


def unknown_field(_, response, request):
    patched(response, {"op": "add", "path": "/unknownField", "value": {"a": 1}})


def empty_patch(_, response, request):
    patched(response)


def patch_without_type(_, response, request):
    label(_, response, request)
    del response["patchType"]


def type_without_patch(_, response, request):
    response["patchType"] = "JSONPatch"


def other_patch(_, response, request):
    label(_, response, request)
    response["patchType"] = "Merge"


def refuse(**status):
    def behavior(_, response, request):
        response["allowed"] = False
        if status:
            response["status"] = status

    return behavior


def warn(_, response, request):
    response["warnings"] = ["first", "second \"quoted\"", "third é\n", "x" * 300]


def annotate(_, response, request):
    response["auditAnnotations"] = {"seen": "yes", "by": "hook"}


def other_uid(whole, response, request):
    response["uid"] = "00000000-0000-0000-0000-000000000000"


def other_version(whole, response, request):
    whole["apiVersion"] = "admission.k8s.io/v1beta1"


def other_kind(whole, response, request):
    whole["kind"] = "Review"


def silent(whole, response, request):
    del whole["response"]


def slow(whole, response, request):
    time.sleep(3)


BEHAVIORS = {
    "allow": lambda *_: None,
    "refuse": refuse(),
    "refuse-message": refuse(message="I do not want it"),
    "refuse-reason": refuse(message="because", reason="Because", code=422),
    "refuse-only-reason": refuse(reason="OnlyReason"),
    "refuse-code": refuse(message="teapot", code=418),
    "refuse-ok": refuse(message="fine", code=200, status="Success"),
    "refuse-details": refuse(message="m", code=400, details={"name": "n", "kind": "k", "causes": [{"reason": "r", "message": "c", "field": "f"}]}),
    "refuse-metadata": refuse(metadata={"continue": "x"}, message="with metadata"),
    "without-kind": without("kind"), "without-version": without("apiVersion"), "without-both": without("kind", "apiVersion"),
    "nameless": nameless,
    "label": label, "count": count, "sidecar": sidecar, "spoil": spoil, "unfit": unfit, "wrong-type": wrong_type,
    "rename": rename, "unknown-field": unknown_field, "empty-patch": empty_patch,
    "patch-without-type": patch_without_type, "type-without-patch": type_without_patch, "other-patch": other_patch,
    "warn": warn, "annotate": annotate, "other-uid": other_uid, "other-version": other_version, "other-kind": other_kind,
    "silent": silent, "slow": slow,
    "error": lambda *_: (500, "text/plain", b"out of order"),
    "missing": lambda *_: (404, "text/plain", b"404 page not found"),
    "teapot": lambda *_: (418, "text/plain", b"short and stout"),
    "created": lambda whole, *_: (201, "application/json", whole),
    "text": lambda whole, *_: (200, "text/plain", whole),
    "html": lambda *_: (200, "text/html", b"<html>hello</html>"),
    "half": lambda *_: (200, "application/json", b'{"kind":'),
    "nothing": lambda *_: (200, "application/json", b""),
    "null": lambda *_: (200, "application/json", b"null"),
}


def certificates(directory):
    """Makes an authority and the server's certificate; returns the authority's."""
    run = lambda *command: subprocess.run(["openssl", *command], cwd=directory, check=True, capture_output=True)
    key = ["-newkey", "rsa:2048", "-nodes"]
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=versus")
    run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=127.0.0.1")
    (directory / "ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    run("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", "leaf.pem", "-extfile", "ext")
    return (directory / "ca.pem").read_bytes()
