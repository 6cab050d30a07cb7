'use strict';
// A pipeline schedule: the object of `pipeline --format json`.
const {pipeline} = data;

function showFigures() {
  const most = Math.max(...pipeline.per_rank.map(r => r.peak_bytes));
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

showFigures();
showStages('Schedule', pipeline);
drawCharts();
dark.addEventListener('change', drawCharts);
