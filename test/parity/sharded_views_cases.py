"""What propagate-sharding says of views and slices, on shards: each rank's part
of the operand, viewed by that rank alone, is its part of the result."""
import itertools
import math
import random
import re

import harness
from harness import check

AXES = {"a": 2, "b": 2, "c": 3}
CALLS = 1500


def divisors(n):
    return [d for d in range(2, n + 1) if n % d == 0]


def shape_of(draw, total):
    """`total` elements in one to four dimensions."""
    shape = []
    while total > 1 and len(shape) < 3:
        shape.append(draw.choice(divisors(total)))
        total //= shape[-1]
    return shape + [total]


def spec_of(draw, shape):
    """[[(axis, pieces), ...] of each dimension], at least one axis."""
    axes = draw.sample(sorted(AXES), draw.randint(1, 2))
    spec, left = [[] for _ in shape], list(shape)
    for axis in axes:
        fits = [d for d, size in enumerate(left) if size % AXES[axis] == 0]
        if not fits:
            continue
        d = draw.choice(fits)
        pieces = draw.choice([1] + divisors(left[d] // AXES[axis]))
        spec[d].append((axis, pieces))
        left[d] //= pieces * AXES[axis]
    return spec


def text_of(spec):
    return ", ".join("[" + ", ".join(
        (f"{pieces}, " if pieces > 1 else "") + f'"{axis}"'
        for axis, pieces in dim) + "]" for dim in spec)


def parse(text):
    spec = []
    for dim in re.findall(r"\[([^]]*)\]", text):
        spec.append([])
        pieces = 1
        for item in filter(None, dim.split(", ")):
            if item.isdigit():
                pieces = int(item)
            else:
                spec[-1].append((item.strip('"'), pieces))
                pieces = 1
    return spec


def part(value, spec, at):
    """A rank's part of a value, as the spec's definition has it."""
    import torch

    for d, dim in enumerate(spec):
        own = torch.arange(value.shape[d])[None]
        for axis, pieces in dim:
            # Pieces of all that is left, of each of which one part is kept.
            own = own.reshape(-1, pieces, AXES[axis],
                              own.numel() // own.shape[0] //
                              (pieces * AXES[axis]))[:, :, at[axis]]
            own = own.reshape(-1, own.shape[-1])
        value = value.index_select(d, own.flatten())
    return value


def calls():
    """(shape, spec, result's shape, slice or None)."""
    draw = random.Random(11)
    while True:
        shape = shape_of(draw, draw.choice((24, 48, 72, 144)))
        spec = spec_of(draw, shape)
        if not any(spec):
            continue
        if draw.random() < 0.6:
            yield shape, spec, shape_of(draw, math.prod(shape)), None
            continue
        dim = draw.randrange(len(shape))
        piece = draw.choice([1] + divisors(shape[dim]))
        count = shape[dim] // piece
        start = draw.randrange(count)
        end = draw.randint(start + 1, count)
        result = list(shape)
        result[dim] = (end - start) * piece
        yield shape, spec, result, (dim, start * piece, end * piece)


def propagated(context, tried):
    """The spec of each result; None where the operand is resharded."""
    def tensor(shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    axes = ", ".join(f'#sharding.axis<"{a}" = {n}>' for a, n in AXES.items())
    lines = [f"sharding.mesh @mesh [{axes}]"]
    for i, (shape, spec, result, cut) in enumerate(tried):
        op = f"aten.view %x, {result}" if cut is None else \
            f"aten.slice.Tensor %x, {cut[0]}[{cut[1]} : {cut[2]} : 1]"
        lines += [f"func.func private @f{i}(%x: {tensor(shape)} "
                  f"{{sharding.spec = #sharding.spec<{text_of(spec)} because "
                  f'<"asked">>}}) -> {tensor(result)} {{',
                  f"  %0 = {op} : ({tensor(shape)}) -> {tensor(result)} "
                  f'loc("f{i}")', f"  return %0 : {tensor(result)}", "}"]
    path, output = context.path("views.mlir"), context.path("out.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    remarks = harness.run([context.binary("accel-opt"), "opt", path,
                           "--propagate-sharding", "-o", output])
    refused = {int(i) for i in re.findall(
        r'loc\("f(\d+)"\): operand 0 is resharded', remarks)}
    with open(output, encoding="utf-8") as f:
        bodies = re.split(r"func\.func private @f", f.read())[1:]
    check(len(bodies) == len(tried), f"{len(bodies)} functions")
    for i, body in enumerate(bodies):
        found = re.search(r"sharding\.specs = \[#sharding\.spec<([^>]*)>\]",
                          body)
        result = tried[i][2]
        yield None if i in refused else \
            parse(found[1]) if found else [[] for _ in result]


def agrees(call, spec):
    """Whether every rank computes its part of the result from its own."""
    import torch

    shape, given, result, cut = call
    value = torch.arange(math.prod(shape)).reshape(shape)
    whole = value.reshape(result) if cut is None else \
        value.narrow(cut[0], cut[1], cut[2] - cut[1])
    for at in itertools.product(*(range(n) for n in AXES.values())):
        at = dict(zip(AXES, at))
        mine, wanted = part(value, given, at), part(whole, spec, at)
        if cut is None:
            if mine.numel() != wanted.numel():
                return False
            made = mine.reshape(wanted.shape)
        else:
            ranks = shape[cut[0]] // mine.shape[cut[0]]
            made = mine.narrow(cut[0], cut[1] // ranks,
                               (cut[2] - cut[1]) // ranks)
        if not torch.equal(made, wanted):
            return False
    return True


def views(context):
    tried = list(itertools.islice(calls(), CALLS))
    taken, pieces, slices, caught = 0, 0, 0, 0
    for call, spec in zip(tried, propagated(context, tried)):
        if spec is None:
            continue
        check(agrees(call, spec), f"{call}: the result is {spec}")
        taken += 1
        slices += call[3] is not None
        if any(n > 1 for dim in spec for _, n in dim):
            pieces += 1
            # Without its pieces it is another sharding.
            caught += not agrees(call, [[(axis, 1) for axis, _ in dim]
                                        for dim in spec])
    check(taken >= CALLS // 3 and pieces >= 100 and slices >= 50,
          f"only {taken}, {pieces} in pieces, {slices} slices")
    check(caught == pieces, f"{pieces - caught} specs are right without pieces")
    return (f"{taken} of {CALLS} views without resharding, {slices} slices, "
            f"{pieces} results in pieces, {caught} of them wrong without")


CASES = [("on shards", views)]
