'use strict';
// What pages have in common: the data, elements, figures, tables and charts.
const data = JSON.parse(document.getElementById('data').textContent);
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
document.title = data.title;
document.querySelector('h1').textContent = data.title;
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
// Steps that are round in binary units: at most eight up to `most` bytes.
function byteStep(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  return step;
}
