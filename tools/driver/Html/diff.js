'use strict';
// Two jobs by effect: the object of `diff --format json`.
const {diff} = data;
const {a, b} = diff;
const rate = 'tokens/s per rank'; // no seconds: in the table only

function showVerdict() {
  main.append(element('p', {class: 'verdict ' + (b.fits === null ? ''
      : b.fits ? 'good' : 'bad')}, b.fits === null ? 'No budget given'
      : b.fits ? 'B fits' : 'B does not fit'));
  const figures = [[signed(bytes, b.device_bytes - a.device_bytes),
                    'per rank, from A to B']];
  if (a.step_s !== null && b.step_s !== null)
    figures.push([signed(seconds, b.step_s - a.step_s), 'a step']);
  main.append(element('div', {class: 'figures'}, ...figures.map(
      ([value, what]) => element('div', {}, element('b', {}, value), what))));
  main.append(table(['', 'file', 'job', '#per rank', '#budget', '#step',
                     'fits'],
      [['A', a], ['B', b]].map(([side, e]) => [side, e.name,
        `${e.strategy} on ${e.ranks} x ${e.target || 'any device'}`,
        bytes(e.device_bytes),
        e.budget_bytes === null ? '' : bytes(e.budget_bytes),
        e.step_s === null ? '' : seconds(e.step_s),
        e.fits === null ? '' : e.fits ? 'yes' : 'no'])));
}

// The rows are parts of what the row `whole` sums.
function showFigures(heading, rows, show, whole, ticks) {
  if (!rows.length) return;
  const parts = rows.filter(r => r.what !== rate && !whole.includes(r.what) && (r.a || r.b));
  const s = section(heading);
  chart(s, `${heading}: A beside B, ${parts.length} bars each`, false,
      colour => ({
    type: 'bar',
    data: {labels: parts.map(r => r.what), datasets: [
      {label: 'A', data: parts.map(r => r.a), backgroundColor: '#0072b2'},
      {label: 'B', data: parts.map(r => r.b), backgroundColor: '#d55e00'}]},
    options: {indexAxis: 'y', scales: {x: {ticks: {color: colour('--ink'),
          ...ticks(Math.max(...parts.map(r => Math.max(r.a, r.b))))}},
        y: {ticks: {autoSkip: false}}},
      plugins: {legend: {position: 'bottom', labels: {boxWidth: 12}},
        tooltip: {callbacks: {label: ({dataset, raw}) =>
          `${dataset.label}: ${show(raw)}`}}}},
  }));
  s.append(table(['', '#A', '#B', '#from A to B'], rows.map(r => {
    const as = r.what === rate ? grouped : show;
    return [r.what, as(r.a), as(r.b),
            r.a === r.b ? 'same' : signed(as, r.b - r.a)];
  })));
}

// What both sides have is equal; a row of one side only is what parted.
function showChoices(heading, choices, same) {
  const s = section(heading);
  if (!choices.length) {
    s.append(element('p', {}, same));
    return;
  }
  const equal = (x, y) => x.is === y.is && x.times === y.times;
  const side = (own, others) => {
    const rows = own.filter(x => !others.some(y => equal(x, y)));
    return element('div', {}, ...rows.length ? rows.map(x => element('div', {},
        x.is + (x.times > 1 ? ` (${x.times} times)` : ''),
        x.why ? element('div', {class: 'soft'}, `because ${x.why}`) : ''))
        : [element('span', {class: 'soft'}, 'none')]);
  };
  s.append(table(['', 'A', 'B'], choices.map(
      c => [c.what, side(c.a, c.b), side(c.b, c.a)])));
}

function showDiagnostics() {
  if (!diff.diagnostics.length) return;
  section('Notes', table(['', 'at', 'message', 'fix'],
      diff.diagnostics.map(d => [d.severity, `${d.file}:${d.line}`, d.message,
                                 d.hint ?? ''])));
}

showVerdict();
showFigures('Memory per rank', diff.memory, bytes,
    ['together', 'between steps', 'on the host', 'on the drive'],
    most => ({callback: bytes, stepSize: byteStep(most)}));
showFigures('Time of a step', diff.time, seconds, ['a step'],
    () => ({callback: seconds}));
showChoices(`Units: ${diff.units.a} in A, ${diff.units.b} in B`,
    diff.units.changed, 'The same.');
showChoices('Decisions', diff.decisions, 'The same.');
showChoices('Numerics', diff.numerics, 'The same values, up to rounding.');
showDiagnostics();
drawCharts();
dark.addEventListener('change', drawCharts);
