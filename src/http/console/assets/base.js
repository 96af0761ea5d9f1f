// What all modules of the page share: the libraries, and the page's address, which is its whole state.

import { h, render, Fragment } from './vendor/preact.js';
import htm from './vendor/htm.js';
import { computed, signal } from './vendor/signals.js';

export { render, Fragment, signal, computed };
export { batch, effect, useComputed, useSignal, useSignalEffect } from './vendor/signals.js';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
export const html = htm.bind(h);

/// The address after `#`: segments of a path, and parameters.
export const route = signal(parse());
addEventListener('hashchange', () => { route.value = parse(); });

function parse() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(segment) {
  try { return decodeURIComponent(segment); } catch { return segment; }
}

/// The time at which the cluster is looked at: RFC 3339 or `rv-N`; empty for now.
export const at = computed(() => route.value.query.get('at') || '');

/// The address of a view. Parameters that are empty are left out; the time stays unless one is given.
export function link(path, query = {}) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries({ at: at.value, ...query })) {
    if (value) all.set(name, value);
  }
  const text = all.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%2F', '/');
  return '#/' + path.map(encodeURIComponent).join('/') + (text ? '?' + text : '');
}

/// Changes parameters of this view's address. A step of the browser's history is made unless it is replaced.
export function go(query, { replace = false } = {}) {
  const address = link(route.value.path, { ...Object.fromEntries(route.value.query), ...query });
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  route.value = parse();
}

/// A parameter of this view's address.
export const parameter = name => route.value.query.get(name) || '';
