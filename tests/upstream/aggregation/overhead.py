"""Compares requests through rowplane with requests to an extension server, in turns.

overhead.py ROWPLANE CLIENT EXTENSION-SERVER CLIENT ROUNDS, where CLIENT.certificate and CLIENT.key are a client's files
"""
import socket
import ssl
import sys
import time

PATH = "/apis/ext.example.com/v1/namespaces/default/things/a"
HANGING = "/apis/hang.example.com/v1/namespaces/default/things/a"
through, straight, rounds = sys.argv[1:3], sys.argv[3:5], int(sys.argv[5])


def connect(server):
    address, client = server
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(f"{client}.certificate", f"{client}.key")
    host, port = address.split(":")
    stream = socket.create_connection((host, int(port)))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(stream, server_hostname="localhost")


def head(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n".encode()


def get(stream, request):
    """The time of a request in seconds, to the last byte of the answer."""
    began = time.perf_counter()
    stream.sendall(request)
    found = b""
    while b"\r\n\r\n" not in found:
        piece = stream.recv(65536)
        assert piece, found
        found += piece
    start, body = found.split(b"\r\n\r\n", 1)
    lines = start.decode().lower().split("\r\n")
    assert " 200 " in lines[0] + " ", found
    length = [int(line.split(":")[1]) for line in lines if line.startswith("content-length:")]
    while len(body) < length[0] if length else not body.endswith(b"0\r\n\r\n"):
        piece = stream.recv(65536)
        assert piece, found
        body += piece
    return time.perf_counter() - began


def measure(what):
    streams = [connect(through), connect(straight)]
    times = [[], []]
    for turn in range(rounds + 200):
        for stream, taken in zip(streams, times) if turn % 2 else zip(streams[::-1], times[::-1]):
            taken.append(get(stream, head(PATH)) * 1000)
    through_ms, straight_ms = (sorted(taken[200:]) for taken in times)
    at = lambda taken, share: taken[int(len(taken) * share)]
    for share, name in [(0.5, "p50"), (0.99, "p99")]:
        a, b = at(through_ms, share), at(straight_ms, share)
        print(f"{what}: {name}: through {a:.3f} ms, straight {b:.3f} ms, more {a - b:.3f} ms")


measure("alone")
hanging = [connect(through) for _ in range(100)]
for stream in hanging:
    stream.sendall(head(HANGING))
measure("beside 100 requests that hang")
for stream in hanging:
    stream.setblocking(False)
    try:
        assert not stream.recv(1), "an answer of the server that hangs"
        raise AssertionError("a connection has ended")
    except ssl.SSLWantReadError:
        pass
