// Curves in space, drawn with WebGL 2: every segment is a rectangle that faces the viewer.
odecast.shaders = {
  vertex: `#version 300 es
in vec2 corner;      // along the segment 0 or 1, across it -1 or 1
in vec4 a, b;        // its ends: place and time
uniform mat4 view;
uniform vec2 size;   // of the canvas in pixels
uniform float width;
out float time;
out float depth;
void main() {
  if (a.x > 1e8 || b.x > 1e8) { gl_Position = vec4(2, 2, 2, 1); return; }
  vec4 A = view * vec4(a.xyz, 1), B = view * vec4(b.xyz, 1);
  vec2 d = (B.xy / B.w - A.xy / A.w) * size;
  d = length(d) > 1e-6 ? normalize(d) : vec2(1, 0);
  vec4 p = corner.x < 0.5 ? A : B;
  vec2 offset = vec2(-d.y, d.x) * corner.y + d * (corner.x - 0.5);
  gl_Position = vec4(p.xy + offset * width / size * p.w, p.z, p.w);
  time = corner.x < 0.5 ? a.w : b.w;
  depth = p.w;
}`,
  fragment: `#version 300 es
precision highp float;
in float time;
in float depth;
uniform vec4 color, paper;
uniform float now, tail, near, far;
out vec4 result;
void main() {
  if (time > now) discard;
  float fog = 0.6 * clamp((depth - near) / (far - near), 0.0, 1.0);
  float old = tail > 0.0 ? 0.55 * clamp((now - time) / tail, 0.0, 1.0) : 0.0;
  result = mix(color, paper, max(fog, old));
}`,
};

// Two variables: a plane with the axes of every other figure.
odecast.makePlane = (root, attractor, columns, bar) => {
  const {element, button} = odecast;
  const curves = attractor.curves.map((c) => ({...c, places: c.columns.map((v) => columns[v])}));
  // The view holds what is not a mere sample.
  const main = curves.filter((c) => c.ink !== 'muted'), axes = ['x', 'y'];
  const home = axes.map((_, k) => {
    let lo = Infinity, hi = -Infinity;
    for (const c of main.length ? main : curves)
      for (const v of c.places[k])
        if (Number.isFinite(v)) [lo, hi] = [Math.min(lo, v), Math.max(hi, v)];
    const pad = hi > lo ? 0.05 * (hi - lo) : Math.abs(hi) * 0.1 || 1;
    return lo <= hi ? [lo - pad, hi + pad] : [0, 1];
  });
  const trace = (u, k) => {
    const c = u.ctx, curve = curves[k - 1];
    c.save();
    c.beginPath();
    c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    c.clip();
    c.strokeStyle = odecast.ink(curve.ink);
    c.lineWidth = curve.width * uPlot.pxRatio;
    c.lineJoin = 'round';
    c.fillStyle = c.strokeStyle;
    c.beginPath();
    let down = false;
    curve.places[0].forEach((x, i) => {
      const y = curve.places[1][i], here = Number.isFinite(x) && Number.isFinite(y);
      if (!here) return void (down = false);
      const at = [u.valToPos(x, 'x', true), u.valToPos(y, 'y', true)];
      if (curve.points) {
        c.moveTo(...at);
        c.arc(...at, 2 * uPlot.pxRatio, 0, 7);
      } else c[down ? 'lineTo' : 'moveTo'](...at);
      down = true;
    });
    if (curve.points) c.fill();
    else c.stroke();
    c.restore();
    return null;
  };
  const soft = () => odecast.color('--soft'), grid = () => odecast.color('--grid');
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = (k, more) => ({
    stroke: soft, font, label: attractor.variables[k], labelFont: font, labelGap: k, labelSize: 20 - 2 * k,
    grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 5},
    values: (u, splits) => odecast.tickLabels(splits), ...more});
  const holder = element('div', {
    class: 'plot', tabindex: '0', role: 'group',
    'aria-label': `${attractor.title}: curves in the plane. Arrow keys move, plus and minus zoom, Home shows everything.`});
  const stage = element('div', {class: 'live'}, holder);
  root.classList.add('is-live');
  bar.after(stage);
  const inside = (k) => (u, lo, hi) => lo === null || lo === undefined ? home[k] : [lo, hi];
  const plot = new uPlot({
    mode: 2, width: Math.max(240, holder.clientWidth), height: 430, padding: [10, 22, 0, 0], legend: {show: false},
    scales: {x: {time: false, range: inside(0)}, y: {range: inside(1)}},
    axes: [axis(0, {size: 30}),
           axis(1, {size: (u, values) => 14 + 7 * Math.max(2, ...(values || []).map((v) => (v || '').length))})],
    series: [{}, ...curves.map((c) => ({
      label: c.label, stroke: () => odecast.ink(c.ink), paths: trace, points: {show: false},
      facets: axes.map((scale) => ({scale, auto: false}))}))],
    cursor: {x: false, y: false, points: {show: false}, dataIdx: () => null, drag: {x: true, y: true, setScale: true},
             bind: {dblclick: () => () => view(home)}},
  }, [null, ...curves.map((c) => c.places)], holder);
  const view = (ranges) => plot.batch(() => axes.forEach((scale, k) =>
    plot.setScale(scale, {min: ranges[k][0], max: ranges[k][1]})));
  const now = () => axes.map((scale) => [plot.scales[scale].min, plot.scales[scale].max]);
  const zoom = (factor) => view(now().map(([lo, hi]) => {
    const middle = (lo + hi) / 2, half = Math.max((hi - lo) / 2 * factor, 1e-9 * Math.abs(middle));
    return [middle - half, middle + half];
  }));
  const move = (x, y) => view(now().map(([lo, hi], k) => [lo, hi].map((v) => v + [x, y][k] * (hi - lo) / 8)));
  view(home);
  holder.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
    if (event.key in moves) move(...moves[event.key]);
    else if (event.key === '+' || event.key === '=') zoom(0.5);
    else if (event.key === '-' || event.key === '_') zoom(2);
    else if (event.key === 'Home' || event.key === '0') view(home);
    else return;
    event.preventDefault();
  });
  bar.append(button('+', 'Zoom in', () => zoom(0.5)), button('−', 'Zoom out', () => zoom(2)),
             button('Reset', 'Show everything', () => view(home)));
  bar.after(odecast.legend({panels: [{lines: attractor.curves}]}, (label, shown) => curves.forEach((c, k) => {
    if (c.label === label) plot.setSeries(k + 1, {show: shown});
  })));
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (holder.clientWidth === width || holder.clientWidth === 0) return;
    width = holder.clientWidth;
    plot.setSize({width: Math.max(240, width), height: 430});
  }).observe(holder);
  odecast.onTheme.push(() => plot.redraw());
};

odecast.makeAttractor = (root, attractor, columns, headers) => {
  const {element, button} = odecast;
  const bar = element('div', {class: 'toolbar', role: 'toolbar', 'aria-label': `Controls of ${attractor.title}`});
  root.querySelector('h3').after(bar);
  const used = attractor.curves.flatMap((c) => [c.t, ...c.columns]);
  const note = odecast.exactness(headers, used);
  const saves = [
    element('span', {class: 'spacer'}),
    button('SVG', `Save "${attractor.title}" as SVG`, () => odecast.saveStatic(root, attractor.id)),
    button('CSV', `Save the curves as CSV (${note})`, () => {
      const long = [[], ...['t', ...attractor.variables].map(() => [])];
      attractor.curves.forEach((c, k) => {
        const t = columns[c.t];
        for (let i = 0; i < t.length; ++i) {
          long[0].push(`${c.label} ${k + 1}`);
          [c.t, ...c.columns].forEach((column, j) => long[j + 1].push(columns[column][i]));
        }
      });
      odecast.save(`${attractor.id}.csv`, 'text/csv', odecast.csv(['curve', 't', ...attractor.variables], long));
    }),
  ];
  root.append(element('p', {class: 'exactness'}, note));

  if (attractor.variables.length === 2 && typeof uPlot !== 'undefined') {
    odecast.makePlane(root, attractor, columns, bar);
    bar.append(...saves);
    return;
  }
  const canvas = element('canvas', {'aria-hidden': 'true'});
  const gl = attractor.variables.length >= 3 ? canvas.getContext('webgl2', {antialias: true, preserveDrawingBuffer: true}) : null;
  if (!gl) {
    bar.append(...saves);
    return;
  }
  const labels = [0, 1, 2].map(() => element('span', {class: 'axis-label'}));
  const scene = element('div', {
    class: 'scene', tabindex: '0', role: 'group',
    'aria-label': `${attractor.title}: curves in space. Arrow keys turn, plus and minus zoom, ` +
                  'space plays along time, Home shows the first view.'}, canvas, ...labels);

  const compiled = (type, source) => {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    return shader;
  };
  const program = gl.createProgram();
  gl.attachShader(program, compiled(gl.VERTEX_SHADER, odecast.shaders.vertex));
  gl.attachShader(program, compiled(gl.FRAGMENT_SHADER, odecast.shaders.fragment));
  gl.linkProgram(program);
  gl.useProgram(program);
  const place = (name) => gl.getAttribLocation(program, name), uniform = {};
  for (const name of ['view', 'size', 'width', 'color', 'paper', 'now', 'tail', 'near', 'far'])
    uniform[name] = gl.getUniformLocation(program, name);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, -1, 1, -1, 0, 1, 1, 1]), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(place('corner'));
  gl.vertexAttribPointer(place('corner'), 2, gl.FLOAT, false, 0, 0);
  gl.enable(gl.DEPTH_TEST);
  gl.depthFunc(gl.LEQUAL);

  let axes = [0, 1, 2];
  let begin = Infinity, end = -Infinity;
  for (const c of attractor.curves) {
    const t = columns[c.t];
    begin = Math.min(begin, t[0]);
    end = Math.max(end, t[t.length - 1]);
  }
  // The box holds what is not a mere sample.
  const main = attractor.curves.filter((c) => c.ink !== 'muted');
  let curves = [], box = null;
  const load = () => {
    const range = axes.map((v) => {
      let lo = Infinity, hi = -Infinity;
      for (const c of main.length ? main : attractor.curves)
        for (const x of columns[c.columns[v]]) {
          if (x < lo) lo = x;
          if (x > hi && x !== Infinity) hi = x;
        }
      return hi > lo ? [lo, hi] : [lo - 1, lo + 1];
    });
    const buffer = (points) => {
      const b = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, b);
      gl.bufferData(gl.ARRAY_BUFFER, points, gl.STATIC_DRAW);
      return b;
    };
    for (const c of curves) gl.deleteBuffer(c.buffer);
    curves = attractor.curves.map((c) => {
      const t = columns[c.t], n = t.length, points = new Float32Array(4 * n);
      for (let i = 0; i < n; ++i) {
        let whole = true;
        axes.forEach((v, k) => {
          const x = columns[c.columns[v]][i];
          whole = whole && Number.isFinite(x);
          points[4 * i + k] = 2 * (x - range[k][0]) / (range[k][1] - range[k][0]) - 1;
        });
        if (!whole) points.fill(1e9, 4 * i, 4 * i + 3);
        points[4 * i + 3] = (t[i] - begin) / (end - begin);
      }
      return {...c, n, points, buffer: buffer(points)};
    });
    // The box as segments, ends and starts alternating.
    const corners = [];
    for (const k of [0, 1, 2])
      for (const p of [-1, 1])
        for (const q of [-1, 1]) {
          const from = [0, 0, 0], to = [0, 0, 0];
          from[k] = -1.08;
          to[k] = 1.08;
          from[(k + 1) % 3] = to[(k + 1) % 3] = 1.08 * p;
          from[(k + 2) % 3] = to[(k + 2) % 3] = 1.08 * q;
          corners.push(...from, -1, ...to, -1);
        }
    if (box) gl.deleteBuffer(box);
    box = buffer(new Float32Array(corners));
    axes.forEach((v, k) => {
      labels[k].textContent = `${attractor.variables[v]}  ${odecast.number(range[k][0])} … ${odecast.number(range[k][1])}`;
    });
  };

  const home = {yaw: 0.7, pitch: 0.35, distance: 6};
  const camera = {...home};
  let now = 1, playing = false;
  // Rotation about the vertical axis (the third variable), then tilt, then perspective.
  const matrix = (aspect) => {
    const cy = Math.cos(camera.yaw), sy = Math.sin(camera.yaw), cp = Math.cos(camera.pitch), sp = Math.sin(camera.pitch);
    const right = [cy, sy, 0], up = [-sy * sp, cy * sp, cp], back = [sy * cp, -cy * cp, sp];
    const f = 1 / Math.tan(0.3), near = 0.5, far = 20;
    const zoom = Math.min(1, aspect);
    const a = -(far + near) / (far - near), b = -2 * far * near / (far - near);
    // Eye coordinates: x right, y up, z towards the viewer, less the distance.
    const m = new Float32Array(16);
    for (let i = 0; i < 3; ++i) {
      m[4 * i] = right[i] * f * zoom / aspect;
      m[4 * i + 1] = up[i] * f * zoom;
      m[4 * i + 2] = back[i] * a;
      m[4 * i + 3] = -back[i];
    }
    m[14] = -camera.distance * a + b;
    m[15] = camera.distance;
    return m;
  };
  const rgba = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).concat(1);

  let pending = false;
  const draw = () => {
    pending = false;
    const ratio = Math.min(2, devicePixelRatio || 1), width = scene.clientWidth, height = scene.clientHeight;
    if (width === 0) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    gl.viewport(0, 0, canvas.width, canvas.height);
    const paper = rgba(odecast.color('--paper')), view = matrix(width / height);
    gl.clearColor(...paper);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix4fv(uniform.view, false, view);
    gl.uniform2f(uniform.size, canvas.width, canvas.height);
    gl.uniform4fv(uniform.paper, paper);
    gl.uniform1f(uniform.near, camera.distance - 1.2);
    gl.uniform1f(uniform.far, camera.distance + 2);
    const segments = (buffer, count, stride, thickness, color, at, tail) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      for (const [name, offset] of [['a', 0], ['b', 16]]) {
        gl.enableVertexAttribArray(place(name));
        gl.vertexAttribPointer(place(name), 4, gl.FLOAT, false, stride, offset);
        gl.vertexAttribDivisor(place(name), 1);
      }
      gl.uniform1f(uniform.width, thickness * ratio);
      gl.uniform4fv(uniform.color, color);
      gl.uniform1f(uniform.now, at);
      gl.uniform1f(uniform.tail, tail);
      if (count > 0) gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    };
    segments(box, 12, 32, 1, rgba(odecast.color('--grid')), 2, 0);
    for (const c of curves) {
      if (c.hidden) continue;
      const color = rgba(odecast.ink(c.ink));
      segments(c.buffer, c.n - 1, 16, (c.n > 20000 ? 0.6 : 1.4) * c.width, color, now, now < 1 ? 0.25 : 0);
      if (now < 1) {  // a head where the curve has got to: a short thick segment
        let i = 0, j = c.n - 1;
        while (i < j) {
          const middle = (i + j + 1) >> 1;
          if (c.points[4 * middle + 3] <= now) i = middle;
          else j = middle - 1;
        }
        const p = c.points.slice(4 * i, 4 * i + 4), head = gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, head);
        gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([...p, ...p]), gl.STREAM_DRAW);
        segments(head, 1, 32, 5 * Math.max(1.4, c.width), color, now, 0);
        gl.deleteBuffer(head);
      }
    }
    // A label per variable, outside the middle of an edge of the box: the lowest two on screen for the
    // horizontal variables, the leftmost for the vertical one.
    const onScreen = (p) => {
      const at = [0, 1, 3].map((r) => view[r] * p[0] + view[4 + r] * p[1] + view[8 + r] * p[2] + view[12 + r]);
      return [50 * (at[0] / at[2] + 1), 50 * (1 - at[1] / at[2])];
    };
    [0, 1, 2].forEach((k) => {
      let best = null;
      for (const p of [-1.2, 1.2])
        for (const q of [-1.2, 1.2]) {
          const point = [0, 0, 0];
          point[(k + 1) % 3] = p;
          point[(k + 2) % 3] = q;
          const at = onScreen(point), rank = k === 2 ? -at[0] : at[1];
          if (!best || rank > best.rank) best = {at, rank};
        }
      const half = labels[k].offsetWidth / 2 + 2;
      labels[k].style.left = `${Math.min(width - half, Math.max(half, best.at[0] / 100 * width))}px`;
      labels[k].style.top = `${Math.min(96, Math.max(4, best.at[1]))}%`;
    });
  };
  const redraw = () => {
    if (!pending) requestAnimationFrame(draw);
    pending = true;
  };

  const turn = (dx, dy) => {
    camera.yaw += dx;
    camera.pitch = Math.min(1.5, Math.max(-1.5, camera.pitch + dy));
    redraw();
  };
  const zoom = (factor) => {
    camera.distance = Math.min(14, Math.max(2.2, camera.distance * factor));
    redraw();
  };
  const reset = () => {
    Object.assign(camera, home);
    redraw();
  };
  let held = null;
  scene.addEventListener('pointerdown', (event) => {
    held = [event.clientX, event.clientY];
    scene.setPointerCapture(event.pointerId);
  });
  scene.addEventListener('pointermove', (event) => {
    if (!held) return;
    turn(-(event.clientX - held[0]) / 150, (event.clientY - held[1]) / 150);
    held = [event.clientX, event.clientY];
  });
  for (const name of ['pointerup', 'pointercancel']) scene.addEventListener(name, () => { held = null; });
  // The wheel scrolls the page unless the scene has the focus.
  scene.addEventListener('wheel', (event) => {
    if (document.activeElement !== scene && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 600));
  }, {passive: false});

  const slider = element('input', {type: 'range', min: '0', max: '1000', value: '1000', 'aria-label': 'Time',
                                   oninput: () => { stop(); setTime(slider.value / 1000); }});
  const clock = element('output', {class: 'clock'});
  const setTime = (value) => {
    now = value;
    slider.value = String(Math.round(1000 * value));
    clock.textContent = `t = ${odecast.number(begin + value * (end - begin), (end - begin) / 1000)}`;
    redraw();
  };
  const play = button('▶ Play', 'Play along time', () => playing ? stop() : go());
  const stop = () => {
    playing = false;
    play.textContent = '▶ Play';
  };
  const go = () => {
    playing = true;
    play.textContent = '❚❚ Pause';
    let before = null, at = now >= 1 ? 0 : now;
    const step = (moment) => {
      if (!playing) return;
      if (before !== null) at += (moment - before) / 20000;
      before = moment;
      setTime(Math.min(1, at));
      if (at >= 1) stop();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  };
  scene.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const turns = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1]};
    if (event.key in turns) turn(...turns[event.key]);
    else if (event.key === '+' || event.key === '=') zoom(0.85);
    else if (event.key === '-' || event.key === '_') zoom(1 / 0.85);
    else if (event.key === 'Home' || event.key === '0') reset();
    else if (event.key === ' ') play.click();
    else return;
    event.preventDefault();
  });

  if (attractor.variables.length > 3)
    bar.append(...['Across', 'along', 'up'].map((word, k) => {
      const choice = element('select', {onchange: () => {
        axes[k] = Number(choice.value);
        load();
        redraw();
      }}, ...attractor.variables.map((name, v) => element('option', {value: String(v), selected: v === axes[k]}, name)));
      return element('label', {}, `${word} `, choice);
    }));
  bar.append(play, slider, clock, button('+', 'Zoom in', () => zoom(0.85)), button('−', 'Zoom out', () => zoom(1 / 0.85)),
             button('Reset', 'First view', reset), ...saves);
  const legend = odecast.legend({panels: [{lines: attractor.curves.map((c) => ({...c, points: false}))}]}, (label, shown) => {
    for (const c of curves) if (c.label === label) c.hidden = !shown;
    redraw();
  });
  root.classList.add('is-live');
  bar.after(legend, element('div', {class: 'live'}, scene));
  load();
  setTime(1);
  new ResizeObserver(redraw).observe(scene);
  odecast.onTheme.push(redraw);
};
