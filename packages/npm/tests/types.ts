// The types of the package need no others: URL is the only name from outside.
import { Server, StartError, findProgram, type Definition } from "rowplane";

const crds: Definition[] = ["config/crd", new URL("file:///crd.yaml"), { apiVersion: "apiextensions.k8s.io/v1" }];
await using server = await Server.start({ crds, flags: ["--secure-port=0"] });
const places: string[] = [server.kubeconfig, server.url, server.ca, findProgram()];
await server.stop();
throw new StartError(places.join());
