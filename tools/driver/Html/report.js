'use strict';
// Fills the page from the object of `plan --format json` and the played step.
const data = JSON.parse(document.getElementById('data').textContent);
const {title, plan, step} = data;
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = [];

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    e.setAttribute(key, value);
  e.append(...children);
  return e;
}
function bytes(n) {
  const sign = n < 0 ? '-' : '';
  let size = Math.abs(n), unit = 0;
  while (size >= 1024 && unit < 4) { size /= 1024; ++unit; }
  const text = unit ? size.toPrecision(3) : String(size);
  return `${sign}${size >= 1000 && unit ? size.toFixed(0) : text} ` +
      ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
}
function seconds(s) {
  const a = Math.abs(s);
  const short = n => Math.abs(n) >= 1000 ? n.toFixed(0) : n.toPrecision(3);
  return a >= 1 ? `${short(s)} s` : a >= 1e-3 ? `${short(s * 1e3)} ms`
                                              : `${short(s * 1e6)} µs`;
}
const signed = (show, n) => (n > 0 ? '+' : '') + show(n);
const main = document.querySelector('main');
function section(heading, ...children) {
  const s = element('section', {}, element('h2', {}, heading), ...children);
  main.append(s);
  return s;
}
function table(head, rows) {
  const cells = (row, name) => row.map((cell, i) => element(
      name, head[i].startsWith('#') ? {class: 'n'} : {}, cell ?? ''));
  return element('div', {class: 'scroll', tabindex: '0', role: 'region',
                         'aria-label': 'table'},
      element('table', {},
          element('thead', {}, element('tr', {}, ...cells(
              head, 'th').map((th, i) => {
                th.textContent = head[i].replace('#', '');
                return th;
              }))),
          element('tbody', {}, ...rows.map(
              row => element('tr', {}, ...cells(row, 'td'))))));
}
function chart(into, label, low, make) {
  const canvas = element('canvas', {role: 'img', 'aria-label': label});
  into.append(element('figure', {}, element(
      'div', {class: low ? 'chart low' : 'chart'}, canvas)));
  charts.push({canvas, make, chart: null});
}
function drawCharts() {
  const colour = name =>
      getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  Chart.defaults.color = colour('--ink');
  Chart.defaults.borderColor = colour('--line');
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  for (const c of charts) {
    c.chart?.destroy();
    c.chart = new Chart(c.canvas, c.make(colour));
  }
}

// "fsdp_config.x" and a value as the YAML that says so.
function yamlText(lines) {
  const text = [], open = [];
  for (const {key, value} of lines) {
    const path = key.split('.');
    let depth = 0;
    while (depth < path.length - 1 && open[depth] === path[depth]) ++depth;
    open.length = depth;
    for (; depth < path.length - 1; ++depth) {
      text.push('  '.repeat(depth) + path[depth] + ':');
      open.push(path[depth]);
    }
    text.push('  '.repeat(depth) + path[depth] + ': ' + value);
  }
  return text.join('\n');
}
function copyable(text) {
  const button = element('button', {type: 'button'}, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = 'Selected: press Ctrl+C';
    }
  });
  return element('div', {}, element('pre', {tabindex: '0'}, text), button);
}

function showVerdict() {
  const m = plan.memory, t = plan.time;
  document.title = title;
  document.querySelector('h1').textContent = title;
  const sure = m.confidence === null
      ? '' : `, ${Math.floor(m.confidence * 100)} %`;
  const verdict = m.fits === null ? 'No budget given'
      : m.fits ? 'Fits' + sure : 'Does not fit';
  main.append(element('p', {class: 'verdict ' + (m.fits === null ? ''
      : m.fits ? 'good' : 'bad')}, verdict));
  const figures = [[bytes(m.device_bytes), m.budget_bytes === null
      ? 'per rank' : `per rank, of ${bytes(m.budget_bytes)}`]];
  if (m.device_bytes_90)
    figures.push([m.device_bytes_90.map(bytes).join(' to '),
                  '90 % of runs take']);
  if (t) {
    figures.push([seconds(t.step_s), 'a step']);
    figures.push([seconds(t.exposed_comm_s), 'of it wait for communication']);
    if (t.mfu !== null)
      figures.push([`${(t.mfu * 100).toFixed(1)} %`, 'MFU']);
  }
  main.append(element('div', {class: 'figures'}, ...figures.map(
      ([value, what]) => element('div', {}, element('b', {}, value), what))));
  main.append(element('p', {class: 'soft'}, `Peak in ${m.peak_where}.`));
}

// Lines of the file; else what says it elsewhere, and what says it to `plan`.
function howOf(change) {
  if (change.yaml?.length)
    return copyable(yamlText(change.yaml));
  if (change.otherwise)
    return change.otherwise;
  return change.flags.length
      ? copyable(change.flags.map(flag => flag.join(' ')).join(' ')) : '';
}

function showChanges() {
  const best = plan.tune?.best;
  if (best?.yaml?.length) {
    section('The fastest setting that fits',
        element('p', {}, `${best.summary}: ${bytes(best.device_bytes)}` +
            (best.step_s === null ? '' : `, ${seconds(best.step_s)} a step`)),
        copyable(yamlText(best.yaml)));
  }
  if (!plan.recommendations.length) return;
  section(best ? 'What it changes' : 'What would help',
      best ? element('p', {class: 'soft'}, 'The figures above and the charts ' +
          'below are of the job as it is configured; decisions are of the ' +
          'setting that the search chose.') : '',
      table(['change', '#memory', '#step', 'fits', 'how'],
          plan.recommendations.map(r => [
            r.change,
            `${bytes(r.device_bytes)} (${signed(bytes, r.memory)})`,
            r.step_s === null ? ''
                : `${seconds(r.step_s)} (${signed(seconds, r.time)})`,
            r.fits ? 'yes' : 'no',
            howOf(r),
          ])));
}
