'use strict';
// What a configuration says and does: the object of `lint --format json`.
const {lint, sources} = data;
const found = severity => lint.diagnostics.filter(d => d.severity === severity);
const many = (n, what) => n === 1 ? `1 ${what}` : `${n} ${what}s`;

function showVerdict() {
  const counts = ['error', 'warning', 'note'].map(s => [found(s).length, s])
      .filter(([n]) => n).map(([n, s]) => many(n, s));
  main.append(element('p', {class: 'verdict ' +
      (found('error').length ? 'bad' : found('warning').length ? '' : 'good')},
      counts.length ? counts.join(', ') : 'Nothing to report'));
}

// By file and line, each with the line that it is about.
function showFindings() {
  const files = [...new Set(lint.diagnostics.map(d => d.file))];
  for (const file of files) {
    const lines = (sources[file] ?? '').split('\n');
    const rows = lint.diagnostics.filter(d => d.file === file)
        .sort((a, b) => a.line - b.line);
    section(`Findings in ${file}`, table(['', '#line', 'what', 'instead'],
        rows.map(d => [
          element('b', d.severity === 'error' ? {class: 'bad'} : {},
                  d.severity),
          d.line || '',
          element('div', {}, d.message, d.line && lines[d.line - 1]?.trim()
              ? scrollable(element('pre', {}, lines[d.line - 1])) : '',
              element('div', {class: 'soft'}, d.code)),
          d.hint ?? ''])));
  }
}

function showDiff() {
  if (lint.diff)
    section('Repairs', copyable(lint.diff, lint.diff.trimEnd().split('\n').map(
        line => element('span', /^[-+](?![-+]{2} )/.test(line)
            ? {class: line[0] === '-' ? 'bad' : 'good'} : {}, line + '\n'))));
}

function showEffective() {
  if (!lint.effective?.length) return;
  section('What each key does', table(
      ['key', 'asked', 'what happens', 'why', '#line'],
      lint.effective.map(e => [e.key, e.asked ?? element(
          'span', {class: 'soft'}, e.origin), e.effective, e.why ?? '',
          e.asked === null ? '' : e.line])));
}

for (const show of [showVerdict, showFindings, showDiff, showEffective]) show();
