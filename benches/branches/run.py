#!/usr/bin/env python3
"""Forks of a cluster of many objects: how long each takes, and how much memory all of them do.

    benches/branches/run.py PROGRAM [OBJECTS] [FORKS]

PROGRAM is a rowplane; its server is in memory and ends with the measurement.
"""
import http.client, json, os, ssl, subprocess, sys, tempfile, time

program, objects, forks = sys.argv[1], int((sys.argv + ["10000"])[2]), int((sys.argv + ["", "100"])[3])


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024


class Client:
    def __init__(self, url):
        self.host, context = url.removeprefix("https://"), ssl._create_unverified_context()
        self.connection = http.client.HTTPSConnection(self.host, context=context)

    def ask(self, method, path, body=None):
        headers = {"Authorization": "Bearer t", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, (answer.status, text)
        return json.loads(text)


with tempfile.TemporaryDirectory() as directory:
    tokens = os.path.join(directory, "tokens.csv")
    with open(tokens, "w") as file:
        file.write("t,admin,1,system:masters\n")
    flags = ["--data-dir", directory, "--datastore=memory:", "--secure-port=0", "--token-auth-file", tokens]
    server = subprocess.Popen([program, *flags, f"--max-branches={forks}"], stdout=subprocess.PIPE, text=True)
    url = next(line.split()[1] for line in server.stdout if line.strip().startswith("url "))
    client = Client(url)
    begun = time.monotonic()
    for number in range(objects):
        body = {"metadata": {"name": f"m-{number}"}, "data": {"text": "x" * 1000}}
        client.ask("POST", "/api/v1/namespaces/default/configmaps", body)
    print(f"{objects} objects of 1 KB made in {time.monotonic() - begun:.1f} s")
    before, took = resident(server.pid), []
    for number in range(forks):
        begun = time.monotonic()
        client.ask("POST", "/rowplane/v1/branches", {"name": f"f-{number}"})
        took.append((time.monotonic() - begun) * 1000)
    print(f"{forks} forks in {sum(took):.0f} ms: {sorted(took)[len(took) // 2]:.1f} ms each, at most {max(took):.1f}")
    time.sleep(5)
    print(f"memory: {before:.0f} MB before, {(resident(server.pid) - before) / forks:.2f} MB for each fork")
    begun = time.monotonic()
    for number in range(forks):
        client.ask("DELETE", f"/rowplane/v1/branches/f-{number}")
    print(f"deleted in {(time.monotonic() - begun) * 1000:.0f} ms")
    time.sleep(5)
    print(f"memory: {resident(server.pid):.0f} MB after")
    server.terminate()
    server.wait()
