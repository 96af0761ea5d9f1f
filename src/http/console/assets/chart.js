// Simple charts: a bar for each row, or a line over times.

import { html } from './base.js';
import { count, moment } from './format.js';

const most = 60;

const isTime = value => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T/.test(value);

/// How rows can be drawn: `{kind, label, value}` with positions of columns; null if they cannot.
export function chartable(columns, rows) {
  if (rows.length < 2) return null;
  const all = (index, test) => rows.every(row => row[index] === null || test(row[index]));
  const values = columns.map((_, index) => index).filter(index => all(index, value => typeof value === 'number'));
  const value = values[values.length - 1];
  if (value === undefined) return null;
  const time = columns.findIndex((_, index) => all(index, isTime));
  if (time >= 0) return { kind: 'line', labels: [time], value };
  const labels = columns.map((_, index) => index).filter(index => index !== value && all(index, entry => typeof entry !== 'object'));
  return { kind: 'bar', labels, value };
}

export function Chart({ shape, columns, rows }) {
  return shape.kind === 'line' ? html`<${LineChart} shape=${shape} columns=${columns} rows=${rows} />` : html`<${BarChart} shape=${shape} columns=${columns} rows=${rows} />`;
}

function BarChart({ shape: { labels, value }, columns, rows }) {
  const shown = rows.slice(0, most);
  const largest = Math.max(...shown.map(row => Math.abs(row[value] ?? 0)), 1e-9);
  return html`<figure class="bars"><figcaption>${columns[value].name} by ${labels.map(index => columns[index].name).join(', ') || 'row'}${rows.length > most ? `, the first ${most} of ${count(rows.length)} rows` : ''}</figcaption>
    <ul>${shown.map((row, index) => html`<li key=${index}><span class="name">${labels.map(label => row[label] ?? '–').join(' · ') || index + 1}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${100 * Math.abs(row[value] ?? 0) / largest} height="10" /></svg>
      <span class="number">${count(row[value] ?? 0)}</span></li>`)}</ul></figure>`;
}

function LineChart({ shape: { labels: [label], value }, columns, rows }) {
  const points = rows.filter(row => row[label] !== null && row[value] !== null).map(row => [Date.parse(row[label]), row[value]]).sort((a, b) => a[0] - b[0]);
  const [from, to] = [points[0][0], points[points.length - 1][0]];
  const top = Math.max(...points.map(point => point[1]), 0);
  const bottom = Math.min(...points.map(point => point[1]), 0);
  const x = time => 1000 * (time - from) / Math.max(1, to - from);
  const y = amount => 200 - 190 * (amount - bottom) / Math.max(1e-9, top - bottom);
  const path = points.map(([time, amount], index) => `${index ? 'L' : 'M'}${x(time).toFixed(1)} ${y(amount).toFixed(1)}`).join('');
  const title = `${columns[value].name} over ${columns[label].name}, ${moment(from)} to ${moment(to)}, ${count(bottom)} to ${count(top)}`;
  return html`<figure class="lines"><figcaption>${columns[value].name} over ${columns[label].name}</figcaption>
    <svg viewBox="0 0 1000 204" preserveAspectRatio="none" role="img" aria-label=${title}><path class="area" d=${`${path}L1000 200L0 200Z`} /><path class="stroke" d=${path} /></svg>
    <p class="axis"><span>${moment(from)}</span><span>at most ${count(top)}</span><span>${moment(to)}</span></p></figure>`;
}
