'use strict';
// The schedule of a pipeline, as `pipeline --format json` and the key `pipeline`
// of `plan --format json` have it: what each rank computes when, and its stages.
// The letters of torch.distributed.pipelining.
const passes = {F: ['forward', '#0072b2'], B: ['backward', '#009e73'],
                I: ['backward for inputs', '#009e73'],
                W: ['backward for weights', '#a87800']};
const percent = share => `${(share * 100).toPrecision(3)} %`;

function showStages(heading, pipeline) {
  const ranks = pipeline.per_rank;
  const said = pass => passes[pass][0];
  // Of a plan each rank stands for those that differ along other axes.
  const name = pipeline.chunks === 1 && pipeline.holds.length
      ? 'stage' : 'rank';
  const byRank = r => `${name} ${r.rank}`;
  const inStage = action =>
      pipeline.chunks > 1 ? ` in stage ${action.stage}` : '';
  const s = section(heading);
  const actions = ranks.flatMap(
      r => r.actions.map(a => ({...a, row: byRank(r)})));
  // More bars than columns of the picture say nothing.
  const drawn = ranks.length <= 64 && actions.length <= 4096;
  if (!drawn)
    s.append(element('p', {class: 'soft'}, `${grouped(actions.length)} passes ` +
        'are too many to draw; the table has the sums of each rank.'));
  else chart(s, `${pipeline.stages} stages on ${ranks.length} ranks, ${
      pipeline.micro_batches} micro-batches; ${percent(pipeline.bubble_share)
      } of the time is bubbles`, ranks.length <= 8, () => ({
    type: 'bar',
    data: {labels: ranks.map(byRank), datasets: Object.entries(passes).map(
        ([pass, [label, colour]]) => ({
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
              action.micro_batch}${inStage(action)}`,
          afterLabel: ({raw: {action}}) => `${seconds(action.start_s)} to ${
              seconds(action.end_s)}`}}},
    },
  }));
  if (drawn)
    s.append(element('details', {},
        element('summary', {}, `Order of each ${name}`),
        table([name, 'passes, in order'], ranks.map(r => [byRank(r),
          r.actions.map(a => `${said(a.pass)} ${a.micro_batch}` +
              (pipeline.chunks > 1 ? ` (stage ${a.stage})` : ''))
              .join(', ')]))));
  const held = ranks.some(r => r.peak_bytes);
  const of = r => [...new Set(r.actions.map(a => a.stage))]
      .sort((a, b) => a - b).map(stage => pipeline.holds[stage]).join('; ');
  section(name === 'stage' ? 'Stages' : 'Ranks', table(
      [name, '#computes', '#bubbles', '#between its passes',
       '#micro-batches in flight', ...(held ? ['#memory at the peak'] : []),
       ...(pipeline.holds.length ? ['computes'] : [])],
      ranks.map(r => [byRank(r), seconds(r.busy_s), seconds(r.bubble_s),
                      seconds(r.gap_s),
                      String(r.actions.reduce(([now, most], a) => {
                        now += a.pass === 'F' ? 1
                            : a.pass === 'I' ? 0 : -1;
                        return [now, Math.max(now, most)];
                      }, [0, 0])[1]),
                      ...(held ? [bytes(r.peak_bytes)] : []),
                      ...(pipeline.holds.length ? [of(r)] : [])])));
}
