'use strict';
// A pipeline schedule: the object of `pipeline --format json`.
const {pipeline} = data;
const ranks = pipeline.per_rank;
// The letters of torch.distributed.pipelining.
const passes = {F: ['forward', '#0072b2'], B: ['backward', '#009e73'],
                I: ['backward for inputs', '#009e73'],
                W: ['backward for weights', '#a87800']};
const said = pass => passes[pass][0];
const percent = share => `${(share * 100).toPrecision(3)} %`;
const byRank = r => `rank ${r.rank}`;

function showFigures() {
  const most = Math.max(...ranks.map(r => r.peak_bytes));
  const figures = [
    [seconds(pipeline.makespan_s), 'a step'],
    [percent(pipeline.bubble_share), 'of it bubbles'],
    [String(Math.max(...pipeline.frames)),
     'micro-batches in flight of a stage, at most'],
    ...(most ? [[bytes(most), 'saved on a rank, at most']] : [])];
  main.append(element('div', {class: 'figures'}, ...figures.map(([n, what]) =>
      element('div', {class: 'figure'}, element('b', {}, n),
              element('span', {}, what)))));
}

function showSchedule() {
  const s = section('Schedule');
  const actions = ranks.flatMap(r => r.actions.map(a => ({...a, row: byRank(r)})));
  chart(s, `${pipeline.stages} stages on ${ranks.length} ranks, ${
      pipeline.micro_batches} micro-batches; ${percent(pipeline.bubble_share)
      } of the time is bubbles`, ranks.length <= 8, () => ({
    type: 'bar',
    data: {labels: ranks.map(byRank), datasets: Object.entries(passes).map(([pass, [label, colour]]) => ({
      label, backgroundColor: colour, grouped: false,
      barPercentage: 0.9, categoryPercentage: 0.9, borderSkipped: false,
      borderWidth: {left: 1}, borderColor: getComputedStyle(
          document.documentElement).getPropertyValue('--page').trim(),
      data: actions.filter(a => a.pass === pass && a.end_s > a.start_s).map(
          a => ({x: [a.start_s, a.end_s], y: a.row, action: a}))}))
        .filter(d => d.data.length)},
    options: {
      indexAxis: 'y', scales: {
        x: {type: 'linear', min: 0, max: pipeline.makespan_s,
            title: {display: true, text: 'seconds from the start of the step'}},
        y: {stacked: false}},
      plugins: {legend: {position: 'bottom', labels: {boxWidth: 12}},
        tooltip: {callbacks: {
          title: items => items[0].raw.y,
          label: ({raw: {action}}) => `${said(action.pass)} of micro-batch ${
              action.micro_batch}` +
              (pipeline.chunks > 1 ? ` in stage ${action.stage}` : ''),
          afterLabel: ({raw: {action}}) => `${seconds(action.start_s)} to ${
              seconds(action.end_s)}`}}},
    },
  }));
  s.append(element('details', {}, element('summary', {}, 'Order of each rank'),
      table(['rank', 'passes, in order'], ranks.map(r => [byRank(r),
        r.actions.map(a => `${said(a.pass)} ${a.micro_batch}` +
            (pipeline.chunks > 1 ? ` (stage ${a.stage})` : '')).join(', ')]))));
}

function showRanks() {
  const held = ranks.some(r => r.peak_bytes);
  section('Ranks', table(
      ['rank', '#computes', '#bubbles', '#between its passes',
       ...(held ? ['#saved, at most'] : [])],
      ranks.map(r => [byRank(r), seconds(r.busy_s), seconds(r.bubble_s),
                      seconds(r.gap_s), ...(held ? [bytes(r.peak_bytes)] : [])])));
}

for (const show of [showFigures, showSchedule, showRanks]) show();
drawCharts();
dark.addEventListener('change', drawCharts);
