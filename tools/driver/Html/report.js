'use strict';
// A plan: the verdict and what would help, of `plan --format json`.
const {plan, step} = data;

function showVerdict() {
  const m = plan.memory, t = plan.time;
  const sure = m.confidence === null
      ? '' : `, ${Math.floor(m.confidence * 100)} % sure`;
  const verdict = m.fits === null ? 'No budget given'
      : (m.fits ? 'Fits' : 'Does not fit') + sure;
  main.append(element('p', {class: 'verdict ' + (m.fits === null ? ''
      : m.fits ? 'good' : 'bad')}, verdict));
  const figures = [[bytes(m.device_bytes), m.budget_bytes === null
      ? 'per rank' : `per rank, of ${bytes(m.budget_bytes)}`]];
  if (m.device_bytes_90)
    figures.push([m.device_bytes_90.map(bytes).join(' to '),
                  '90 % of runs take']);
  if (t) {
    figures.push([seconds(t.step_s), 'a step']);
    if (t.exposed_comm_s)
      figures.push([seconds(t.exposed_comm_s), 'of it wait for communication']);
    if (t.mfu !== null)
      figures.push([`${(t.mfu * 100).toFixed(1)} %`, 'MFU']);
  }
  main.append(element('div', {class: 'figures'}, ...figures.map(
      ([value, what]) => element('div', {}, element('b', {}, value), what))));
  main.append(element('p', {class: 'soft'}, `Peak in ${m.peak_where}.`));
}

// Lines of the file and what says the rest elsewhere; else what says it to
// `plan`.
function howOf(change) {
  const how = [];
  if (change.yaml?.length)
    how.push(copyable(yamlText(change.yaml)));
  if (change.otherwise)
    how.push(element('div', {}, ...breakable(change.otherwise)));
  if (!how.length && change.flags.length)
    how.push(copyable(change.flags.map(flag => flag.join(' ')).join(' ')));
  return element('div', {}, ...how);
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
  section(best ? 'Changes of the fastest setting that fits' : 'What would help',
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
