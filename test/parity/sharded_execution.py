"""Functions of one rank's parts, run for all ranks of a mesh in one process.

Ranks run in step, an instruction at a time; what they exchange is computed from
what all of them have.
"""
import itertools

import torch
from graph_runner import Run
from plan_interpreter import Call


class Mesh:
    """Named axes, the last of which varies fastest with the rank."""

    def __init__(self, **sizes):
        self.sizes = sizes
        self.places = [dict(zip(sizes, at)) for at in itertools.product(
            *(range(n) for n in sizes.values()))]

    def group(self, rank, axes):
        """The ranks that differ from `rank` in `axes` alone, in order."""
        own = self.places[rank]
        return [r for r, place in enumerate(self.places)
                if all(place[a] == own[a] for a in own if a not in axes)]

    def part(self, tensor, spec, rank):
        """A rank's part of a whole tensor; `spec` lists, for each dimension,
        axes and before them the number of their pieces."""
        for dim, parts in enumerate(spec):
            pieces = 1
            for entry in parts:
                if isinstance(entry, int):
                    pieces *= entry
                    continue
                tensor = sliced(tensor, dim, pieces, False, self.sizes[entry],
                                self.places[rank][entry])
        return tensor.contiguous()


def sliced(tensor, dim, pieces, mirrored, ranks, own):
    """Part `own` of each piece; of every second mirrored one the part as far
    from its end."""
    parts = []
    for number, piece in enumerate(tensor.chunk(pieces, dim)):
        turned = mirrored and number % 2
        parts.append(piece.chunk(ranks, dim)[ranks - 1 - own if turned
                                             else own])
    return torch.cat(parts, dim)


def joined(parts, dim, pieces, mirrored):
    cut = [part.chunk(pieces, dim) for part in parts]
    made = []
    for number in range(pieces):
        turned = mirrored and number % 2
        made += [of[number] for of in (cut[::-1] if turned else cut)]
    return torch.cat(made, dim)


def exchange(mesh, name, arguments):
    """Results by rank of `name`, whose arguments are given by rank."""
    results = []
    for rank, own in enumerate(arguments):
        axes = [a for a in own if isinstance(a, str)]
        numbers = [a for a in own if type(a) is int]
        group = mesh.group(rank, axes)
        if name == "coordinate":
            results.append(torch.tensor(mesh.places[rank][axes[0]] *
                                        numbers[0]))
            continue
        given = [arguments[r][0] for r in group]
        at = group.index(rank)
        if name == "first_rank":
            results.append(own[0].clone() if at == 0 else
                           torch.zeros_like(own[0]))
        elif name == "all_reduce":
            values = torch.stack(given)
            results.append(values.amax(0) if numbers[0] else values.sum(0))
        elif name == "all_gather":
            results.append(joined(given, *numbers))
        elif name == "slice":
            results.append(sliced(own[0], *numbers, len(group), at).clone())
        elif name == "reduce_scatter":
            results.append(sliced(torch.stack(given).sum(0), *numbers,
                                  len(group), at).clone())
        elif name == "permute":
            results.append(given[at - numbers[0]].clone())
        elif name == "all_to_all":
            split, concat = numbers
            results.append(torch.cat([g.chunk(len(group), split)[at]
                                      for g in given], concat))
        else:
            raise ValueError(name)
    return results


def execute(mesh, function, inputs, parameters, gradients):
    """Like plan_interpreter.execute; every tensor is a list, one by rank."""
    ranks = range(len(mesh.places))
    calls = [Call(function, [i[r] for i in inputs],
                  {n: p[r] for n, p in parameters.items()},
                  {n: g[r] for n, g in gradients.items()}) for r in ranks]
    for number, instruction in enumerate(function["instructions"]):
        dialect, name = instruction["op"].split("::")
        if dialect != "sharding":
            for call in calls:
                call.run(number)
            continue
        made = exchange(mesh, name,
                        [call.arguments(instruction) for call in calls])
        for call, result in zip(calls, made):
            call.finish(number, [result])
    return [list(of) for of in zip(*(call.outputs() for call in calls))]


class ShardedRun(Run):
    """A step of a whole graph; values, parameters and gradients are lists, one
    tensor by rank."""

    def __init__(self, mesh, graph, parameters):
        super().__init__(graph, parameters)
        self.mesh = mesh

    def execute(self, function, inputs, parameters, gradients):
        return execute(self.mesh, function, inputs, parameters, gradients)

    def like(self, tensor, value):
        return [torch.full_like(t, value) for t in tensor]
