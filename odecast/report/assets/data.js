'use strict';
// The numbers of a page. odecast/report/page_data.hpp says how they are held.
const odecast = {};

odecast.unpack = async (headers, text) => {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;

  // Lowest seven bits first; the lowest bit of the number is its sign.
  const wholeNumber = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  const longNumber = () => {
    let value = 0n, shift = 0n, byte;
    do {
      byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte & 128);
    return BigInt.asIntN(64, value & 1n ? ~(value >> 1n) : value >> 1n);
  };

  const columns = [];
  for (const header of headers) {
    const n = header.n, values = new Float64Array(n);
    if (header.m !== undefined) {
      // Multiples of m 10^-d. Number('1e5') is exact where 10 ** 5 need not be.
      const power = Number(`1e${Math.abs(header.d)}`);
      const decimal = (k) => header.d >= 0 ? k * header.m / power : k * header.m * power;
      const whole = new Float64Array(n);
      for (let i = 0; i < n; ++i) whole[i] = wholeNumber();
      if (header.mirror) {
        const step = decimal(1), [centre, other] = header.mirror.map((c) => columns[c]);
        for (let i = 0; i < n; ++i) {
          const guess = Math.floor((2 * centre[i] - other[i]) / step + 0.5);
          whole[i] += guess;
        }
      } else {
        for (let pass = header.order - 1; pass >= 0; --pass)
          for (let i = pass + 1; i < n; ++i) whole[i] += whole[i - 1];
      }
      for (let i = 0; i < n; ++i) values[i] = decimal(whole[i]);
      for (const [first, count, kind] of header.gaps || [])
        values.fill(kind === 0 ? NaN : kind * Infinity, first, first + count);
    } else {
      const whole = new BigInt64Array(n);
      for (let i = 0; i < n; ++i) whole[i] = longNumber();
      for (let pass = header.order - 1; pass >= 0; --pass)
        for (let i = pass + 1; i < n; ++i) whole[i] = BigInt.asIntN(64, whole[i] + whole[i - 1]);
      const smallest = -(1n << 63n), shift = BigInt(header.shift);
      const bits = new BigInt64Array(values.buffer);
      for (let i = 0; i < n; ++i) {
        const ordered = whole[i] << shift;
        bits[i] = ordered >= 0n ? ordered : BigInt.asIntN(64, smallest - ordered);
      }
    }
    columns.push(values);
  }
  return columns;
};

// How exact a set of columns is, in words.
odecast.exactness = (headers, used) => {
  const held = used.map((c) => headers[c]);
  let step = 0, digits = 17, rows = 0, of = 0;
  for (const h of held) {
    rows = Math.max(rows, h.n);
    of = Math.max(of, h.of || h.n);
    if (h.m !== undefined) step = Math.max(step, h.m * Number(`1e${-h.d}`));
    else if (h.shift > 0) digits = Math.min(digits, Math.floor((52 - h.shift) * Math.log10(2)));
  }
  const count = (k) => k.toLocaleString('en');
  const all = of > rows ? `${count(rows)} of ${count(of)} rows` : `all ${count(rows)} rows`;
  const rounded = [];
  if (step > 0) rounded.push(`rounded to multiples of ${Number(step.toPrecision(1))} or finer`);
  if (digits < 17) rounded.push(`small values to ${digits} digits`);
  return `CSV: ${all}, ${rounded.join(', ') || 'every digit'}`;
};

// The columns side by side over the union of their x; `undefined` where one has no value.
odecast.align = (tables) => {
  if (tables.every((t) => t.x === tables[0].x)) return [tables[0].x, ...tables.map((t) => t.y)];
  const distinct = [...new Set(tables.map((t) => t.x))];
  const x = Float64Array.from(new Set(distinct.flatMap((c) => Array.from(c)))).sort();
  const place = new Map();
  for (const column of distinct) {
    const at = new Int32Array(column.length);
    for (let i = 0, j = 0; i < column.length; ++i) {
      while (x[j] < column[i]) ++j;
      at[i] = j;
    }
    place.set(column, at);
  }
  return [x, ...tables.map((t) => {
    const y = new Array(x.length), at = place.get(t.x);
    for (let i = 0; i < at.length; ++i) y[at[i]] = t.y[i];
    return y;
  })];
};

odecast.save = (name, type, text) => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

odecast.csv = (header, columns) => {
  const quoted = (name) => /[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
  const text = (v) => v === undefined || v === null || Number.isNaN(v) ? '' :
    typeof v === 'string' ? quoted(v) : v === Infinity ? 'inf' : v === -Infinity ? '-inf' : String(v);
  const lines = [header.map(quoted).join(',')];
  for (let i = 0; i < columns[0].length; ++i) lines.push(columns.map((c) => text(c[i])).join(','));
  return lines.join('\n') + '\n';
};

// Small helpers for elements. Styles go through the object model, which the policy allows.
odecast.element = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value !== false) e.setAttribute(name, value === true ? '' : value);
  e.append(...children);
  return e;
};
odecast.button = (label, title, onclick) =>
  odecast.element('button', {type: 'button', title, 'aria-label': title, onclick}, label);

odecast.color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
odecast.ink = (name) => odecast.color(`--ink-${name}`);

// A number as people read it, with the digits that the spacing `unit` supports.
odecast.number = (value, unit = 0) => {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) {
    const [lead, power] = value.toExponential(2).split('e');
    text = `${Number(lead)}e${Number(power)}`;
  } else if (unit > 0) {
    text = value.toFixed(Math.min(8, Math.max(0, Math.ceil(-Math.log10(unit) - 1e-9))));
  } else {
    text = String(Number(value.toPrecision(4)));
  }
  return text.replaceAll('-', '−');
};

// Called again whenever colours change.
odecast.onTheme = [];
