// What a test does with its cluster, with nothing but Node's library.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import os from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { ApiError, Server } from "rowplane";

const MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name, data = {}) => ({ kind: "ConfigMap", apiVersion: "v1", metadata: { name, namespace: "default" }, data });

const ask = (cluster, path, { method = "GET", body } = {}) =>
  new Promise((done, failed) => {
    const pem = (name) => readFileSync(join(dirname(cluster.ca), name));
    const credentials = { ca: pem("ca.crt"), cert: pem("admin.crt"), key: pem("admin.key") };
    const headers = { "Content-Type": "application/json" };
    const sent = request(cluster.url + path, { method, agent: false, headers, ...credentials }, async (answer) => {
      let text = "";
      for await (const part of answer) text += part;
      done({ status: answer.statusCode, object: JSON.parse(text) });
    });
    sent.on("error", failed).end(body && JSON.stringify(body));
  });
const create = (cluster, object) => ask(cluster, MAPS, { method: "POST", body: object });
const names = async (cluster) =>
  (await ask(cluster, MAPS)).object.items.map(({ metadata }) => metadata.name).filter((name) => name !== "kube-root-ca.crt");

// Every test has a fork of a base that is made once.
let server, base, cluster;
before(async () => {
  server = await Server.start();
  await server.seed(configMap("seeded"));
  base = await server.snapshot();
});
after(() => server.stop());
beforeEach(async () => {
  cluster = await base.fork();
});
afterEach(() => cluster.stop());

for (const number of [1, 2]) {
  test(`every test has a fork of its own: ${number}`, async () => {
    assert.deepEqual(await names(cluster), ["seeded"]);
    assert.equal((await create(cluster, configMap("mine"))).status, 201);
    await ask(cluster, `${MAPS}/seeded`, { method: "DELETE" });
    assert.deepEqual(await names(cluster), ["mine"]);
    assert.ok(readFileSync(cluster.kubeconfig, "utf8").includes(`server: ${cluster.url}\n`));
  });
}

test("a reset goes back", async () => {
  await create(cluster, configMap("new"));
  await cluster.reset();
  assert.deepEqual(await names(cluster), ["seeded"]);
  await cluster.seed(configMap("later"));
  const later = await cluster.snapshot();
  await cluster.reset(base);
  await cluster.reset(later);
  assert.deepEqual(await names(cluster), ["later", "seeded"]);
  const other = await later.fork();
  assert.deepEqual(await names(other), ["later", "seeded"]);
  await other.stop();
  await later.delete();
  await assert.rejects(cluster.reset(later), (error) => error instanceof ApiError && error.code === 404);
});

test("objects of files", async () => {
  const file = join(mkdtempSync(join(os.tmpdir(), "test-")), "objects.yaml");
  writeFileSync(file, "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: of-a-file\n");
  await cluster.seed(file, configMap("a"));
  assert.deepEqual(await names(cluster), ["a", "of-a-file", "seeded"]);
  await assert.rejects(cluster.seed({ kind: "Nothing", apiVersion: "v1" }), /nothing of kind/);
});

test("time", async () => {
  const stamp = async (name) => (await create(cluster, configMap(name))).object.metadata.creationTimestamp;
  await cluster.freeze(new Date("2030-01-01T00:00:00Z"));
  await cluster.advance(3600_000);
  assert.equal(await stamp("a"), "2030-01-01T01:00:00Z");
  await cluster.unfreeze();
  assert.ok((await stamp("b")) < "2030");
});

test("faults and requests", async () => {
  await cluster.recordRequests();
  await cluster.fault({ verb: "create", resource: "configmaps", code: 409, count: 1 });
  assert.equal((await create(cluster, configMap("a"))).status, 409);
  assert.equal((await create(cluster, configMap("a"))).status, 201);
  await cluster.fault({ verb: "list", code: 500 });
  assert.equal((await ask(cluster, MAPS)).status, 500);
  await cluster.clearFaults();
  await cluster.fault({ delay: 10, count: 1 });
  assert.deepEqual(await names(cluster), ["a", "seeded"]);
  const made = await cluster.requests({ verb: "create" });
  assert.deepEqual(made.map(({ code, request }) => [code, request.metadata.name]), [[409, "a"], [201, "a"]]);
  await cluster.quiet({ milliseconds: 20 });
  await cluster.expireWatches();
  assert.equal(await cluster.closeWatches("pods"), 0);
});
