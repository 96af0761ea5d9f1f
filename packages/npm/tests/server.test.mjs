// `Server` itself, with nothing but Node's library.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { createRequire } from "node:module";
import { connect } from "node:net";
import os from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { beforeEach, test } from "node:test";
import { Server, StartError, findProgram } from "rowplane";

const widgets = (plural = "widgets") => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.example.com` },
  spec: {
    group: "example.com",
    names: { plural, kind: plural.toUpperCase() },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
});

// Where the servers of a test keep their files.
let folder;
beforeEach(() => {
  folder = mkdtempSync(join(os.tmpdir(), "test-"));
  process.env.TMPDIR = folder;
});

const read = (server, path) =>
  new Promise((done, failed) => {
    const pem = (name) => readFileSync(join(dirname(server.ca), name));
    const credentials = { ca: pem("ca.crt"), cert: pem("admin.crt"), key: pem("admin.key") };
    get(server.url + path, { agent: false, ...credentials }, async (answer) => {
      let text = "";
      for await (const part of answer) text += part;
      done(text);
    }).on("error", failed);
  });

test("members", async () => {
  const server = await Server.start();
  assert.equal(await read(server, "/readyz"), "ok");
  assert.ok(readFileSync(server.kubeconfig, "utf8").includes(server.url));
  await Promise.all([server.stop(), server.stop()]);
  assert.ok(!existsSync(server.kubeconfig));
  assert.deepEqual(readdirSync(folder), []);
});

test("definitions are files, folders and objects", async () => {
  mkdirSync(join(folder, "crds"));
  writeFileSync(join(folder, "crds", "two.yaml"), ["as", "bs"].map((name) => JSON.stringify(widgets(name))).join("\n---\n"));
  writeFileSync(join(folder, "c.json"), JSON.stringify(widgets("cs")));
  const crds = [join(folder, "crds"), new URL(`file://${folder}/c.json`), widgets("ds")];
  const server = await Server.start({ crds });
  const { resources } = JSON.parse(await read(server, "/apis/example.com/v1"));
  assert.deepEqual(resources.map(({ name }) => name).sort(), ["as", "bs", "cs", "ds"]);
  await server.stop();
});

test("flags go before what is set here, and servers run side by side", async () => {
  // None of those that are given to who asks for a free one.
  const port = String(26000 + (process.pid % 1000));
  const servers = await Promise.all([Server.start({ flags: ["--secure-port", port] }), Server.start(), Server.start()]);
  assert.equal(servers[0].url, `https://127.0.0.1:${port}`);
  assert.equal(await read(servers[0], "/readyz"), "ok");
  await assert.rejects(Server.start({ flags: [`--secure-port=${port}`] }), new RegExp(`${port}.*in use`));
  await Promise.all(servers.map((one) => one.stop()));
});

test("bad input is one line and leaves nothing", async () => {
  const invalid = { ...widgets(), metadata: { name: "other.example.com" } };
  for (const [message, options] of [
    [/^unexpected argument '--wrong'.*$/, { flags: ["--wrong"] }],
    [/^.*no-such-folder.*No such file.*$/, { crds: ["no-such-folder"] }],
    [/^.*must be spec.names.plural\+"\."\+spec.group.*$/, { crds: [invalid] }],
  ]) {
    await assert.rejects(Server.start(options), (error) => error instanceof StartError && message.test(error.message));
    assert.deepEqual(readdirSync(folder), []);
  }
});

test("a program that cannot run", async (t) => {
  const program = join(folder, "program");
  process.env.ROWPLANE_PROGRAM = program;
  t.after(() => delete process.env.ROWPLANE_PROGRAM);
  await assert.rejects(Server.start(), /^StartError: cannot run .*program: .*ENOENT/);
  const said = "rowplane: /lib/libc.so.6: version 'GLIBC_2.39' not found (required by rowplane)";
  writeFileSync(program, `#!/bin/sh\necho "${said}" >&2; exit 1`, { mode: 0o755 });
  await assert.rejects(Server.start(), /C library of this machine is too old.*GLIBC_2.39/);
  assert.deepEqual(readdirSync(folder), ["program"]);
});

for (const end of ["SIGKILL", "exit"]) {
  test(`a server ends with its process: ${end}`, async () => {
    // Nothing of the server keeps the process alive: it ends with its own input.
    const code = 'import { Server } from "rowplane"; console.log((await Server.start()).url); process.stdin.resume();';
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["pipe", "pipe", "inherit"] });
    const [url] = await once(createInterface(child.stdout), "line");
    const port = Number(new URL(url).port);
    // Open until the server is gone, which ends it.
    const connection = connect(port, "127.0.0.1").on("error", () => {});
    await once(connection, "connect");
    const closed = once(connection, "close");
    connection.resume();
    if (end === "SIGKILL") child.kill("SIGKILL");
    child.stdin.end();
    await closed;
    const [error] = await once(connect(port, "127.0.0.1"), "error");
    assert.equal(error.code, "ECONNREFUSED");
  });
}

test("the package is also CommonJS and a command", () => {
  const required = createRequire(import.meta.url)("rowplane");
  assert.equal(required.Server, Server);
  for (const [command, ...flags] of [[findProgram()], ["node_modules/.bin/rowplane"]]) {
    assert.match(execFileSync(command, [...flags, "--version"], { encoding: "utf8" }), /^rowplane /);
  }
  assert.notEqual(spawnSync("node_modules/.bin/rowplane", ["--wrong"]).status, 0);
});

test("another platform is told what there is", () => {
  const code = 'Object.defineProperty(process, "arch", { value: "s390x" }); require("rowplane").findProgram()';
  const { status, stderr } = spawnSync(process.execPath, ["-e", code], { encoding: "utf8" });
  assert.notEqual(status, 0);
  assert.match(stderr, /has no package @rowplane\/linux-s390x \(there is @rowplane\/linux-x64\): build the program/);
});
