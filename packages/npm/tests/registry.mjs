// A registry of npm that has rowplane's packages of a folder, and sends those who ask for others to the registry in use.
//   node registry.mjs FOLDER UPSTREAM
// Prints its address, and ends with its standard input.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const [folder, upstream] = process.argv.slice(2);
const files = readdirSync(folder).filter((name) => /^rowplane-((linux|darwin|win32)-\w+-)?\d[\d.]*\.tgz$/.test(name));
const server = createServer((request, response) => {
  const asked = decodeURIComponent(request.url).slice(1);
  if (files.includes(asked)) return response.end(readFileSync(join(folder, asked)));
  const document = documents.get(asked);
  if (document) return response.end(JSON.stringify(document));
  if (asked.startsWith("@rowplane/")) return response.writeHead(404).end("{}");
  response.writeHead(302, { location: upstream.replace(/\/$/, "") + request.url }).end();
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const address = `http://127.0.0.1:${server.address().port}`;
const documents = new Map(files.map(document));

function document(file) {
  const manifest = JSON.parse(execFileSync("tar", ["xzOf", join(folder, file), "package/package.json"]));
  const integrity = "sha512-" + createHash("sha512").update(readFileSync(join(folder, file))).digest("base64");
  const version = { ...manifest, dist: { tarball: `${address}/${file}`, integrity } };
  const { name } = manifest;
  return [name, { name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: version } }];
}

console.log(address);
process.stdin.resume().on("end", () => process.exit());
