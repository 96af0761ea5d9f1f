// Requests to the API, below the folder of the page: so it works behind any path.

import { at, computed, signal, useEffect, useState } from './base.js';

const root = new URL('../', document.baseURI);

/// A bearer token that was pasted into the page; it is never kept.
export const token = signal('');
/// Who asks; null while nobody knows.
export const user = signal(null);
/// Whether the server wants a credential.
export const isRefused = signal(false);
/// Counts up when everything is to be asked for again.
export const turn = signal(0);

export class ApiError extends Error {
  constructor(status, { message, reason } = {}) {
    super(message || `The server answered ${status}.`);
    this.status = status;
    this.reason = reason || '';
  }
}

/// Whether an error says that the server has no such path, and not that it has no such object.
export const isLack = ({ status, reason }) => (status === 404 && !reason) || status === 405;

/// The URL of a path of the API, as it was at a time if one is given.
export function url(path, when = at.value) {
  const door = when ? `asof/${encodeURIComponent(when).replaceAll('%3A', ':')}/` : '';
  return new URL(door + path.replace(/^\//, ''), root).href;
}

/// The response to a request; throws ApiError unless it succeeds.
export async function ask(path, { when = at.value, accept = 'application/json', signal, ...options } = {}) {
  const headers = { Accept: accept, ...options.headers };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  let response;
  try {
    response = await fetch(url(path, when), { ...options, headers, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, { message: 'The server cannot be reached.' });
  }
  if (response.ok) return response;
  const text = await response.text();
  let status;
  try { status = JSON.parse(text); } catch { status = { message: text.trim() }; }
  const isNobody = /system:anonymous/.test(status.message || '');
  if (response.status === 401 || (response.status === 403 && isNobody)) isRefused.value = true;
  throw new ApiError(response.status, status);
}

export const get = async (path, options) => (await ask(path, options)).json();

export const asTable = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

const moments = new Map();

/// The commit `{time, revision}` that is shown at a past time: every answer through the door names it.
export async function momentAt(when, signal) {
  if (!moments.has(when)) {
    const header = (await ask('version', { when, signal })).headers.get('Rowplane-As-Of') || '';
    const [, time, revision] = /^(\S+); revision=(\d+)/.exec(header) || [];
    moments.set(when, { time, revision: Number(revision) });
  }
  return moments.get(when);
}

/// What a request of a view has given: `{data, error, isLoading}`. It is asked again when an input, the time, the
/// credential or the turn changes; what was there stays until the new answer comes.
export function useAnswer(question, inputs) {
  const [state, set] = useState({ isLoading: true });
  const all = [...inputs, at.value, token.value, turn.value];
  useEffect(() => {
    const controller = new AbortController();
    set(old => ({ ...old, isLoading: true }));
    question(controller.signal).then(
      data => { if (!controller.signal.aborted) set({ data }); },
      error => { if (!controller.signal.aborted) set({ error }); },
    );
    return () => controller.abort();
  }, all);
  return state;
}

/// Objects of a stream of JSON lines.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const pieces = (rest + value).split('\n');
      rest = pieces.pop();
      for (const piece of pieces) if (piece.trim()) yield JSON.parse(piece);
    }
    if (rest.trim()) yield JSON.parse(rest);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/// The kinds that the server has, by name (`deployments.apps`), at the time that is looked at.
export const kinds = signal(new Map());
export const kindsAreKnown = computed(() => kinds.value.size > 0);

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

export async function discover(signal) {
  const lists = await Promise.all(['api', 'apis'].map(path => get(path, { accept: aggregated, signal })));
  const found = new Map();
  for (const group of lists.flatMap(list => list.items || [])) {
    const groupName = group.metadata?.name || '';
    for (const { version, resources = [] } of group.versions) {
      for (const { resource, responseKind, scope, verbs, shortNames = [], categories = [] } of resources) {
        const name = groupName ? `${resource}.${groupName}` : resource;
        if (found.has(name) || !verbs.includes('list')) continue;
        const path = groupName ? `apis/${groupName}/${version}` : `api/${version}`;
        found.set(name, {
          name, resource, group: groupName, version, path, shortNames, categories,
          kind: responseKind.kind, isNamespaced: scope === 'Namespaced', canWatch: verbs.includes('watch'),
        });
      }
    }
  }
  kinds.value = found;
}

export const listPath = (kind, namespace) =>
  kind.isNamespaced && namespace ? `${kind.path}/namespaces/${namespace}/${kind.resource}` : `${kind.path}/${kind.resource}`;

export const objectPath = (kind, namespace, name) => `${listPath(kind, namespace)}/${encodeURIComponent(name)}`;

/// Asks who the server takes us for.
export async function whoAmI() {
  const review = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' });
  const options = { when: '', method: 'POST', body: review, headers: { 'Content-Type': 'application/json' } };
  const answer = await get('apis/authentication.k8s.io/v1/selfsubjectreviews', options);
  user.value = answer.status.userInfo;
}
