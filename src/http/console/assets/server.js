// How the server is: replicas, requests and watches, the store, and what history costs. Rates say over how long.

import { at, html, link, useEffect, useState } from './base.js';
import { ask, get, kinds, listPath, token, turn, useAnswer } from './api.js';
import { ago, bytes, count, duration, plural, rate, span } from './format.js';
import { Answer, Failure, Saving, Table, Time } from './parts.js';
import { Scrape, growth, quantile } from './metrics.js';

/// The window of rates, and the time between two looks, in milliseconds.
const window = 60_000;
const pause = 5000;

/// Scrapes of the last minute, oldest first.
function useScrapes() {
  const [state, set] = useState({ scrapes: [] });
  useEffect(() => {
    const controller = new AbortController();
    let timer;
    const look = async () => {
      if (!document.hidden) {
        try {
          const scrape = new Scrape(await (await ask('metrics', { when: '', accept: 'text/plain', signal: controller.signal })).text());
          set(old => ({ scrapes: [...old.scrapes.filter(({ time }) => time > scrape.time - window), scrape] }));
        } catch (error) {
          if (controller.signal.aborted) return;
          set(old => ({ ...old, error }));
        }
      }
      timer = setTimeout(look, pause);
    };
    look();
    return () => { controller.abort(); clearTimeout(timer); };
  }, [token.value, turn.value]);
  return state;
}

export function ServerView() {
  const { scrapes, error } = useScrapes();
  const [now, before] = [scrapes[scrapes.length - 1], scrapes[0]];
  const isRate = scrapes.length > 1;
  const seconds = isRate ? (now.time - before.time) / 1000 : 0;
  return html`<header class="title"><h1>Server</h1>
      <p class="quiet">${isRate ? `Rates are those of the last ${span(seconds)}.` : 'Rates need two looks; the next one is in five seconds.'}
      ${at.value ? ' What is shown here is the server of now, whatever time is looked at.' : ''}</p></header>
    ${error && !now && html`<${Failure} error=${error} />`}
    ${now && html`<${Tiles} now=${now} before=${before} seconds=${seconds} isRate=${isRate} />`}
    <div class="cards"><${Health} /><${Replicas} />
      ${now && html`<${Requests} now=${now} before=${before} seconds=${seconds} isRate=${isRate} />
        <${Clients} now=${now} before=${before} seconds=${seconds} isRate=${isRate} /><${Watches} now=${now} before=${before} seconds=${seconds} isRate=${isRate} />
        <${Objects} now=${now} /><${HistoryBytes} now=${now} />`}
      <${StorageVersions} /></div>`;
}

const Tile = ({ name, value, note }) => html`<div class="tile"><dt>${name}</dt><dd>${value}${note && html` <small>${note}</small>`}</dd></div>`;

const Card = ({ title, wide, children }) => html`<section class=${wide ? 'card wide' : 'card'}><h2>${title}</h2>${children}</section>`;

function Tiles({ now, before, seconds, isRate }) {
  const [kubernetes, build = ''] = (now.all('kubernetes_build_info')[0]?.labels.git_version || '').split('+');
  const started = now.one('process_start_time_seconds');
  const per = name => (isRate ? rate(growth(now, before, name).reduce((sum, { grown }) => sum + grown, 0) / seconds) : '…');
  const latency = isRate ? quantile(now, before, 'rowplane_commit_duration_seconds', 0.99) : null;
  const cpu = isRate ? (now.one('process_cpu_seconds_total') - before.one('process_cpu_seconds_total')) / seconds : null;
  const size = now.one('apiserver_storage_size_bytes');
  return html`<dl class="tiles">
    <${Tile} name="Version" value=${build.replace('rowplane-', '') || kubernetes} note=${build && `Kubernetes ${kubernetes}`} />
    <${Tile} name="Up" value=${started ? span(Date.now() / 1000 - started) : '?'} />
    <${Tile} name="Requests" value=${per('apiserver_request_total')} />
    <${Tile} name="In flight" value=${count(now.sum('apiserver_current_inflight_requests'))} note=${`${count(now.sum('apiserver_longrunning_requests', labels => labels.verb === 'WATCH'))} watches`} />
    <${Tile} name="Commits" value=${per('rowplane_commit_duration_seconds_count')} note=${latency === null ? '' : `p99 ≤ ${duration(latency)}`} />
    <${Tile} name="Cache lag" value=${count(now.one('rowplane_cache_lag_revisions') ?? 0)} note="revisions" />
    <${Tile} name="Store" value=${size === undefined ? '?' : bytes(size)} />
    <${Tile} name="Processor" value=${cpu === null ? '…' : `${(100 * cpu).toFixed(0)} %`} note="of one core" />
    <${Tile} name="Memory" value=${bytes(now.one('process_resident_memory_bytes') || 0)} />
  </dl>`;
}

function Health() {
  const state = useAnswer(async signal => {
    try {
      return { isReady: true, text: await (await ask('readyz?verbose', { when: '', accept: 'text/plain', signal })).text() };
    } catch (error) {
      if (error.status !== 500) throw error;
      return { isReady: false, text: error.message };
    }
  }, []);
  return html`<${Card} title="Health"><${Answer} state=${state}>${({ isReady, text }) => html`
    <p class="state ${isReady ? 'good' : 'bad'}">${isReady ? 'Ready' : 'Not ready'}</p>
    <ul class="checks">${text.split('\n').filter(line => /^\[[+-]\]|^warn:/.test(line)).map(line => html`<li class=${line.startsWith('[+]') ? 'good' : 'bad'} key=${line}>
      <span aria-hidden="true">${line.startsWith('[+]') ? '✓' : '!'}</span> ${line.replace(/^\[[+-]\](poststarthook\/)?/, '').replace(/ ok$/, '')}</li>`)}</ul>`}<//><//>`;
}

function Replicas() {
  const state = useAnswer(signal => get('apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io/identity=kube-apiserver', { when: '', signal }), []);
  return html`<${Card} title="Replicas"><${Answer} state=${state}>${list => (list.items.length ? html`<ul class="plain-list">${list.items.map(({ metadata, spec }) => {
    const late = (Date.now() - Date.parse(spec.renewTime)) / 1000;
    const isLate = late > 3 * 10;
    return html`<li key=${metadata.name}><a href=${link(['object', 'leases.coordination.k8s.io', 'kube-system', metadata.name])}>${metadata.labels?.['kubernetes.io/hostname'] || metadata.name}</a>
      <span class="state ${isLate ? 'bad' : 'good'}">${isLate ? 'silent' : 'alive'}</span> <span class="quiet">renewed ${ago(spec.renewTime)}, since <${Time} value=${metadata.creationTimestamp} /></span></li>`;
  })}</ul>` : html`<p class="quiet">No leases: the server is alone.</p>`)}<//><//>`;
}

/// The label sets of a counter by some of their names: `{key, grown, total}`, the most grown first.
function grouped(now, before, name, by, isRate, test = () => true) {
  const total = Map.groupBy(now.all(name).filter(({ labels }) => test(labels)), ({ labels }) => by(labels));
  const grown = isRate ? Map.groupBy(growth(now, before, name).filter(({ labels }) => test(labels)), ({ labels }) => by(labels)) : new Map();
  return [...total].map(([key, list]) => ({ key, total: list.reduce((sum, { value }) => sum + value, 0), grown: (grown.get(key) || []).reduce((sum, entry) => sum + entry.grown, 0) }))
    .sort((a, b) => b.grown - a.grown || b.total - a.total);
}

const resourceOf = labels => (labels.resource ? labels.resource + (labels.group ? `.${labels.group}` : '') : labels.subresource || '(other)');

function Ranking({ rows, noun, seconds, isRate, isGauge, name, most = 12 }) {
  const shown = rows.filter(row => row.total > 0).slice(0, most);
  // Names break behind dots.
  const columns = [{ name: noun, value: row => row.key, cell: row => row.key.replaceAll('.', '.\u200b') }];
  if (isGauge) columns.push({ name: 'Now', value: row => row.total, cell: row => count(row.total), style: 'number' });
  else columns.push({ name: 'Rate', value: row => row.grown / Math.max(1, seconds), cell: row => (isRate ? rate(row.grown / seconds) : '…'), style: 'number' }, { name: 'In all', value: row => row.total, cell: row => count(row.total), style: 'number' });
  const rest = rows.filter(row => row.total > 0).length - shown.length;
  if (!shown.length) return html`<p class="quiet">None.</p>`;
  return html`<${Table} label=${name} columns=${columns} rows=${shown} keyOf=${row => row.key} />
    <p class="foot">${rest > 0 && html`<span class="quiet">${plural(rest, 'further line')} not shown.</span>`} <${Saving} name=${name} columns=${columns.map(column => column.name)} rows=${rows.map(row => columns.map(column => column.value(row)))} /></p>`;
}

function Requests({ now, before, seconds, isRate }) {
  const rows = grouped(now, before, 'apiserver_request_total', labels => `${labels.verb} ${resourceOf(labels)}${labels.code >= 400 ? ` → ${labels.code}` : ''}`, isRate);
  return html`<${Card} title="Hot requests"><${Ranking} name="requests" noun="Request" rows=${rows} seconds=${seconds} isRate=${isRate} /><//>`;
}

function Clients({ now, before, seconds, isRate }) {
  const rows = grouped(now, before, 'apiserver_flowcontrol_dispatched_requests_total', labels => `${labels.flow_schema} (${labels.priority_level})`, isRate);
  return html`<${Card} title="Clients by flow schema"><${Ranking} name="clients" noun="Flow schema" rows=${rows} seconds=${seconds} isRate=${isRate} /><//>`;
}

function Watches({ now, before, seconds, isRate }) {
  const open = grouped(now, before, 'apiserver_longrunning_requests', resourceOf, false, labels => labels.verb === 'WATCH');
  const events = grouped(now, before, 'apiserver_watch_events_total', resourceOf, isRate);
  return html`<${Card} title="Watches"><h3>Open</h3><${Ranking} name="watches" noun="Resource" rows=${open} isGauge=${true} most=${8} />
    <h3>Events sent</h3><${Ranking} name="watch events" noun="Resource" rows=${events} seconds=${seconds} isRate=${isRate} most=${8} /><//>`;
}

function Objects({ now }) {
  const rows = grouped(now, now, 'apiserver_resource_objects', labels => labels.resource + (labels.group ? `.${labels.group}` : ''), false).map(row => ({ ...row, grown: 0 })).sort((a, b) => b.total - a.total);
  return html`<${Card} title="Objects"><${Ranking} name="objects" noun="Kind" rows=${rows} isGauge=${true} /><//>`;
}

function HistoryBytes({ now }) {
  const list = now.all('rowplane_history_bytes');
  if (!list.length) return null;
  const number = (name, resource, labels = {}) => now.sum(name, found => found.resource === resource && Object.entries(labels).every(([key, value]) => found[key] === value));
  const rows = [...new Set(list.map(({ labels }) => labels.resource))].map(resource => ({ resource, bytes: number('rowplane_history_bytes', resource), versions: number('rowplane_history_versions', resource), oldest: number('rowplane_history_oldest_seconds', resource) }))
    .sort((a, b) => b.bytes - a.bytes);
  const columns = [{ name: 'Kind', value: row => row.resource || 'all' }, { name: 'Versions', value: row => row.versions, cell: row => count(row.versions), style: 'number' },
    { name: 'Size', value: row => row.bytes, cell: row => bytes(row.bytes), style: 'number' }, { name: 'Reaches back', value: row => row.oldest, cell: row => (row.oldest ? span(row.oldest) : ''), style: 'number' }];
  return html`<${Card} title="History"><p>${bytes(rows.reduce((sum, row) => sum + row.bytes, 0))} in all</p><${Table} label="History" columns=${columns} rows=${rows.slice(0, 20)} keyOf=${row => row.resource} />
    <p class="foot"><${Saving} name="history-bytes" columns=${columns.map(column => column.name)} rows=${rows.map(row => columns.map(column => column.value(row)))} /></p><//>`;
}

function StorageVersions() {
  const versions = useAnswer(signal => get('apis/internal.apiserver.k8s.io/v1alpha1/storageversions', { when: '', signal }), []);
  const kind = kinds.value.get('storageversionmigrations.storagemigration.k8s.io');
  const migrations = useAnswer(async signal => (kind ? get(listPath(kind), { when: '', signal }) : { items: [] }), [kind]);
  return html`<${Card} title="Storage versions"><${Answer} state=${versions}>${({ items }) => {
    const mixed = items.filter(({ status }) => !status?.commonEncodingVersion);
    return html`<p>${plural(items.length, 'kind')}, ${mixed.length ? html`<span class="state warn">${plural(mixed.length, 'of them')} in several versions</span>` : html`<span class="state good">each in one version</span>`}</p>
      ${mixed.length > 0 && html`<ul class="plain-list">${mixed.map(({ metadata }) => html`<li key=${metadata.name}><a href=${link(['object', 'storageversions.internal.apiserver.k8s.io', '-', metadata.name])}>${metadata.name}</a></li>`)}</ul>`}`;
  }}<//>
    <${Answer} state=${migrations}>${({ items }) => (items.length ? html`<ul class="plain-list">${items.map(({ metadata, status }) => html`<li key=${metadata.name}>
      <a href=${link(['object', 'storageversionmigrations.storagemigration.k8s.io', '-', metadata.name])}>${metadata.name}</a> ${(status?.conditions || []).filter(condition => condition.status === 'True').map(condition => condition.type).join(', ') || 'waiting'}</li>`)}</ul>` : html`<p class="quiet">No migration of stored objects.</p>`)}<//><//>`;
}
