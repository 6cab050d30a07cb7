'use strict';
// The step, the front of a search, phases, units and decisions.
const owners = step ? step.owners : Object.keys(plan.memory.breakdown);
const kinds = [['compute', '#0072b2'], ['copy', '#8c6bb1'],
               ['collective', '#009e73'], ['exposed wait', '#d55e00'],
               ['step before', '#9aa0a6']];
const timeAxis = () => ({
  type: 'linear', min: 0, max: step.seconds * 1e3,
  title: {display: true, text: 'milliseconds from the start of the step'},
  ticks: {maxRotation: 0, callback: v => Number(v.toFixed(2))},
});
const byteAxis = (text, most) => ({beginAtZero: true, stacked: true,
  title: {display: true, text},
  ticks: {callback: bytes, stepSize: byteStep(most)}});

function sliceAt(ms) {
  const found = step.slices.find(s => step.streams[s[0]] === 'compute' &&
      s[1] !== 3 && s[2] * 1e3 <= ms && ms < s[3] * 1e3);
  return found ? found[4] : 'between operators';
}

function showMemory() {
  const m = plan.memory;
  const s = section('Memory over the step');
  if (!step) {
    s.append(element('p', {}, 'At the peak; over time with --target.'),
        table(['held for', '#bytes'], Object.entries(m.breakdown)
            .filter(([, n]) => n).map(([name, n]) => [name, bytes(n)])));
    return;
  }
  const end = step.seconds * 1e3;
  const level = (label, y, colour) => ({
    label, data: [{x: 0, y}, {x: end, y}], borderColor: colour, borderWidth: 2,
    borderDash: [6, 4], pointRadius: 0, fill: false, stack: label,
    order: -1, // above the areas
  });
  const sums = step.levels.map(l => l.slice(1).reduce((a, b) => a + b, 0));
  const top = sums.indexOf(Math.max(...sums));
  const near = m.budget_bytes !== null && m.budget_bytes <= 3 * m.device_bytes;
  chart(s, `Memory by owner over the step; the peak of tensors is ${
      bytes(sums[top])} at ${seconds(step.levels[top][0])}`, false, colour => ({
    type: 'line',
    data: {datasets: owners.map((owner, i) => ({
      label: owner, stack: 'tensors', fill: true, pointRadius: 0,
      stepped: true, borderWidth: 1, borderColor: palette[i % palette.length],
      backgroundColor: palette[i % palette.length],
      data: step.levels.map(l => ({x: l[0] * 1e3, y: l[i + 1]})),
    })).filter(d => d.data.some(p => p.y))
        .concat(!near ? []
            : [level('budget', m.budget_bytes, colour('--bad'))])
        .concat([level('device, with context', m.device_bytes,
                       colour('--soft'))])
        .concat(m.reserved_bytes === m.peak_bytes ? [] : [{
          // A settled step returns no segment: what no tensor takes is idle.
          ...level('idle segments', m.reserved_bytes, colour('--soft')),
          borderWidth: 1, borderDash: [], fill: true,
          backgroundColor: colour('--line'), order: 1, // below the areas
        }])},
    options: {
      parsing: false, normalized: true,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {x: timeAxis(), y: byteAxis('bytes of a rank',
          Math.max(m.device_bytes, near ? m.budget_bytes : 0))},
      plugins: {legend: {position: 'bottom', labels: {boxWidth: 12}},
        tooltip: {
          // Of what happens at one time, the last.
          filter: (item, i, all) => item.raw.y > 0 &&
              item.dataset.stack === 'tensors' && !all.slice(i + 1).some(
                  other => other.datasetIndex === item.datasetIndex),
          callbacks: {
            title: items => items.length ? `${items[0].raw.x.toFixed(2)} ms, ${
                sliceAt(items[0].raw.x)}` : '',
            label: item => `${item.dataset.label}: ${bytes(item.raw.y)}`,
            footer: items => {
              const sum = items.reduce((all, i) => all + i.raw.y, 0);
              const idle = m.reserved_bytes - sum;
              return [`together: ${bytes(sum)}`].concat(
                  idle > 0 ? [`idle segments: ${bytes(idle)}`] : []);
            },
          }}},
    },
  }));
  if (m.budget_bytes !== null && !near)
    s.append(element('p', {class: 'soft'},
        `The budget, ${bytes(m.budget_bytes)}, is far above what is drawn.`));
  s.append(element('details', {}, element('summary', {},
      `What is held at the peak, ${m.peak_where}`),
      table(['held for', '#bytes'], Object.entries(m.breakdown)
          .filter(([, n]) => n).map(([name, n]) => [name, bytes(n)])
          .concat([['idle segments', bytes(m.reserved_bytes - m.peak_bytes)],
                   ['context', bytes(m.device_bytes - m.reserved_bytes)],
                   ['device', bytes(m.device_bytes)]]))));
}

function showStreams() {
  if (!step) return;
  const s = section('Streams');
  chart(s, `Streams of a rank: ${step.streams.join(', ')}; ${
      seconds(plan.time.exposed_comm_s)} of waits are exposed`, true, () => ({
    type: 'bar',
    data: {labels: step.streams, datasets: kinds.map(([label, colour], kind) => ({
      label, backgroundColor: colour, grouped: false, barPercentage: 0.9,
      categoryPercentage: 0.9,
      data: step.slices.filter(x => x[1] === kind).map(x => ({
        x: [x[2] * 1e3, x[3] * 1e3], y: step.streams[x[0]], slice: x}))}))
        .filter(d => d.data.length)},
    options: {
      indexAxis: 'y', scales: {x: timeAxis(), y: {stacked: false}},
      plugins: {legend: {position: 'bottom', labels: {boxWidth: 12}},
        tooltip: {callbacks: {
          title: items => items[0].raw.slice[4],
          label: ({raw: {slice}}) => seconds(slice[3] - slice[2]) +
              (slice[6] ? `, ${bytes(slice[6])}` : ''),
          afterLabel: ({raw: {slice}}) => slice[5]}}},
    },
  }));
  const from = element('input', {type: 'range', min: 0, max: 990, value: 0});
  const width = element('input', {type: 'range', min: 10, max: 1000,
                                  value: 1000});
  const zoom = () => {
    const end = step.seconds * 1e3, min = from.value / 1000 * end;
    for (const {chart: c} of charts)
      if (c.canvas.dataset.front === undefined) {
        c.options.scales.x.min = min;
        c.options.scales.x.max = Math.min(end, min + width.value / 1000 * end);
        c.update();
      }
  };
  for (const input of [from, width]) input.addEventListener('input', zoom);
  s.append(element('div', {class: 'window'},
      element('label', {}, 'Start', from),
      element('label', {}, 'Length', width)));
  if (plan.time.exposed.length)
    s.append(element('details', {}, element('summary', {}, 'Exposed waits'),
        table(['cause', '#seconds'],
            plan.time.exposed.map(e => [e.cause, seconds(e.seconds)]))));
}

function showFront() {
  const front = plan.tune?.front;
  if (!front?.length) return;
  const s = section('Memory against time');
  chart(s, `The front of the search, ${front.length} settings`, true,
      colour => ({
    type: 'scatter',
    data: {datasets: [[true, 'fits', '#009e73'], [false, 'does not fit',
        colour('--bad')]].map(([fits, label, c]) => ({label,
      pointRadius: 5, backgroundColor: c,
      data: front.filter(p => p.fits === fits).map(p => ({
        x: p.step_s * 1e3, y: p.device_bytes, change: p.change}))}))
        .concat([['recommended', plan.tune.best, 'circle', colour('--ink'), 9],
                 ['as configured', {...plan.memory, ...plan.time,
                   change: 'as configured'}, 'rectRot', '#0072b2', 8]].map(
            ([label, p, pointStyle, c, pointRadius]) => ({label, pointStyle,
              pointRadius, borderColor: c, borderWidth: 2,
              backgroundColor: label === 'recommended' ? 'transparent' : c,
              data: p?.step_s ? [{x: p.step_s * 1e3, y: p.device_bytes,
                                  change: p.change ?? p.summary}] : []})))
        .filter(d => d.data.length)},
    options: {scales: {
      x: {title: {display: true, text: 'milliseconds a step'}},
      y: {title: {display: true, text: 'bytes of a rank'},
          ticks: {callback: bytes, stepSize: byteStep(
              Math.max(...front.map(p => p.device_bytes)))}}},
      plugins: {legend: {position: 'bottom', labels: {usePointStyle: true}},
        tooltip: {callbacks: {label: ({raw}) =>
        [raw.change, `${bytes(raw.y)}, ${seconds(raw.x / 1e3)}`]}}}},
  }));
  charts.at(-1).canvas.dataset.front = '';
  s.append(element('details', {}, element('summary', {}, 'As a table'),
      table(['setting', '#memory', '#step', 'fits'], front.map(p => [p.change,
        bytes(p.device_bytes), seconds(p.step_s), p.fits ? 'yes' : 'no']))));
}

function showUnits() {
  if (!plan.units.length) return;
  const root = {children: new Map(), shard: 0, gathered: 0, units: []};
  for (const unit of plan.units) {
    let node = root;
    for (const part of unit.name.split('.')) {
      if (!node.children.has(part))
        node.children.set(part,
            {children: new Map(), shard: 0, gathered: 0, units: []});
      node = node.children.get(part);
      node.shard += unit.shard_bytes;
      node.gathered += unit.gathered_bytes;
    }
    node.units.push(unit);
  }
  const draw = (name, node, depth) => {
    const line = `${name || 'the rest of the model'}: ${bytes(node.shard)} a rank` +
        (node.gathered ? `, ${bytes(node.gathered)} gathered` : '');
    const inside = [...node.children].map(([n, c]) => draw(n, c, depth + 1));
    for (const unit of node.units)
      inside.push(element('ul', {}, ...unit.parameters.map(
          p => element('li', {class: 'soft'}, p))));
    // A unit of many parameters is a page of its own.
    const open = depth < 1 && inside.length &&
        node.units.every(unit => unit.parameters.length <= 16)
        ? {open: ''} : {};
    return element('details', open, element('summary', {}, line), ...inside);
  };
  section('Units', ...[...root.children].map(([n, c]) => draw(n, c, 0)));
}

function showPhases() {
  if (!plan.phases?.length) return;
  section('Phases of the job', table(
      ['phase', '#device', '#host of the node', '#seconds', 'why'],
      plan.phases.map(p => [p.phase + (p.device_fits === false
          ? ' (does not fit)' : p.device_bytes === null ? ' (stops)' : ''),
          p.device_bytes === null ? '' : bytes(p.device_bytes),
          p.device_bytes === null ? '' : bytes(p.node_host_bytes), p.seconds ? seconds(p.seconds) : '', p.why])));
}

function showDiagnostics() {
  if (!plan.diagnostics.length) return;
  section('Notes', table(['', 'at', 'message', 'fix'],
      plan.diagnostics.map(d => [d.severity, `${d.file}:${d.line}`, d.message,
                                 d.hint ?? ''])));
}

for (const show of [showVerdict, showChanges, showMemory, showStreams,
                    showFront, showMesh,
                    () => plan.pipeline && showStages('Pipeline', plan.pipeline),
                    showUnits, showPhases,
                    () => showDecisions(plan.decisions), showDiagnostics])
  show();
drawCharts();
dark.addEventListener('change', drawCharts);
