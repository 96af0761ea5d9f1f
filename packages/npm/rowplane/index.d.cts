/// <reference lib="esnext.disposable" />

/** A CustomResourceDefinition, or the path of a file (YAML or JSON) or of a folder of them. */
export type Definition = string | URL | { readonly [field: string]: unknown };

export interface ServerOptions {
  /** CustomResourceDefinitions; they are served once the server has started. */
  readonly crds?: readonly Definition[];
  /** More flags of `rowplane serve`, such as `--secure-port=6443` or `--cluster-controllers=false`. */
  readonly flags?: readonly string[];
}

/**
 * A Kubernetes API server in memory, which serves on a free port of 127.0.0.1 until it is stopped.
 *
 * Any number of servers run side by side. A server ends with the process that started it, also when that is killed.
 */
export class Server implements AsyncDisposable {
  private constructor();

  /**
   * Starts a server, and returns when it is ready.
   *
   * @throws {StartError} A definition is invalid, a flag unknown, a port taken, the program missing or for another machine.
   */
  static start(options?: ServerOptions): Promise<Server>;

  /** The path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The address of the API, `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** The path of the certificate (PEM) that vouches for the server's. */
  readonly ca: string;

  /** Ends the server at once, watches and all, and removes its files. Nothing happens the second time. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The server did not start. The message is the program's own. */
export class StartError extends Error {}

/** The path of the program: `ROWPLANE_PROGRAM`, or that of the installed package of this platform. */
export function findProgram(): string;
