"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { createInterface } = require("node:readline");
const { fileURLToPath } = require("node:url");
const { ApiError, Cluster, Connection, Fork, Snapshot } = require("./cluster.cjs");
const { StartError, findProgram } = require("./program.cjs");

/** Milliseconds that a server may take to end after its standard input has, before it is killed. */
const STOP_TIMEOUT = 15_000;

/** In the environment, so that flags can say otherwise. Clients that are still connected at the end are not waited for. */
const DEFAULTS = {
  ROWPLANE_DATASTORE: "memory:",
  ROWPLANE_SECURE_PORT: "0",
  ROWPLANE_SHUTDOWN_GRACE_PERIOD: "0s",
  ROWPLANE_TEST_ENDPOINTS: "true",
  ROWPLANE_MAX_BRANCHES: "10000",
};

/** Folders of servers that have not been stopped, which are removed at the end of the process. */
const folders = new Set();
process.on("exit", () => folders.forEach(remove));

function remove(folder) {
  fs.rmSync(folder, { recursive: true, force: true });
  folders.delete(folder);
}

class Server extends Cluster {
  #child;
  #folder;
  #connection;
  #stopped;

  constructor(child, folder, url) {
    const ca = path.join(folder, "pki", "ca.crt");
    const connection = new Connection(url, ca);
    super(connection, "", { url, ca, kubeconfig: path.join(folder, "admin.kubeconfig") });
    this.#child = child;
    this.#folder = folder;
    this.#connection = connection;
    Object.freeze(this);
  }

  static async start({ crds = [], flags = [] } = {}) {
    const program = findProgram();
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "rowplane-"));
    folders.add(folder);
    let child;
    try {
      child = run(program, folder, [...crdFlags(folder, crds), ...flags]);
      return new Server(child, folder, await announced(program, child, folder));
    } catch (error) {
      child?.kill("SIGKILL");
      remove(folder);
      throw error;
    }
  }

  stop() {
    this.#connection.close();
    this.#stopped ??= end(this.#child, this.#folder);
    return this.#stopped;
  }

  [Symbol.asyncDispose]() {
    return this.stop();
  }
}

function crdFlags(folder, crds) {
  return crds.flatMap((crd, number) => {
    if (typeof crd === "string") return ["--crds", crd];
    if (crd instanceof URL) return ["--crds", fileURLToPath(crd)];
    const file = path.join(folder, `crd-${number}.json`);
    fs.writeFileSync(file, JSON.stringify(crd));
    return ["--crds", file];
  });
}

function run(program, folder, flags) {
  const log = fs.openSync(path.join(folder, "log"), "w");
  try {
    return spawn(program, ["serve", "--exit-with-stdin", "--data-dir", folder, ...flags], {
      stdio: ["pipe", "pipe", log],
      env: { ...process.env, ...DEFAULTS },
      // Control-C is for the tests, which still need the server to clean up.
      detached: true,
    });
  } finally {
    fs.closeSync(log);
  }
}

/** Waits until the server says where it is. */
async function announced(program, child, folder) {
  const closed = once(child, "close").catch((error) => {
    throw new StartError(`cannot run ${program}: ${error.message}`);
  });
  // It may fail before anybody waits for it.
  closed.catch(() => {});
  for await (const line of createInterface(child.stdout)) {
    const [word, value] = line.trim().split(/\s+/);
    if (word !== "url") continue;
    // Further output is read and dropped, since a full pipe would halt the server. Nothing of it keeps this process alive.
    child.stdout.resume();
    for (const handle of [child, child.stdin, child.stdout]) handle.unref();
    return value;
  }
  const [status] = await closed;
  throw new StartError(reason(fs.readFileSync(path.join(folder, "log"), "utf8"), status));
}

/** The program's own last words; the dynamic linker's need an explanation. */
function reason(log, status) {
  const lines = log.split("\n").filter(Boolean);
  const text = lines.findLast((line) => line.startsWith("rowplane: ")) ?? lines.slice(-5).join("\n");
  if (text.includes("GLIBC_")) return `the C library of this machine is too old for this program: ${text}`;
  return text.replace(/^rowplane: /, "") || `rowplane ended with status ${status} and said nothing`;
}

async function end(child, folder) {
  if (child.exitCode === null && child.signalCode === null) {
    child.ref();
    const exit = once(child, "exit");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT);
    child.stdin.destroy();
    await exit;
    clearTimeout(timer);
  }
  remove(folder);
}

module.exports = { ApiError, Cluster, Fork, Server, Snapshot, StartError, findProgram };
