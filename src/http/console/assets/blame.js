// Who has set each field: the newest kept change that touched it, or, below the history, its manager.

import { get, isLack } from './api.js';
import { below, withoutManagedFields, yaml } from './yaml.js';

/// The most pages of the history that are read.
const mostPages = 20;

/// The steps of a path as the history names it: `spec.containers[name=app].image`, `data["a.b"]`, `finalizers[=x]`.
function steps(path) {
  return [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[([^\]]*)\]|([^.[\]]+)/g)].map(([, quoted, item, name]) => (
    item !== undefined ? { item } : { name: name ?? JSON.parse(`"${quoted}"`) }));
}

const plain = value => (typeof value === 'string' ? value : JSON.stringify(value));

/// The position of an item of a list that is named by its keys, its value, or its position; -1 if it is not there.
function position(list, item) {
  if (/^\d+$/.test(item)) return Number(item);
  if (item.startsWith('=')) return list.findIndex(value => plain(value) === item.slice(1));
  const keys = [...item.matchAll(/(?:^|,)(\w+)=/g)].map(([, key]) => key);
  return list.findIndex(value => keys.map(key => `${key}=${plain(value?.[key])}`).join(',') === item);
}

/// The path, as lines have it, of what the history names; null if the object does not have it.
function locate(object, path) {
  let [value, found] = [object, ''];
  for (const { item, name } of steps(path)) {
    const step = item === undefined ? name : Array.isArray(value) ? position(value, item) : item;
    value = value?.[step];
    if (value === undefined) return null;
    found = below(found, step);
  }
  return found;
}

/// Whether a path is the same as another one, or below it.
const isWithin = (path, above) => path === above || path.startsWith(`${above}\0`);

/// Lines `{line, entry, isFirst}`, a note about what is missing.
export async function blame(object, path, signal) {
  const lines = yaml(withoutManagedFields(object));
  const leaves = new Map(lines.filter(line => line.isLeaf).map(line => [line.path, null]));
  const skipped = /^(apiVersion|kind|metadata\0(name|namespace|uid|creationTimestamp|resourceVersion|generation))$/;
  for (const leaf of [...leaves.keys()]) if (skipped.test(leaf)) leaves.delete(leaf);
  let note = '';
  try {
    note = await ofHistory(leaves, object, path, signal);
  } catch (error) {
    if (!isLack(error)) throw error;
    note = 'This server does not offer its history: what is shown is the manager of each field, and when it last wrote.';
  }
  const managers = owners(object);
  const managed = new Map();
  for (const [leaf, entry] of leaves) {
    if (entry?.user || entry?.manager) continue;
    const owner = managers.find(({ paths }) => paths.some(owned => isWithin(leaf, owned)))?.entry;
    if (!owner) continue;
    // A change whose writer is not recorded still has the manager of its fields. The same pair is one entry.
    const key = `${entry?.revision} ${owner.manager}`;
    if (!managed.has(key)) managed.set(key, entry ? { ...entry, manager: owner.manager } : owner);
    leaves.set(leaf, managed.get(key));
  }
  let last;
  return { note, lines: lines.map(line => {
    const entry = leaves.get(line.path) || null;
    const isFirst = Boolean(line.isLeaf && entry && entry !== last);
    if (line.isLeaf) last = entry;
    return { line, entry, isFirst };
  }) };
}

async function ofHistory(leaves, object, path, signal) {
  let token = '';
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await get(`history/${path}?limit=200${token ? `&continue=${encodeURIComponent(token)}` : ''}`, { when: '', signal });
    for (const item of answer.items) {
      if (Number(item.revision) > Number(object.metadata.resourceVersion)) continue;
      const changed = (item.changed || []).map(named => locate(object, named)).filter(found => found !== null);
      for (const [leaf, entry] of leaves) {
        if (!entry && (item.event === 'ADDED' || changed.some(above => isWithin(leaf, above)))) leaves.set(leaf, item);
      }
      if (item.event === 'ADDED' && item.uid === object.metadata.uid) return '';
    }
    token = answer.metadata?.continue || '';
    if (!token || [...leaves.values()].every(Boolean)) return '';
  }
  return `Only the newest ${mostPages * 200} changes were looked at.`;
}

/// The managers of an object with the paths that each owns, the newest first.
function owners(object) {
  return (object.metadata.managedFields || []).map(({ manager, time, operation, subresource, fieldsV1 = {} }) => ({
    entry: { manager, time, verb: operation, subresource }, paths: paths(fieldsV1, object, ''),
  })).sort((one, other) => ((one.entry.time || '') < (other.entry.time || '') ? 1 : -1));
}

/// The leaves of a set of fields as paths of the object.
function paths(fields, value, path) {
  const found = [];
  for (const [name, inner] of Object.entries(fields)) {
    if (name === '.') continue;
    const [type, rest] = [name.slice(0, 2), name.slice(2)];
    const step = type === 'f:' ? rest : Array.isArray(value) ? indexOf(type, rest, value) : -1;
    if (value?.[step] === undefined) continue;
    const place = below(path, step);
    const deeper = paths(inner, value[step], place);
    if (deeper.length) found.push(...deeper); else found.push(place);
  }
  return found;
}

function indexOf(type, rest, list) {
  try {
    if (type === 'i:') return Number(rest);
    const wanted = JSON.parse(rest);
    if (type === 'v:') return list.findIndex(item => item === wanted);
    return list.findIndex(item => Object.entries(wanted).every(([key, value]) => item?.[key] === value));
  } catch {
    return -1;
  }
}
