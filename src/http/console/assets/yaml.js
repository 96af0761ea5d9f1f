// Objects as lines of YAML, each with the path of its field.

const plain = /^[A-Za-z_/][\w ./@+:-]*$/;
const special = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

/// A scalar as YAML reads it back.
export function scalar(value) {
  if (typeof value !== 'string') return JSON.stringify(value);
  const isSafe = plain.test(value) && !special.test(value) && !value.endsWith(' ') && !/ #|: |:$/.test(value);
  return isSafe ? value : JSON.stringify(value);
}

/// The path of a member or an item.
export const below = (path, step) => (path ? `${path}\0${step}` : String(step));

const kindOf = value => (value === null ? 'null' : typeof value);

/// Lines `{indent, prefix, key, value, kind, path, isLeaf}` of an object; `prefix` is `- ` where an item begins. A path is a
/// list of names and positions, joined by NUL.
export function yaml(object) {
  const lines = [];
  const put = (indent, prefix, key, value, path) => {
    if (value !== null && typeof value === 'object') {
      const entries = Array.isArray(value) ? value : Object.keys(value);
      if (!entries.length) {
        lines.push({ indent, prefix, key, value: Array.isArray(value) ? '[]' : '{}', kind: 'empty', path, isLeaf: true });
      } else {
        if (key !== undefined) lines.push({ indent, prefix, key, value: '', kind: '', path, isLeaf: false });
        inside(value, key === undefined ? indent : indent + (Array.isArray(value) ? 0 : 1), path, key === undefined ? prefix : '');
      }
      return;
    }
    if (typeof value === 'string' && value.includes('\n') && !/[^\S\n]\n|\t/.test(value) && value.trimStart() === value) {
      const chomp = value.endsWith('\n\n') ? '+' : value.endsWith('\n') ? '' : '-';
      lines.push({ indent, prefix, key, value: `|${chomp}`, kind: 'string', path, isLeaf: true });
      for (const line of value.replace(/\n$/, '').split('\n')) {
        lines.push({ indent: line ? indent + 1 : 0, prefix: '', value: line, kind: 'string', path, isLeaf: false });
      }
      return;
    }
    lines.push({ indent, prefix, key, value: scalar(value), kind: kindOf(value), path, isLeaf: true });
  };
  const inside = (value, indent, path, prefix) => {
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        const place = below(path, index);
        put(indent + (prefix && index ? 1 : 0), (index ? '' : prefix) + '- ', undefined, item, place);
      });
      return;
    }
    Object.entries(value).forEach(([key, child], index) => {
      const deeper = prefix ? prefix.length / 2 : 0;
      const place = below(path, key);
      if (index === 0) put2(indent, prefix, key, child, place);
      else put2(indent + deeper, '', key, child, place);
    });
  };
  // A member whose line begins with dashes is as deep as its text, not as its dashes.
  const put2 = (indent, prefix, key, value, path) => {
    const deeper = prefix ? prefix.length / 2 : 0;
    const from = lines.length;
    put(indent + deeper, '', key, value, path);
    if (prefix) {
      lines[from].indent = indent;
      lines[from].prefix = prefix;
    }
  };
  inside(object, 0, '', '');
  return lines;
}

/// The text of a line.
export const lineText = ({ indent, prefix = '', key, value }) =>
  '  '.repeat(indent) + prefix + (key === undefined ? value : `${scalar(key)}:${value ? ` ${value}` : ''}`);

export const yamlText = object => yaml(object).map(line => lineText(line) + '\n').join('');

/// An object without the record of who owns its fields.
export function withoutManagedFields(object) {
  const { apiVersion, kind, metadata: { managedFields, ...metadata } = {}, ...rest } = object;
  return { apiVersion, kind, metadata, ...rest };
}
