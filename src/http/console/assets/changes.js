// The first view: what has just happened, newest first.

import { at, go, html, link, parameter, useEffect, useMemo, useState } from './base.js';
import { get, isLack, kinds, momentAt, useAnswer } from './api.js';
import { clock, day, plural, stamp } from './format.js';
import { Answer, Field, Notice, Saving, Table, Tabs, Time, Toggle, say, usePoll } from './parts.js';

const page = 100;
const signs = { ADDED: '+', MODIFIED: '~', DELETED: '−' };
const wordsOf = { ADDED: 'created', MODIFIED: 'changed', DELETED: 'deleted' };

export const offer = {
  title: 'This server does not offer its history.',
  text: 'It runs without history (--history=off), or is another API server. Events are what there is.',
};

export function ChangesView() {
  const shown = parameter('show') || 'changes';
  return html`<header class="title"><h1>What just happened</h1>
      <${Tabs} label="What is shown" current=${shown} tabs=${[
        ['changes', 'Changes', link([], { ...filters(), show: '' })],
        ['events', 'Events', link([], { ns: parameter('ns'), show: 'events' })],
      ]} /></header>
    ${shown === 'events' ? html`<${Events} />` : html`<${Changes} />`}`;
}

const names = ['ns', 'resource', 'user', 'q', 'status', 'all'];
/// Kinds that are written all the time, and tell little.
const noise = 'leases.coordination.k8s.io,events,events.events.k8s.io';
const filters = () => Object.fromEntries(names.map(name => [name, parameter(name)]));

/// The question for a page of changes.
function changesPath({ ns, resource, user, status, all }, more = {}) {
  const query = new URLSearchParams({ limit: page });
  const add = (name, value) => { if (value) query.set(name, value); };
  add('namespace', ns);
  add('resource', resource);
  add('user', user);
  add('notStatus', status ? '' : 'true');
  add('exclude', all || resource ? '' : noise);
  Object.entries(more).forEach(([name, value]) => add(name, value));
  return `history?${query}`;
}

function Changes() {
  const asked = filters();
  const [more, setMore] = useState({ items: [], next: null, isLoading: false });
  const [fresh, setFresh] = useState([]);
  const key = JSON.stringify(asked);
  // The history is one, whatever time is looked at; of a past time it is what came before.
  const first = async signal => {
    const before = at.value ? { before: (await momentAt(at.value, signal)).revision + 1 } : {};
    return get(changesPath(asked, before), { when: '', signal });
  };
  const state = useAnswer(first, [key]);
  useEffect(() => { setMore({ items: [], next: null }); setFresh([]); }, [state.data]);
  const items = [...fresh, ...(state.data?.items || []), ...more.items];
  const next = more.next ?? (state.data?.metadata?.continue || '');
  usePoll(async () => {
    const newest = items[0]?.revision ?? state.data?.metadata?.resourceVersion;
    if (!state.data || !newest) return;
    const answer = await get(changesPath(asked, { after: newest }), { when: '' }).catch(() => null);
    if (!answer?.items.length) return;
    setFresh(old => [...answer.items, ...old].slice(0, 2000));
    say(`${plural(answer.items.length, 'new change')}.`);
  }, 5000, [items[0]?.revision, state.data, key]);
  const load = async () => {
    setMore(old => ({ ...old, isLoading: true }));
    const answer = await get(changesPath(asked, { continue: next }), { when: '' });
    setMore(old => ({ items: [...old.items, ...answer.items], next: answer.metadata?.continue || '' }));
  };
  return html`<${Filters} items=${items} />
    <${Answer} state=${state} offer=${offer}>${() => html`
      <${ChangeTable} items=${items} text=${asked.q} cutBelow=${next ? items.length : 0} />
      ${next && html`<p class="more"><button onClick=${load} disabled=${more.isLoading}>Older changes</button>
        <span class="quiet">The newest ${items.length} are shown; there are older ones.</span></p>`}`}<//>
    ${state.error && isLack(state.error) && html`<${Events} />`}`;
}

function Filters({ items }) {
  const users = useMemo(() => [...new Set(items.map(item => item.user).filter(Boolean))].sort(), [items.length]);
  const spaces = useMemo(() => [...new Set(items.map(item => item.namespace).filter(Boolean))].sort(), [items.length]);
  const list = (id, values) => html`<datalist id=${id}>${values.map(value => html`<option value=${value} />`)}</datalist>`;
  return html`<form class="filters" role="search" aria-label="Changes" onSubmit=${event => event.preventDefault()}>
    <${Field} name="ns" label="Namespace" value=${parameter('ns')} placeholder="all" list="spaces" />
    <${Field} name="resource" label="Kind" value=${parameter('resource')} placeholder="pods,deployments.apps" list="kinds" />
    <${Field} name="user" label="User" value=${parameter('user')} placeholder="anybody" list="users" />
    <${Field} name="q" label="Containing" value=${parameter('q')} placeholder="name or field" />
    <${Toggle} name="status" label="Status updates" value=${parameter('status')} />
    <${Toggle} name="all" label="Leases and Events" value=${parameter('all')} />
    ${list('users', users)} ${list('spaces', spaces)} ${list('kinds', [...kinds.value.keys()])}
  </form>`;
}

/// The same change again and again is one line: `{…item, times, first}`.
export function folded(items) {
  const found = [];
  for (const item of items) {
    const last = found[found.length - 1];
    const isSame = last && item.event === 'MODIFIED' && ['event', 'user', 'manager', 'resource', 'namespace', 'name'].every(name => last[name] === item[name])
      && String(last.changed) === String(item.changed);
    if (isSame) {
      last.times += 1;
      last.first = item;
    } else {
      found.push({ ...item, times: 1, first: item });
    }
  }
  return found;
}

const columns = ['revision', 'time', 'event', 'resource', 'namespace', 'name', 'user', 'impersonator', 'manager', 'verb', 'changed'];

function ChangeTable({ items, text, cutBelow }) {
  const wanted = (text || '').toLowerCase();
  const matches = item => !wanted || [item.name, item.resource, item.user, item.manager, ...(item.changed || [])].some(part => (part || '').toLowerCase().includes(wanted));
  const rows = folded(items.filter(matches));
  if (!rows.length) return html`<${Notice}>Nothing has changed${wanted || cutBelow ? ' that matches, within what is loaded' : ''}.<//>`;
  const days = Object.entries(Object.groupBy(rows, row => day(row.time)));
  const saved = items.filter(matches).map(item => columns.map(name => item[name]));
  return html`<div class="changes">
    ${days.map(([date, group], index) => html`<section key=${date}>
      <div class="day"><h2>${date === day(Date.now()) ? 'Today' : date}</h2>
        ${index === 0 && html`<${Saving} name="changes" columns=${columns} rows=${saved} />`}</div>
      <table role="table"><caption class="visually-hidden">Changes on ${date}, newest first</caption>
        <thead role="rowgroup"><tr role="row">${['Time', 'Event', 'Object', 'By', 'What'].map(name => html`<th role="columnheader" scope="col">${name}</th>`)}</tr></thead>
        <tbody role="rowgroup">${group.map(row => html`<${ChangeRow} key=${row.revision} row=${row} />`)}</tbody></table>
    </section>`)}</div>`;
}

export const objectLink = (row, query) => link(['object', row.resource, row.namespace || '-', row.name], query);

const diffLink = row => objectLink(row, {
  tab: row.event === 'ADDED' ? 'yaml' : 'diff', at: at.value || (row.event === 'DELETED' ? `rv-${row.first.previous}` : ''),
  from: row.event === 'ADDED' ? '' : row.first.previous, to: row.event === 'ADDED' ? '' : row.revision,
});

function ChangeRow({ row }) {
  return html`<tr role="row" class=${row.event.toLowerCase()}>
    <td role="cell" class="when"><a href=${link([], { ...filters(), at: stamp(row.time) })}
      title=${`See the cluster at ${row.time}`}><${Time} value=${row.time}>${clock(row.time)}<//></a></td>
    <td role="cell" class="event"><span class="sign" aria-hidden="true">${signs[row.event]}</span>
      <span class="word">${wordsOf[row.event]}</span></td>
    <td role="cell" class="object"><a href=${objectLink(row, { at: row.event === 'DELETED' ? `rv-${row.previous}` : at.value })}><span class="kind">${kindOf(row.resource)}</span>${row.namespace ? html`<span class="ns">${row.namespace}/</span>` : ''}${row.name}</a></td>
    <td role="cell" class="by"><${Writer} row=${row} /></td>
    <td role="cell" class="what"><a href=${diffLink(row)}><${Changed} row=${row} /></a>
      ${row.times > 1 && html` <span class="times" title=${`since ${clock(row.first.time)}`}>×${row.times}</span>`}</td></tr>`;
}

/// The name of a kind, where it is known.
export const kindOf = resource => kinds.value.get(resource)?.kind || resource.split('.')[0];

/// A user's name without what all service accounts have in common.
const short = name => name.replace(/^system:serviceaccount:/, '').replace(/^system:/, '');

export function Writer({ row }) {
  if (!row.user && !row.manager) return html`<span class="quiet">not recorded</span>`;
  return html`<span class="user" title=${row.user}>${short(row.user || row.manager)}</span>
    ${row.impersonator && html` <span class="quiet">by ${short(row.impersonator)}</span>`}
    ${row.user && row.manager && row.manager !== row.user && html` <span class="quiet manager">${row.manager}</span>`}`;
}

export function Changed({ row, most = 3 }) {
  if (row.event !== 'MODIFIED') return html`<span>${wordsOf[row.event]}</span>`;
  const changed = row.changed || [];
  if (!changed.length) return html`<span class="quiet">${row.verb || 'nothing'}, no field</span>`;
  return html`${changed.slice(0, most).map(path => html`<code>${path}</code> `)}
    ${changed.length > most && html`<span class="quiet">+${changed.length - most}</span>`}`;
}

/// The Events of the API: what components have to say.
function Events() {
  const [ns, type] = [parameter('ns'), parameter('type')];
  const select = type ? `&fieldSelector=type=${type}` : '';
  const path = `api/v1/${ns ? `namespaces/${ns}/` : ''}events?limit=500${select}`;
  const state = useAnswer(signal => get(path, { signal }), [path]);
  const when = event => event.series?.lastObservedTime || event.lastTimestamp || event.eventTime || event.metadata.creationTimestamp;
  const about = event => event.involvedObject || {};
  const columns = [
    { name: 'Last seen', value: row => when(row), cell: row => html`<${Time} value=${when(row)} />` },
    { name: 'Type', value: row => row.type, hide: true, cell: row => html`<span class=${row.type === 'Warning' ? 'badge warn' : 'badge'}>${row.type}</span>` },
    { name: 'Reason', value: row => row.reason, style: 'wrap', cell: row => html`<span class=${row.type === 'Warning' ? 'warning' : ''}>${row.reason}</span>` },
    { name: 'Object', value: row => `${about(row).kind}/${about(row).name}`, style: 'wrap', cell: row => html`<${Reference} to=${about(row)} />` },
    { name: 'Message', value: row => row.message, style: 'long' },
    { name: 'Count', value: row => row.series?.count || row.count || 1, hide: true },
    { name: 'From', value: row => row.reportingComponent || row.source?.component || '', hide: true },
  ];
  return html`<form class="filters" role="search" aria-label="Events" onSubmit=${event => event.preventDefault()}>
      <${Field} name="ns" label="Namespace" value=${ns} placeholder="all" />
      <label class="toggle"><input type="checkbox" checked=${type === 'Warning'}
        onChange=${event => go({ type: event.currentTarget.checked ? 'Warning' : '' }, { replace: true })} /> Warnings only</label>
    </form>
    <${Answer} state=${state}>${list => {
      const rows = [...list.items].sort((a, b) => (when(a) < when(b) ? 1 : -1));
      const rest = list.metadata.remainingItemCount || (list.metadata.continue ? 'more' : 0);
      if (!rows.length) return html`<${Notice}>There are no Events${type ? ' of this type' : ''}.<//>`;
      return html`<div class="day"><h2>${plural(rows.length, 'Event')}</h2>
          <${Saving} name="events" columns=${columns.map(column => column.name)} rows=${rows.map(row => columns.map(column => column.value(row)))} /></div>
        ${rest ? html`<p class="quiet">Cut short: ${rest} further Events are not shown.</p>` : ''}
        <${Table} label="Events" columns=${columns} rows=${rows} keyOf=${row => row.metadata.uid} />`;
    }}<//>`;
}

/// A link to an object that another one names by kind, if the server has that kind.
export function Reference({ to }) {
  const group = (to.apiVersion || 'v1').includes('/') ? to.apiVersion.split('/')[0] : '';
  const kind = [...kinds.value.values()].find(candidate => candidate.kind === to.kind && candidate.group === group);
  const text = html`<span class="kind">${to.kind}</span>${to.namespace ? html`<span class="ns">${to.namespace}/</span>` : ''}${to.name}`;
  return kind ? html`<a href=${link(['object', kind.name, (kind.isNamespaced && to.namespace) || '-', to.name])}>${text}</a>` : text;
}
