// The pages under test: 1, 2, 3 and 8 variables, few and many times, a map, a driven system, every method, a misfit, the
// study.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const program = process.env.ODECAST;
export const artefacts = process.env.ARTEFACTS;
const here = path.resolve('pages');
fs.rmSync(here, {recursive: true, force: true});
fs.mkdirSync(here);

export const file = (name) => path.join(here, name);
export const odecast = (...words) => execFileSync(program, [...words, '--quiet'], {cwd: here, stdio: ['ignore', 'pipe', 'ignore']});

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
const simulated = (name, ...words) => {
  odecast('simulate', ...words, '-o', name);
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

const pages = [];
const make = (name, train, truth, fitWords, forecastWords) => {
  odecast('fit', train, ...fitWords, '-o', `${name}.json`, '--report', `${name}-fit.html`);
  odecast('forecast', `${name}.json`, `--init=${firstState(truth, `${name}.json`)}`, '--truth', truth, ...forecastWords,
          '-o', `${name}.csv`, '--report', `${name}.html`);
  pages.push(name);
};

table('one.in.csv', 't,height', 0.1, 101, (t) => [1 / (1 + 9 * Math.exp(-t))]);
make('one', 'one.in.csv', 'one.in.csv', ['--dropout', '0.1'], ['--until', '1', '--step', '0.1']);
table('two.in.csv', 't,x,<b>&', 0.02, 501, (t) => [Math.cos(t), -Math.sin(t)]);
make('two', 'two.in.csv', 'two.in.csv', ['--degree', '1', '--dropout', '0.05'], ['--until', '10', '--step', '0.02']);
odecast('simulate', 'SprottB', '--init', '1,1,1', '--until', '10', '--step', '0.002', '-o', 'three.in.csv');
odecast('simulate', 'SprottB', '--init=-1,-1,-1', '--until', '10', '--step', '0.02', '-o', 'three.truth.csv');
make('three', 'three.in.csv', 'three.truth.csv', ['--scale', 'none', '--dropout', '0.25'],
     ['--until', '10', '--step', '0.02', '--system', 'SprottB']);
simulated('long3.truth.csv', 'Lorenz', '--until', '1000', '--step', '0.01');
head('long3.truth.csv', 'long3.in.csv', 2000);
make('long3', 'long3.in.csv', 'long3.truth.csv', ['--dropout', '0.005'],
     ['--until', '1000', '--step', '0.01', '--draws', '50', '--system', 'Lorenz']);
simulated('long8.truth.csv', 'Lorenz96', '--size', '8', '--until', '1000', '--step', '0.01');
head('long8.truth.csv', 'long8.in.csv', 2000);
make('long8', 'long8.in.csv', 'long8.truth.csv', ['--dropout', '0.005'],
     ['--until', '1000', '--step', '0.01', '--draws', '50']);
head('long8.truth.csv', 'eight.truth.csv', 11);
make('eight', 'long8.in.csv', 'eight.truth.csv', ['--dropout', '0.02'], ['--until', '0.1', '--step', '0.01']);

odecast('simulate', 'Henon', '--until', '400', '-o', 'map.in.csv');
head('map.in.csv', 'map.truth.csv', 12);
make('map', 'map.in.csv', 'map.truth.csv', ['--kind', 'map', '--dropout', '0.01'], ['--until', '10']);
simulated('driven.in.csv', 'ForcedDuffing', '--until', '50');
make('driven', 'driven.in.csv', 'driven.in.csv', ['--variables', 'x,v', '--inputs', 'F', '--degree', '3', '--dropout', '0.01'],
     ['--until', '10', '--step', '0.05', '--observations', '--noise', '0.05']);

// A fit by every method, and one whose equations do not explain the data: exit code 1, and a page that says so.
export const methods = ['trajectory', 'regression', 'bootstrap', 'misfit'];
odecast('simulate', 'Lorenz', '--until', '20', '--step', '0.02', '--noise', '0.02', '-o', 'noisy.csv');
odecast('simulate', 'VanDerPol', '--until', '50', '--step', '0.05', '--noise', '0.02', '-o', 'bent.csv');
const untrusted = (...words) => {
  try {
    odecast(...words);
  } catch (error) {
    if (error.status === 1) return;
    throw error;
  }
  throw new Error(`exit code 0: ${words.join(' ')}`);
};
odecast('fit', 'noisy.csv', '-o', 'trajectory.json', '--report', 'trajectory-fit.html');
odecast('fit', 'noisy.csv', '--posterior', 'regression', '--degree', 'auto', '-o', 'regression.json',
        '--report', 'regression-fit.html');
odecast('fit', 'noisy.csv', '--posterior', 'bootstrap', '-o', 'bootstrap.json', '--report', 'bootstrap-fit.html');
untrusted('fit', 'bent.csv', '--degree', '1', '-o', 'misfit.json', '--report', 'misfit-fit.html');
odecast('forecast', 'misfit.json', '--until', '55', '-o', 'misfit.csv', '--report', 'misfit.html');
odecast('reproduce', '--adam-seeds', '2', '--batches', '2', '-o', 'study');

export const names = pages;
