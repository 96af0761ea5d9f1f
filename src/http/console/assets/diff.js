// Differences of two texts, by lines and within lines.

/// The most steps that a search takes before it gives up and calls everything different.
const MOST = 4000;

/// Edits `[kind, a, b]` from one list to another: `=`, `-` or `+`, with positions in both (Myers 1986).
export function edits(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const [a, b] = [one.slice(start, one.length - end), other.slice(start, other.length - end)];
  const middle = search(a, b).map(([kind, x, y]) => [kind, x + start, y + start]);
  const same = (count, x, y) => Array.from({ length: count }, (_, index) => ['=', x + index, y + index]);
  return [...same(start, 0, 0), ...middle, ...same(end, one.length - end, other.length - end)];
}

function search(a, b) {
  const most = Math.min(a.length + b.length, MOST);
  const trace = [];
  let ends = new Map([[1, 0]]);
  for (let depth = 0; depth <= most; depth += 1) {
    trace.push(new Map(ends));
    for (let k = -depth; k <= depth; k += 2) {
      const isDown = k === -depth || (k !== depth && ends.get(k - 1) < ends.get(k + 1));
      let x = isDown ? ends.get(k + 1) : ends.get(k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x += 1; y += 1; }
      ends.set(k, x);
      if (x >= a.length && y >= b.length) return walk(trace, a.length, b.length);
    }
  }
  return [...a.map((_, x) => ['-', x, 0]), ...b.map((_, y) => ['+', a.length, y])];
}

function walk(trace, x, y) {
  const found = [];
  for (let depth = trace.length - 1; depth >= 0; depth -= 1) {
    const ends = trace[depth];
    const k = x - y;
    const isDown = k === -depth || (k !== depth && ends.get(k - 1) < ends.get(k + 1));
    const before = isDown ? k + 1 : k - 1;
    const fromX = ends.get(before);
    const fromY = fromX - before;
    while (x > fromX && y > fromY) { x -= 1; y -= 1; found.push(['=', x, y]); }
    if (depth > 0) {
      if (isDown) { y -= 1; found.push(['+', x, y]); } else { x -= 1; found.push(['-', x, y]); }
    }
  }
  return found.reverse();
}

/// Pieces `[isChanged, text]` of two lines that stand for each other.
export function words(one, other) {
  const split = line => line.match(/\w+|\s+|[^\w\s]/g) || [];
  const [a, b] = [split(one), split(other)];
  const pieces = [[], []];
  const add = (list, isChanged, piece) => {
    const last = list[list.length - 1];
    if (last && last[0] === isChanged) last[1] += piece; else list.push([isChanged, piece]);
  };
  for (const [kind, x, y] of edits(a, b)) {
    if (kind !== '+') add(pieces[0], kind !== '=', a[x]);
    if (kind !== '-') add(pieces[1], kind !== '=', b[y]);
  }
  return pieces;
}

/// Rows `{kind, a, b, text, pieces}` of a unified diff, unchanged stretches cut to some lines of context:
/// `{kind: '@', count}` stands for what is left out.
export function unified(one, other, context = 3) {
  const all = edits(one, other);
  const isNear = new Uint8Array(all.length);
  all.forEach(([kind], index) => {
    if (kind !== '=') isNear.fill(1, Math.max(0, index - context), index + context + 1);
  });
  const rows = [];
  for (let index = 0; index < all.length; index += 1) {
    const [kind, a, b] = all[index];
    if (!isNear[index]) {
      let count = 0;
      while (index + count < all.length && !isNear[index + count]) count += 1;
      rows.push({ kind: '@', count });
      index += count - 1;
    } else if (kind === '=') {
      rows.push({ kind, a: a + 1, b: b + 1, text: one[a] });
    } else {
      const block = [];
      while (index < all.length && all[index][0] !== '=') block.push(all[index++]);
      index -= 1;
      const gone = block.filter(([which]) => which === '-').map(([, x]) => x);
      const come = block.filter(([which]) => which === '+').map(([, , y]) => y);
      const pairs = gone.length === come.length ? gone.map((x, place) => words(one[x], other[come[place]])) : [];
      gone.forEach((x, place) => rows.push({ kind: '-', a: x + 1, text: one[x], pieces: pairs[place]?.[0] }));
      come.forEach((y, place) => rows.push({ kind: '+', b: y + 1, text: other[y], pieces: pairs[place]?.[1] }));
    }
  }
  return rows;
}
