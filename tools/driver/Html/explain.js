'use strict';
// A plan: predicted beside measured, memory by instruction, decisions.
const {run, timeline, peak, decisions} = data;

function showRun() {
  if (!run) return;
  const {predicted, measured, steps} = run;
  const pair = (what, show, name) => measured[name] === null ? []
      : [[what, predicted[name] === null ? '' : show(predicted[name]),
          show(measured[name]), predicted[name] === null || !measured[name] ? ''
              : signed(x => `${(x * 100).toFixed(1)} %`,
                       predicted[name] / measured[name] - 1)]];
  const s = section('Predicted beside measured', table(
      ['', '#predicted', '#measured', '#error'], [
        ...pair('seconds of a step, median without the first', seconds,
                'step_s'),
        ...pair('tokens a second', grouped, 'tokens_per_s'),
        ...pair('peak of tensors', bytes, 'peak_bytes')]));
  const line = (heading, name, show, level, extra = []) => {
    const points = steps.filter(x => x[name] !== null)
        .map(x => ({x: x.step, y: x[name]}));
    if (!points.length) return;
    chart(section(heading), `${heading}, ${points.length} steps`, true,
        colour => ({
      type: 'line',
      data: {datasets: [
        {label: 'measured', data: points, borderColor: '#0072b2',
         backgroundColor: '#0072b2', borderWidth: 2,
         pointRadius: points.length > 60 ? 0 : 3},
        ...level === null ? [] : [{label: 'predicted', data: [
            {x: points[0].x, y: level}, {x: points.at(-1).x, y: level}],
          borderColor: '#d55e00', backgroundColor: '#d55e00', borderWidth: 2,
          borderDash: [6, 4], pointRadius: 0}],
        ...extra]},
      options: {scales: {
        x: {type: 'linear', title: {display: true, text: 'step'},
            ticks: {maxRotation: 0, precision: 0}},
        y: {ticks: {callback: show}}},
        plugins: {legend: {position: 'bottom', labels: {
          usePointStyle: true, pointStyle: 'line'}}, tooltip: {callbacks: {
          label: ({dataset, raw}) => `${dataset.label}: ${show(raw.y)}`}}}},
    }));
  };
  const evals = steps.filter(x => x.eval_loss !== null)
      .map(x => ({x: x.step, y: x.eval_loss}));
  line('Loss', 'loss', x => Number(x.toPrecision(4)), null, evals.length
      ? [{label: 'evaluation', data: evals, borderColor: '#009e73',
          backgroundColor: '#009e73', borderWidth: 2, pointRadius: 3}] : []);
  line('Seconds of a step', 'step_s', seconds, predicted.step_s);
}

function showTimeline() {
  if (!timeline?.length) return;
  const programs = [...new Set(timeline.map(t => t.program))];
  for (const program of programs) {
    const rows = timeline.filter(t => t.program === program);
    const most = Math.max(...rows.map(t => t.peak_bytes));
    chart(section(`Memory by instruction, program ${program}`),
        `Bytes of a rank by instruction; the most is ${bytes(most)}`, false,
        colour => ({
      type: 'line',
      data: {datasets: [
        {label: 'during the instruction', stepped: true, pointRadius: 0,
         borderWidth: 1, borderColor: '#d55e00', backgroundColor: '#d55e00',
         data: rows.map(t => ({x: t.instruction, y: t.peak_bytes, t}))},
        {label: 'after it', stepped: true, pointRadius: 0, fill: true,
         borderWidth: 1, borderColor: '#0072b2', backgroundColor: '#0072b280',
         data: rows.map(t => ({x: t.instruction, y: t.live_bytes, t}))}]},
      options: {parsing: false, normalized: true,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        scales: {
          x: {type: 'linear', max: rows.at(-1).instruction,
              title: {display: true, text: 'instruction'},
              ticks: {maxRotation: 0, precision: 0}},
          y: {beginAtZero: true,
              ticks: {callback: bytes, stepSize: byteStep(most)}}},
        plugins: {legend: {position: 'bottom'}, tooltip: {callbacks: {
          title: items => items.length
              ? `${items[0].raw.x}: ${items[0].raw.t.what}` : '',
          label: ({dataset, raw}) => `${dataset.label}: ${bytes(raw.y)}`}}}},
    }));
  }
}

// What storage is held for; other kinds of a plan are said as they are.
const purposes = {
  gradient: 'gradients', shard_gradient: 'shards of gradients',
  value: 'activations and other values', receive: 'buffers of a reduction',
  temporary: 'temporaries of an operator', gathered: 'gathered parameters'};
const purpose = kind => purposes[kind] ?? kind;
function showPeak() {
  if (!peak) return;
  const sums = new Map();
  for (const h of peak.holders)
    sums.set(h.kind, (sums.get(h.kind) ?? 0) + h.bytes);
  section('Held at the peak',
      element('p', {}, `${bytes(peak.peak_bytes)} in ${peak.what}` +
          (peak.operator ? `, ${peak.operator}` : '')),
      table(['held for', '#bytes'], [...sums].sort((a, b) => b[1] - a[1])
          .map(([kind, n]) => [purpose(kind), bytes(n)])),
      element('details', {}, element('summary', {},
          `${peak.holders.length} holders`),
          table(['held for', 'what', '#bytes', '#since instruction'],
              peak.holders.map(h => [purpose(h.kind), h.name, bytes(h.bytes),
                                     h.since === null ? '' : h.since]))));
}

for (const show of [showRun, showPeak, showTimeline, () => showDecisions(decisions)])
  show();
drawCharts();
dark.addEventListener('change', drawCharts);
