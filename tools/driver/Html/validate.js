'use strict';
// Predicted beside measured: the object of `validate --format json`.
const {validation} = data;
const {all, families, rows} = validation;
const percent = x => `${(x * 100).toFixed(1)} %`;
const shapes = ['circle', 'triangle', 'rect', 'rectRot', 'star'];

function showSummary() {
  main.append(element('div', {class: 'figures'}, ...[
    [`${all.modelled} of ${all.rows}`, 'runs are modelled'],
    ...all.memory_error ? [[percent(all.memory_error.mean),
        `mean error of memory (runs: ${all.memory_error.rows})`]] : [],
    ...all.tokens_per_s_error ? [[percent(all.tokens_per_s_error.mean),
        `mean error of tokens/s (runs: ${all.tokens_per_s_error.rows})`]] : [],
    [String(all.measured_but_do_not_fit),
     'ran and are predicted not to fit'],
  ].map(([value, what]) => element('div', {}, element('b', {}, value), what))));
}

// On the diagonal the prediction is what was measured.
function showScatter(heading, error, measured, show, ticks) {
  const points = rows.filter(r => r[error] !== null).map(r => ({
    family: r.family, id: r.id, error: r[error], x: r.measured[measured],
    y: r.measured[measured] * (1 + r[error])}));
  if (!points.length) return;
  const most = Math.max(...points.flatMap(p => [p.x, p.y]));
  const s = section(heading);
  const axis = text => ({beginAtZero: true, title: {display: true, text},
                         ticks: {maxRotation: 0, ...ticks(most)}});
  chart(s, `${heading}: predicted against measured, ${points.length} runs`,
      false, colour => ({
    type: 'scatter',
    data: {datasets: [
      ...[...new Set(points.map(p => p.family))].map((label, i) => ({label,
        pointRadius: 5, pointStyle: shapes[i % shapes.length],
        borderColor: palette[i % palette.length],
        backgroundColor: palette[i % palette.length],
        data: points.filter(p => p.family === label)})),
      {label: 'as measured', type: 'line', pointRadius: 0, borderWidth: 1,
       borderColor: colour('--soft'), pointStyle: 'line',
       data: [{x: 0, y: 0}, {x: most, y: most}]}]},
    options: {scales: {x: axis('measured'), y: axis('predicted')},
      plugins: {legend: {position: 'bottom', labels: {usePointStyle: true}},
        tooltip: {callbacks: {label: ({raw}) => raw.id ? [raw.id,
          `${show(raw.y)}, measured ${show(raw.x)}: ` +
          signed(percent, raw.error)] : ''}}}},
  }));
}

function showFamilies() {
  const cells = e => e ? [e.rows, signed(percent, e.bias), percent(e.mean),
                          percent(e.max)] : ['', '', '', ''];
  section('Errors by family', table(['family', '#runs', '#modelled',
    '#memory', '#bias', '#mean', '#most', '#tokens/s', '#bias', '#mean',
    '#most'], (families.length > 1 ? [...families, all] : families).map(f => [
      f.name, f.rows, f.modelled, ...cells(f.memory_error),
      ...cells(f.tokens_per_s_error)])));
}

function showRuns() {
  const pair = (m, error, show) => m === null || error === null ? ['', '', '']
      : [show(m * (1 + error)), show(m), signed(percent, error)];
  section('Runs', table(['run', 'target', '#memory', '#measured', '#error',
    '#tokens/s', '#measured', '#error', 'fits'],
    rows.filter(r => r.skipped === null).map(r => [r.id, r.target,
      ...pair(r.measured.memory_bytes, r.memory_error, bytes),
      ...pair(r.measured.tokens_per_s_per_device, r.tokens_per_s_error, grouped),
      r.fits ? 'yes' : 'no'])));
  const skipped = rows.filter(r => r.skipped !== null);
  if (skipped.length)
    section('Not modelled', table(['run', 'why'],
        skipped.map(r => [r.id, r.skipped])));
}

function showDiagnostics() {
  if (!validation.diagnostics.length) return;
  section('Notes', table(['', 'at', 'message', 'fix'],
      validation.diagnostics.map(d => [d.severity, `${d.file}:${d.line}`,
                                       d.message, d.hint ?? ''])));
}

showSummary();
showScatter('Memory', 'memory_error', 'memory_bytes', bytes,
    most => ({callback: bytes, stepSize: byteStep(most)}));
showScatter('Tokens a second of a rank', 'tokens_per_s_error',
    'tokens_per_s_per_device', grouped, () => ({}));
showFamilies();
showRuns();
showDiagnostics();
drawCharts();
dark.addEventListener('change', drawCharts);
