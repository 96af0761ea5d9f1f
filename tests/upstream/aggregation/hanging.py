"""An extension server of hang.example.com/v1 that answers for its resources, and hangs in all other requests.

hanging.py PORT CERTIFICATE KEY
"""
import http.server
import json
import ssl
import sys
import threading


class Hanging(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/apis/hang.example.com/v1":
            status, answer = 200, {
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "hang.example.com/v1",
                "resources": [{"name": "things", "kind": "Thing", "namespaced": True, "verbs": ["get"]}],
            }
        elif self.path.startswith("/apis/hang.example.com/v1/"):
            threading.Event().wait()
        else:
            status, answer = 404, {"kind": "Status"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def finish_request(self, request, address):
        with self.context.wrap_socket(request, server_side=True) as stream:
            super().finish_request(stream, address)


Server.context.load_cert_chain(sys.argv[2], sys.argv[3])
Server(("127.0.0.1", int(sys.argv[1])), Hanging).serve_forever()
