// Parts of which views are made.

import { Fragment, at, go, html, signal, useEffect, useRef, useState } from './base.js';
import { csv, moment, ago, save, text } from './format.js';
import { isLack, turn } from './api.js';

/// A message in place of what cannot be shown.
export function Notice({ title, children, kind = 'info' }) {
  return html`<div class="notice ${kind}" role=${kind === 'bad' ? 'alert' : undefined}>
    ${title && html`<strong>${title}</strong>`} ${children}
  </div>`;
}

/// Why a request has failed. A path that the server does not have is no failure: it says which option offers it.
export function Failure({ error, offer }) {
  if (isLack(error) && offer) return html`<${Notice} title=${offer.title}>${offer.text}<//>`;
  if (error.status === 410) return html`<${Notice} title="Not kept any more">${error.message}<//>`;
  if (error.status === 403) return html`<${Notice} title="Not allowed" kind="warn">${error.message}<//>`;
  return html`<${Notice} title=${error.reason || 'Failed'} kind="bad">
    ${error.message} ${error.status !== 400 && html`<button onClick=${() => { turn.value += 1; }}>Try again</button>`}
  <//>`;
}

/// An answer's content, or what there is instead. What is there stays while it is asked for again.
export function Answer({ state, offer, children }) {
  if (state.error) return html`<${Failure} error=${state.error} offer=${offer} />`;
  if (state.data === undefined) return html`<p class="quiet" aria-busy="true">Loading …</p>`;
  return children(state.data);
}

/// A time, with the date where the reader points at it.
export const Time = ({ value, children }) =>
  html`<time datetime=${value} title=${`${moment(value)} (${ago(value)})`}>${children || ago(value)}</time>`;

/// A command to copy.
export function Command({ text: command }) {
  const [isCopied, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(command);
    set(true);
    setTimeout(() => set(false), 2000);
  };
  return html`<div class="command"><code tabindex="0" aria-label="Command">${command}</code>
    <button onClick=${copy}>${isCopied ? 'Copied' : 'Copy'}</button>
    <span class="visually-hidden" role="status">${isCopied ? 'Copied' : ''}</span></div>`;
}

/// A text field whose value is a parameter of the address. It counts after a pause.
export function Field({ name, label, placeholder, list, type = 'search', value = '', wide }) {
  const timer = useRef();
  const change = event => {
    const typed = event.currentTarget.value;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go({ [name]: typed }, { replace: true }), 250);
  };
  return html`<label class=${wide ? 'field wide' : 'field'}><span>${label}</span>
    <input type=${type} value=${value} placeholder=${placeholder} list=${list} onInput=${change} autocomplete="off" spellcheck=${false} />
  </label>`;
}

export const Toggle = ({ name, label, value }) =>
  html`<label class="toggle"><input type="checkbox" checked=${Boolean(value)}
    onChange=${event => go({ [name]: event.currentTarget.checked ? '1' : '' }, { replace: true })} /> ${label}</label>`;

/// Buttons that save a table as JSON or CSV. `rows` are values in the order of the columns.
export function Saving({ name, columns, rows, api }) {
  const objects = () => rows.map(row => Object.fromEntries(columns.map((column, index) => [column, row[index]])));
  return html`<span class="saving">
    <button onClick=${() => save(`${name}.json`, 'application/json', JSON.stringify(objects(), null, 1))}>JSON</button>
    <button onClick=${() => save(`${name}.csv`, 'text/csv', csv(columns, rows))}>CSV</button>
    ${api && html`<a class="button" href=${api} target="_blank" rel="noopener">API</a>`}
  </span>`;
}

/// Values in their order: numbers by size (also with a unit), ages by time, all else as text.
export function compare(one, other) {
  const [a, b] = [weight(one), weight(other)];
  if (a !== null && b !== null) return a - b;
  return text(one).localeCompare(text(other), undefined, { numeric: true });
}

const seconds = { s: 1, m: 60, h: 3600, d: 86400, y: 31536000 };

function weight(value) {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value === '') return null;
  if (/^(\d+[smhdy])+$/.test(value)) {
    return [...value.matchAll(/(\d+)([smhdy])/g)].reduce((sum, [, number, unit]) => sum + number * seconds[unit], 0);
  }
  return /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : null;
}

/// A table. Columns are `{name, cell(row), value(row), hide}`; `hide` leaves a column out on narrow screens.
/// With `sort` a heading orders the rows by the address's parameter `sort`.
export function Table({ label, columns, rows, sort, keyOf, rowClass }) {
  const [by, isDown] = sort?.startsWith('-') ? [sort.slice(1), true] : [sort || '', false];
  const column = columns.find(candidate => candidate.name === by);
  const sorted = column ? [...rows].sort((a, b) => (isDown ? -1 : 1) * compare(column.value(a), column.value(b))) : rows;
  const heading = ({ name, hide, style }) => html`<th scope="col" class=${[hide && 'hide', style === 'number' && style].filter(Boolean).join(' ')}
      aria-sort=${name === by ? (isDown ? 'descending' : 'ascending') : undefined}>
    ${sort === undefined ? name : html`<button onClick=${() => go({ sort: name === by && !isDown ? `-${name}` : name })}>
      ${name}<span aria-hidden="true">${name === by ? (isDown ? ' ↓' : ' ↑') : ''}</span></button>`}</th>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table><caption class="visually-hidden">${label}</caption>
      <thead><tr>${columns.map(heading)}</tr></thead>
      <tbody>${sorted.map((row, index) => html`<tr key=${keyOf ? keyOf(row) : index} class=${rowClass?.(row)}>
        ${columns.map(({ name, cell, value, hide, style }) => html`<td key=${name} data-name=${name}
          class=${[hide && 'hide', style].filter(Boolean).join(' ')}>${cell ? cell(row) : text(value(row))}</td>`)}
      </tr>`)}</tbody></table></div>`;
}

/// Tabs that are links, since each is an address.
export const Tabs = ({ label, tabs, current }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs.map(([name, title, href]) => html`<a href=${href} aria-current=${name === current ? 'page' : undefined}>${title}</a>`)}
</nav>`;

/// What screen readers are told, at most every five seconds.
const said = signal('');
let last = 0;
export function say(message) {
  if (Date.now() - last < 5000) return;
  last = Date.now();
  said.value = message;
}
export const Voice = () => html`<div class="visually-hidden" role="status">${said.value}</div>`;

/// Calls a function every few seconds while the page is visible and looks at now.
export function usePoll(call, milliseconds, inputs) {
  useEffect(() => {
    if (at.value) return undefined;
    const timer = setInterval(() => { if (!document.hidden) call(); }, milliseconds);
    return () => clearInterval(timer);
  }, [...inputs, at.value]);
}

export { Fragment };
