// Kinds and lists of objects, as the server's tables show them; a watch keeps what is visible up to date.

import { at, html, link, parameter, route, useEffect, useMemo, useState } from './base.js';
import { ask, asTable, get, kinds, lines, listPath, turn, url, useAnswer } from './api.js';
import { count, plural } from './format.js';
import { Answer, Field, Notice, Saving, Table, say } from './parts.js';

const page = 500;

export function ObjectsView() {
  const name = route.value.path[1] || 'pods';
  const kind = kinds.value.get(name);
  return html`<div class="split"><${Kinds} current=${name} />
    <div class="main-part">${kind ? html`<${List} key=${`${name}?${at.value}`} kind=${kind} />`
      : kinds.value.size ? html`<${Notice} title="No such kind">The server has no kind <code>${name}</code> that can be listed${at.value ? ' at this time' : ''}.<//>`
        : html`<p class="quiet">Loading …</p>`}</div></div>`;
}

/// Kinds that most people look at first.
const frequent = ['pods', 'deployments.apps', 'statefulsets.apps', 'daemonsets.apps', 'jobs.batch', 'cronjobs.batch', 'services',
  'ingresses.networking.k8s.io', 'configmaps', 'secrets', 'persistentvolumeclaims', 'nodes', 'namespaces'];

/// The number of objects of each kind: of now by the server's metrics, which are one request; else by lists of one item.
async function counts(signal) {
  const found = new Map();
  if (!at.value) {
    const text = await ask('metrics', { accept: 'text/plain', signal }).then(response => response.text(), () => '');
    for (const [, group, resource, number] of text.matchAll(/^apiserver_resource_objects\{group="([^"]*)",resource="([^"]*)"\} (\d+)/gm)) {
      found.set(group ? `${resource}.${group}` : resource, Number(number));
    }
  }
  if (found.size) return found;
  // States of components are of now alone.
  const waiting = [...kinds.value.values()].filter(({ name }) => name !== 'componentstatuses');
  const work = async () => {
    for (let kind = waiting.shift(); kind && !signal.aborted; kind = waiting.shift()) {
      const list = await get(`${kind.path}/${kind.resource}?limit=1`, { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', signal }).catch(() => null);
      if (list) found.set(kind.name, (list.items || []).length + (list.metadata.remainingItemCount || 0));
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return found;
}

function Kinds({ current }) {
  const [filter, setFilter] = useState('');
  const { data } = useAnswer(counts, [kinds.value]);
  const wanted = filter.toLowerCase();
  const all = [...kinds.value.values()].filter(kind => !wanted || kind.name.includes(wanted) || kind.kind.toLowerCase().includes(wanted) || kind.shortNames.includes(wanted));
  const groups = [['Frequent', all.filter(kind => frequent.includes(kind.name)).sort((a, b) => frequent.indexOf(a.name) - frequent.indexOf(b.name))]];
  const others = all.filter(kind => !frequent.includes(kind.name)).sort((a, b) => a.kind.localeCompare(b.kind));
  groups.push(...Object.entries(Object.groupBy(others, kind => kind.group || 'core')).sort(([one], [other]) => (other === 'core') - (one === 'core') || one.localeCompare(other)));
  const item = kind => {
    const number = data?.get(kind.name);
    return html`<li key=${kind.name}><a href=${link(['objects', kind.name], { ns: parameter('ns') })} aria-current=${kind.name === current ? 'page' : undefined}
      class=${number === 0 ? 'empty' : ''}><span>${kind.kind}</span>${number !== undefined && html`<span class="number">${count(number)}</span>`}</a></li>`;
  };
  const select = html`<label class="field only-narrow"><span>Kind</span><select value=${current} onChange=${event => { location.hash = link(['objects', event.currentTarget.value], { ns: parameter('ns') }); }}>
    ${groups.map(([group, members]) => html`<optgroup label=${group}>${members.map(kind => html`<option value=${kind.name} selected=${kind.name === current}>${kind.kind}${data?.has(kind.name) ? ` (${data.get(kind.name)})` : ''}</option>`)}</optgroup>`)}</select></label>`;
  return html`${select}<nav class="kinds" aria-label="Kinds">
    <label class="field"><span class="visually-hidden">Find a kind</span><input type="search" placeholder="Find a kind" value=${filter}
      onInput=${event => setFilter(event.currentTarget.value)} /></label>
    ${groups.filter(([, members]) => members.length).map(([group, members]) => html`<section key=${group}><h2>${group}</h2><ul>${members.map(item)}</ul></section>`)}
  </nav>`;
}

function List({ kind }) {
  const [ns, labels, fields, filter, sort] = ['ns', 'labels', 'fields', 'filter', 'sort'].map(parameter);
  const query = new URLSearchParams({ limit: page });
  if (labels) query.set('labelSelector', labels);
  if (fields) query.set('fieldSelector', fields);
  const path = listPath(kind, ns);
  const state = useAnswer(signal => get(`${path}?${query}`, { accept: asTable, signal }), [path, String(query)]);
  const [more, setMore] = useState(null);
  const [changed, setChanged] = useState(new Map());
  useEffect(() => { setMore(null); setChanged(new Map()); }, [state.data]);
  useEffect(() => (state.data && kind.canWatch && !at.value
    ? watch(`${path}?${selection(query)}`, state.data.metadata.resourceVersion, setChanged) : undefined), [state.data]);
  const load = async token => {
    const answer = await get(`${path}?${query}&continue=${encodeURIComponent(token)}`, { accept: asTable });
    setMore(old => ({ rows: [...(old?.rows || []), ...answer.rows], metadata: answer.metadata }));
  };
  return html`<header class="title"><h1>${kind.kind} <span class="quiet">${kind.group ? `${kind.group}/` : ''}${kind.version}</span></h1></header>
    <form class="filters" role="search" aria-label=${kind.kind} onSubmit=${event => event.preventDefault()}>
      ${kind.isNamespaced && html`<${Field} name="ns" label="Namespace" value=${ns} placeholder="all" list="spaces" />`}
      <${Field} name="labels" label="Labels" value=${labels} placeholder="app=web,tier!=db" />
      <${Field} name="fields" label="Fields" value=${fields} placeholder="metadata.name=…" />
      <${Field} name="filter" label="Containing" value=${filter} placeholder="any cell" />
      <${Namespaces} />
    </form>
    <${Answer} state=${state}>${table => html`<${Rows} kind=${kind} table=${table} more=${more} changed=${changed} load=${load}
      ns=${ns} filter=${filter} sort=${sort} api=${url(`${path}?${query}`)} />`}<//>`;
}

function Namespaces() {
  const { data } = useAnswer(signal => get('api/v1/namespaces?limit=500', { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', signal }), []);
  return html`<datalist id="spaces">${(data?.items || []).map(item => html`<option value=${item.metadata.name} />`)}</datalist>`;
}

/// The parameters that select objects.
const selection = query => new URLSearchParams([...query].filter(([name]) => name !== 'limit'));

/// Follows changes of a list, from its revision on. Rows are by uid: `{row, event}`. Returns the end of the watch.
function watch(path, revision, set) {
  const controller = new AbortController();
  const { signal } = controller;
  const follow = async () => {
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${revision}`;
    const response = await ask(`${path}&${query}`, { accept: asTable, signal });
    for await (const { type, object } of lines(response)) {
      // What is too old is listed anew.
      if (type === 'ERROR') { controller.abort(); turn.value += 1; return; }
      revision = object.metadata?.resourceVersion || object.rows?.[0]?.object.metadata.resourceVersion || revision;
      if (type === 'BOOKMARK') continue;
      for (const row of object.rows || []) set(old => new Map(old).set(row.object.metadata.uid, { row, event: type }));
      say('The list has changed.');
    }
  };
  const forever = async () => {
    while (!signal.aborted) {
      await follow().catch(() => {});
      await new Promise(resolve => setTimeout(resolve, 1000));
    }
  };
  forever();
  return () => controller.abort();
}

/// The question for the same objects in SQL.
function inSql(kind, ns, labels) {
  const quote = text => `'${text.replaceAll("'", "''")}'`;
  const conditions = [ns && `namespace = ${quote(ns)}`, labels && `selects(labels, ${quote(labels)})`].filter(Boolean);
  return `SELECT * FROM "${kind.name}"${conditions.length ? `\nWHERE ${conditions.join(' AND ')}` : ''} LIMIT 500`;
}

function Rows({ kind, table, more, changed, load, ns, filter, sort, api }) {
  const definitions = table.columnDefinitions;
  const listed = [...table.rows, ...(more?.rows || [])];
  const metadata = more?.metadata || table.metadata;
  const isCut = Boolean(metadata.continue);
  const rows = useMemo(() => {
    const known = new Map(listed.map(row => [row.object.metadata.uid, row]));
    for (const [uid, { row, event }] of changed) {
      if (event === 'DELETED') known.delete(uid);
      else if (known.has(uid) || !isCut) known.set(uid, row);
    }
    return [...known.values()];
  }, [table, more, changed]);
  const isAcross = kind.isNamespaced && !ns;
  const wanted = filter.toLowerCase();
  const shown = wanted ? rows.filter(row => [row.object.metadata.namespace, ...row.cells].some(cell => String(cell ?? '').toLowerCase().includes(wanted))) : rows;
  const columns = definitions.flatMap((definition, index) => (definition.priority > 0 ? [] : [{
    name: definition.name, value: row => row.cells[index], hide: index > 4,
    style: ['integer', 'number'].includes(definition.type) ? 'number' : '',
    cell: index === 0 ? row => html`<a href=${link(['object', kind.name, row.object.metadata.namespace || '-', row.object.metadata.name])}>${isAcross && html`<span class="ns only-small">${row.object.metadata.namespace}/</span>`}${row.cells[0]}</a>`
      : row => html`<${Cell} name=${definition.name} value=${row.cells[index]} />`,
  }]));
  if (isAcross) columns.unshift({ name: 'Namespace', value: row => row.object.metadata.namespace, hide: true });
  const isNew = row => (changed.has(row.object.metadata.uid) ? 'fresh' : '');
  const rest = metadata.remainingItemCount;
  return html`<div class="day"><h2>${plural(shown.length, 'object')}${wanted ? ` of ${count(rows.length)}` : ''}</h2>
      <a href=${link(['sql'], { q: inSql(kind, ns, parameter('labels')) })}>In SQL</a>
      <${Saving} name=${kind.name} columns=${columns.map(column => column.name)} rows=${shown.map(row => columns.map(column => column.value(row)))} api=${api} /></div>
    ${isCut && html`<p class="cut">The first ${count(rows.length)} are shown${rest ? ` of ${count(rows.length + rest)}` : ''}; order and “containing” are those of what is shown.
      <button onClick=${() => load(metadata.continue)}>Show ${page} more</button></p>`}
    ${shown.length ? html`<${Table} label=${kind.kind} columns=${columns} rows=${shown} sort=${sort} keyOf=${row => row.object.metadata.uid} rowClass=${isNew} />`
      : html`<${Notice}>There is none${ns ? ` in ${ns}` : ''}${wanted ? ' that contains this' : ''}.<//>`}`;
}

const good = /^(Running|Active|Bound|Ready|True|Complete|Completed|Succeeded|Available|Established)$/;
const bad = /^(Failed|Error|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Evicted|NotReady|Lost|Terminating|Unknown|CreateContainerConfigError)/;

/// A cell; states have a colour beside their word.
export function Cell({ name, value }) {
  const text = value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  if (/status|phase|ready|state/i.test(name)) {
    const ratio = /^(\d+)\/(\d+)$/.exec(text);
    const state = good.test(text) || (ratio && ratio[1] === ratio[2]) ? 'good' : bad.test(text) ? 'bad' : ratio || text === 'Pending' ? 'warn' : '';
    if (state) return html`<span class="state ${state}">${text}</span>`;
  }
  return text.length > 120 ? html`<span title=${text}>${text.slice(0, 120)}…</span>` : text;
}
