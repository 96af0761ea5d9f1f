// The types of the package need no others: URL is the only name from outside.
import { Server, StartError, findProgram, type Cluster, type Definition, type Fork, type Snapshot } from "rowplane";

const crds: Definition[] = ["config/crd", new URL("file:///crd.yaml"), { apiVersion: "apiextensions.k8s.io/v1" }];
await using server = await Server.start({ crds, flags: ["--secure-port=0"] });
const places: string[] = [server.kubeconfig, server.url, server.ca, findProgram()];
const base: Snapshot = await server.snapshot();
await using fork: Fork = await base.fork();
await fork.fault({ verb: "update", resource: "pods", code: "close", count: 1 });
const codes: number[] = (await fork.requests({ verb: "update" })).map(({ code }) => code);
const either: Cluster[] = [server, fork];
await either[codes.length]?.reset(base);
await server.stop();
throw new StartError(places.join());
