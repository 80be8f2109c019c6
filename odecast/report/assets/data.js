'use strict';
// The numbers of a page. odecast/report/page_data.hpp says how they are held.
const odecast = {};

odecast.unpack = (headers, text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  // The range decoder of LZMA. The first byte is always zero.
  let at = 1, code = 0, range = 0xffffffff;
  for (let i = 0; i < 4; ++i) code = ((code << 8) | bytes[at++]) >>> 0;
  const shift = () => {
    code = ((code << 8) | bytes[at++]) >>> 0;
    range = (range << 8) >>> 0;
  };
  const decide = (model, i) => {
    const bound = (range >>> 11) * model[i];
    let bit = 0;
    if (code < bound) {
      range = bound;
      model[i] += (2048 - model[i]) >>> 5;
    } else {
      code -= bound;
      range -= bound;
      model[i] -= model[i] >>> 5;
      bit = 1;
    }
    if (range < 0x1000000) shift();
    return bit;
  };
  const plainBit = () => {
    range >>>= 1;
    const bit = code >= range ? 1 : 0;
    if (bit) code -= range;
    if (range < 0x1000000) shift();
    return bit;
  };

  // One column of whole numbers; `put` gets the place, and the number as high × 2^30 + low.
  const contexts = 25;
  const readColumn = (n, put) => {
    const widthModel = new Uint16Array(65 * contexts).fill(1024), bitModel = new Uint16Array(4 * 65).fill(1024);
    let before = 0, beforeThat = 0;
    for (let i = 0; i < n; ++i) {
      const context = 65 * Math.min(contexts - 1, before + beforeThat);
      let width = 0;
      while (width < 64 && decide(widthModel, context + width)) ++width;
      // The leading one, two bits with a model, the rest as it is.
      let high = 0, low = width > 0 ? 1 : 0, node = 1;
      for (let left = width - 1; left > 0; --left) {
        let bit;
        if (node < 4) {
          bit = decide(bitModel, 4 * width + node);
          node = 2 * node + bit;
        } else {
          bit = plainBit();
        }
        high = high * 2 + (low >>> 29);
        low = (low & 0x1fffffff) * 2 + bit;
      }
      put(i, high, low);
      beforeThat = before;
      before = width;
    }
  };

  const columns = [];
  for (const header of headers) {
    const n = header.n, values = new Float64Array(n);
    if (header.mirror) {
      const [centre, other] = header.mirror.map((c) => columns[c]);
      for (let i = 0; i < n; ++i) values[i] = 2 * centre[i] - other[i];
    } else if (header.m !== undefined) {
      // Multiples of m 10^-d. Number('1e5') is exact, which 10 ** 5 need not be.
      const power = Number(`1e${Math.abs(header.d)}`);
      const decimal = (k) => header.d >= 0 ? k * header.m / power : k * header.m * power;
      const whole = new Float64Array(n);
      // Coarse to fine; the first place first. Every value is a prediction and a multiple of 8 steps.
      let top = 1, place = 0, stride = 0;
      while (top < n) top *= 2;
      const predicted = () => {
        if (stride === 0) return 0;
        const left = whole[place - stride];
        if (place + stride >= n) return left;
        const right = whole[place + stride];
        if (place < 3 * stride || place + 3 * stride >= n) return Math.floor((left + right + 1) / 2);
        return Math.floor((9 * (left + right) - whole[place - 3 * stride] - whole[place + 3 * stride] + 8) / 16);
      };
      readColumn(n, (i, high, low) => {
        const value = high * 0x40000000 + low;
        whole[place] = predicted() + 8 * (low % 2 ? -(value + 1) / 2 : value / 2);
        place += 2 * stride;
        if (stride === 0 || place >= n) {
          stride = stride === 0 ? top / 2 : stride / 2;
          place = stride;
        }
      });
      for (let i = 0; i < n; ++i) values[i] = decimal(whole[i]);
      for (const [first, count, kind] of header.gaps || [])
        values.fill(kind === 0 ? NaN : kind * Infinity, first, first + count);
    } else {
      const whole = new BigInt64Array(n);
      readColumn(n, (i, high, low) => {
        const value = (BigInt(high) << 30n) | BigInt(low);
        whole[i] = BigInt.asIntN(64, low % 2 ? ~(value >> 1n) : value >> 1n);
      });
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
    const off = (column) => 4 * (column.m || 0) * Number(`1e${-(column.d || 0)}`);
    if (h.mirror) step = Math.max(step, 2 * off(headers[h.mirror[0]]) + off(headers[h.mirror[1]]));
    else if (h.m !== undefined) step = Math.max(step, off(h));
    else if (h.shift > 0) digits = Math.min(digits, Math.floor((52 - h.shift) * Math.log10(2)));
  }
  const count = (k) => k.toLocaleString('en');
  const all = of > rows ? `${count(rows)} of ${count(of)} rows` : `all ${count(rows)} rows`;
  const rounded = [];
  if (step > 0) {  // one digit, rounded up
    const power = Number(`1e${Math.floor(Math.log10(step))}`);
    rounded.push(`values to ±${Number((Math.ceil(step / power - 1e-9) * power).toPrecision(2))} or better`);
  }
  if (digits < 17) rounded.push(`${digits} digits`);
  return `CSV: ${all}, ${rounded.join(', ') || 'every digit'}`;
};

// The columns side by side over the union of their x; `undefined` where one has no value.
odecast.align = (tables) => {
  if (tables.every((t) => t.x === tables[0].x)) return [tables[0].x, ...tables.map((t) => t.y)];
  const distinct = [...new Set(tables.map((t) => t.x))];
  const longest = distinct.reduce((a, b) => b.length > a.length ? b : a);
  if (distinct.every((c) => c.every((v, i) => v === longest[i])))  // those that end early
    return [longest, ...tables.map((t) => t.x === longest ? t.y : [...t.y, ...new Array(longest.length - t.x.length)])];
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
  const quoted = (name) => /[",;|#\t\r\n]|^ | $/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
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
