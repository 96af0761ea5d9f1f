"use strict";

const { randomBytes } = require("node:crypto");
const fs = require("node:fs");
const https = require("node:https");
const path = require("node:path");

const BRANCHES = "/rowplane/v1/branches";

/** The server refused what a test wanted. The message is the server's own. */
class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ApiError";
    this.code = code;
  }
}

/** Requests of the administrator to a server. Nothing of it keeps the process alive but a request under way. */
class Connection {
  #agent = new https.Agent({ keepAlive: true });
  #url;
  #credentials;

  constructor(url, ca) {
    const pem = (name) => fs.readFileSync(path.join(path.dirname(ca), name));
    this.#url = url;
    this.#credentials = { ca: fs.readFileSync(ca), cert: pem("admin.crt"), key: pem("admin.key") };
  }

  close() {
    this.#agent.destroy();
  }

  ask(method, at, body, media = "application/json") {
    return new Promise((done, failed) => {
      const options = { method, agent: this.#agent, headers: { "Content-Type": media }, ...this.#credentials };
      const request = https.request(this.#url + at, options, async (answer) => {
        let text = "";
        try {
          answer.setEncoding("utf8");
          for await (const part of answer) text += part;
        } catch (error) {
          return failed(error);
        }
        if (answer.statusCode < 300) return done(text);
        failed(new ApiError(answer.statusCode, message(text) ?? `the server answers ${answer.statusCode}`));
      });
      request.on("error", failed);
      request.end(body);
    });
  }

  async askJson(method, at, body) {
    return JSON.parse(await this.ask(method, at, body === undefined ? undefined : JSON.stringify(body)));
  }
}

function message(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return undefined;
  }
}

const duration = (milliseconds) => `${milliseconds}ms`;
const without = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
const named = (kind) => `${kind}-${randomBytes(6).toString("hex")}`;

class Cluster {
  #connection;
  #at;

  constructor(connection, at, { url, ca, kubeconfig }) {
    this.#connection = connection;
    this.#at = at;
    this.url = url;
    this.ca = ca;
    this.kubeconfig = kubeconfig;
  }

  async snapshot(name = named("snapshot")) {
    const taken = await this.#connection.askJson("POST", `${this.#at}/rowplane/v1/snapshots`, { name });
    return new Snapshot(taken, {
      fork: (name) => this.#fork(name, taken.name),
      remove: () => this.#connection.ask("DELETE", `${this.#at}/rowplane/v1/snapshots/${taken.name}`),
    });
  }

  fork(name) {
    return this.#fork(name);
  }

  async #fork(name = named("fork"), from) {
    const made = await this.#connection.askJson("POST", this.#at + BRANCHES, without({ name, secrets: "keep", from }));
    const url = this.url + made.path;
    const kubeconfig = path.join(path.dirname(path.dirname(this.ca)), `${made.name}-${randomBytes(3).toString("hex")}.kubeconfig`);
    const own = fs.readFileSync(this.kubeconfig, "utf8").replace(`server: ${this.url}\n`, `server: ${url}\n`);
    fs.writeFileSync(kubeconfig, own, { mode: 0o600 });
    const end = () => this.#connection.ask("DELETE", `${this.#at}${BRANCHES}/${made.name}`);
    return new Fork(this.#connection, this.#at + made.path, { url, ca: this.ca, kubeconfig }, made.name, end);
  }

  async reset(to) {
    await this.#tell("POST", "reset", to ? { to: to.name } : {});
  }

  async seed(...objects) {
    const items = objects.filter((one) => typeof one !== "string" && !(one instanceof URL));
    if (items.length > 0) await this.#tell("PUT", "objects", { kind: "List", apiVersion: "v1", items });
    for (const file of objects.filter((one) => !items.includes(one))) {
      await this.#connection.ask("PUT", this.#endpoint("objects"), fs.readFileSync(file), "application/yaml");
    }
  }

  async advance(milliseconds) {
    await this.#tell("POST", "time", { advance: duration(milliseconds) });
  }

  async freeze(at) {
    await this.#tell("POST", "time", { freeze: at.toISOString() });
  }

  async unfreeze() {
    await this.#tell("POST", "time", { run: true });
  }

  async fault({ verb, resource, user, code, delay, skip, count, probability } = {}) {
    await this.#tell(
      "POST",
      "faults",
      without({
        match: without({ verb, resource, user }),
        answer: code === undefined ? undefined : { code },
        delay: delay === undefined ? undefined : duration(delay),
        skip,
        count,
        probability,
      }),
    );
  }

  async clearFaults() {
    await this.#tell("DELETE", "faults");
  }

  async recordRequests() {
    await this.#tell("POST", "requests", { record: true });
  }

  async requests(filter = {}) {
    const query = new URLSearchParams(without(filter));
    const lines = await this.#connection.ask("GET", `${this.#endpoint("requests")}?${query}`);
    return lines.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  async closeWatches(resource) {
    return (await this.#tell("POST", "watches/close", without({ resource }))).ended;
  }

  async expireWatches() {
    await this.#tell("POST", "watches/compact", {});
  }

  async quiet({ milliseconds = 200, timeout = 10_000 } = {}) {
    await this.#tell("GET", `quiet?for=${duration(milliseconds)}&timeout=${duration(timeout)}`);
  }

  #endpoint(rest) {
    return `${this.#at}${BRANCHES}/-/${rest}`;
  }

  #tell(method, rest, body) {
    return this.#connection.askJson(method, this.#endpoint(rest), body);
  }
}

class Snapshot {
  #calls;

  constructor({ name, revision }, calls) {
    this.name = name;
    this.revision = revision;
    this.#calls = calls;
  }

  fork(name) {
    return this.#calls.fork(name);
  }

  async delete() {
    await this.#calls.remove();
  }
}

class Fork extends Cluster {
  #end;
  #stopped;

  constructor(connection, at, members, name, end) {
    super(connection, at, members);
    this.name = name;
    this.#end = end;
    Object.freeze(this);
  }

  stop() {
    this.#stopped ??= this.#ended();
    return this.#stopped;
  }

  async #ended() {
    fs.rmSync(this.kubeconfig, { force: true });
    await this.#end();
  }

  [Symbol.asyncDispose]() {
    return this.stop();
  }
}

module.exports = { ApiError, Cluster, Connection, Fork, Snapshot };
