import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, describe, it} from 'node:test';
import {chromium} from 'playwright-core';
import {artefacts, file, made, methods, names, odecast, readCsv} from './pages.mjs';

// They run two at a time, in one browser: a test waits for its page more than it computes.
const tests = [];
const test = (name, body) => tests.push([name, body]);

let browser;
before(async () => {
  await made.pages;
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
           '--disable-gpu-compositing',  // WebGL in software is slow, and needed for curves in space alone
           '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  });
});
after(() => browser.close());

// Opens a page, runs the body, keeps a screenshot; whatever happens, the page asks for nothing and complains of
// nothing.
const withPage = async (t, name, options, body) => {
  const {complaints: expected, whole, picture: look, ...settings} = options;
  const context = await browser.newContext({viewport: {width: 1100, height: 800}, acceptDownloads: true, ...settings});
  context.setDefaultTimeout(120_000);  // beside compilers a page of 100,000 times takes its time
  const page = await context.newPage();
  const requests = [], complaints = [];
  page.on('request', (r) => requests.push(r.url()));
  // Without a compositor the browser itself reads what WebGL drew, and tells that it waits for it.
  page.on('console', (m) => /^\[\.WebGL.*GPU stall due to ReadPixels/.test(m.text()) || complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(e.message));
  const address = `file://${name.startsWith('/') ? name : file(`${name}.html`)}`;
  await page.goto(address);
  if (settings.javaScriptEnabled !== false) await page.waitForSelector('html[data-ready="yes"]');
  try {
    await body(page);
  } finally {
    const picture = `${t.name} ${look || ''}`.trim().replace(/[^a-z0-9]+/gi, '-');
    await page.screenshot({path: path.join(artefacts, `${picture}.png`), fullPage: whole === true});
    await context.close();
  }
  assert.deepEqual(requests.filter((url) => !url.startsWith('blob:')), [address]);
  if (!expected) assert.deepEqual(complaints, []);
};

// Asks until the answer is good; the last answer, where it never is.
const eventually = async (ask, good) => {
  for (const end = Date.now() + 10_000; ; await new Promise((go) => { setTimeout(go, 20); })) {
    const answer = await ask();
    if (good(answer) || Date.now() > end) return answer;
  }
};
// What an event changes is drawn two frames later.
const settled = (page) => page.evaluate(() => new Promise((go) => {
  requestAnimationFrame(() => requestAnimationFrame(() => go()));
}));

const readout = (page, figure = 'forecast') => page.locator(`#${figure} .readout span`).first().textContent();
const said = (text, word) => Number(text.match(new RegExp(`${word} (−?[0-9.e−]+)`))[1].replaceAll('−', '-'));
const timeOf = (text) => Number(text.match(/t = (−?[0-9.]+)/)[1].replace('−', '-'));

// The plot's own area, without its axes.
const area = async (page, figure = 'forecast') => {
  const over = page.locator(`#${figure} .u-over`).first();
  await over.scrollIntoViewIfNeeded();
  return over.boundingBox();
};
const hover = async (page, share, figure = 'forecast') => {
  const box = await area(page, figure);
  await page.mouse.move(box.x + share * box.width, box.y + box.height / 2);
  return readout(page, figure);
};
const span = async (page) => timeOf(await hover(page, 0.999)) - timeOf(await hover(page, 0.001));

const download = async (page, figure, label) => {
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.locator(`#${figure} .toolbar button`, {hasText: label}).click()]);
  return {name: saved.suggestedFilename(), text: fs.readFileSync(await saved.path(), 'utf8')};
};

// How many pixels of a canvas have the forecast's colour, differ from the corner's, have any colour.
const pixels = (page, selector) => page.locator(selector).first().evaluate((canvas) => {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0);
  const {data} = context.getImageData(0, 0, copy.width, copy.height);
  const ink = odecast.ink('forecast'), rgb = [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16));
  let inked = 0, drawn = 0, colored = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 0 && [0, 1, 2].some((k) => Math.abs(data[i + k] - data[k]) > 12 || data[i + 3] !== data[3])) ++drawn;
    if (data[i + 3] > 200 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) ++colored;
    if (data[i + 3] > 200 && rgb.every((c, k) => Math.abs(c - data[i + k]) < 24)) ++inked;
  }
  return {inked, drawn, colored};
});

// The numbers of a figure's CSV are those of the forecast's file, to the last bit. Between its rows there are others
// where those are few.
const exactNumbers = async (page, name) => {
  const saved = await download(page, 'forecast', 'CSV');
  assert.equal(saved.name, 'forecast.csv');
  const page_csv = readCsv(saved.text), whole = readCsv(fs.readFileSync(file(`${name}.csv`), 'utf8'));
  const rows = whole.columns.t.map((time) => page_csv.columns.t.indexOf(time));
  assert.ok(!rows.includes(-1), name);
  assert.ok(whole.rows > 200 ? page_csv.rows === whole.rows : page_csv.rows > 4 * whole.rows, `${page_csv.rows}`);
  const variables = whole.names.filter((n) => n.endsWith('_mean')).map((n) => n.slice(0, -5));
  for (const v of variables)
    for (const [column, part] of [['forecast mean', 'mean'], ['95 % band (mean ± 1.96 sd) lower', 'lower'],
                                  ['95 % band (mean ± 1.96 sd) upper', 'upper']])
      assert.deepEqual(rows.map((r) => page_csv.columns[`${v} ${column}`][r]), whole.columns[`${v}_${part}`], `${name} ${v} ${part}`);
  if (name === 'three') {
    const truth = readCsv(fs.readFileSync(file('three.truth.csv'), 'utf8'));
    assert.deepEqual(page_csv.columns['y truth'], truth.columns.y);
    assert.ok(page_csv.names.includes('x sample trajectories 5'));
  }
  assert.match(await page.locator('#forecast .exactness').textContent(), /every digit/);
};

// A CSV of 100,000 times has every row, each value as near as the page says.
const everyRow = async (t, page, name, variables) => {
  const note = await page.locator('#forecast .exactness').textContent();
  const claimed = Number(note.match(/all 100,001 rows, values to ±([0-9.e-]+)/)[1]);
  const saved = readCsv((await download(page, 'forecast', 'CSV')).text);
  const whole = readCsv(fs.readFileSync(file(`${name}.csv`), 'utf8'));
  assert.equal(saved.rows, 100_001);
  assert.deepEqual(saved.columns.t, whole.columns.t);
  for (const v of variables)
    for (const [column, part] of [['forecast mean', 'mean'], ['95 % band (mean ± 1.96 sd) upper', 'upper']]) {
      const a = saved.columns[`${v} ${column}`], b = whole.columns[`${v}_${part}`];
      const off = a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);
      assert.ok(off <= claimed, `${name} ${v} ${part}: off by ${off}, claimed ${claimed}`);
      const range = Math.max(...b) - Math.min(...b);
      assert.ok(claimed < 0.02 * range, `${claimed} of ${range}`);
    }
  t.diagnostic(`${name}: ±${claimed}`);
};
const saves = {
  one: exactNumbers, two: exactNumbers, three: exactNumbers, eight: exactNumbers,
  long3: (page, name, t) => everyRow(t, page, name, ['x', 'y', 'z']),
  long8: (page, name, t) => everyRow(t, page, name, ['x1', 'x5', 'x8']),
};

for (const name of names)
  for (const kind of ['', '-fit'])
    test(`${name}${kind}: loads, draws, stays small${kind === '' && saves[name] ? ', saves its numbers' : ''}`, async (t) => {
      const size = fs.statSync(file(`${name}${kind}.html`)).size;
      t.diagnostic(`${size} bytes`);
      assert.ok(size < 1_000_000, `${size} bytes`);
      await withPage(t, `${name}${kind}`, {whole: !name.startsWith('long')}, async (page) => {
        const canvases = await page.locator('.plot canvas').count();
        assert.ok(canvases > 0);
        for (const {inked, drawn} of [await pixels(page, '.plot canvas')]) {
          assert.ok(inked > 100, `${inked} pixels in the forecast's colour`);
          assert.ok(drawn > 500, `${drawn} pixels drawn`);
        }
        // Every static figure is there too, behind.
        assert.equal(await page.locator('figure .static svg').count(), await page.locator('figure').count());
        if (kind === '' && saves[name]) await saves[name](page, name, t);
      });
    });

// Nothing is wider than the window, no text of a figure or table is too small, no tick is said twice.
const legible = async (page) => {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `${wide} > ${window}`);
  const small = await page.evaluate(() => [...document.querySelectorAll('main p, main td, main th, main dt, main dd, main button, main small')]
    .filter((e) => e.offsetParent && e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 12)
    .map((e) => e.textContent));
  assert.deepEqual(small, []);
};

const phone = {viewport: {width: 390, height: 740}, hasTouch: true, isMobile: true};
const figuresOf = {
  trajectory: ['path-in-time', 'residuals-in-time', 'residual-memory'],
  misfit: ['path-in-time', 'residuals-in-time', 'residual-memory'],
  regression: ['evidence-by-degree', 'derivatives-in-time', 'data'],
  bootstrap: ['coefficients', 'derivatives-in-time', 'data'],
};
for (const method of methods)
  for (const [look, options] of [['light', {colorScheme: 'light'}], ['dark', {colorScheme: 'dark'}],
                                 ['phone', {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true}]])
    test(`${method} fit: its own figures, ${look}`, async (t) => {
      await withPage(t, `${method}-fit`, {...options, whole: true}, async (page) => {
        for (const figure of figuresOf[method]) {
          const {drawn} = await pixels(page, `#${figure} .plot canvas`);
          assert.ok(drawn > 200, `${figure}: ${drawn} pixels drawn`);
        }
        assert.equal(await page.locator('#derivatives').count(), method === 'trajectory' || method === 'misfit' ? 0 : 1);
        assert.equal(await page.locator('.warning').count(), method === 'misfit' ? 1 : 0);
        await legible(page);
      });
    });

test('what is not to be trusted says so before all else', async (t) => {
  for (const [name, what] of [['misfit-fit', 'model'], ['misfit', 'forecast']])
    await withPage(t, name, {}, async (page) => {
      const warning = page.locator('.warning');
      assert.match(await warning.textContent(), new RegExp(`^Do not trust this ${what}.*do not explain`));
      const [above, title] = [await warning.boundingBox(), await page.locator('h1').boundingBox()];
      assert.ok(above.y + above.height <= title.y && above.y < 60, `${above.y} ${title.y}`);
      if (what === 'model') assert.equal(await page.locator('#forcing tbody tr').count(), 2);
    });
});

test('the path goes through the data, and the CSV has both', async (t) => {
  await withPage(t, 'trajectory-fit', {}, async (page) => {
    const data = readCsv(fs.readFileSync(file('noisy.csv'), 'utf8'));
    const saved = readCsv((await download(page, 'path-in-time', 'CSV')).text);
    const series = (name) => saved.columns[name].filter((v) => !Number.isNaN(v));
    const observed = series('z observed'), path = series('z path of the learnt equations');
    assert.deepEqual(observed, data.columns.z);
    assert.equal(path.length, observed.length);
    const off = Math.sqrt(path.reduce((sum, v, i) => sum + (v - observed[i]) ** 2, 0) / path.length);
    const mean = observed.reduce((a, b) => a + b) / observed.length;
    const sd = Math.sqrt(observed.reduce((sum, v) => sum + (v - mean) ** 2, 0) / observed.length);
    assert.ok(Math.abs(off / sd - 0.02) < 0.002, `${off / sd}`);
  });
});

test('ticks say where they stand', async (t) => {
  await withPage(t, 'one', {}, async (page) => {
    // Any step that an axis can have, wherever it begins: labels are the numbers, and all differ.
    const wrong = await page.evaluate(() => {
      const found = [];
      for (let k = -12; k <= 12; ++k)
        for (const lead of [1, 2, 2.5, 5])
          for (const from of [-3, -1, 0, 1, 4, 97, 12345]) {
            const step = Number(`${lead}e${k}`);
            const splits = [0, 1, 2, 3].map((i) => Number(((from + i) * step).toPrecision(12)));
            odecast.tickLabels(splits).forEach((label, i) => {
              if (Math.abs(Number(label.replaceAll('−', '-')) - splits[i]) > 1e-6 * step) found.push([splits[i], label]);
            });
          }
      return found;
    });
    assert.deepEqual(wrong, []);
    // Powers of ten, 1 2 5, or even steps: at most as many as there is room for, never two on each other.
    const logs = await page.evaluate(() => [[0.044, 1.2], [0.6, 0.95], [1e-9, 1], [0.3, 4], [3, 700]].map(([lo, hi]) =>
      odecast.logLabels(odecast.logSplits(lo, hi, 7)).join(' ')));
    assert.deepEqual(logs, ['0.1 1', '0.60 0.65 0.70 0.75 0.80 0.85 0.90', '1e−9 1e−7 1e−5 1e−3 1e−1', '0.5 1 2', '10 100']);
    const labels = await page.evaluate(() => [odecast.tickLabels([-0.25, 0, 0.25, 0.5]), odecast.tickLabels([1, 2, 3]),
                                              odecast.tickLabels([0, 2.5, 5]), odecast.tickLabels([0, 0.02, 0.04])]);
    assert.deepEqual(labels, [['−0.25', '0.00', '0.25', '0.50'], ['1', '2', '3'], ['0.0', '2.5', '5.0'], ['0.00', '0.02', '0.04']]);
  });
});

test('what was observed comes before the fan, on one axis', async (t) => {
  for (const [look, options] of [['light', {}], ['dark', {colorScheme: 'dark'}], ['phone', phone]])
    await withPage(t, 'yearly', {...options, whole: true, picture: look}, async (page) => {
      const rows = readCsv(fs.readFileSync(file('yearly.in.csv'), 'utf8')).columns;
      const saved = readCsv((await download(page, 'forecast', 'CSV')).text);
      const seen = saved.columns.t.map((time, i) => [time, saved.columns['Hare observed'][i]]).filter(([, v]) => !Number.isNaN(v));
      assert.deepEqual(seen, rows.t.map((time, i) => [time, rows.Hare[i]]).filter(([time]) => time >= seen[0][0]));
      assert.equal(seen.length, 21);
      // The fan begins with the last of them, and is drawn ten times as fine as the rows.
      const fan = saved.columns.t.filter((_, i) => !Number.isNaN(saved.columns['Hare forecast median'][i]));
      assert.equal(fan[0], 1920);
      assert.ok(fan.length > 10 * 8, `${fan.length}`);
      assert.match(await page.locator('#forecast figcaption').textContent(), /^Dots are what was observed/);
      assert.match(await page.locator('#forecast .static svg').textContent(), /forecast begins/);
      await legible(page);
      // The last link of the navigation can be reached, and no button lies on it.
      const last = page.locator('header nav a').last();
      await last.scrollIntoViewIfNeeded();
      const [link, button] = [await last.boundingBox(), await page.locator('button.theme').boundingBox()];
      assert.ok(link.x + link.width <= button.x + 1 || link.y + link.height <= button.y || link.y >= button.y + button.height);
    });
});

test('two variables have a plane with axes, which zooms', async (t) => {
  await withPage(t, 'yearly-fit', {}, async (page) => {
    const plane = page.locator('#attractor .plot');
    await plane.scrollIntoViewIfNeeded();
    const picture = () => page.locator('#attractor canvas').evaluate((c) => c.toDataURL());
    const {inked} = await pixels(page, '#attractor canvas');
    assert.ok(inked > 500, `${inked}`);
    const whole = await picture();
    const changed = async (what) => assert.notEqual(await eventually(picture, (now) => now !== whole), whole, what);
    const back = async (what) => assert.equal(await eventually(picture, (now) => now === whole), whole, what);
    for (const key of ['+', 'ArrowLeft', '-']) {
      await plane.focus();
      await page.keyboard.press(key);
      await changed(key);
      await page.keyboard.press('Home');
      await back(key);
    }
    const box = await page.locator('#attractor .u-over').boundingBox();
    await page.mouse.move(box.x + 100, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + 300, box.y + 200, {steps: 4});
    await page.mouse.up();
    await changed('drag');
    await page.locator('#attractor .toolbar button', {hasText: 'Reset'}).click();
    await back('reset');
    await page.locator('#attractor .legend button', {hasText: 'observed'}).click();
    await changed('legend');
  });
});

test('the SVG that is saved is the figure', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    for (const figure of ['forecast', 'attractor', 'pit']) {
      const saved = await download(page, figure, 'SVG');
      assert.equal(saved.name, `${figure}.svg`);
      assert.match(saved.text, /^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
      assert.ok((saved.text.match(/<path /g) || []).length > 5);
      assert.match(saved.text, /forecast mean|share of times/);
      assert.doesNotMatch(saved.text, /<script|foreignObject/);
    }
  });
});

test('hover reads the numbers of the file', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    const whole = readCsv(fs.readFileSync(file('three.csv'), 'utf8')).columns;
    for (const share of [0.2, 0.5, 0.81]) {
      const text = await hover(page, share), time = timeOf(text);
      assert.ok(Math.abs(time - 10 * share) < 0.05, text);
      const i = whole.t.findIndex((v) => Math.abs(v - time) < 1e-6);
      assert.ok(Math.abs(said(text, 'forecast mean') - whole.x_mean[i]) < 1e-3, text);
      assert.ok(Math.abs(said(text, '95 % band') - whole.x_lower[i]) < 1e-3, text);
      // The other panels follow.
      const below = await page.locator('#forecast .readout span').nth(2).textContent();
      assert.ok(Math.abs(said(below, 'forecast mean') - whole.z_mean[i]) < 1e-3, below);
    }
  });
});

test('drag and buttons zoom, all panels together', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    const all = await span(page);
    assert.ok(all > 9.9, `${all}`);
    const box = await area(page);
    await page.mouse.move(box.x + 0.25 * box.width, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 60, {steps: 5});
    await page.mouse.up();
    const part = await span(page);
    assert.ok(Math.abs(part - all / 4) < 0.2, `${part}`);
    await hover(page, 0.001);
    const other = await page.locator('#forecast .readout span').nth(1).textContent();
    assert.ok(Math.abs(timeOf(other) - 2.5) < 0.1, other);
    await page.locator('#forecast .toolbar button', {hasText: '+'}).click();
    assert.ok(await span(page) < 0.6 * part);
    await page.locator('#forecast .toolbar button', {hasText: 'Reset'}).click();
    assert.ok(Math.abs(await span(page) - all) < 0.05);
  });
});

test('the switch shows one variable or all, and keeps the zoom', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    assert.equal(await page.locator('#forecast .plot').count(), 3);
    await page.locator('#forecast .toolbar button', {hasText: '+'}).click();
    const zoomed = await span(page);
    await page.locator('#forecast select').selectOption({label: 'z'});
    assert.equal(await page.locator('#forecast .plot').count(), 1);
    assert.equal(await page.locator('#forecast .readout strong').textContent(), 'z');
    assert.ok(Math.abs(await span(page) - zoomed) < 0.05);
    const whole = readCsv(fs.readFileSync(file('three.csv'), 'utf8')).columns;
    const text = await hover(page, 0.5), i = whole.t.findIndex((v) => Math.abs(v - timeOf(text)) < 1e-6);
    assert.ok(Math.abs(said(text, 'forecast mean') - whole.z_mean[i]) < 1e-3, text);
    await page.locator('#forecast select').selectOption({label: 'all'});
    assert.equal(await page.locator('#forecast .plot').count(), 3);
  });
  await withPage(t, 'eight', {}, async (page) => {
    assert.equal(await page.locator('#forecast .plot').count(), 1);
    await page.locator('#forecast select').selectOption({label: 'x7'});
    assert.equal(await page.locator('#forecast .readout strong').textContent(), 'x7');
  });
});

test('legend entries hide and show their curves', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    const inked = (await pixels(page, '#forecast .plot canvas')).inked;
    const entry = page.locator('#forecast .legend button', {hasText: 'forecast mean'});
    await entry.click();
    assert.equal(await entry.getAttribute('aria-pressed'), 'false');
    const now = async () => (await pixels(page, '#forecast .plot canvas')).inked;
    assert.ok(await eventually(now, (n) => n < inked / 4) < inked / 4);
    await entry.click();
    assert.equal(await eventually(now, (n) => n === inked), inked);
  });
});

test('everything works from the keyboard', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the results');
    await page.keyboard.press('Enter');
    await page.locator('#forecast .plot').first().focus();
    await page.keyboard.press('ArrowRight');
    const first = timeOf(await readout(page));
    await page.keyboard.press('ArrowRight');
    const second = timeOf(await readout(page));
    assert.ok(second > first && second < first + 0.2, `${first} ${second}`);
    for (let i = 0; i < 30; ++i) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('+');
    await page.keyboard.press('+');
    const zoomed = await span(page);
    assert.ok(zoomed < 2.7, `${zoomed}`);
    const left = timeOf(await hover(page, 0.001));
    await page.mouse.move(0, 0);
    await page.locator('#forecast .plot').first().focus();
    await page.keyboard.press('Shift+ArrowRight');
    assert.ok(timeOf(await hover(page, 0.001)) > left + 0.3);
    await page.locator('#forecast .plot').first().focus();
    await page.keyboard.press('Home');
    assert.ok(await span(page) > 9.9);
    // Every control can be reached and has a name.
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, [tabindex="0"]')]
      .filter((e) => !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML));
    assert.deepEqual(nameless, []);
  });
});

const scene = (page) => page.locator('#attractor canvas').evaluate((canvas) => canvas.toDataURL());

test('the attractor draws, turns, zooms and plays', async (t) => {
  await withPage(t, 'three', {}, async (page) => {
    const box = page.locator('#attractor .scene');
    await box.scrollIntoViewIfNeeded();
    await settled(page);
    const {drawn, colored} = await pixels(page, '#attractor canvas');
    assert.ok(drawn > 2000 && colored > 100, `${drawn} drawn, ${colored} in colour`);
    let before = await scene(page);
    const changes = async (what) => {
      const now = await eventually(() => scene(page), (picture) => picture !== before);
      assert.notEqual(now, before, what);
      before = now;
    };
    const at = await box.boundingBox();
    await page.mouse.move(at.x + 200, at.y + 150);
    await page.mouse.down();
    await page.mouse.move(at.x + 330, at.y + 180, {steps: 4});
    await page.mouse.up();
    await changes('drag');
    await page.screenshot({path: path.join(artefacts, 'attractor-turned.png')});
    await box.focus();
    await page.keyboard.press('ArrowLeft');
    await changes('arrow');
    await page.keyboard.press('+');
    await changes('zoom');
    await page.keyboard.press('Home');
    await changes('home');
    const time = async () => timeOf(await page.locator('#attractor .clock').textContent());
    await page.keyboard.press(' ');
    await eventually(time, (now) => now > 0 && now < 10);
    await page.keyboard.press(' ');
    const clock = await time();
    assert.ok(clock > 0 && clock < 5, `${clock}`);
    await changes('play');
    await settled(page);
    assert.equal(await time(), clock);
    const csv = readCsv((await download(page, 'attractor', 'CSV')).text);
    assert.deepEqual(csv.names, ['curve', 't', 'x', 'y', 'z']);
  });
  await withPage(t, 'eight', {}, async (page) => {
    await page.locator('#attractor .scene').scrollIntoViewIfNeeded();
    await settled(page);
    const before = await scene(page);
    await page.locator('#attractor select').first().selectOption({label: 'x6'});
    assert.notEqual(await eventually(() => scene(page), (picture) => picture !== before), before);
    assert.match(await page.locator('#attractor .axis-label').first().textContent(), /^x6/);
  });
});

test('colours follow the system and the toggle', async (t) => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const bright = (color) => color.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) > 380;
  for (const colorScheme of ['light', 'dark'])
    await withPage(t, 'three', {colorScheme, whole: true}, async (page) => {
      assert.equal(bright(await background(page)), colorScheme === 'light');
      const plot = await page.locator('#forecast canvas').first().evaluate((c) => c.toDataURL());
      const toggle = page.locator('button.theme');
      await toggle.click();  // light
      assert.ok(bright(await background(page)));
      await toggle.click();  // dark
      assert.ok(!bright(await background(page)));
      const picture = () => page.locator('#forecast canvas').first().evaluate((c) => c.toDataURL());
      const dark = await eventually(picture, (now) => (now === plot) === (colorScheme === 'dark'));
      if (colorScheme === 'light') assert.notEqual(plot, dark);
      else assert.equal(plot, dark);
      // Text on its background: 4.5 to 1 at least.
      const contrast = await page.evaluate(() => {
        const light = (color) => {
          const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const paper = light(getComputedStyle(document.querySelector('.figure')).backgroundColor);
        return ['h1', 'figcaption', '.readout', '.tiles strong', 'td', '.facts dt'].map((selector) => {
          const ink = light(getComputedStyle(document.querySelector(selector)).color);
          return [selector, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)];
        }).filter(([, ratio]) => ratio < 4.5);
      });
      assert.deepEqual(contrast, []);
    });
});

for (const name of names)
  test(`${name}: fits a phone`, async (t) => {
    await withPage(t, name, {viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true, whole: name === 'three' || name === 'eight'}, async (page) => {
      const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= window, `${wide} > ${window}`);
      const small = await page.evaluate(() => [...document.querySelectorAll('.toolbar button, .toolbar select')]
        .map((e) => e.getBoundingClientRect()).filter((r) => r.height < 32).length);
      assert.equal(small, 0);
    });
  });

test('without scripts the static figures are there', async (t) => {
  for (const name of ['three', 'eight', 'three-fit'])
    await withPage(t, name, {javaScriptEnabled: false, whole: true}, async (page) => {
      const figures = page.locator('figure .static svg'), count = await figures.count();
      assert.ok(count >= 4);
      for (let i = 0; i < count; ++i) {
        const box = await figures.nth(i).boundingBox();
        assert.ok(box && box.width > 300 && box.height > 100);
      }
      assert.equal(await page.locator('.toolbar').count(), 0);
      assert.ok(await page.locator('noscript .notice').isVisible());
    });
});

test('without uPlot the static figures are there and the rest works', async (t) => {
  // The page as a build without npm writes it: the library cut out, the policy's hash that of what is left.
  const html = fs.readFileSync(file('three.html'), 'utf8');
  const script = html.match(/<script>([^]*?)<\/script>/)[1];
  assert.match(script, /^\/\*! uPlot [0-9.]+\n[^]*MIT/);
  const own = script.slice(script.indexOf("'use strict';\n// The numbers of a page"));
  const hash = (text) => crypto.createHash('sha256').update(text).digest('base64');
  assert.ok(html.includes(`script-src 'sha256-${hash(script)}'`));
  fs.writeFileSync(file('plain.html'), html.replace(hash(script), hash(own)).replace(script, () => own));
  await withPage(t, 'plain', {}, async (page) => {
    assert.equal(await page.locator('.plot').count(), 0);
    assert.ok(await page.locator('#forecast .static svg').isVisible());
    assert.ok(await page.locator('#attractor .scene').isVisible());
    const saved = readCsv((await download(page, 'forecast', 'CSV')).text);
    assert.equal(saved.rows, 501);
  });
});

test('print shows the static figures', async (t) => {
  await withPage(t, 'three', {colorScheme: 'dark', whole: true}, async (page) => {
    await page.emulateMedia({media: 'print', colorScheme: 'dark'});
    assert.ok(await page.locator('#forecast .static svg').isVisible());
    assert.ok(!await page.locator('#forecast .live').isVisible());
    assert.ok(!await page.locator('#forecast .toolbar').isVisible());
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
    const pdf = await page.pdf({path: path.join(artefacts, 'print.pdf'), format: 'A4', printBackground: false});
    assert.ok(pdf.length > 20_000);
  });
});

test('the policy forbids what the page does not need', async (t) => {
  await withPage(t, 'three', {complaints: true}, async (page) => {
    const policy = await page.locator('meta[http-equiv]').getAttribute('content');
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data: blob:/);
    assert.doesNotMatch(policy, /unsafe|http/);
    const got = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'window.injected = true;';
      document.body.append(script);
      let fetched = 'no';
      try {
        await fetch('file:///etc/hostname');
        fetched = 'yes';
      } catch { /* as it should be */ }
      return [window.injected === undefined, fetched];
    });
    assert.deepEqual(got, [true, 'no']);
  });
});

test('names from files are text, not markup', async (t) => {
  await withPage(t, 'two', {}, async (page) => {
    assert.equal(await page.locator('main b, header b').count(), 0);
    assert.match(await page.locator('h1').textContent(), /<b>&/);
    assert.equal(await page.locator('#forecast select option').nth(2).textContent(), '<b>&');
  });
});

test('equations are typeset, the command can be copied', async (t) => {
  await withPage(t, 'three', {permissions: ['clipboard-read', 'clipboard-write']}, async (page) => {
    const math = page.locator('.equation math');
    assert.ok(await math.count() > 20);
    const box = await math.nth(1).boundingBox();
    assert.ok(box.width > 40 && box.height > 10);
    assert.match(await page.locator('.equation').first().textContent(), /±/);
    await page.locator('.command button').click();
    await page.locator('.command button', {hasText: 'Copied'}).waitFor();
    const text = await page.locator('.command code').textContent();
    assert.match(text, /^odecast forecast three\.json --init=-1,-1,-1 --truth three\.truth\.csv/);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()).catch(() => text), text);
  });
  // The command repeats the page, byte for byte.
  const command = fs.readFileSync(file('three.html'), 'utf8').match(/<code>(.*?)<\/code>/)[1].split(' ').slice(1);
  const before = fs.readFileSync(file('three.html'));
  odecast(...command.filter((word) => word !== '--quiet'));
  assert.deepEqual(fs.readFileSync(file('three.html')), before);
});

// Last: it is made while the others run.
test('the study: nine figures, every claim with its verdict', async (t) => {
  await made.study;
  const size = fs.statSync(file('study/report.html')).size;
  t.diagnostic(`${size} bytes`);
  assert.ok(size < 1_000_000, `${size} bytes`);
  const {claims} = JSON.parse(fs.readFileSync(file('study/claims.json'), 'utf8'));
  await withPage(t, file('study/report.html'), {whole: true}, async (page) => {
    const {drawn} = await pixels(page, '.plot canvas');
    assert.ok(drawn > 500, `${drawn} pixels drawn`);
    const text = await page.locator('main').textContent();
    for (let figure = 1; figure <= 9; ++figure) assert.match(text, new RegExp(`[Ff]igure ${figure}\\b`));
    assert.ok(claims.length >= 12);
    assert.ok(await page.locator('table tbody tr').count() >= claims.length);
    for (const claim of claims) assert.ok(text.includes(claim.claim), claim.claim);
  });
  // A phone shows it without scrolling sideways.
  await withPage(t, file('study/report.html'), {viewport: {width: 390, height: 800}}, async (page) => {
    const {inner, outer} = await page.evaluate(() => ({inner: document.documentElement.scrollWidth, outer: window.innerWidth}));
    assert.ok(inner <= outer, `${inner} of ${outer} pixels`);
  });
});

describe('pages', {concurrency: 2}, () => {
  for (const [name, body] of tests) it(name, body);
});
