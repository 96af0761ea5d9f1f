// Who has set each field: the newest kept change that touched it, or, below the history, its manager.

import { ApiError, get } from './api.js';
import { withoutManagedFields, yaml, itemPart, member } from './yaml.js';

/// The most pages of the history that are read.
const mostPages = 20;

/// Whether a change of one path may have set what is at another: it is the same, above, or below it.
const touches = (changed, path) => changed === path || (path.startsWith(changed) && /^[.[]/.test(path.slice(changed.length)))
  || (changed.startsWith(path) && /^[.[]/.test(changed.slice(path.length)));

/// Lines `{line, entry, isFirst}`, a note about what is missing.
export async function blame(object, path, signal) {
  const lines = yaml(withoutManagedFields(object));
  const leaves = new Map(lines.filter(line => line.isLeaf).map(line => [line.path, null]));
  const skipped = /^(apiVersion|kind|metadata\.(name|namespace|uid|creationTimestamp|resourceVersion|generation))$/;
  for (const leaf of [...leaves.keys()]) if (skipped.test(leaf)) leaves.delete(leaf);
  let note = '';
  try {
    note = await ofHistory(leaves, object, path, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    note = 'This server does not offer its history: what is shown is the manager of each field, and when it last wrote.';
  }
  const managers = owners(object);
  for (const [leaf, entry] of leaves) {
    if (!entry) leaves.set(leaf, managers.find(({ paths }) => paths.some(owned => touches(owned, leaf)))?.entry || null);
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
      for (const [leaf, entry] of leaves) {
        if (!entry && (item.event === 'ADDED' || (item.changed || []).some(changed => touches(changed, leaf)))) leaves.set(leaf, item);
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
  for (const [name, below] of Object.entries(fields)) {
    if (name === '.') continue;
    const [type, rest] = [name.slice(0, 2), name.slice(2)];
    let [place, child] = ['', undefined];
    if (type === 'f:') {
      place = path + (path ? member(rest) : rest);
      child = value?.[rest];
    } else if (Array.isArray(value)) {
      const index = indexOf(type, rest, value);
      if (index < 0) continue;
      place = path + itemPart(value, index);
      child = value[index];
    }
    if (!place) continue;
    const deeper = paths(below, child, place);
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
