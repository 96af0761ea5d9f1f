// SQL over the cluster, at one revision, now or then.

import { at, go, html, parameter, signal, useEffect, useMemo, useRef, useState } from './base.js';
import { ApiError, ask, lines, useAnswer } from './api.js';
import { Chart, chartable } from './chart.js';
import { count, csv, duration, plural, save, text } from './format.js';
import { Failure, Notice, Table } from './parts.js';

const most = 1000;

const offer = { title: 'This server does not offer SQL.', text: 'It runs with --sql=false, or is another API server.' };

const examples = [
  ['Pods of each node', 'SELECT spec_node_name AS node, count(*) AS pods\nFROM pods GROUP BY 1 ORDER BY 2 DESC'],
  ['Pods that do not run', "SELECT namespace, name, status_phase, age(created) AS seconds\nFROM pods WHERE status_phase NOT IN ('Running', 'Succeeded')"],
  ['Who changed what, today', "SELECT username, resource, count(*) AS changes\nFROM changes WHERE time > ago('1d') GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 50"],
  ['Conditions that are not met', "SELECT resource, namespace, name, type, reason, since\nFROM conditions WHERE status <> 'True' ORDER BY since DESC"],
  ['Images in use', 'SELECT image, count(*) AS containers\nFROM containers GROUP BY 1 ORDER BY 2 DESC'],
  ['Deployments without all replicas', 'SELECT namespace, name, spec_replicas, status_ready_replicas\nFROM deployments WHERE coalesce(status_ready_replicas, 0) < spec_replicas'],
  ['Pods by zone of their nodes', "SELECT n.labels->>'topology.kubernetes.io/zone' AS zone, p.namespace, count(*) AS pods\nFROM pods p JOIN nodes n ON n.name = p.spec_node_name GROUP BY 1, 2 ORDER BY 3 DESC"],
];

/// Runs a statement. Rows after the first `limit` are not read. Throws ApiError, also where the answer is broken off.
export async function query(statement, { limit = most, signal, onRows } = {}) {
  const body = JSON.stringify({ query: statement, ...(at.value ? { asOf: at.value } : {}) });
  const headers = { 'Content-Type': 'application/json', 'Rowplane-Console': '1' };
  const response = await ask('rowplane/sql', { when: '', method: 'POST', accept: 'application/x-ndjson', body, headers, signal });
  const answer = { columns: [], rows: [], warnings: [], isCut: false, revision: '' };
  let isWhole = false;
  for await (const line of lines(response)) {
    if (Array.isArray(line)) {
      if (answer.rows.length >= limit) { answer.isCut = true; isWhole = true; break; }
      answer.rows.push(line);
      if (answer.rows.length % 200 === 0) onRows?.(answer.rows.length);
    } else if (line.columns) {
      answer.columns = line.columns;
      answer.revision = line.revision;
    } else if (line.error) {
      throw new ApiError(400, line.error);
    } else if (line.end) {
      isWhole = true;
      answer.warnings = line.warnings || [];
      answer.ms = line.ms;
    }
  }
  if (!isWhole) throw new ApiError(0, { message: 'The answer was broken off.' });
  return answer;
}

/// The name of a table as a statement has it.
const quoted = name => (/^\w+$/.test(name) ? name : `"${name}"`);

const namesOfTables = `SELECT table_name FROM resources UNION SELECT table_name FROM columns WHERE table_name NOT LIKE '%.%' UNION SELECT 'containers' ORDER BY 1`;

/// The columns of the tables that a statement names, as far as they are known.
function useColumns(statement, tables) {
  const named = [...statement.matchAll(/\b(?:from|join)\s+"?([\w.]+)/gi)].map(([, name]) => name).filter(name => tables.includes(name));
  const list = [...new Set(named)].map(name => `'${name}'`).join(', ');
  const { data } = useAnswer(async signal => (list ? query(`SELECT DISTINCT name FROM columns WHERE table_name IN (${list})`, { signal }) : null), [list]);
  return useMemo(() => (data ? data.rows.map(([name]) => name) : []), [data]);
}

export function SqlView() {
  const listed = useAnswer(signal => query(namesOfTables, { signal }), []);
  const tables = useMemo(() => (listed.data ? listed.data.rows.map(([name]) => name) : []), [listed.data]);
  const asked = parameter('q');
  const [statement, setStatement] = useState(asked || examples[0][1]);
  const [state, setState] = useState({});
  const controller = useRef(null);
  useEffect(() => { if (asked) setStatement(asked); }, [asked]);
  useEffect(() => {
    if (!asked) return undefined;
    const running = new AbortController();
    controller.current = running;
    setState({ isRunning: true });
    query(asked, { signal: running.signal }).then(
      data => setState({ data }),
      error => setState(running.signal.aborted ? {} : { error }),
    );
    return () => running.abort();
  }, [asked, at.value, parameter('run')]);
  const run = () => go(statement === asked ? { run: String(Date.now() % 1e6) } : { q: statement, run: '' });
  return html`<header class="title"><h1>SQL</h1><p class="quiet">One statement sees one revision of the whole cluster${at.value ? ', as it was' : ''}.</p></header>
    <div class="split sql"><div class="main-part">
      <${Editor} value=${statement} set=${setStatement} run=${run} tables=${tables} />
      <p class="runs"><button class="primary" onClick=${run} disabled=${state.isRunning}>Run</button>
        ${state.isRunning && html`<button onClick=${() => controller.current?.abort()}>Stop</button>`}
        <span class="quiet">Ctrl+Enter</span>
        <label class="toggle"><input type="checkbox" checked=${completes.value} onChange=${event => { completes.value = event.currentTarget.checked; localStorage.setItem('completion', event.currentTarget.checked ? 'on' : 'off'); }} /> Complete names</label></p>
      ${state.error && html`<${Failure} error=${state.error} offer=${offer} />`}
      ${state.isRunning && html`<p class="quiet" aria-busy="true">Running …</p>`}
      ${state.data && html`<${Result} answer=${state.data} statement=${asked} />`}</div>
      <${Aside} set=${setStatement} tables=${tables} /></div>`;
}

const words = 'SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT JOIN LEFT USING count sum avg min max ago age quantity json_each DESC AND NOT NULL LIKE'.split(' ');

/// Whether names are completed; the choice is kept in the browser.
const completes = signal(localStorage.getItem('completion') !== 'off');

/// A text area that offers the names of tables, and the columns of those that the statement names.
function Editor({ value, set, run, tables }) {
  const field = useRef();
  const [offered, setOffered] = useState([]);
  const [chosen, setChosen] = useState(0);
  const columns = useColumns(value, tables);
  const names = useMemo(() => [...columns, ...tables.map(quoted), ...words], [columns, tables]);
  const look = () => {
    const word = /[\w"]+$/.exec(field.current.value.slice(0, field.current.selectionStart))?.[0] || '';
    const found = completes.value && word.length > 1 ? names.filter(name => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word).slice(0, 8) : [];
    setOffered(found);
    setChosen(0);
  };
  const take = name => {
    const end = field.current.selectionStart;
    const start = end - (/[\w"]+$/.exec(value.slice(0, end))?.[0].length || 0);
    set(value.slice(0, start) + name + value.slice(end));
    setOffered([]);
    requestAnimationFrame(() => field.current.setSelectionRange(start + name.length, start + name.length));
  };
  const press = event => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'Enter') { event.preventDefault(); setOffered([]); run(); return; }
    if (!offered.length) return;
    if (event.key === 'Escape') { setOffered([]); event.preventDefault(); }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); setChosen((chosen + (event.key === 'ArrowDown' ? 1 : offered.length - 1)) % offered.length); }
    if (event.key === 'Enter' || event.key === 'Tab') { event.preventDefault(); take(offered[chosen]); }
  };
  const isOpen = offered.length > 0;
  return html`<div class="editor"><label><span class="visually-hidden">Statement</span>
      <textarea ref=${field} rows=${Math.min(16, Math.max(4, value.split('\n').length + 1))} spellcheck=${false} value=${value} aria-autocomplete="list"
        aria-controls="offered" aria-activedescendant=${isOpen ? `offer-${chosen}` : undefined}
        onInput=${event => { set(event.currentTarget.value); look(); }} onKeyDown=${press} onBlur=${() => setOffered([])} /></label>
    <ul id="offered" role="listbox" aria-label="Names" hidden=${!isOpen}>${offered.map((name, index) => html`<li id=${`offer-${index}`} role="option" aria-selected=${index === chosen}
      onMouseDown=${event => { event.preventDefault(); take(name); }}>${name}</li>`)}</ul></div>`;
}

function Aside({ set, tables }) {
  const insert = name => go({ q: `SELECT * FROM ${quoted(name)} LIMIT 50`, run: '' });
  return html`<aside class="aside" aria-label="Examples and tables"><h2>Examples</h2><ul>${examples.map(([title, statement]) => html`<li key=${title}><button class="plain" onClick=${() => { set(statement); go({ q: statement, run: '' }); }}>${title}</button></li>`)}</ul>
    ${tables.length > 0 && html`<details><summary>${plural(tables.length, 'table')}</summary><ul>${tables.map(name => html`<li key=${name}><button class="plain" onClick=${() => insert(name)}>${name}</button></li>`)}</ul></details>`}</aside>`;
}

function Result({ answer, statement }) {
  const { columns, rows, warnings, isCut, ms, revision } = answer;
  const how = parameter('as') || 'table';
  const names = columns.map(column => column.name);
  const shape = chartable(columns, rows);
  const isNumber = index => /INT|REAL/i.test(columns[index].type || '') || rows.slice(0, 50).every(row => typeof row[index] === 'number');
  const tableColumns = names.map((name, index) => ({ name, value: row => row[index], style: isNumber(index) && rows.length ? 'number' : '', cell: row => {
    const shown = text(row[index]);
    return row[index] === null ? html`<span class="quiet">NULL</span>` : shown.length > 160 ? html`<span title=${shown.slice(0, 2000)}>${shown.slice(0, 160)}…</span>` : shown;
  } }));
  const all = async kind => {
    const media = { csv: 'text/csv', json: 'application/json' }[kind];
    const body = JSON.stringify({ query: statement, ...(at.value ? { asOf: at.value } : {}) });
    const response = await ask('rowplane/sql', { when: '', method: 'POST', accept: media, body, headers: { 'Content-Type': 'application/json', 'Rowplane-Console': '1' } });
    save(`rows.${kind}`, media, await response.text());
  };
  const saveAs = kind => {
    if (isCut) return all(kind);
    return kind === 'csv' ? save('rows.csv', 'text/csv', csv(names, rows))
      : save('rows.json', 'application/json', JSON.stringify(rows.map(row => Object.fromEntries(names.map((name, index) => [name, row[index]]))), null, 1));
  };
  return html`${warnings.map(warning => html`<${Notice} kind="warn">${warning}<//>`)}
    <div class="day"><h2>${isCut ? `First ${count(rows.length)} rows` : plural(rows.length, 'row')}</h2>
      <span class="quiet">${ms !== undefined ? `${duration(ms / 1000)}, ` : ''}revision ${revision}</span>
      ${shape && html`<span class="tabs small" role="group" aria-label="Form">${['table', 'chart'].map(form => html`<button aria-pressed=${form === how} onClick=${() => go({ as: form === 'table' ? '' : form }, { replace: true })}>${form}</button>`)}</span>`}
      <span class="saving"><button onClick=${() => saveAs('json')}>JSON</button><button onClick=${() => saveAs('csv')}>CSV</button></span></div>
    ${isCut && html`<p class="cut">Cut short: only ${count(most)} rows are shown. CSV and JSON hold all of them.</p>`}
    ${how === 'chart' && shape ? html`<${Chart} shape=${shape} columns=${columns} rows=${rows} />`
      : rows.length ? html`<${Table} label="Rows" columns=${tableColumns} rows=${rows} sort=${parameter('sort')} />` : html`<${Notice}>No rows.<//>`}`;
}
