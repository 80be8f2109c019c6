// The pages under test: 1, 2, 3 and 8 variables, few and many times, a map, a driven system, every method, a misfit, the
// study.
import {execFile, execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {promisify} from 'node:util';

const program = process.env.ODECAST;
export const artefacts = process.env.ARTEFACTS;
const here = path.resolve('pages');
fs.rmSync(here, {recursive: true, force: true});
fs.mkdirSync(here);

export const file = (name) => path.join(here, name);
const settings = {cwd: here, stdio: ['ignore', 'pipe', 'ignore']};
export const odecast = (...words) => execFileSync(program, [...words, '--quiet'], settings);
const run = (...words) => promisify(execFile)(program, [...words, '--quiet'], {cwd: here});

export const readCsv = (text) => {
  const rows = text.trim().split('\n').filter((line) => !line.startsWith('#')).map((line) => line.split(','));
  const columns = {};
  rows[0].forEach((name, c) => { columns[name] = rows.slice(1).map((row) => row[c] === '' ? NaN : Number(row[c])); });
  return {names: rows[0], rows: rows.length - 1, columns};
};

// Truth by a formula, so that no certificate is needed.
const table = (name, header, step, rows, row) => {
  const lines = [header];
  for (let i = 0; i < rows; ++i) lines.push([i * step, ...row(i * step)].join(','));
  fs.writeFileSync(file(name), lines.join('\n') + '\n');
};
// Simulated runs carry the time up to which they are the solution. These pages are about drawing.
const simulated = async (name, ...words) => {
  await run('simulate', ...words, '-o', name);
  const text = fs.readFileSync(file(name), 'utf8');
  fs.writeFileSync(file(name), text.split('\n').filter((line) => !line.startsWith('#')).join('\n'));
};
const head = (from, to, rows) =>
  fs.writeFileSync(file(to), fs.readFileSync(file(from), 'utf8').split('\n').slice(0, rows + 1).join('\n') + '\n');
// The variables of the model at the first row.
const firstState = (name, model) => {
  const {columns} = readCsv(fs.readFileSync(file(name), 'utf8'));
  return JSON.parse(fs.readFileSync(file(model), 'utf8')).variables.map((v) => columns[v][0]).join(',');
};

const make = async (name, train, truth, fitWords, forecastWords) => {
  await run('fit', train, ...fitWords, '-o', `${name}.json`, '--report', `${name}-fit.html`);
  await run('forecast', `${name}.json`, `--init=${firstState(truth, `${name}.json`)}`, '--truth', truth, ...forecastWords,
            '-o', `${name}.csv`, '--report', `${name}.html`);
};

const small = async () => {
  table('one.in.csv', 't,height', 0.1, 101, (t) => [1 / (1 + 9 * Math.exp(-t))]);
  await make('one', 'one.in.csv', 'one.in.csv', ['--dropout', '0.1'], ['--until', '1', '--step', '0.1']);
  table('two.in.csv', 't,x,<b>&', 0.02, 501, (t) => [Math.cos(t), -Math.sin(t)]);
  await make('two', 'two.in.csv', 'two.in.csv', ['--degree', '1', '--dropout', '0.05'], ['--until', '10', '--step', '0.02']);
  await run('simulate', 'SprottB', '--init', '1,1,1', '--until', '10', '--step', '0.002', '-o', 'three.in.csv');
  await run('simulate', 'SprottB', '--init=-1,-1,-1', '--until', '10', '--step', '0.02', '-o', 'three.truth.csv');
  await make('three', 'three.in.csv', 'three.truth.csv', ['--scale', 'none', '--dropout', '0.25'],
             ['--until', '10', '--step', '0.02', '--system', 'SprottB']);
  await run('simulate', 'Henon', '--until', '400', '-o', 'map.in.csv');
  head('map.in.csv', 'map.truth.csv', 12);
  await make('map', 'map.in.csv', 'map.truth.csv', ['--kind', 'map', '--dropout', '0.01'], ['--until', '10']);
  await simulated('driven.in.csv', 'ForcedDuffing', '--until', '50');
  await make('driven', 'driven.in.csv', 'driven.in.csv', ['--variables', 'x,v', '--inputs', 'F', '--degree', '3', '--dropout', '0.01'],
             ['--until', '10', '--step', '0.05', '--observations', '--noise', '0.05']);
};
const long3 = async () => {
  await simulated('long3.truth.csv', 'Lorenz', '--until', '1000', '--step', '0.01');
  head('long3.truth.csv', 'long3.in.csv', 2000);
  await make('long3', 'long3.in.csv', 'long3.truth.csv', ['--dropout', '0.005'],
             ['--until', '1000', '--step', '0.01', '--draws', '50', '--system', 'Lorenz']);
};
const long8 = async () => {
  await simulated('long8.truth.csv', 'Lorenz96', '--size', '8', '--until', '1000', '--step', '0.01');
  head('long8.truth.csv', 'long8.in.csv', 2000);
  await make('long8', 'long8.in.csv', 'long8.truth.csv', ['--dropout', '0.005'],
             ['--until', '1000', '--step', '0.01', '--draws', '50']);
  head('long8.truth.csv', 'eight.truth.csv', 11);
  await make('eight', 'long8.in.csv', 'eight.truth.csv', ['--dropout', '0.02'], ['--until', '0.1', '--step', '0.01']);
};
export const names = ['one', 'two', 'three', 'long3', 'long8', 'eight', 'map', 'driven'];

// A fit by every method, and one whose equations do not explain the data: exit code 1, and a page that says so.
export const methods = ['trajectory', 'regression', 'bootstrap', 'misfit'];
const untrusted = async (...words) => {
  const code = await run(...words).then(() => 0, (error) => error.code);
  if (code !== 1) throw new Error(`exit code ${code}: ${words.join(' ')}`);
};
const byMethod = async () => {
  await run('simulate', 'Lorenz', '--until', '20', '--step', '0.02', '--noise', '0.02', '-o', 'noisy.csv');
  await run('simulate', 'VanDerPol', '--until', '50', '--step', '0.05', '--noise', '0.02', '-o', 'bent.csv');
  await run('fit', 'noisy.csv', '-o', 'trajectory.json', '--report', 'trajectory-fit.html');
  await run('fit', 'noisy.csv', '--posterior', 'regression', '--degree', 'auto', '-o', 'regression.json',
            '--report', 'regression-fit.html');
  await run('fit', 'noisy.csv', '--posterior', 'bootstrap', '-o', 'bootstrap.json', '--report', 'bootstrap-fit.html');
  await untrusted('fit', 'bent.csv', '--degree', '1', '-o', 'misfit.json', '--report', 'misfit-fit.html');
  await run('forecast', 'misfit.json', '--until', '55', '-o', 'misfit.csv', '--report', 'misfit.html');
};
// Hare and lynx, thousands of pelts of the Hudson's Bay Company: 21 rows, and what comes after them.
const hare = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7];
const lynx = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6];
const yearly = async () => {
  fs.writeFileSync(file('yearly.in.csv'), 't,Hare,Lynx\n' + hare.map((h, i) => `${1900 + i},${h},${lynx[i]}\n`).join(''));
  await run('fit', 'yearly.in.csv', '-o', 'yearly.json', '--report', 'yearly-fit.html');
  await run('forecast', 'yearly.json', '--until', '1930', '-o', 'yearly.csv', '--report', 'yearly.html');
};

const pages = Promise.all([small().then(long3), long8(), byMethod().then(yearly)]);
// The study takes longest, and one test asks for it.
const study = pages.then(() => run('reproduce', '--adam-seeds', '2', '--batches', '2', '-o', 'study'));
study.catch(() => {});
export const made = {pages, study};
