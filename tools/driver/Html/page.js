'use strict';
// What pages have in common: the data, elements, figures, tables and charts.
const data = JSON.parse(document.getElementById('data').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = [];
// Each stands out from a light and from a dark page (3:1), and from its
// neighbours for those who see fewer colours.
const palette = ['#0072b2', '#d55e00', '#009e73', '#c56a9d', '#a87800',
                 '#3a93c9', '#8c6bb1', '#857a00', '#7f7f7f', '#a65628',
                 '#3f9b3c', '#cf5bad'];

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
  return !a ? '0 s' : a >= 1 ? `${short(s)} s`
      : a >= 1e-3 ? `${short(s * 1e3)} ms` : `${short(s * 1e6)} µs`;
}
const grouped = n => Math.round(n).toLocaleString('en');
const signed = (show, n) => (n > 0 ? '+' : '') + show(n);
const main = document.querySelector('main');
// Paper has no way to open what is closed.
let openedForPaper = [];
addEventListener('beforeprint', () => {
  openedForPaper = [...main.querySelectorAll('details:not([open])')];
  for (const d of openedForPaper) d.open = true;
  charts.forEach(c => c.chart.resize());
});
addEventListener('afterprint', () => {
  for (const d of openedForPaper) d.open = false;
});
document.title = data.title;
document.querySelector('h1').textContent = data.title;
function section(heading, ...children) {
  const s = element('section', {}, element('h2', {}, heading), ...children);
  main.append(s);
  return s;
}
// What is wider than its place is scrolled by keys too, and has a name then.
const wide = new ResizeObserver(entries => {
  for (const {target} of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    if (!scrolls) {
      for (const name of ['tabindex', 'role', 'aria-label'])
        target.removeAttribute(name);
      continue;
    }
    const near = target.closest('details')?.querySelector('summary') ??
        target.closest('section')?.querySelector('h2') ??
        document.querySelector('h1');
    target.tabIndex = 0;
    target.setAttribute('role', 'region');
    target.setAttribute('aria-label', near.textContent);
  }
});
function scrollable(e) {
  wide.observe(e);
  return e;
}
document.querySelectorAll('footer pre').forEach(scrollable);
// Long names of keys and modules, which may part behind a dot or a line.
function breakable(cell) {
  if (typeof cell !== 'string' || !/\S{17}/.test(cell)) return [cell];
  return cell.split(/(?<=[._/])(?=[\w*])/).flatMap(
      (part, i) => i ? [element('wbr'), part] : [part]);
}
function table(head, rows) {
  const cells = (row, name) => row.map((cell, i) => element(
      name, head[i].startsWith('#') ? {class: 'n'} : {},
      ...breakable(cell ?? '')));
  return scrollable(element('div', {class: 'scroll'}, element('table', {},
          element('thead', {}, element('tr', {}, ...cells(
              head, 'th').map((th, i) => {
                th.textContent = head[i].replace('#', '');
                return th;
              }))),
          element('tbody', {}, ...rows.map(
              row => element('tr', {}, ...cells(row, 'td')))))));
}
function chart(into, label, low, make) {
  const canvas = element('canvas', {role: 'img', tabindex: '0', 'aria-label':
      `${label}. Arrow keys read it, digits hide and show what is drawn.`});
  const read = element('figcaption', {'aria-live': 'polite'});
  into.append(element('figure', {}, element(
      'div', {class: low ? 'chart low' : 'chart'}, canvas), read));
  const c = {canvas, make, chart: null, point: -1};
  canvas.addEventListener('keydown', event => readByKeys(c, read, event));
  canvas.addEventListener('blur', () => {
    read.textContent = '';
    canvas.dispatchEvent(new MouseEvent('mouseout'));
  });
  charts.push(c);
}
// What a pointer does: the next point and its words, or a series more or less.
function readByKeys(c, read, event) {
  const series = Number(event.key) - 1;
  if (series >= 0 && series < c.chart.data.datasets.length) {
    c.chart.setDatasetVisibility(series, !c.chart.isDatasetVisible(series));
    c.chart.update();
    read.textContent = `${c.chart.data.datasets[series].label}: ${
        c.chart.isDatasetVisible(series) ? 'shown' : 'hidden'}`;
    return;
  }
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  if (!(event.key in step) && event.key !== 'Home' && event.key !== 'End')
    return;
  event.preventDefault();
  const byX = c.chart.options.interaction.axis === 'x';
  const area = c.chart.chartArea;
  const points = c.chart.getSortedVisibleDatasetMetas()
      .flatMap(meta => meta.data).map(e => e.getCenterPoint())
      .filter(p => p.x >= area.left - 1 && p.x <= area.right + 1)
      .sort((a, b) => a.x - b.x || a.y - b.y)
      .filter((p, i, all) => !i || p.x !== all[i - 1].x ||
                             !byX && p.y !== all[i - 1].y);
  if (!points.length) return;
  c.point = event.key === 'Home' ? 0 : event.key === 'End' ? points.length - 1
      : Math.max(0, Math.min(points.length - 1, c.point + step[event.key]));
  const at = c.canvas.getBoundingClientRect(), p = points[c.point];
  c.canvas.dispatchEvent(new MouseEvent('mousemove', {
    clientX: at.left + p.x, clientY: at.top + p.y}));
  requestAnimationFrame(() => { // Chart.js looks at a pointer once a frame
    const said = c.chart.tooltip;
    read.textContent = [...said.title ?? [], ...(said.body ?? []).flatMap(
        b => [...b.before, ...b.lines, ...b.after]), ...said.footer ?? []]
        .join('; ');
  });
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

// What a decision chose, where the plan has a word of its own for it.
const choices = [
  [/^1 x (reduce_each|keep_unsharded)$/, '1 micro-batch a step'],
  [/^(\d+) x reduce_each$/, '$1 micro-batches, each reduced'],
  [/^(\d+) x keep_unsharded$/, '$1 micro-batches, reduced at the last'],
  [/^at_end$/, 'behind the backward'],
  [/^in_backward$/, 'during the backward, unit by unit'],
];
function showDecisions(decisions) {
  const groups = new Map();
  for (const d of decisions) {
    const at = d.file ? `${d.file}:${d.line}` : '';
    const choice = choices.reduce(
        (text, [word, said]) => text.replace(word, said), d.choice)
        .replace(/\b\d{5,}\b/g, grouped);
    const key = JSON.stringify([d.what, choice, d.why, at]);
    groups.set(key, [...groups.get(key) ?? [], d.where]);
  }
  if (!groups.size) return;
  section('Decisions', table(['what', 'choice', 'why', 'written at', 'where'],
      [...groups].map(([key, where]) => [...JSON.parse(key),
        where.length > 2
            ? `${where[0]} to ${where.at(-1)}, ${where.length} places`
            : where.join(', ')])));
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
function copyable(text, shown = [text]) {
  const button = element('button', {type: 'button'}, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = 'Selected: press Ctrl+C';
    }
  });
  return element('div', {}, scrollable(element('pre', {}, ...shown)), button);
}
// Steps that are round in binary units: at most eight up to `most` bytes.
function byteStep(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  return step;
}
