"""A kubelet's place, for metrics-server: answers /metrics/resource over HTTPS.

kubelet.py PORT CERTIFICATE KEY
"""
import http.server
import ssl
import sys
import time

BEGAN = time.time()


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        now = time.time()
        stamp = int(now * 1000)
        # A quarter of a processor.
        text = (
            f"node_cpu_usage_seconds_total {0.25 * (now - BEGAN) + 10} {stamp}\n"
            f"node_memory_working_set_bytes 1073741824 {stamp}\n"
        )
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Metrics)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
