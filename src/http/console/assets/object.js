// One object: its YAML, its history, the difference of two versions, who has set which field, and its Events.

import { at, go, html, link, parameter, route, useEffect, useMemo, useState } from './base.js';
import { ApiError, get, kinds, objectPath, url, useAnswer } from './api.js';
import { blame } from './blame.js';
import { Changed, Reference, Writer, offer } from './changes.js';
import { unified } from './diff.js';
import { clock, day, moment, plural, save } from './format.js';
import { marks } from './marks.js';
import { Answer, Command, Notice, Saving, Table, Tabs, Time } from './parts.js';
import { lineText, withoutManagedFields, yaml, yamlText } from './yaml.js';

export function ObjectView() {
  const [, name, space, objectName] = route.value.path;
  const kind = kinds.value.get(name);
  if (!kind) {
    return kinds.value.size ? html`<${Notice} title="No such kind">The server has no kind <code>${name}</code>${at.value ? ' at this time' : ''}.<//>`
      : html`<p class="quiet">Loading …</p>`;
  }
  const namespace = space === '-' ? '' : space;
  return html`<${OneObject} key=${`${name}/${space}/${objectName}`} kind=${kind} namespace=${namespace} name=${objectName} />`;
}

function OneObject({ kind, namespace, name }) {
  const path = objectPath(kind, namespace, name);
  const tab = parameter('tab') || 'yaml';
  const state = useAnswer(signal => get(path, { signal }), [path]);
  const history = useAnswer(signal => get(`history/${path}?limit=100`, { when: '', signal }), [path]);
  useEffect(() => {
    marks.value = (history.data?.items || []).filter(item => item.time);
    return () => { marks.value = []; };
  }, [history.data]);
  const here = query => link(['object', kind.name, namespace || '-', name], query);
  const views = {
    yaml: () => html`<${Answer} state=${state}>${object => html`<${Yaml} object=${object} kind=${kind} />`}<//>`,
    history: () => html`<${History} state=${history} path=${path} here=${here} />`,
    diff: () => html`<${Diff} path=${path} history=${history} />`,
    blame: () => html`<${Answer} state=${state}>${object => html`<${Blame} object=${object} path=${path} here=${here} />`}<//>`,
    events: () => html`<${Events} namespace=${namespace} uid=${state.data?.metadata.uid} name=${name} kind=${kind} />`,
  };
  const tabs = [['yaml', 'YAML'], ['history', 'History'], ['diff', 'Diff'], ['blame', 'Blame'], ['events', 'Events']];
  return html`<header class="title"><p class="crumbs"><a href=${link(['objects', kind.name], { ns: namespace })}>${kind.kind}</a>${namespace && html` in <a href=${link(['objects', kind.name], { ns: namespace })}>${namespace}</a>`}</p>
      <h1>${name}</h1>
      <${Tabs} label="Views of the object" current=${tab} tabs=${tabs.map(([id, title]) => [id, title, here({ tab: id === 'yaml' ? '' : id })])} /></header>
    ${state.data ? html`<${Summary} object=${state.data} />`
      : state.error && tab !== 'yaml' && tab !== 'blame' && html`<${Notice}>${state.error.message}<//>`}
    ${(views[tab] || views.yaml)()}
    ${tab !== 'events' && html`<${Commands} kind=${kind} namespace=${namespace} name=${name} history=${history.data} />`}`;
}

function Summary({ object }) {
  const { uid, generation, creationTimestamp, deletionTimestamp, labels = {}, ownerReferences = [], resourceVersion } = object.metadata;
  const entry = (name, value) => value !== undefined && value !== '' && html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`<dl class="summary">
    ${entry('Created', html`<${Time} value=${creationTimestamp} />`)}
    ${deletionTimestamp && entry('Being deleted', html`<${Time} value=${deletionTimestamp} />`)}
    ${entry('Generation', generation)}
    ${entry('Revision', resourceVersion)}
    ${ownerReferences.length > 0 && entry('Owner', ownerReferences.map(owner => html`<${Reference} to=${{ ...owner, namespace: object.metadata.namespace }} /> `))}
    ${Object.keys(labels).length > 0 && entry('Labels', Object.entries(labels).map(([key, value]) => html`<code class="label">${key}=${value}</code> `))}
    ${entry('UID', html`<code>${uid}</code>`)}
  </dl>`;
}

/// A line of YAML with its tokens.
const Line = ({ line }) => html`${'  '.repeat(line.indent)}${line.prefix}${line.key !== undefined && html`<span class="key">${line.key}</span>:`}${line.key !== undefined && line.value ? ' ' : ''}${line.value && html`<span class=${line.kind || undefined}>${line.value}</span>`}`;

/// An object whose secret values are left out unless they are wanted.
function shownObject(object, kind, isShown) {
  const plain = withoutManagedFields(object);
  if (kind.name !== 'secrets' || isShown || !plain.data) return plain;
  return { ...plain, data: Object.fromEntries(Object.entries(plain.data).map(([key, value]) => [key, `(${plural(value.length, 'character')} of base64)`])) };
}

function Yaml({ object, kind }) {
  const [isShown, show] = useState(false);
  const lines = useMemo(() => yaml(shownObject(object, kind, isShown)), [object, isShown]);
  const { name } = object.metadata;
  return html`<div class="day"><h2>${plural(lines.length, 'line')}</h2><span class="saving">
      ${kind.name === 'secrets' && html`<button aria-pressed=${isShown} onClick=${() => show(!isShown)}>${isShown ? 'Hide' : 'Show'} values</button>`}
      <button onClick=${() => save(`${name}.yaml`, 'application/yaml', yamlText(withoutManagedFields(object)))}>YAML</button>
      <button onClick=${() => save(`${name}.json`, 'application/json', JSON.stringify(object, null, 1))}>JSON</button></span></div>
    <pre class="code numbered" tabindex="0" role="region" aria-label="YAML">${lines.map((line, index) => html`<span class="line" key=${index}><${Line} line=${line} />${'\n'}</span>`)}</pre>`;
}

function History({ state, path, here }) {
  const [more, setMore] = useState(null);
  const [isAll, setAll] = useState(true);
  useEffect(() => setMore(null), [state.data]);
  const load = async token => {
    const answer = await get(`history/${path}?limit=100&continue=${encodeURIComponent(token)}`, { when: '' });
    setMore(old => ({ items: [...(old?.items || []), ...answer.items], token: answer.metadata?.continue || '' }));
  };
  return html`<${Answer} state=${state} offer=${{ ...offer, text: 'It runs without history (--history=off), or is another API server.' }}>${data => {
    const all = [...data.items, ...(more?.items || [])];
    const items = isAll ? all : all.filter(item => item.event !== 'MODIFIED' || (item.changed || []).some(field => !field.startsWith('status')));
    const token = more ? more.token : data.metadata?.continue;
    const columns = [
      { name: 'Time', value: item => item.time || '', cell: item => item.time ? html`<a href=${here({ at: `rv-${item.event === 'DELETED' ? item.previous : item.revision}`, tab: '' })}><${Time} value=${item.time}>${moment(item.time)}<//></a>` : 'before the history' },
      { name: 'Event', value: item => item.event, cell: item => html`<span class="event ${item.event.toLowerCase()}">${item.event.toLowerCase()}</span>` },
      { name: 'What', value: item => (item.changed || []).join(' '), style: 'long', cell: item => html`<${Changed} row=${item} most=${4} />` },
      { name: 'By', value: item => item.user || item.manager || '', style: 'wrap', cell: item => html`<${Writer} row=${item} />` },
      { name: 'Request', value: item => [item.verb, item.subresource].filter(Boolean).join(' '), hide: true },
      { name: 'Revision', value: item => item.revision, style: 'number', hide: true },
      { name: 'Compare', value: () => '', cell: item => item.previous && item.previous !== '0' ? html`<a href=${here({ tab: 'diff', from: item.previous, to: item.event === 'DELETED' ? item.previous : item.revision })}>diff</a>` : '' },
    ];
    return html`<div class="day"><h2>${plural(items.length, 'version')}</h2>
        <label class="toggle"><input type="checkbox" checked=${isAll} onChange=${() => setAll(!isAll)} /> Status updates</label>
        <${Saving} name="history" columns=${columns.map(column => column.name)} rows=${items.map(item => columns.map(column => column.value(item)))} api=${url(`history/${path}`, '')} /></div>
      <${Table} label="History" columns=${columns} rows=${items} keyOf=${item => item.revision} />
      ${token && html`<p class="more"><button onClick=${() => load(token)}>Older versions</button> <span class="quiet">The newest ${all.length} are shown; there are older ones.</span></p>`}`;
  }}<//>`;
}

/// The object at a revision, a time, or now; null if it was not there.
async function version(path, when, signal) {
  try {
    return await get(path, { when: /^\d+$/.test(when) ? `rv-${when}` : when === 'now' ? '' : when, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/// The newest change that is not of the status alone.
const lastChange = items => items.find(item => item.event !== 'MODIFIED' || (item.changed || []).some(field => !/^status\b/.test(field)));

function Diff({ path, history }) {
  const items = history.data?.items || [];
  // A past time is compared with now, and now with what was before the last change.
  const from = parameter('from') || at.value || lastChange(items)?.previous || '';
  const to = parameter('to') || 'now';
  const withStatus = parameter('status') === '1';
  const name = item => `${item.time ? `${moment(item.time)} · ` : ''}${item.revision}${item.user ? ` · ${item.user}` : ''}`;
  const choice = (label, parameterName, value) => html`<label class="field wide"><span>${label}</span><select value=${value} onChange=${event => go({ [parameterName]: event.currentTarget.value })}>
    ${parameterName === 'to' && html`<option value="now" selected=${value === 'now'}>now</option>`}
    ${value && value !== 'now' && !items.some(item => item.revision === value) && html`<option value=${value} selected>${/^\d{4}-/.test(value) ? moment(value) : value}</option>`}
    ${items.map(item => html`<option value=${item.revision} selected=${item.revision === value}>${name(item)}</option>`)}</select></label>`;
  const state = useAnswer(async signal => (from ? { pair: await Promise.all([version(path, from, signal), version(path, to, signal)]) } : {}), [path, from, to]);
  if (history.error && !from) return html`<${Answer} state=${history} offer=${offer}>${() => ''}<//>`;
  return html`<form class="filters" aria-label="Versions" onSubmit=${event => event.preventDefault()}>${choice('From', 'from', from)} ${choice('To', 'to', to)}
      <label class="toggle"><input type="checkbox" checked=${withStatus} onChange=${event => go({ status: event.currentTarget.checked ? '1' : '' }, { replace: true })} /> Status</label></form>
    <${Answer} state=${state}>${({ pair }) => (pair ? html`<${Difference} pair=${pair} withStatus=${withStatus} />` : html`<${Notice}>There is one version.<//>`)}<//>`;
}

const empty = ['resourceVersion', 'generation'];

function comparable(object, withStatus) {
  if (!object) return [];
  const { status, ...rest } = withoutManagedFields(object);
  const metadata = Object.fromEntries(Object.entries(rest.metadata).filter(([name]) => !empty.includes(name)));
  return yaml({ ...rest, metadata, ...(withStatus && status ? { status } : {}) }).map(lineText);
}

function Difference({ pair: [one, other], withStatus }) {
  const rows = useMemo(() => unified(comparable(one, withStatus), comparable(other, withStatus)), [one, other, withStatus]);
  const [gone, come] = ['-', '+'].map(kind => rows.filter(row => row.kind === kind).length);
  if (!gone && !come) return html`<${Notice}>No difference${withStatus ? '' : ' outside of the status'}.<//>`;
  const piece = ([isChanged, text]) => (isChanged ? html`<mark>${text}</mark>` : text);
  return html`<div class="day"><h2><span class="minus">−${gone}</span> <span class="plus">+${come}</span> ${plural(gone + come, 'line')}</h2>
      ${!one && html`<span class="quiet">the first version is not there</span>`} ${!other && html`<span class="quiet">the second version is not there</span>`}</div>
    <pre class="code diff" tabindex="0" role="region" aria-label="Difference">${rows.map((row, index) => (row.kind === '@'
      ? html`<span class="line gap" key=${index}>… ${plural(row.count, 'line')} alike${'\n'}</span>`
      : html`<span class="line ${{ '-': 'minus', '+': 'plus', '=': 'same' }[row.kind]}" key=${index}><span class="at" aria-hidden="true">${row.a ?? ''}</span><span class="at" aria-hidden="true">${row.b ?? ''}</span>${row.kind === '=' ? ' ' : row.kind === '-' ? '−' : '+'} ${row.pieces ? row.pieces.map(piece) : row.text}${'\n'}</span>`))}</pre>`;
}

function Blame({ object, path, here }) {
  const state = useAnswer(signal => blame(object, path, signal), [object]);
  return html`<${Answer} state=${state}>${({ lines, note }) => html`
    <div class="day"><h2>Who set each field</h2></div>
    ${note && html`<${Notice}>${note}<//>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Blame"><table class="blame"><caption class="visually-hidden">Each line with the change that made it so</caption>
      <thead class="visually-hidden"><tr><th scope="col">Time</th><th scope="col">By</th><th scope="col">Line</th></tr></thead>
      <tbody>${lines.map(({ line, entry, isFirst }, index) => html`<tr key=${index} class=${isFirst ? 'first' : ''}>
        <td class="when">${isFirst && entry?.time ? html`${entry.revision ? html`<a href=${here({ tab: 'diff', from: entry.previous || '', to: entry.revision })}><${Time} value=${entry.time}>${when(entry.time)}<//></a>` : html`<${Time} value=${entry.time}>≤ ${when(entry.time)}<//>`}` : ''}</td>
        <td class="by">${isFirst && entry ? html`<${Writer} row=${entry} />` : ''}</td>
        <td><code><${Line} line=${line} /></code></td></tr>`)}</tbody></table></div>`}<//>`;
}

const when = time => (day(time) === day(Date.now()) ? clock(time) : day(time));

function Events({ namespace, uid, name, kind }) {
  const select = uid ? `involvedObject.uid=${uid}` : `involvedObject.name=${name},involvedObject.kind=${kind.kind}`;
  const path = `api/v1/${namespace ? `namespaces/${namespace}/` : ''}events?limit=500&fieldSelector=${encodeURIComponent(select)}`;
  const state = useAnswer(signal => get(path, { signal }), [path]);
  const seen = row => row.series?.lastObservedTime || row.lastTimestamp || row.eventTime || row.metadata.creationTimestamp;
  const columns = [
    { name: 'Last seen', value: seen, cell: row => html`<${Time} value=${seen(row)} />` },
    { name: 'Type', value: row => row.type, cell: row => html`<span class=${row.type === 'Warning' ? 'badge warn' : 'badge'}>${row.type}</span>` },
    { name: 'Reason', value: row => row.reason },
    { name: 'Message', value: row => row.message, style: 'long' },
    { name: 'Count', value: row => row.series?.count || row.count || 1, style: 'number' },
    { name: 'From', value: row => row.reportingComponent || row.source?.component || '', hide: true },
  ];
  return html`<${Answer} state=${state}>${list => (list.items.length
    ? html`<${Table} label="Events" columns=${columns} rows=${[...list.items].sort((a, b) => (seen(a) < seen(b) ? 1 : -1))} keyOf=${row => row.metadata.uid} />`
    : html`<${Notice}>There are no Events about it.<//>`)}<//>`;
}

/// Commands that do what this page does not: it only reads.
function Commands({ kind, namespace, name, history }) {
  const target = `${kind.name}/${name}${namespace ? ` -n ${namespace}` : ''}`;
  const commands = [[at.value ? 'Read it as it was' : 'Read it', at.value ? `rowplane asof ${at.value} -- kubectl get ${target} -o yaml` : `kubectl get ${target} -o yaml`]];
  if (history) {
    const items = history.items;
    const before = parameter('from') || lastChange(items)?.previous;
    const to = at.value || (before && before !== '0' ? `rv-${before}` : '');
    commands.push(['Its history', `rowplane history ${target}`]);
    if (to) commands.push([at.value ? 'Bring it back to this time' : 'Undo the last change (prints the plan)', `rowplane undo ${target} --to ${to}`]);
  }
  return html`<section class="commands" aria-label="Commands"><h2>Commands</h2>${commands.map(([title, command]) => html`<div key=${title}><h3>${title}</h3><${Command} text=${command} /></div>`)}</section>`;
}
