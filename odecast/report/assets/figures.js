// Figures in panels, drawn by uPlot.

// What a panel's series are: the order in which uPlot gets them.
odecast.panelSeries = (panel, columns) => {
  const list = [];
  for (const band of panel.bands || []) {
    list.push({kind: 'lower', of: band, x: columns[band.x], y: columns[band.lower]});
    list.push({kind: 'upper', of: band, x: columns[band.x], y: columns[band.upper]});
  }
  for (const bars of panel.bars || []) {
    const edges = columns[bars.edges], heights = columns[bars.heights];
    list.push({kind: 'bars', of: bars, x: heights.map((_, i) => (edges[i] + edges[i + 1]) / 2), y: heights,
               width: edges[1] - edges[0]});
  }
  for (const line of panel.lines)
    list.push({kind: line.points ? 'points' : 'line', of: line, x: columns[line.x], y: columns[line.y]});
  return list;
};

odecast.figureColumns = (figure) => figure.panels.flatMap((p) => [
  ...p.lines.flatMap((l) => [l.x, l.y]), ...(p.bands || []).flatMap((b) => [b.x, b.lower, b.upper]),
  ...(p.bars || []).map((b) => b.heights)]);

odecast.figureCsv = (figure, columns) => {
  const series = [];
  let bars = null;
  figure.panels.forEach((panel, i) => {
    const prefix = figure.names ? `${figure.names[i]} ` : '';
    const seen = new Map();
    for (const s of odecast.panelSeries(panel, columns)) {
      if (s.kind === 'bars') {
        bars = bars || {edges: columns[s.of.edges], names: [], heights: []};
        bars.names.push(`${prefix}${s.of.label}`);
        bars.heights.push(s.y);
        continue;
      }
      let name = prefix + s.of.label + (s.kind === 'lower' || s.kind === 'upper' ? ` ${s.kind}` : '');
      const times = (seen.get(name) || 0) + 1;
      seen.set(name, times);
      const many = panel.lines.filter((l) => l.label === s.of.label).length > 1;
      if (many) name += ` ${times}`;
      series.push({...s, name, calendar: panel.calendar, xName: (panel.x || 'x').replace(/^time /, '')});
    }
  });
  if (bars)
    return odecast.csv(['from', 'to', ...bars.names],
                       [bars.edges.slice(0, -1), bars.edges.slice(1), ...bars.heights]);
  if (figure.live) {
    const [x, ...y] = odecast.align(series);
    return odecast.csv([series[0].xName, ...series.map((s) => s.name)],
                       [odecast.dates(x, series[0].calendar), ...y]);
  }
  const long = [[], [], []];
  for (const s of series) {
    const x = odecast.dates(s.x, s.calendar);
    for (let i = 0; i < s.x.length; ++i) {
      long[0].push(s.name);
      long[1].push(x[i]);
      long[2].push(s.y[i]);
    }
  }
  return odecast.csv(['series', 'x', 'y'], long);
};

// The y range of what is visible: that of the lines, and of the bands unless they would flatten them.
odecast.yRange = (data, kinds, first, last, log) => {
  let lo = Infinity, hi = -Infinity, bandLo = Infinity, bandHi = -Infinity, bars = false;
  kinds.forEach((s, k) => {
    if (s.hidden) return;
    const y = data[k + 1], edge = s.kind === 'lower' || s.kind === 'upper';
    bars = bars || s.kind === 'bars';
    for (let i = first; i <= last; ++i) {
      const v = y[i];
      if (v === null || v === undefined) continue;
      if (edge) {
        if (v < bandLo) bandLo = v;
        if (v > bandHi) bandHi = v;
      } else {
        if (v < lo) lo = v;
        if (v > hi) hi = v;
      }
    }
  });
  if (bars) [lo, hi] = [Math.min(lo, 0), Math.max(hi, 0)];
  if (log) return lo <= hi ? [lo / 1.6, hi * 1.6] : [0.1, 1];
  if (!(lo <= hi)) [lo, hi] = [bandLo, bandHi];
  if (bandLo <= bandHi) {
    const span = hi - lo, all = Math.max(hi, bandHi) - Math.min(lo, bandLo);
    if (span > 0 && all > 4 * span) {
      lo = Math.max(Math.min(lo, bandLo), lo - 0.5 * span);
      hi = Math.min(Math.max(hi, bandHi), hi + 0.5 * span);
    } else {
      lo = Math.min(lo, bandLo);
      hi = Math.max(hi, bandHi);
    }
  }
  if (!(lo <= hi)) return [0, 1];
  const pad = hi > lo ? 0.06 * (hi - lo) : Math.abs(hi) * 0.1 || 1;
  return [bars && lo === 0 ? 0 : lo - pad, hi + pad];
};

odecast.drawPanel = (figure, panel, columns, holder, readout, shared) => {
  const kinds = odecast.panelSeries(panel, columns);
  const data = odecast.align(kinds).map((column, k) => k === 0 ? column :
    Array.from(column, (v) => v === undefined ? undefined :
      Number.isFinite(v) && !(panel.log && v <= 0) ? v : null));
  const soft = () => odecast.color('--soft'), grid = () => odecast.color('--grid');
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const alpha = (ink, a) => {
    const c = odecast.ink(ink);
    return c + Math.round(255 * a).toString(16).padStart(2, '0');
  };
  const series = [{}], bands = [];
  kinds.forEach((s, k) => {
    const ink = s.of.ink, one = {label: s.of.label, spanGaps: false, points: {show: false}};
    if (s.kind === 'lower' || s.kind === 'upper') {
      one.stroke = () => alpha(ink, 0.45);
      one.width = 0.7;
      if (s.kind === 'upper') bands.push({series: [k + 1, k], fill: () => alpha(ink, 0.2)});
    } else if (s.kind === 'bars') {
      one.stroke = () => odecast.ink(ink);
      one.fill = () => alpha(ink, 0.6);
      one.width = 0;
      one.paths = uPlot.paths.bars({size: [0.94, Infinity], align: 0});
    } else if (s.kind === 'points') {
      const few = s.x.length <= 200, depth = few ? 0.75 : 0.5;
      one.stroke = () => alpha(ink, depth);
      one.paths = () => null;
      one.points = {show: true, size: few ? 5 : 4, width: 0, fill: () => alpha(ink, depth)};
    } else {
      one.stroke = () => odecast.ink(ink);
      one.width = s.of.width || 1.6;
      if (s.of.dashed) one.dash = [6, 4];
      const isolated = data[k + 1].filter((v) => v !== null && v !== undefined).length <= 40;
      if (isolated && !s.of.dashed) one.points = {show: true, size: 5, width: 0, fill: () => odecast.ink(ink)};
    }
    series.push(one);
  });
  const x = data[0], halfBar = kinds[0] && kinds[0].kind === 'bars' ? kinds[0].width / 2 : 0;
  let from = x[0] - halfBar, until = x[x.length - 1] + halfBar;
  if (!(from < until)) [from, until] = [from - 0.5, until + 0.5];
  shared.from = Math.min(shared.from, from);
  shared.until = Math.max(shared.until, until);

  const marks = (u) => {
    const c = u.ctx, ratio = uPlot.pxRatio;
    c.save();
    c.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    c.fillStyle = c.strokeStyle = soft();
    c.textAlign = 'center';
    c.setLineDash([2 * ratio, 3 * ratio]);
    c.lineWidth = ratio;
    const taken = [];  // by captions of the marks before, which come first
    for (const mark of panel.marks || []) {
      if (mark.x < u.scales.x.min || mark.x > u.scales.x.max) continue;
      const px = Math.round(u.valToPos(mark.x, 'x', true));
      c.beginPath();
      c.moveTo(px, u.bbox.top);
      c.lineTo(px, u.bbox.top + u.bbox.height);
      c.stroke();
      const half = c.measureText(mark.label).width / 2;
      const middle = Math.min(Math.max(px, u.bbox.left + half), u.bbox.left + u.bbox.width - half);
      if (taken.some((other) => Math.abs(other.middle - middle) < other.half + half + 8 * ratio)) continue;
      c.fillText(mark.label, middle, u.bbox.top - 5 * ratio);
      taken.push({ middle, half });
    }
    c.restore();
  };

  const readAt = (u) => {
    const i = u.cursor.idx;
    if (i === null || i === undefined) {
      readout.lastChild.textContent = '';
      return;
    }
    const unit = (u.scales.x.max - u.scales.x.min) / 1000;
    const words = [panel.calendar ? odecast.dates([x[i]], panel.calendar)[0] :
                   `${(panel.x || 'x').replace(/^time /, '')} = ${odecast.number(x[i], unit)}`];
    const said = new Set();
    kinds.forEach((s, k) => {
      const v = data[k + 1][i];
      if (v === undefined || v === null || s.hidden) return;
      if (s.kind === 'lower')
        words.push(`${s.of.label.replace(/ \(.*\)$/, '')} ${odecast.number(v)} … ${odecast.number(data[k + 2][i])}`);
      else if (s.kind !== 'upper' && !said.has(s.of.label) && s.of.ink !== 'muted') {
        said.add(s.of.label);
        words.push(`${s.of.label} ${odecast.number(v)}`);
      }
    });
    readout.lastChild.textContent = words.join(' · ');
  };

  const plot = new uPlot({
    width: Math.max(240, holder.clientWidth),
    height: figure.height + 64,
    padding: [(panel.marks || []).length ? 20 : 10, panel.calendar ? 34 : 22, 0, 0],
    legend: {show: false},
    scales: {
      x: {time: false, range: (u, lo, hi) => [lo, hi]},
      y: {distr: panel.log ? 3 : 1, range: (u) => {
        if (panel.range) return panel.range;
        const at = u.series[0].idxs || [0, x.length - 1];
        return odecast.yRange(data, kinds, at[0] ?? 0, at[1] ?? x.length - 1, panel.log);
      }},
    },
    axes: [
      {stroke: soft, font, label: panel.x, labelFont: font, labelSize: 20, labelGap: 0, size: 30,
       grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 5},
       ...(panel.whole ? {incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]} : {}),
       ...(panel.calendar ? odecast.calendarAxis(panel.calendar) : {values: (u, splits) => odecast.tickLabels(splits)})},
      {stroke: soft, font, label: panel.y, labelFont: font, labelSize: 18, labelGap: 2,
       grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 5},
       size: (u, values) => 14 + 7 * Math.max(2, ...(values || []).map((v) => (v || '').length)),
       ...(panel.log ? {filter: (u, splits) => splits,
                        splits: (u, axis, lo, hi) => odecast.logSplits(lo, hi, figure.height / 30)} : {}),
       values: (u, splits) => panel.log ? odecast.logLabels(splits) : odecast.tickLabels(splits)},
    ],
    series, bands,
    cursor: {sync: {key: figure.id, setSeries: false, scales: ['x', null]}, drag: {x: true, y: false, setScale: true},
             points: {size: 7, fill: (u, k) => series[k].stroke()}},
    hooks: {
      drawAxes: [marks],
      setCursor: [readAt],
      setScale: [(u, key) => key === 'x' && shared.zoomed(u)],
    },
  }, data, holder);
  plot.kinds = kinds;
  return plot;
};

// Dates. A calendar counts from `origin`, in seconds of its own clock, in units of so many seconds;
// 0: years of the calendar, of which a month is a twelfth.
odecast.dateOf = (x, c) => {
  if (c.unit > 0) return Math.round((c.origin + x * c.unit) * 1e6) / 1e3;
  const months = Math.floor(12 * x + 1e-8), part = Math.max(0, 12 * x - months);
  const begin = new Date(0);
  begin.setUTCFullYear(Math.floor(months / 12), months - 12 * Math.floor(months / 12), 1);
  const end = new Date(begin);
  end.setUTCMonth(end.getUTCMonth() + 1);
  return begin.getTime() + Math.round(part * (end - begin) * 1e-3) * 1e3;
};
odecast.xOfDate = (ms, c) => {
  if (c.unit > 0) return (ms / 1e3 - c.origin) / c.unit;
  const date = new Date(ms), year = date.getUTCFullYear(), month = date.getUTCMonth();
  const begin = new Date(ms), end = new Date(ms);
  begin.setUTCFullYear(year, month, 1);
  begin.setUTCHours(0, 0, 0, 0);
  end.setTime(begin);
  end.setUTCMonth(month + 1);
  return (12 * year + month + (ms - begin) / (end - begin)) / 12;
};
// As text: all with as much of the clock as one of them needs. Numbers where there is no calendar.
odecast.dates = (x, c) => {
  if (!c) return x;
  const texts = Array.from(x, (v) => new Date(odecast.dateOf(v, c)).toISOString());
  const all = (end) => texts.every((t) => t.endsWith(end));
  const length = c.detail === 0 && all('-01T00:00:00.000Z') ? 7 : c.detail < 2 && all('T00:00:00.000Z') ? 10 :
    all('.000Z') ? 19 : 23;
  return texts.map((t) => t.replace('T', ' ').slice(0, length));
};
odecast.calendarAxis = (c) => {
  const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
  const steps = [second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute, 2 * minute, 5 * minute,
                 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day,
                 7 * day, 14 * day];
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000];
  const names = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const two = (n) => String(n).padStart(2, '0');
  let step = second, plain = false;  // of the splits made last; a step in months is negative
  const splits = (u, axis, lo, hi, incr) => {
    const from = odecast.dateOf(lo, c), until = odecast.dateOf(hi, c);
    const most = Math.max(3, Math.floor(u.bbox.width / uPlot.pxRatio / 90)), found = [];
    plain = until - from < 2 * second;  // finer than dates are
    if (plain) {
      for (let v = Math.ceil(lo / incr) * incr; v <= hi; v += incr) found.push(v);
      return found;
    }
    step = steps.find((s) => (until - from) / s < most);
    if (step) {
      const monday = step % (7 * day) === 0 ? 4 * day : 0;
      for (let t = Math.ceil((from - monday) / step) * step + monday; t <= until; t += step)
        found.push(odecast.xOfDate(t, c));
      return found;
    }
    const first = new Date(from), begin = 12 * first.getUTCFullYear() + first.getUTCMonth();
    const last = new Date(until), end = 12 * last.getUTCFullYear() + last.getUTCMonth();
    const every = months.find((m) => (end - begin) / m < most) || 12000;
    step = -every;
    for (let m = Math.ceil(begin / every) * every; m <= end; m += every) {
      const date = new Date(0);
      date.setUTCFullYear(Math.floor(m / 12), m - 12 * Math.floor(m / 12), 1);
      if (date.getTime() >= from) found.push(odecast.xOfDate(date.getTime(), c));
    }
    return found;
  };
  const values = (u, at) => {
    if (plain) return odecast.tickLabels(at);
    let before = null;
    return at.map((x) => {
      const d = new Date(Math.round(odecast.dateOf(x, c) / second) * second);
      const newYear = !before || before.getUTCFullYear() !== d.getUTCFullYear();
      const newDay = newYear || before.getUTCMonth() !== d.getUTCMonth() || before.getUTCDate() !== d.getUTCDate();
      before = d;
      const year = String(d.getUTCFullYear()), month = names[d.getUTCMonth()];
      if (step < 0) return step % 12 === 0 ? year : newYear ? `${month} ${year}` : month;
      const clock = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` +
        (step % minute ? `:${two(d.getUTCSeconds())}` : '');
      if (!newDay) return clock;
      const date = `${newYear ? `${year} ` : ''}${month} ${d.getUTCDate()}`;
      return step < day && d.getTime() % day !== 0 ? `${date} ${clock}` : date;
    });
  };
  return {splits, values};
};

// Labels of an axis: all digits that its step has, and no more.
odecast.tickLabels = (splits) => {
  const shown = splits.filter((v) => v !== null && v !== undefined);
  const step = shown.length > 1 ? Math.abs(shown[1] - shown[0]) : Math.abs(shown[0] || 1);
  const most = Math.max(...shown.map(Math.abs), step), place = (v) => Math.floor(Math.log10(v) + 1e-9);
  // Down to which power of ten a step of 1, 2, 5 or 2.5 times one counts.
  let last = place(step);
  if (Math.abs(step / 10 ** last - Math.round(step / 10 ** last)) > 1e-6) --last;
  const digits = place(most) - last;
  const powers = (most >= 1e6 && digits < 4) || most >= 1e13 || most < 1e-3;
  return splits.map((v) => {
    if (v === null || v === undefined) return '';
    if (Math.abs(v) < step / 1e6) return powers ? '0' : (0).toFixed(Math.max(0, -last));
    const text = powers ? v.toExponential(Math.max(0, place(Math.abs(v)) - last)).replace(/\.?0*e\+?/, 'e')
                        : v.toFixed(Math.min(20, Math.max(0, -last)));
    return text.replaceAll('-', '−');
  });
};
// Ticks of an axis of powers of ten, at most so many: whole powers, or 1, 2, 5 of each where those are few, or as
// on any axis where the range is less than that.
odecast.logSplits = (lo, hi, most) => {
  const first = Math.ceil(Math.log10(lo) - 1e-9), last = Math.floor(Math.log10(hi) + 1e-9), found = [];
  const times = (digit, k) => Number(`${digit}e${k}`);
  if (last > first) {
    const every = Math.ceil((last - first + 1) / Math.max(2, most));
    for (let k = first; k <= last; k += every) found.push(times(1, k));
    return found;
  }
  for (let k = first - 1; k <= last; ++k) found.push(...[1, 2, 5].map((d) => times(d, k)).filter((v) => v >= lo && v <= hi));
  if (found.length > 1) return found;
  const wanted = (hi - lo) / Math.max(2, most), k = Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((d) => times(d, k)).find((v) => v >= wanted * (1 - 1e-9));
  const linear = [];
  for (let i = Math.ceil(lo / step); i * step <= hi; ++i) linear.push(i * step);
  return linear;
};
odecast.logLabels = (splits) => {
  const one = (v) => Math.abs(Number(v.toPrecision(1)) / v - 1) < 1e-9;
  if (!splits.every(one)) return odecast.tickLabels(splits);
  const plain = splits.every((v) => v >= 1e-3 && v < 1e5);
  return splits.map((v) => (plain ? String(Number(v.toPrecision(1))) : v.toExponential(0).replace('e+', 'e'))
    .replaceAll('-', '−'));
};

odecast.legend = (figure, setShown) => {
  const list = odecast.element('div', {class: 'legend', role: 'group', 'aria-label': 'Shown'});
  const known = new Set();
  for (const panel of figure.panels)
    for (const [kind, entries] of [['line', panel.lines], ['band', panel.bands || []], ['band', panel.bars || []]])
      for (const entry of entries) {
        if (!entry.label || known.has(entry.label)) continue;
        known.add(entry.label);
        const swatch = odecast.element('span', {
          class: `swatch ${kind} ink-${entry.ink}${entry.dashed ? ' dashed' : ''}${entry.points ? ' dots' : ''}`});
        const button = odecast.element('button', {
          type: 'button', 'aria-pressed': 'true', title: `Show or hide: ${entry.label}`,
          onclick: () => {
            const shown = button.getAttribute('aria-pressed') !== 'true';
            button.setAttribute('aria-pressed', String(shown));
            setShown(entry.label, shown);
          }}, swatch, entry.label);
        list.append(button);
      }
  return list;
};

odecast.saveStatic = (root, id) => {
  const svg = root.querySelector('.static svg');
  odecast.save(`${id}.svg`, 'image/svg+xml', new XMLSerializer().serializeToString(svg));
};

odecast.makeFigure = (root, figure, columns, headers) => {
  const {element, button} = odecast;
  const bar = element('div', {class: 'toolbar', role: 'toolbar', 'aria-label': `Controls of ${figure.title}`});
  root.querySelector('h3').after(bar);
  const live = figure.live && typeof uPlot !== 'undefined';
  let plots = [];
  const hidden = new Set();

  if (live) {
    const stage = element('div', {class: 'live'});
    const shared = {from: Infinity, until: -Infinity, busy: false};
    const all = figure.panels.length > 1;
    let chosen = all && figure.panels.length <= 3 ? 'all' : '0';
    shared.zoomed = (source) => {
      if (shared.busy) return;
      shared.busy = true;
      for (const p of plots)
        if (p !== source) p.setScale('x', {min: source.scales.x.min, max: source.scales.x.max});
      shared.busy = false;
    };
    const view = () => [plots[0].scales.x.min, plots[0].scales.x.max];
    const show = (lo, hi) => {
      lo = Math.max(lo, shared.from);
      hi = Math.min(hi, shared.until);
      if (hi - lo > 1e-9 * (shared.until - shared.from)) plots[0].setScale('x', {min: lo, max: hi});
    };
    const zoom = (factor) => {
      const [lo, hi] = view(), i = plots[0].cursor.idx;
      const x = i === null || i === undefined ? NaN : plots[0].data[0][i];
      const centre = x >= lo && x <= hi ? x : (lo + hi) / 2;
      show(centre - (centre - lo) * factor, centre + (hi - centre) * factor);
    };
    const reset = () => show(shared.from, shared.until);
    const pan = (part) => {
      const [lo, hi] = view(), by = Math.max(shared.from - lo, Math.min(shared.until - hi, part * (hi - lo)));
      show(lo + by, hi + by);
    };
    const draw = (keep) => {
      for (const p of plots) p.destroy();
      plots = [];
      stage.replaceChildren();
      shared.from = Infinity;
      shared.until = -Infinity;
      figure.panels.forEach((panel, i) => {
        if (chosen !== 'all' && String(i) !== chosen) return;
        const name = figure.names ? figure.names[i] : panel.y;
        const holder = element('div', {
          class: 'plot', tabindex: '0', role: 'group',
          'aria-label': `${figure.title}, ${name}. Interactive plot: left and right move the cursor, ` +
                        'with shift they pan, plus and minus zoom, Home shows everything.'});
        const readout = element('p', {class: 'readout', 'aria-live': 'polite'},
                                element('strong', {}, figure.panels.length > 1 ? name : ''), element('span'));
        stage.append(readout, holder);
        const plot = odecast.drawPanel(figure, panel, columns, holder, readout, shared);
        plots.push(plot);
        holder.addEventListener('keydown', (event) => {
          const [lo, hi] = view();
          const x = plot.data[0], inside = [x.findIndex((v) => v >= lo), x.findLastIndex((v) => v <= hi)];
          const step = Math.max(1, Math.round((inside[1] - inside[0]) / 100));
          const moves = {ArrowLeft: -step, ArrowRight: step};
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          if (event.key in moves && event.shiftKey) pan(Math.sign(moves[event.key]) / 4);
          else if (event.key in moves) {
            const now = plot.cursor.idx ?? (event.key === 'ArrowLeft' ? inside[1] + step : inside[0] - step);
            const next = Math.max(inside[0], Math.min(inside[1], now + moves[event.key]));
            plot.setCursor({left: plot.valToPos(x[next], 'x'), top: plot.over.clientHeight / 2});
          } else if (event.key === '+' || event.key === '=') zoom(0.5);
          else if (event.key === '-' || event.key === '_') zoom(2);
          else if (event.key === 'Home' || event.key === '0') reset();
          else if (event.key === 'Escape') plot.setCursor({left: -10, top: -10});
          else return;
          event.preventDefault();
        });
      });
      for (const label of hidden) setShown(label, false);
      if (keep) show(...keep);
    };
    const setShown = (label, shown) => {
      if (shown) hidden.delete(label);
      else hidden.add(label);
      for (const p of plots)
        p.kinds.forEach((s, k) => {
          if (s.of.label !== label) return;
          s.hidden = !shown;
          p.setSeries(k + 1, {show: shown});
        });
    };

    if (all) {
      const options = (figure.names || figure.panels.map((p) => p.title || p.y)).map((name, i) =>
        element('option', {value: String(i), selected: String(i) === chosen}, name));
      const choice = element('select', {onchange: () => {
        const keep = view();
        chosen = choice.value;
        draw(keep);
      }}, element('option', {value: 'all', selected: chosen === 'all'}, 'all'), ...options);
      bar.append(element('label', {}, `${figure.switch} `, choice));
    }
    bar.append(button('+', 'Zoom in', () => zoom(0.5)), button('−', 'Zoom out', () => zoom(2)),
               button('Reset', 'Show everything', reset));
    root.classList.add('is-live');
    bar.after(odecast.legend(figure, setShown), stage);
    draw();
    let width = stage.clientWidth;
    new ResizeObserver(() => {
      if (stage.clientWidth === width || stage.clientWidth === 0) return;
      width = stage.clientWidth;
      for (const p of plots) p.setSize({width: Math.max(240, width), height: p.height});
    }).observe(stage);
    odecast.onTheme.push(() => plots.forEach((p) => p.redraw()));
  }
  const note = odecast.exactness(headers, odecast.figureColumns(figure)) + (figure.note ? `. ${figure.note}` : '');
  bar.append(element('span', {class: 'spacer'}),
             button('SVG', `Save "${figure.title}" as SVG`, () => odecast.saveStatic(root, figure.id)),
             button('CSV', `Save the numbers behind it as CSV (${note})`,
                    () => odecast.save(`${figure.id}.csv`, 'text/csv', odecast.figureCsv(figure, columns))));
  root.append(element('p', {class: 'exactness'}, note));
};
