'use strict';
// The mesh: ranks as boxes on nodes, and who shares a group on which axis.
const mesh = plan.mesh;
const meshRoles = {
  dp_replicate: 'copies: gradients are all-reduced over it',
  dp_shard: 'shards: each rank keeps a part, which others gather',
  cp: 'each rank has a part of the sequence, and of the shards',
  pp: 'each rank has a stage: layers that follow each other',
  sp: 'each rank has a part of the sequence, and in attention of the heads',
  tp: 'each rank computes its part of a layer',
  ep: 'each rank has its own experts',
  zero_hpz: 'a second copy among neighbours, gathered from there',
};
const most = 64; // boxes that one looks at
const count = n => n.toLocaleString('en-US');

function showMesh() {
  if (!mesh) return;
  const axes = [];
  let ranks = 1;
  for (const {name, size} of [...mesh.axes].reverse()) {
    if (size > 1)
      axes.unshift({name, size, stride: ranks, colour: ''});
    ranks *= size;
  }
  if (ranks < 2) return;
  axes.forEach((axis, i) => axis.colour = `var(--axis${i % 4})`);
  const inNode = Math.min(mesh.ranks_per_node ?? ranks, ranks);
  const at = (rank, axis) => Math.floor(rank / axis.stride) % axis.size;
  const first = (rank, axis) => rank - at(rank, axis) * axis.stride;
  const members = (rank, axis) => Array.from({length: axis.size},
      (_, i) => first(rank, axis) + i * axis.stride);
  const listed = numbers => numbers.length > 2 &&
          numbers.at(-1) - numbers[0] === numbers.length - 1
      ? `${count(numbers[0])} to ${count(numbers.at(-1))}`
      : numbers.length > 8
      ? `${numbers.slice(0, 3).map(count).join(', ')} … ${
          count(numbers.at(-1))} (${count(numbers.length)} ranks)`
      : numbers.map(count).join(', ');
  const nodes = Math.ceil(ranks / inNode);
  const where = axis => (axis.size - 1) * axis.stride < inNode &&
      inNode % (axis.size * axis.stride) === 0 ? 'inside of a node'
      : axis.stride >= inNode ? 'one rank of each node' : 'over nodes';

  // Boxes: all nodes, or one of them.
  const whole = ranks <= most;
  const drawn = [];
  const shown = element('p', {class: 'soft', id: 'mesh-rank',
                              'aria-live': 'polite'});
  const mark = rank => {
    for (const box of drawn) {
      const own = Number(box.dataset.rank);
      box.classList.toggle('own', own === rank);
      [...box.lastChild.children].forEach((square, i) => square.classList
          .toggle('in', first(own, axes[i]) === first(rank, axes[i])));
    }
    shown.textContent = `Rank ${count(rank)} shares ` + axes.map(axis =>
        `${axis.name} with ${listed(members(rank, axis)
            .filter(r => r !== rank))}`).join('; ') + '.';
  };
  let tabbed = null;
  const enter = box => {
    if (tabbed) tabbed.tabIndex = -1;
    tabbed = box;
    box.tabIndex = 0;
    mark(Number(box.dataset.rank));
  };
  const place = rank => axes.map(
      axis => `${axis.name} ${count(at(rank, axis))}`).join(', ');
  const draw = node => {
    const boxes = [];
    const end = Math.min((node + 1) * inNode, ranks, node * inNode + most);
    for (let rank = node * inNode; rank < end; ++rank) {
      const box = element('button', {type: 'button', class: 'rank',
        tabindex: '-1', 'data-rank': rank, title: place(rank),
        'aria-label': `rank ${rank}: ${place(rank)}`,
        'aria-describedby': 'mesh-rank'},
        element('b', {}, count(rank)), element('span', {}, ...axes.map(
            axis => element('i', {style: `--axis: ${axis.colour}`}))));
      box.addEventListener('focus', () => enter(box));
      box.addEventListener('mouseenter', () => mark(rank));
      boxes.push(box);
    }
    drawn.push(...boxes);
    const hidden = Math.min((node + 1) * inNode, ranks) - end;
    return element('div', {class: 'node', role: 'group',
                           'aria-label': `node ${node}`},
        element('div', {class: 'soft'}, nodes > 1 || mesh.ranks_per_node
            ? `node ${node}` : 'ranks'),
        element('div', {class: 'ranks'}, ...boxes),
        hidden ? element('div', {class: 'soft'},
                         `and ${count(hidden)} ranks more`) : '');
  };
  const grid = element('div', {class: 'mesh'}, ...Array.from(
      {length: whole ? nodes : 1}, (_, node) => draw(node)));
  if (!whole && nodes > 1)
    grid.append(element('div', {class: 'node rest'},
        element('b', {}, `${count(nodes - 1)} nodes more`),
        element('div', {class: 'soft'}, `of ${count(inNode)} ranks each`)));
  grid.addEventListener('mouseleave',
                        () => mark(Number(tabbed.dataset.rank)));
  grid.addEventListener('keydown', event => {
    const wide = inNode <= 8 ? inNode : 8;
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide,
                  ArrowUp: -wide}[event.key];
    const to = event.key === 'Home' ? 0
        : event.key === 'End' ? drawn.length - 1
        : drawn.indexOf(tabbed) + step;
    if (!drawn[to]) return;
    event.preventDefault();
    drawn[to].focus();
  });

  section('Mesh', element('p', {}, `${count(ranks)} ranks` +
          (mesh.ranks_per_node ? ` on ${count(nodes)} ${nodes === 1
              ? 'node' : 'nodes'}: ` : ': ') +
          axes.map(axis => `${axis.name} ${count(axis.size)}`).join(' × ') +
          '. Filled squares are the group of the rank that is framed: point ' +
          'at another, or choose it by the arrow keys.'),
      table(['axis', '#ranks', '#groups', 'what it does', 'a group is',
             'that of rank 0'],
          axes.map(axis => [element('span', {class: 'axis'}, element('i', {
            class: 'in', style: `--axis: ${axis.colour}`}), axis.name),
            count(axis.size), count(ranks / axis.size),
            meshRoles[axis.name] ?? '', where(axis),
            listed(members(0, axis))])),
      grid, shown, ...showSplits(axes, (axis, i) => listed(Array.from(
          {length: ranks}, (_, rank) => rank).filter(
              rank => at(rank, axis) === i))));
  enter(drawn[0]);
}

// What tensor parallelism deals out, layers of one kind together.
function showSplits(axes, ranksAt) {
  if (!mesh.splits.length) return [];
  const groups = new Map();
  for (const {parameter, ...how} of mesh.splits) {
    const key = JSON.stringify(
        [parameter.replace(/\.\d+(?=\.|$)/g, '.*'), how]);
    groups.set(key, (groups.get(key) ?? 0) + 1);
  }
  const rows = [...groups].map(([key, times]) => {
    const [name, {axis: axisName, dim, size, pieces, why}] = JSON.parse(key);
    const axis = axes.find(a => a.name === axisName);
    const parts = axis?.size ?? 1, part = size / parts;
    const own = i => pieces > 1
        ? `${axisName} ${i}: part ${i + 1} of each of ${pieces}`
        : `${axisName} ${i}: ${count(i * part)} to ${count((i + 1) * part - 1)}`;
    const held = parts > 4 ? [own(0), own(1), '…', own(parts - 1)]
        : Array.from({length: parts}, (_, i) => own(i));
    return [times > 1 ? `${name} (${count(times)} times)` : name,
            `${dim}, of ${count(size)}`,
            element('div', {}, ...held.map(h => element('div', {}, h))), why];
  });
  return [element('details', {}, element('summary', {},
      `Which ranks hold which part: ${count(mesh.splits.length)} parameters ` +
      'are split, the others are whole'),
      ...axes.filter(axis => mesh.splits.some(s => s.axis === axis.name))
          .map(axis => element('ul', {}, ...Array.from(
              {length: Math.min(axis.size, 8)}, (_, i) => element('li', {},
                  `${axis.name} ${i}: ranks ${ranksAt(axis, i)}`)))),
      table(['parameter', 'dimension', 'elements on', 'why'], rows))];
}
