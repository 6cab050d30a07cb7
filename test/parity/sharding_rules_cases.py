"""Sharding rules against the operators themselves: random operands, cut in
random ways that the rule allows, the operator on every part, and what the parts
combine to against the whole."""
import collections
import copy
import json
import os
import random

import harness
from harness import check

CALLS = 24   # of each operator
CUTS = 2     # of each call
MUTANTS = 12  # calls on which a changed rule is tried

# Not tried: nobody knows what they do, and they take whole operands; a rank
# draws native_dropout's numbers for its own part. DoRA's two count what PEFT
# holds, and a gated delta rule stands for transformers' loop, which no mesh cuts
# (decision 0049): no runtime executes them, nor what axolotl's functions around
# adapters compute, which are not planned under a mesh that cuts layers.
WITHOUT = {"opaque", "opaque_backward", "native_dropout", "dora_norm", "hold",
           "gated_delta_rule", "gated_delta_rule_backward", "alpha_addmm",
           "alpha_mm", "geglu", "glu_in_place_backward", "lora_mlp",
           "lora_projections"}


def with_sizes(call, attrs):
    """The call with the attributes of `attrs`, found by ATen's names."""
    from plan_interpreter import operator

    if attrs == call.attrs:
        return call
    call = copy.copy(call)
    names = [a.name for a in operator(call.aten)._schema.arguments]
    call.args = list(call.args)
    for name, value in attrs.items():
        if value != call.attrs.get(name):
            call.args[names.index(name)] = value
    call.attrs = attrs
    return call


def table_row(name, call):
    """A row of operators.TABLE, run by PyTorch."""
    import operators_cases
    import sharded_forms
    from sharded_calls import Wrong
    from sharded_rows import Row

    def run(tensors, attrs):
        results = operators_cases.on_torch(with_sizes(call, attrs), tensors)
        if results is None:
            raise Wrong("PyTorch refuses the shards")
        return [r.clone() for r in results]
    return Row(name, call.operands, call.attrs, run,
               sharded_forms.form_of(name))


def names():
    import operators_cases
    from sharded_rows import ROWS
    return set(operators_cases.table()) | set(ROWS)


def drawn():
    """Rows that PyTorch takes, with their operands and results."""
    import operators_cases
    import torch
    from operators import Draw
    from sharded_calls import Wrong
    from sharded_rows import ROWS

    generator = torch.Generator().manual_seed(5)
    for name in sorted(names()):
        for i in range(CALLS * (10 if name == "view" else 1)):
            draw = Draw(f"sharded {name} {i}", True)
            row = ROWS[name](draw) if name in ROWS else \
                table_row(name, operators_cases.table()[name](draw))
            tensors = [o.tensor(generator) for o in row.operands]
            try:
                yield row, tensors, row.run(tensors, row.attrs)
            except Wrong:
                continue


def rules(context, rows):
    """The rules of accel-opt for these operations."""
    from operators import NAMES, generic, tensor_type

    chunks = []
    for row, tensors, results in rows:
        arguments = ", ".join(f"%a{i}: {o.type()}"
                              for i, o in enumerate(row.operands))
        text = generic(row.name, row, [f"%a{i}" for i in
                                       range(len(row.operands))],
                       [tensor_type(NAMES[r.dtype], r.shape) for r in results])
        chunks.append(f"func.func @f{len(chunks)}({arguments}) {{\n  {text}\n"
                      "  return\n}\n")
    path = context.path("calls.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(chunks))
    text = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                        os.devnull, "--pass-pipeline=builtin.module("
                        "print-sharding-rules)"])
    printed = json.loads(text)
    check(len(printed) == len(rows), f"{len(printed)} rules of {len(rows)}")
    return printed


def cuts(rule, draw):
    """Up to CUTS ways to cut the factors, at least one of them: (shards of
    each, pieces of those that are cut in several)."""
    from sharded_calls import counted, expressible

    options = [[n for n in range(1, factor["size"] + 1)
                if factor["size"] % n == 0]
               if factor["size"] and factor["kind"] != "whole" else [1]
               for factor in rule["factors"]]
    found = []
    for _ in range(CUTS * 4):
        counts = {f: draw.choice(of) if draw.random() < 0.6 else 1
                  for f, of in enumerate(options)}
        ranks = 1
        for count in counts.values():
            ranks *= count
        if not 1 < ranks <= 24 or not expressible(rule, counts) or \
                any(counts == before for before, _ in found):
            continue
        pieces = {}
        for f, count in counts.items():
            left = rule["factors"][f]["size"] // count if count > 1 else 1
            if left > 1 and not counted(rule["factors"][f]) and \
                    draw.random() < 0.5:
                pieces[f] = draw.choice([n for n in range(2, left + 1)
                                         if left % n == 0])
        found.append((counts, pieces))
    return found[:CUTS]


def oracle(context):
    import torch
    from sharded_calls import Wrong, run_sharded

    torch.set_num_threads(1)
    rows = list(drawn())
    printed = rules(context, rows)
    draw = random.Random(9)
    tried, strided = collections.Counter(), collections.Counter()
    kinds = collections.defaultdict(set)
    wrong, missing = {}, set()
    for (row, tensors, wanted), rule in zip(rows, printed):
        if "factors" not in rule:
            missing.add(row.name)
            continue
        for counts, pieces in cuts(rule, draw):
            tried[row.name] += 1
            strided[row.name] += bool(pieces)
            for f, count in counts.items():
                if count > 1:
                    factor = rule["factors"][f]
                    kinds[row.name].add((factor["kind"], factor["form"]))
            try:
                run_sharded(row, rule, counts, tensors, wanted, pieces)
            except (Wrong, RuntimeError, IndexError) as error:
                wrong.setdefault(row.name, []).append(
                    f"{[o.type() for o in row.operands]} {row.attrs} cut "
                    f"{counts} in pieces {pieces} of {rule['factors']}: "
                    f"{error}")
    check(not wrong, f"{sum(map(len, wrong.values()))} of "
          f"{sum(tried.values())} differ: "
          f"{ {n: len(w) for n, w in wrong.items()} }\n" +
          "\n".join(f"{n}: {w[0]}" for n, w in wrong.items()))
    check(missing <= WITHOUT, f"without a rule: {sorted(missing)}")
    few = {n for n in names() - WITHOUT if tried[n] < 5}
    check(not few, f"fewer than five cuts of {sorted(few)}")
    forms = sorted({form for of in kinds.values() for kind, form in of
                    if kind == "blocked"})
    check(forms == ["context", "counted", "heads", "keys", "positions", "rows",
                    "statistics"],
          f"the forms that were tried are {forms}")
    check(sum(tried.values()) >= 5000, f"{sum(tried.values())} cuts")
    pieces = sum(strided.values())
    check(pieces >= 1000, f"{pieces} cuts in pieces")
    return (f"{sum(tried.values())} cuts of {len(tried)} operators, {pieces} "
            f"in pieces, blocked ones as {', '.join(forms)}")


def covered(context):
    """No operator of the dialect is left out of the oracle."""
    import operators_cases

    registered = set(operators_cases.registered(context))
    check(registered - names() == WITHOUT,
          f"not tried: {sorted(registered - names() - WITHOUT)}")
    return f"{len(names())} operators, {len(WITHOUT)} that run whole"


def mutated(context):
    """The oracle finds rules that are wrong: for each way in which a rule can
    be, and each operator that has it, a changed rule fails on some call."""
    import torch
    from sharded_calls import Wrong, expressible, mutations, run_sharded

    torch.set_num_threads(1)
    rows = list(drawn())
    printed = rules(context, rows)
    draw = random.Random(3)
    found, alive = set(), set()
    calls = collections.Counter()
    for (row, tensors, wanted), rule in zip(rows, printed):
        if "factors" not in rule:
            continue
        ways = cuts(rule, draw)
        for what, changed in mutations(rule):
            if (row.name, what) in found or \
                    calls[row.name, what] >= MUTANTS * 8:
                continue
            for counts, pieces in ways:
                if not expressible(changed, counts):
                    continue
                calls[row.name, what] += 1
                alive.add((row.name, what))
                try:
                    run_sharded(row, changed, counts, tensors, wanted, pieces)
                except (Wrong, RuntimeError, IndexError):
                    found.add((row.name, what))
                    break
    alive -= found
    missed = {(name, what) for name, what in alive
              if name not in HIDDEN.get(what, ())}
    check(not missed, f"rules that are wrong and pass: {sorted(missed)}")
    counted = collections.Counter(what for _, what in found)
    return ", ".join(f"{n} {what}" for what, n in sorted(counted.items()))


# Where a change of the rule changes nothing: PyTorch asks whether there is a
# bias, not how large it is.
HIDDEN = {"sizes dropped": {"convolution_backward"}}

CASES = [("all operators have a rule", covered), ("shards", oracle),
         ("changed rules fail", mutated)]
