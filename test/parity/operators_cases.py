"""Every operator of the aten dialect against PyTorch: types, layouts and
refusals of thousands of random calls, and derivatives by autograd.

A call is tried on PyTorch's meta kernels and on real CPU tensors. Where either
refuses it, the dialect must too; else the dialect must agree on the type of
every result and, with the CPU kernel, on its strides.
"""
import collections
import json
import math
import os
import re

import harness
from harness import check

CALLS = 30  # of each operator; of each derivative a third

# Operations without a schema: passes replace them.
ABSTRACT = {"opaque", "opaque_backward", "rms_norm", "layer_norm", "type_as",
            "scaled_dot_product_attention"}
# CUDA alone has kernels for these, and PyTorch no meta function that could be
# called without one.
CUDA_ONLY = {"_fused_rms_norm", "_fused_rms_norm_backward",
             "_scaled_dot_product_flash_attention",
             "_flash_attention_forward", "_flash_attention_backward",
             "_scaled_dot_product_flash_attention_backward",
             "_scaled_dot_product_cudnn_attention",
             "_scaled_dot_product_cudnn_attention_backward",
             "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_efficient_attention_backward",
             "_scaled_dot_product_efficient_attention_mask_backward"}
# CUDA's too: they drop weights by a state that the key gives; test/dry compares their runs with CPUs.
DROPPED = {f"dropped_{kernel}_attention{half}"
           for kernel in ("flash", "efficient") for half in ("", "_backward")}
# Random: dropout_cases tests what they draw.
RANDOM = {"dropout", "native_dropout"}
# Kernels of libraries, which accel-run never launches; lit tests have them.
FUSED = {"mamba2_mixer", "mamba2_mixer_backward", "rotary", "swiglu",
         "gated_delta_rule", "gated_delta_rule_backward",
         "swiglu_backward", "dora_norm", "hold", "alpha_addmm", "alpha_mm",
         "geglu", "glu_in_place_backward", "lora_mlp", "lora_projections",
         "cross_entropy",
         "cross_entropy_backward", "cross_entropy_in_place_backward"}
# Of autograd functions, whose result has the derivative.
INSIDE = {"alpha_addmm", "alpha_mm", "geglu"}
ELSEWHERE = ABSTRACT | CUDA_ONLY | DROPPED | RANDOM | FUSED
# No gradient flows: these answer questions, count, or make tensors of nothing.
# Gradients of gradients are not taken.
STEPS = {"arange.start_step", "argmax", "argmin", "all.dims", "any.dims",
         "bitwise_and.Tensor", "bitwise_not", "bitwise_or.Tensor",
         "bitwise_xor.Tensor", "floor_divide.Scalar", "full", "full_like",
         "histc", "isinf", "isnan", "logical_and", "logical_not",
         "logical_or", "logical_xor", "searchsorted.Tensor", "zeros_like"}
COMPARISON = re.compile(r"(eq|ne|ge|le|gt|lt)\.(Tensor|Scalar)$")
GRADIENT = re.compile(r"_backward(_data)?$|_backward\.|^opaque_backward$")

# What the dialect refuses though PyTorch takes it, in its own words.
NARROWER = re.compile(
    r"must be statically shaped tensor|requires the same type|dimension \d+ is "
    r"outside of a tensor of 0|cannot fill|is outside of a dimension|"
    r"expects at least one|is not of the input's type|floating-point number|"
    r"cannot join|expects a list of positions|cannot cut|has no powers|"
    r"do not fit|appears twice|no bounds for truth|two positive sizes|"
    r"start <= end|more than one element for each")


def registered(context):
    path = context.path("empty.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("module {}\n")
    text = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                        os.devnull,
                        "--pass-pipeline=builtin.module(print-operators)"])
    return {row["name"].removeprefix("aten."): row["derivative"]
            for row in json.loads(text)}


def table():
    import operator_rows  # noqa: F401  (fills TABLE)
    import operator_rows_kernels  # noqa: F401
    import operator_rows_losses  # noqa: F401
    import operator_rows_more  # noqa: F401
    from operators import TABLE
    return TABLE


def covered(context):
    operators = registered(context)
    missing = set(operators) - set(table()) - ELSEWHERE
    check(not missing, f"not tried by any test: {sorted(missing)}")
    unknown = set(table()) - set(operators)
    check(not unknown, f"no operators of the dialect: {sorted(unknown)}")
    flat = {name for name, has in operators.items() if not has and not
            (name in STEPS or COMPARISON.match(name) or GRADIENT.search(name))}
    # Passes replace these before a graph is differentiated.
    flat -= {"rms_norm", "layer_norm", "scaled_dot_product_attention"} | INSIDE
    check(not flat, f"neither a derivative nor a reason: {sorted(flat)}")
    both = {name for name in STEPS if operators.get(name)}
    check(not both, f"steps that have a derivative: {sorted(both)}")
    return (f"{len(operators)} operators, "
            f"{sum(operators.values())} with a derivative")


def resolve(call, tensors):
    """(positional arguments, keywords) of the PyTorch call."""
    from operators import T

    def one(value):
        if isinstance(value, T):
            return tensors[value]
        if isinstance(value, list):
            return [one(item) for item in value]
        return value
    args, keywords = [], {}
    for value in call.args:
        if isinstance(value, dict):
            keywords.update(value)
        else:
            args.append(one(value))
    return args, keywords


def on_torch(call, tensors):
    """The results that the dialect has, or None where PyTorch refuses."""
    import torch
    from plan_interpreter import operator

    args, keywords = resolve(call, tensors)
    if call.aten == "aten::clone":
        args, keywords = args[:1], {"memory_format": args[1]}
    try:
        results = operator(call.aten)(*args, **keywords)
    except Exception:  # meta kernels in Python raise whatever they like
        return None
    if isinstance(results, torch.Tensor):
        return [results]
    if call.results is not None:
        return [results[i] for i in call.results]
    return list(results)


def draw_calls(count, gradient):
    """[(name, Call)] of every operator, the same each time."""
    from operators import Draw

    rows = []
    for name, builder in sorted(table().items()):
        for i in range(count):
            rows.append((name, builder(Draw(f"{name} {i}", gradient,
                                            gradient and i % 3 == 2))))
    return rows


def given(call, tensors):
    """The arguments of a function of the call's operands, with their strides."""
    return ", ".join(
        f"%a{i}: {o.type()} {{aten.strides = array<i64"
        f"{': ' if t.dim() else ''}{', '.join(map(str, t.stride()))}>}}"
        for i, (o, t) in enumerate(zip(call.operands, tensors)))


def strides_that_count(tensor):
    if tensor.numel() == 0:
        return {}
    return {i: stride for i, (size, stride)
            in enumerate(zip(tensor.shape, tensor.stride())) if size != 1}


def types(context):
    """Types and refusals in one run; layouts in a second."""
    import torch
    from operators import NAMES, generic, tensor_type

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(3)
    rows = draw_calls(CALLS, gradient=False)
    chunks, wanted = [], []
    for name, call in rows:
        tensors = [o.tensor(generator) for o in call.operands]
        meta = on_torch(call, [t.to("meta") if t.dim() == 0 else
                               torch.empty_strided(t.shape, t.stride(),
                                                   dtype=t.dtype,
                                                   device="meta")
                               for t in tensors])
        real = on_torch(call, tensors)
        accepted = meta is not None and real is not None
        if accepted:
            for a, b in zip(meta, real):
                accepted &= a.shape == b.shape and a.dtype == b.dtype
        known = accepted and all(r.dtype in NAMES for r in meta)
        results = [tensor_type(NAMES[r.dtype], r.shape) for r in meta] \
            if known else [call.operands[0].type() if call.operands
                           else "tensor<1xf32>"]
        arguments = given(call, tensors)
        text = generic(name, call, [f"%a{i}" for i in
                                    range(len(call.operands))], results)
        chunks.append(f"func.func @f{len(chunks)}({arguments}) {{\n"
                      f"  {text}\n  return\n}}\n")
        wanted.append(real if known else None)
    path = context.path("calls.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("// -----\n".join(chunks))
    lines = "// -----\n".join(chunks).split("\n")
    at, line_of = -1, {}
    for number, line in enumerate(lines, 1):
        if line.startswith("func.func"):
            at += 1
        line_of[number] = at
    printed = harness.run([context.binary("accel-opt"), "opt", path,
                           "--split-input-file", "-o", os.devnull],
                          expect=None)
    messages = collections.defaultdict(list)
    for number, text in re.findall(r"^[^\n:]*:(\d+):\d+: error: (.*)$", printed,
                                   re.M):
        messages[line_of[int(number)]].append(text)
    check(not re.search(r"LLVM ERROR|PLEASE submit|Assertion|Stack dump",
                        printed), printed[-3000:])
    wrong, counts = [], collections.Counter()
    narrower = collections.Counter()
    for i, ((name, call), real) in enumerate(zip(rows, wanted)):
        told = " | ".join(messages[i])
        refused = bool(told) and "inferred type(s)" not in told
        if real is None:
            counts["refused by both"] += refused
            if not refused:
                wrong.append(f"{name}: accepted, PyTorch refuses\n"
                             f"  {chunks[i]}  {told}")
        elif not told:
            counts["accepted by both"] += 1
        elif refused and NARROWER.search(told):
            narrower[name] += 1
        else:
            wrong.append(f"{name}: {told}\n  {chunks[i]}")
    taken = [i for i, real in enumerate(wanted)
             if real is not None and not messages[i]]
    wrong += layouts(context, taken, wanted, chunks, rows, counts)
    counted = collections.Counter(text.split(":")[0] for text in wrong)
    of_each = {text.split(":")[0]: text for text in reversed(wrong)}
    check(not wrong, f"{len(wrong)} of {len(rows)} calls differ: "
                     f"{dict(counted)}\n" +
          "\n".join(list(of_each.values())[:40]))
    for name, count in narrower.items():
        check(count < CALLS * 0.9, f"{name}: {count} of {CALLS} calls refused "
                                   "that PyTorch takes")
    return (f"{len(rows)} calls of {len(table())} operators: " +
            ", ".join(f"{v} {k}" for k, v in sorted(counts.items())) +
            f", {sum(narrower.values())} refused by the dialect alone")


# Shares memory, so that it costs nothing.
VIEWS = {"t", "transpose.int", "permute", "view", "expand", "unsqueeze",
         "squeeze.dim", "slice.Tensor", "select.int"}
# Data is moved or filled, not computed.
MOVES = re.compile(
    r"arange|cat$|clone|embedding|flip|^full|gather|index|pad|repeat|roll|"
    r"scatter|slice_backward|select_backward|upsample_nearest|zeros_like|"
    r"nll_loss_backward|pool2d.*_backward|selecting_reduction_backward|tri[lu]")


def unpriced(name, call, results, cost):
    """A text in a list where a call with elements has no cost."""
    flops, moved = cost
    if name in VIEWS:
        return [f"{name}: a view costs {cost}"] if flops or moved else []
    least = sum(r.numel() * r.element_size() for r in results)
    if moved < least and "embedding" not in name:
        return [f"{name}: {moved} bytes moved, {least} written"]
    if flops <= 0 and least and all(
            math.prod(o.shape) for o in call.operands) and \
            not MOVES.search(name):
        return [f"{name}: no floating-point operations"]
    return []


def layouts(context, taken, wanted, chunks, rows, counts):
    path, output = context.path("taken.mlir"), context.path("annotated.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(chunks[i] for i in taken))
    harness.run([context.binary("accel-opt"), "opt", path, "-o", output,
                 "--pass-pipeline=builtin.module(annotate-layout)"])
    with open(output, encoding="utf-8") as f:
        text = f.read()
    found, costs = {}, {}
    for number, body in re.findall(
            r"func\.func @f(\d+)\(.*?\{\n(.*?)\n\s*return", text, re.S):
        lists = re.search(r"aten\.strides = \[(.*?)\]", body)
        found[int(number)] = [
            [int(v) for v in re.findall(r"-?\d+", item)]
            for item in re.findall(r"array<i64(?:: )?([^>]*)>",
                                   lists.group(1))]
        costs[int(number)] = [float(v) for v in re.search(
            r"aten\.cost = array<f64: ([^>]*)>", body).group(1).split(", ")]
    wrong = []
    for i in taken:
        check(i in found, f"no layout printed for {chunks[i]}")
        wrong += unpriced(rows[i][0], rows[i][1], wanted[i], costs[i])
        for result, ours in zip(wanted[i], found[i], strict=True):
            expected = strides_that_count(result)
            counts["layouts"] += 1
            if any(ours[d] != s for d, s in expected.items()):
                wrong.append(f"{rows[i][0]}: strides {ours}, PyTorch has "
                             f"{list(result.stride())}\n  {chunks[i]}")
    return wrong


def derivatives(context):
    import torch
    from operators import NAMES, generic, tensor_type
    from plan_interpreter import execute

    torch.set_num_threads(1)
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(11)
    differentiable = {n for n, has in registered(context).items() if has}
    cases = []
    for name, call in draw_calls(CALLS // 3, gradient=True):
        if name not in differentiable:
            continue
        # What is in memory, and what the call sees of it.
        inputs = [o.tensor(generator).permute(o.turn()).contiguous()
                  for o in call.operands]
        inputs = [t.requires_grad_() if t.is_floating_point() and not o.fixed
                  else t for t, o in zip(inputs, call.operands)]
        seen = [t.permute(o.turn(back=True))
                for t, o in zip(inputs, call.operands)]
        results = [call.reference(*seen)] if call.reference else \
            on_torch(call, seen)
        if results is None or not results[0].requires_grad:
            continue
        cases.append((name, call, inputs, results))
    tried = {name for name, *_ in cases}
    untried = differentiable - tried - ELSEWHERE
    check(not untried, f"no derivative was tried of {sorted(untried)}")
    path = context.path("functions.mlir")
    with open(path, "w", encoding="utf-8") as f:
        for i, (name, call, inputs, results) in enumerate(cases):
            with torch.no_grad():
                results = on_torch(call, [
                    t.permute(o.turn(back=True))
                    for t, o in zip(inputs, call.operands)])
            types = [tensor_type(NAMES[r.dtype], r.shape) for r in results]
            arguments = ", ".join(
                f"%a{k}: {tensor_type(o.dtype, t.shape)}"
                for k, (o, t) in enumerate(zip(call.operands, inputs)))
            turns = "".join(
                f"  %p{k} = aten.permute %a{k}, {o.turn(back=True)} : "
                f"({tensor_type(o.dtype, t.shape)}) -> {o.type()}\n"
                for k, (o, t) in enumerate(zip(call.operands, inputs))
                if o.order)
            text = turns + "  " + generic(
                name, call, [f"%{'p' if o.order else 'a'}{k}" for k, o in
                             enumerate(call.operands)], types)
            value = "%r" if len(types) == 1 else "%r#0"
            f.write(f"func.func private @f{i}({arguments}) -> {types[0]} {{\n"
                    f"{text}\n  %c = aten.clone {value} : {types[0]}\n"
                    f"  return %c : {types[0]}\n}}\n")
    printed = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                           os.devnull, "--pass-pipeline=builtin.module("
                           "differentiate,print-functions)"])
    functions = {f["name"]: f for f in json.loads(printed)["functions"]}
    wrong, exact = [], 0
    for i, (name, call, inputs, results) in enumerate(cases):
        grad = torch.randn_like(results[0]).contiguous()
        wanted = [t for t in inputs if t.requires_grad]
        flowing = iter(torch.autograd.grad(results[0], wanted, grad,
                                           allow_unused=True))
        floats = [t for t in inputs if t.is_floating_point()]
        expected = [next(flowing) if t.requires_grad else None for t in floats]
        try:
            outputs, _ = execute(functions[f"f{i}.joint"],
                                 [t.detach() for t in inputs] + [grad], {}, {})
        except Exception as error:
            wrong.append(f"{name}: {call.attrs}: {error}")
            continue
        equal = True
        for got, want, at in zip(outputs[1:], expected, floats, strict=True):
            want = torch.zeros_like(at) if want is None else want
            scale = max(want.abs().max().item() if want.numel() else 0.0, 1.0)
            if not torch.allclose(got, want, rtol=0, atol=1e-5 * scale,
                                  equal_nan=True):
                wrong.append(f"{name} {[o.type() for o in call.operands]} "
                             f"{call.attrs}: off by "
                             f"{(got - want).abs().max().item():.1e}")
            equal &= torch.equal(got.nan_to_num(7e7), want.nan_to_num(7e7))
        if not equal and call.exact:
            wrong.append(f"{name} {[o.type() for o in call.operands]} "
                         f"{call.attrs}: not bit-equal")
        exact += equal
    check(not wrong, f"{len(wrong)} of {len(cases)}\n" +
          "\n".join(wrong[:25]))
    return (f"{len(cases)} gradients of {len(tried)} operators, {exact} "
            "bit-equal")


CASES = [("all operators are covered", covered), ("types and layouts", types),
         ("derivatives", derivatives)]
