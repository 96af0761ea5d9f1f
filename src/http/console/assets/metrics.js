// Prometheus' text format, read and compared over a window.

/// Samples `{name, labels, value}` of a text.
export function samples(text) {
  const found = [];
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] || '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    found.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return found;
}

/// A scrape: its time, and lookups by name.
export class Scrape {
  constructor(text) {
    this.time = Date.now();
    this.byName = Map.groupBy(samples(text), sample => sample.name);
  }
  all(name) { return this.byName.get(name) || []; }
  one(name) { return this.all(name)[0]?.value; }
  sum(name, test = () => true) {
    return this.all(name).filter(sample => test(sample.labels)).reduce((total, sample) => total + sample.value, 0);
  }
}

const keyOf = labels => JSON.stringify(labels);

/// How much each series of a counter has grown since an older scrape: `{labels, grown}`.
export function growth(now, before, name) {
  const old = new Map(before.all(name).map(sample => [keyOf(sample.labels), sample.value]));
  return now.all(name).map(({ labels, value }) => {
    const was = old.get(keyOf(labels)) ?? 0;
    return { labels, grown: value >= was ? value - was : value };
  });
}

/// An upper bound of a quantile of a histogram's observations since an older scrape, in its unit; null if there was none.
export function quantile(now, before, name, share, test = () => true) {
  const buckets = new Map();
  for (const { labels, grown } of growth(now, before, `${name}_bucket`)) {
    if (test(labels)) buckets.set(labels.le, (buckets.get(labels.le) || 0) + grown);
  }
  const sorted = [...buckets].map(([le, sum]) => [le === '+Inf' ? Infinity : Number(le), sum]).sort((a, b) => a[0] - b[0]);
  const total = sorted[sorted.length - 1]?.[1];
  if (!total) return null;
  const found = sorted.find(([, sum]) => sum >= total * share)[0];
  return found === Infinity ? sorted[sorted.length - 2]?.[0] ?? null : found;
}
