// A client of the server under test, by the administrator's kubeconfig.

import { readFileSync } from 'node:fs';
import https from 'node:https';

export class Client {
  constructor(kubeconfig) {
    const text = readFileSync(kubeconfig, 'utf8');
    const field = name => new RegExp(`${name}: "?([^"\\s]+)`).exec(text)?.[1];
    const data = name => Buffer.from(field(`${name}-data`), 'base64');
    this.server = new URL(field('server'));
    this.options = { ca: data('certificate-authority'), cert: data('client-certificate'), key: data('client-key'), keepAlive: true };
    this.agent = new https.Agent(this.options);
  }

  /// The status and the object of an answer. `as` is the user in whose name the request is made.
  request(method, path, body, { as, type = 'application/json', agent = 'kubectl/v1.37.2' } = {}) {
    const headers = { 'Content-Type': type, 'User-Agent': agent, ...(as ? { 'Impersonate-User': as } : {}) };
    return new Promise((resolve, reject) => {
      const request = https.request(new URL(path, this.server), { method, headers, agent: this.agent, ...this.options }, response => {
        const chunks = [];
        response.on('data', chunk => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          let object = text;
          try { object = JSON.parse(text); } catch { /* a text */ }
          resolve({ status: response.statusCode, object });
        });
      });
      request.on('error', reject);
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /// The object of an answer that has to be a success.
  async ok(method, path, body, options) {
    const { status, object } = await this.request(method, path, body, options);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${object.message || object}`);
    return object;
  }
}
