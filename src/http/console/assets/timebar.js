// The time that the cluster is looked at: a slider over the kept history, over a histogram of changes.

import { at, go, html, useEffect, useState } from './base.js';
import { get, isLack, momentAt, token, turn } from './api.js';
import { ago, count, moment, span, stamp } from './format.js';
import { marks } from './marks.js';

const buckets = 120;

/// The time of a parameter of the address, in milliseconds; `null` for a revision.
function milliseconds(when) {
  const value = when.startsWith('rv-') ? NaN : Date.parse(when);
  return Number.isNaN(value) ? null : value;
}

export function TimeBar() {
  const when = at.value;
  const [range, setRange] = useState({ isLoading: true });
  const [typed, setTyped] = useState('');
  const [error, setError] = useState('');
  const [moved, setMoved] = useState(null);
  const [exact, setExact] = useState(null);
  const load = async () => {
    try {
      setRange({ data: await get(`history/range?buckets=${buckets}`, { when: '' }) });
    } catch (failure) {
      setRange(old => (old.data ? old : { error: failure }));
    }
  };
  useEffect(() => {
    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, 10_000);
    return () => clearInterval(timer);
  }, [token.value, turn.value]);
  useEffect(() => {
    setMoved(null);
    setError('');
    setExact(null);
    const value = milliseconds(when);
    setTyped(value === null ? when : moment(value));
    if (!when) return undefined;
    const controller = new AbortController();
    momentAt(when, controller.signal).then(setExact, () => {});
    return () => controller.abort();
  }, [when]);
  const time = milliseconds(when) ?? (exact?.time ? Date.parse(exact.time) : null);
  const data = range.data;
  if (!data?.oldest?.time) {
    return when ? html`<section class="timebar past" aria-label="Time"><${Banner} when=${when} time=${time} exact=${exact} /></section>`
      : range.error && html`<section class="timebar none quiet" aria-label="Time">No history: ${isLack(range.error) ? 'this server does not offer it' : range.error.message}</section>`;
  }
  const from = Date.parse(data.oldest.time);
  // Whole seconds from the beginning, so that the slider can reach its end.
  const to = from + 1000 * Math.max(1, Math.ceil((Date.parse(data.now.time) - from) / 1000));
  const value = moved ?? time ?? to;
  const seek = next => {
    const clamped = Math.max(from, Math.min(next, to));
    go({ at: clamped >= to - 1000 ? '' : stamp(Math.floor(clamped / 1000) * 1000) });
  };
  const step = milliseconds => seek((when ? value : Date.now()) + milliseconds);
  const submit = event => {
    event.preventDefault();
    const text = typed.trim();
    if (!text || text === 'now') return go({ at: '' });
    const parsed = parse(text);
    if (!parsed) return setError('Give a time such as 2026-11-22 10:00, -15m, or rv-1234');
    setError('');
    return go({ at: parsed });
  };
  return html`<section class=${when ? 'timebar past' : 'timebar'} aria-label="Time">
    ${when && html`<${Banner} when=${when} time=${time} exact=${exact} />`}
    <div class="track">
      <${Histogram} data=${data} from=${from} to=${to} value=${value} isPast=${Boolean(when) || moved !== null} />
      <input type="range" aria-label="Time that is looked at" min=${from} max=${to} step="1000" value=${value}
        aria-valuetext=${value >= to - 1000 ? 'now' : moment(value)}
        onInput=${event => setMoved(Number(event.currentTarget.value))}
        onChange=${event => seek(Number(event.currentTarget.value))} />
    </div>
    <form class="clock" onSubmit=${submit}>
      <span class="ends">since ${moment(from)}</span>
      <button type="button" onClick=${() => step(-3600_000)}>−1h</button>
      <button type="button" onClick=${() => step(-300_000)}>−5m</button>
      <label><span class="visually-hidden">Time</span><input type="text" placeholder="now" size="19" spellcheck=${false}
        value=${moved === null ? typed : moment(moved)} onInput=${event => setTyped(event.currentTarget.value)}
        aria-invalid=${error ? 'true' : undefined} aria-describedby=${error ? 'time-error' : undefined} /></label>
      <button type="submit">Go</button>
      <button type="button" onClick=${() => step(300_000)} disabled=${!when}>+5m</button>
      <button type="button" class="now" onClick=${() => go({ at: '' })} disabled=${!when}>Now</button>
    </form>
    ${error && html`<p class="error" id="time-error" role="alert">${error}</p>`}
  </section>`;
}

/// A typed time as the API takes it; `null` if it is none. Relative times are taken once, from now.
export function parse(text, now = Date.now()) {
  if (/^rv-\d+$/.test(text)) return text;
  const relative = /^-((?:\d+[smhd])+)$/.exec(text);
  if (relative) {
    const sizes = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };
    const sum = [...relative[1].matchAll(/(\d+)([smhd])/g)].reduce((all, [, number, unit]) => all + number * sizes[unit], 0);
    return stamp(now - sum);
  }
  if (/^\d{1,2}:\d{2}(:\d{2})?$/.test(text)) {
    const today = new Date(now);
    const [hours, minutes, seconds = 0] = text.split(':').map(Number);
    return stamp(today.setHours(hours, minutes, seconds, 0));
  }
  const value = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00` : text.replace(' ', 'T'));
  return Number.isNaN(value) ? null : stamp(value);
}

function Banner({ when, time, exact }) {
  return html`<p class="banner" role="status"><strong>The cluster as it was at ${time === null ? when : moment(time)}</strong>
    <span>${time === null ? '' : ago(time)}${exact?.revision ? `, revision ${exact.revision}` : ''}. Nothing here changes any more.</span>
    <button onClick=${() => go({ at: '' })}>Back to now</button></p>`;
}

/// The number of changes of a bucket, and of its parts where the server tells them.
function heights(bucket) {
  if (typeof bucket === 'number') return { all: bucket, parts: [['modified', bucket]] };
  const number = name => Number(bucket[name] ?? bucket[name.toUpperCase()] ?? 0);
  const parts = ['added', 'modified', 'deleted'].map(name => [name, number(name)]);
  const sum = parts.reduce((total, [, part]) => total + part, 0);
  return sum ? { all: sum, parts } : { all: number('count'), parts: [['modified', number('count')]] };
}

function Histogram({ data, from, to, value, isPast }) {
  const bars = (data.buckets || []).map(heights);
  const most = Math.max(1, ...bars.map(bar => bar.all));
  const height = amount => (amount ? 2 + 26 * Math.log1p(amount) / Math.log1p(most) : 0);
  const width = 1000 / Math.max(1, bars.length);
  const x = time => 1000 * (time - from) / (to - from);
  const total = bars.reduce((sum, bar) => sum + bar.all, 0);
  return html`<svg viewBox="0 0 1000 34" preserveAspectRatio="none" role="img"
      aria-label=${`${count(total)} changes in ${span((to - from) / 1000)}, at most ${count(most)} in ${span((to - from) / 1000 / Math.max(1, bars.length))}`}>
    ${bars.map((bar, index) => {
      let y = 30;
      const full = height(bar.all);
      return bar.parts.map(([name, amount]) => {
        const part = bar.all ? full * amount / bar.all : 0;
        y -= part;
        return part > 0 && html`<rect class=${name} x=${index * width + 0.5} y=${y} width=${Math.max(1, width - 1)} height=${part} />`;
      });
    })}
    ${marks.value.map(mark => html`<path class=${`mark ${mark.event.toLowerCase()}`} d=${`M${x(Date.parse(mark.time))} 0l4 0l-4 7l-4 -7z`} />`)}
    ${isPast && html`<rect class="future" x=${x(value)} y="0" width=${Math.max(0, 1000 - x(value))} height="30" />`}
  </svg>`;
}
