// Values as people read them.

const units = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];

/// A time span in seconds, in at most two units: 3d4h, 5m, 12s.
export function span(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [size, unit] of units) {
    const count = Math.floor(rest / size);
    rest %= size;
    if (count) parts.push(count + unit);
    if (parts.length && (parts.length === 2 || !count)) break;
  }
  return parts.join('') || '0s';
}

export const ago = (time, now = Date.now()) => span((now - new Date(time)) / 1000) + ' ago';

const two = number => String(number).padStart(2, '0');

/// The local time of day.
export function clock(time) {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

/// The local date, in the order of ISO 8601.
export function day(time) {
  const date = new Date(time);
  return [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
}

export const moment = time => `${day(time)} ${clock(time)}`;

/// A time as the API takes it, in whole seconds.
export const stamp = time => new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');

export const count = number => Number(number).toLocaleString('en-US');

export function bytes(number) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  let value = Number(number);
  while (value >= 1024 && at < names.length - 1) { value /= 1024; at += 1; }
  return `${value >= 100 || at === 0 ? Math.round(value) : value.toFixed(1)} ${names[at]}`;
}

/// Seconds, from microseconds on.
export function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(seconds >= 10 ? 0 : 1)} s`;
  if (seconds >= 0.001) return `${(seconds * 1000).toFixed(seconds >= 0.01 ? 0 : 1)} ms`;
  return `${Math.round(seconds * 1e6)} µs`;
}

export const rate = perSecond => `${perSecond >= 10 ? Math.round(perSecond) : perSecond.toFixed(1)}/s`;

export const plural = (number, noun) => `${count(number)} ${noun}${Number(number) === 1 ? '' : 's'}`;

const text = value => (value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value));

/// CSV by RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe.
export function csv(columns, rows) {
  const cell = value => {
    const plain = text(value);
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns, ...rows].map(row => row.map(cell).join(',') + '\r\n').join('');
}

/// Saves a text as a file of the browser's.
export function save(name, media, content) {
  const address = URL.createObjectURL(new Blob([content], { type: media }));
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export { text };
