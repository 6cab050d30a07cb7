"""Operators on shards as their sharding rules say, in one process.

A rank is a point in the product of the sharded factors. Ranks run in step: an
operator that needs others' numbers inside is a generator that yields what is
to be combined, and along which factor.
"""
import copy
import itertools

import torch


class Wrong(Exception):
    """The rule does not describe the operator."""


def shards_of(tensor, rule, counts):
    """Shards of each dimension of an operand or result."""
    made = []
    for factors in tensor["dims"]:
        shards = 1
        for factor in factors:
            shards *= counts.get(factor, 1)
        made.append(shards)
    return made


def expressible(rule, counts):
    """Where positions are counted, parts are contiguous: an inner factor is cut
    where those outside of it are cut into single elements."""
    for tensor in rule["operands"] + rule["results"]:
        for factors in tensor["dims"]:
            if not any(counted(rule["factors"][f]) for f in factors):
                continue
            whole = True
            for factor in factors:
                count = counts.get(factor, 1)
                if count > 1 and not whole:
                    return False
                whole &= count == rule["factors"][factor]["size"]
    return True


def counted(factor):
    """Whether the operator counts from the first element of a part."""
    return factor["form"] in ("rows", "positions", "keys", "statistics")


class Rank:
    """A rank's coordinate in each sharded factor, and its parts. A factor may
    be cut in pieces, of each of which a rank has its part."""

    def __init__(self, rule, counts, at, pieces):
        self.rule, self.counts, self.at = rule, counts, at
        self.pieces = pieces

    def indices(self, tensor, dim, size):
        """Of the elements that the rank has of a dimension."""
        index = torch.zeros(1, dtype=torch.int64)
        rest = size
        for factor in tensor["dims"][dim]:
            extent = self.rule["factors"][factor]["size"]
            count = self.counts.get(factor, 1)
            own = torch.arange(extent)
            if count > 1:
                own = own.view(self.pieces.get(factor, 1), count, -1)[
                    :, self.at[factor]].flatten()
            index = (index[:, None] * extent + own).flatten()
            if extent and rest % extent:
                raise Wrong(f"a factor of {extent} in dimension {dim}, {size}")
            rest //= max(extent, 1)
        return (index[:, None] * rest + torch.arange(rest)).flatten()

    def block(self, tensor, dim, size):
        """(first element, elements) of a dimension of which the rank has
        consecutive elements."""
        own = self.indices(tensor, dim, size)
        if own.numel() and own[-1] - own[0] + 1 != own.numel():
            raise Wrong(f"dimension {dim} is no block")
        return (int(own[0]) if own.numel() else 0), own.numel()

    def blocks(self, tensor, shape):
        return [self.block(tensor, d, s) for d, s in enumerate(shape)]

    def parts(self, tensor, shape):
        if len(tensor["dims"]) != len(shape):
            raise Wrong(f"{tensor} for a tensor of shape {list(shape)}")
        return [self.indices(tensor, d, s) for d, s in enumerate(shape)]

    def local(self, tensor, value):
        for d, own in enumerate(self.parts(tensor, value.shape)):
            value = value.index_select(d, own)
        return value.clone()

    def first(self):
        """Whether no other rank comes before it in the sum of result 0."""
        return all(self.at.get(f, 0) == 0
                   for f in self.rule["results"][0]["partial"])


def combined(values, how):
    stacked = torch.stack(values)
    if how == "max":
        return stacked.any(0) if stacked.dtype == torch.bool \
            else stacked.amax(0)
    if how == "min":
        return stacked.all(0) if stacked.dtype == torch.bool \
            else stacked.amin(0)
    total = stacked.sum(0).to(stacked.dtype)
    return total / len(values) if how == "mean" else total


def in_step(generators, ranks):
    """Results of the ranks; what they yield is combined over a factor."""
    results, sent = [None] * len(ranks), [None] * len(ranks)
    while True:
        asked = []
        for i, generator in enumerate(generators):
            try:
                asked.append(generator.send(sent[i]))
            except StopIteration as stop:
                results[i] = stop.value
        if not asked:
            return results
        if len(asked) != len(ranks):
            raise Wrong("ranks combine different numbers of values")
        for i, rank in enumerate(ranks):
            how, _, factors = asked[i]
            group = [asked[j][1] for j, other in enumerate(ranks)
                     if all(other.at[f] == rank.at[f] for f in rank.at
                            if f not in factors)]
            sent[i] = combined(group, how)


def assemble(rule, number, shape, ranks, locals_):
    """The whole of a result from what the ranks have."""
    tensor = rule["results"][number]
    partial = tensor["partial"]
    kept = {f for factors in tensor["dims"] for f in factors}
    groups = {}
    for rank, value in zip(ranks, locals_, strict=True):
        of = tuple(sorted((f, c) for f, c in rank.at.items()
                          if f not in partial))
        groups.setdefault(of, []).append((rank, value))
    whole, seen = None, {}
    for of, members in groups.items():
        values = [value for _, value in members]
        # The factors of one result that are partial combine in one way.
        for how in {rule["factors"][f]["combine"] for f in partial} or {"sum"}:
            value = combined(values, how)
        rank = members[0][0]
        parts = rank.parts(tensor, shape)
        own = [part.numel() for part in parts]
        if list(value.shape) != own:
            raise Wrong(f"result {number} is {list(value.shape)} on a rank, "
                        f"its part of {list(shape)} has {own}")
        place = tuple((f, c) for f, c in of if f in kept)
        if place in seen and not close(value, seen[place]):
            raise Wrong(f"result {number} differs between ranks that have "
                        "the same part of it")
        seen[place] = value
        if whole is None:
            whole = torch.empty(shape, dtype=value.dtype)
        if parts:
            whole[torch.meshgrid(*parts, indexing="ij")] = value
        else:
            whole.copy_(value)
    return whole


def close(a, b, tolerance=3e-5):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    finite = b[b.isfinite()]
    scale = max(finite.abs().max().item() if finite.numel() else 0.0, 1.0)
    return torch.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True)


def run_sharded(row, rule, counts, tensors, wanted, pieces):
    """Fails unless `row` on the shards of `tensors` gives the shards of
    `wanted`, the results of the whole operator."""
    factors = sorted(f for f, count in counts.items() if count > 1)
    ranks = [Rank(rule, counts, dict(zip(factors, at)), pieces)
             for at in itertools.product(*(range(counts[f]) for f in factors))]
    if len(rule["operands"]) != len(tensors) or \
            len(rule["results"]) != len(wanted):
        raise Wrong("the rule is of another number of operands or results")
    generators = []
    blocked = any(rule["factors"][f]["kind"] == "blocked" for f in factors)
    for rank in ranks:
        parts = [rank.local(t, value)
                 for t, value in zip(rule["operands"], tensors)]
        for operand in rule["once"]:
            if not rank.first():
                parts[operand].zero_()
        attrs = dict(row.attrs)
        for size in rule["sizes"]:
            result = size["result"]
            if attrs.get(size["name"]) is None:
                continue
            if size["factor"] >= 0:
                attrs[size["name"]] //= counts.get(size["factor"], 1)
                continue
            shape = [part.numel() for part in rank.parts(
                rule["results"][result], wanted[result].shape)]
            attrs[size["name"]] = shape if size["dim"] < 0 else \
                shape[size["dim"]]
        step = row.form if blocked and row.form else plain
        generators.append(step(row, rank, parts, attrs, tensors))
    locals_ = in_step(generators, ranks)
    for i, whole in enumerate(wanted):
        made = assemble(rule, i, whole.shape, ranks, [r[i] for r in locals_])
        if not close(made, whole):
            raise Wrong(f"result {i} differs: {made.flatten()[:6].tolist()}, "
                        f"whole {whole.flatten()[:6].tolist()}")


def plain(row, rank, parts, attrs, whole):
    """The same operator; it combines nothing inside."""
    return row.run(parts, attrs)
    yield  # makes a generator of it


OTHERWISE = {"sum": "mean", "mean": "sum", "max": "min", "min": "max"}


def mutations(rule):
    """(what, rule) of rules that are wrong wherever the change counts."""
    for i, result in enumerate(rule["results"]):
        if result["partial"]:
            made = copy.deepcopy(rule)
            made["results"][i]["partial"] = []
            yield "partial dropped", made
        for d, factors in enumerate(result["dims"]):
            sizes = {rule["factors"][f]["size"] for f in factors}
            if len(sizes - {0, 1}) > 1:
                made = copy.deepcopy(rule)
                made["results"][i]["dims"][d].reverse()
                yield "factors reversed", made
        for a, b in itertools.combinations(range(len(result["dims"])), 2):
            if result["dims"][a] != result["dims"][b]:
                made = copy.deepcopy(rule)
                dims = made["results"][i]["dims"]
                dims[a], dims[b] = dims[b], dims[a]
                yield "dimensions swapped", made
    for what in ("once", "sizes"):
        if rule[what]:
            yield what + " dropped", dict(rule, **{what: []})
    for f, factor in enumerate(rule["factors"]):
        if factor["kind"] == "blocked":
            made = copy.deepcopy(rule)
            made["factors"][f]["kind"] = "parallel"
            yield f"{factor['form']} forgotten", made
        if factor["kind"] == "reduction":
            made = copy.deepcopy(rule)
            made["factors"][f]["combine"] = OTHERWISE[factor["combine"]]
            yield "combined otherwise", made
