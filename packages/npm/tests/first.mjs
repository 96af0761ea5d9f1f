// The first object of somebody who has installed nothing else.
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { dirname, join } from "node:path";
import { Server } from "rowplane";

const server = await Server.start();
const pem = (name) => readFileSync(join(dirname(server.ca), name));
const credentials = { ca: pem("ca.crt"), cert: pem("admin.crt"), key: pem("admin.key") };
const options = { method: "POST", headers: { "content-type": "application/json" }, ...credentials };
const status = await new Promise((done, failed) => {
  const post = request(`${server.url}/api/v1/namespaces/default/configmaps`, options, (answer) => {
    answer.resume();
    done(answer.statusCode);
  });
  post.on("error", failed).end(JSON.stringify({ metadata: { name: "first" } }));
});
await server.stop();
if (status !== 201) throw new Error(`the answer is ${status}`);
