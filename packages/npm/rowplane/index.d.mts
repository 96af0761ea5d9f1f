/// <reference lib="esnext.disposable" />

/** A CustomResourceDefinition, or the path of a file (YAML or JSON) or of a folder of them. */
export type Definition = string | URL | { readonly [field: string]: unknown };

export interface ServerOptions {
  /** CustomResourceDefinitions; they are served once the server has started. */
  readonly crds?: readonly Definition[];
  /** More flags of `rowplane serve`, such as `--secure-port=6443` or `--cluster-controllers=false`. */
  readonly flags?: readonly string[];
}

/** An object of the API, or the path of a file with some (YAML or JSON). */
export type ApiObject = string | URL | { readonly [field: string]: unknown };

/** Requests that fail, or are late. */
export interface Fault {
  /** The verb of the API: `get`, `create`, `update`, `patch`; any one if there is none. */
  readonly verb?: string;
  /** `pods`, `deployments.apps`, `pods/status`. */
  readonly resource?: string;
  readonly user?: string;
  /** The answer, in the place of the server's own. */
  readonly code?: 409 | 429 | 500 | "close";
  /** Milliseconds before the answer. */
  readonly delay?: number;
  /** How many requests that match pass before. */
  readonly skip?: number;
  /** How many requests it strikes; all unless it is given. */
  readonly count?: number;
  /** The share of requests that it strikes, of those that match. */
  readonly probability?: number;
}

/** A request that was recorded. */
export interface RecordedRequest {
  readonly number: number;
  readonly time: string;
  readonly user: string;
  readonly userAgent: string;
  readonly verb: string;
  readonly path: string;
  /** `deployments.apps/scale`; empty for other paths than those of resources. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  /** The revision of the object that was answered. */
  readonly revision?: string;
  /** The objects, if they were sent as JSON. */
  readonly request?: { readonly [field: string]: any };
  readonly response?: { readonly [field: string]: any };
}

/** A cluster of a test: a server, or a fork of one. Whatever is refused is an `ApiError`. */
export class Cluster {
  protected constructor();

  /** The path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The address of the API. */
  readonly url: string;
  /** The path of the certificate (PEM) that vouches for the server's. */
  readonly ca: string;

  /** The cluster as it is now, to be forked and to go back to. */
  snapshot(name?: string): Promise<Snapshot>;
  /** A cluster that begins as this one is now, and writes beside it. Secrets keep their values. */
  fork(name?: string): Promise<Fork>;
  /**
   * Makes everything what it is in a snapshot, or what it was when the fork was made. Uids are those of then, resourceVersions
   * go on, and watches end (410), so that informers list anew.
   */
  reset(to?: Snapshot): Promise<void>;
  /**
   * Creates or replaces objects in one transaction, with the status, uids and times that they have. They are neither validated
   * nor admitted.
   */
  seed(...objects: readonly ApiObject[]): Promise<void>;
  /**
   * Sets the cluster's time ahead: that of creations and deletions, by which Events and tokens expire. Certificates go by the
   * system's time as ever.
   */
  advance(milliseconds: number): Promise<void>;
  /** Lets the cluster's time stand still, until `unfreeze`. */
  freeze(at: Date): Promise<void>;
  unfreeze(): Promise<void>;
  fault(fault: Fault): Promise<void>;
  clearFaults(): Promise<void>;
  /** Begins to record requests, of which the last 10,000 are kept. */
  recordRequests(): Promise<void>;
  /** The requests that were recorded, oldest first. */
  requests(filter?: { since?: number; user?: string; verb?: string; resource?: string }): Promise<RecordedRequest[]>;
  /** Ends watches as if their time were over. Returns how many there were. */
  closeWatches(resource?: string): Promise<number>;
  /** Ends all watches with 410 `Expired`, and gives up the history before. */
  expireWatches(): Promise<void>;
  /** Waits until nothing was written for so long; fails after the timeout. */
  quiet(options?: { milliseconds?: number; timeout?: number }): Promise<void>;
}

/** A cluster as it was at one time. */
export class Snapshot {
  private constructor();
  readonly name: string;
  readonly revision: string;
  /** A cluster that begins as it was then, and writes beside it. */
  fork(name?: string): Promise<Fork>;
  /** Lets the server forget the snapshot. Forks of it go on. */
  delete(): Promise<void>;
}

/**
 * A cluster that was made of another one. It ends with it, or when it is stopped. Nothing leaves it: no webhook is called, and no
 * kubelet.
 */
export class Fork extends Cluster implements AsyncDisposable {
  private constructor();
  readonly name: string;
  /** Throws the fork away. Nothing happens the second time. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The server refused what a test wanted. The message is the server's own. */
export class ApiError extends Error {
  readonly code: number;
}

/**
 * A Kubernetes API server in memory, which serves on a free port of 127.0.0.1 until it is stopped.
 *
 * Any number of servers run side by side. A server ends with the process that started it, also when that is killed.
 */
export class Server extends Cluster implements AsyncDisposable {
  private constructor();

  /**
   * Starts a server, and returns when it is ready.
   *
   * @throws {StartError} A definition is invalid, a flag unknown, a port taken, the program missing or for another machine.
   */
  static start(options?: ServerOptions): Promise<Server>;

  /** Ends the server at once, watches and all, and removes its files. Nothing happens the second time. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The server did not start. The message is the program's own. */
export class StartError extends Error {}

/** The path of the program: `ROWPLANE_PROGRAM`, or that of the installed package of this platform. */
export function findProgram(): string;
