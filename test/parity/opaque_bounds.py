"""Operators that the dialect does not model, and what they allocate inside:
never more than the compiler's bound."""
import json
import os

import harness
from harness import check

OPTIONS = {"none": None}


def rows():
    """(operator, tensors, arguments as aten.opaque has them)"""
    import torch

    torch.manual_seed(0)
    rand = torch.rand
    x, y = rand(24, 40), rand(24, 40)
    for name in ("digamma", "lgamma", "sinc", "special_log_ndtr", "trace",
                 "median", "i0", "frac", "deg2rad", "relu6"):
        yield name, [x], ["%0"]
    for name in ("xlogy.Tensor", "logaddexp", "hypot", "copysign.Tensor"):
        yield name, [x, y], ["%0", "%1"]
    yield "erfinv", [x * 0.9], ["%0"]
    yield "celu", [x], ["%0", 1.0]
    yield "softshrink", [x], ["%0", 0.5]
    yield "threshold", [x], ["%0", 0.5, 0.1]
    yield "logit", [x * 0.8 + 0.1], ["%0", "none"]
    yield "cumprod", [x], ["%0", 1, "none"]
    yield "cummax", [x], ["%0", 1]
    yield "logcumsumexp", [x], ["%0", 1]
    yield "renorm", [x], ["%0", 2.0, 0, 1.0]
    yield "cosine_similarity", [x, y], ["%0", "%1", 1, 1e-8]
    yield "cdist", [x, y], ["%0", "%1", 2.0, "none"]
    yield "kron", [rand(8, 8), rand(6, 6)], ["%0", "%1"]
    yield "diag_embed", [x], ["%0", 0, 0, 1]
    yield "kthvalue", [x], ["%0", 3, 1, False]
    yield "unfold", [x], ["%0", 1, 4, 2]
    yield "im2col", [rand(2, 3, 12, 12)], ["%0", *[[3, 3], [1, 1]], *[[1, 1]] * 2]
    yield ("max_pool3d_with_indices", [rand(1, 3, 8, 8, 8)],
           ["%0", [2] * 3, [2] * 3, [0] * 3, [1] * 3, False])
    yield "native_layer_norm", [x], ["%0", [40], "none", "none", 1e-5]
    yield ("instance_norm", [rand(2, 4, 32)],
           ["%0", *["none"] * 4, True, 0.1, 1e-5, False])
    yield "group_norm", [rand(2, 8, 32)], ["%0", 2, "none", "none", 1e-5, True]
    yield "linalg_inv", [rand(16, 16) + 16 * torch.eye(16)], ["%0"]
    yield ("grid_sampler_2d", [rand(2, 3, 12, 12), rand(2, 6, 6, 2)],
           ["%0", "%1", 0, 0, False])
    yield "vdot", [rand(64), rand(64)], ["%0", "%1"]
    yield "pixel_shuffle", [rand(2, 16, 8, 8)], ["%0", 2]
    yield ("addbmm", [rand(8, 8), rand(3, 8, 5), rand(3, 5, 8)],
           ["%0", "%1", "%2", 1.0, 1.0])
    yield "take", [x, torch.randint(900, (50,))], ["%0", "%1"]
    yield "nan_to_num", [x], ["%0", "none", "none", "none"]
    yield ("upsample_bicubic2d", [rand(1, 3, 8, 8)],
           ["%0", [16, 16], False, "none", "none"])
    yield "reflection_pad1d", [rand(2, 3, 16)], ["%0", [2, 2]]
    yield ("margin_ranking_loss", [rand(64), rand(64), rand(64)],
           ["%0", "%1", "%2", 0.1, 1])
    yield ("cross_entropy_loss", [rand(32, 50), torch.randint(50, (32,))],
           ["%0", "%1", "none", 1, -100, 0.1])


def text_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"array<i64: {', '.join(map(str, value))}>"
    return f"{value:.17e} : f64" if isinstance(value, float) else \
        f"{value} : i64"


def caller(op, args):
    """The operator on a list of tensors; its results as a tuple."""
    def call(tensors):
        values = [tensors[int(a[1:])] if isinstance(a, str) and a[0] == "%"
                  else OPTIONS.get(a, a) if isinstance(a, str) else a
                  for a in args]
        named = list(zip(op._schema.arguments, values))
        result = op(*[v for p, v in named if not p.kwarg_only],
                    **{p.name: v for p, v in named if p.kwarg_only})
        return result if isinstance(result, (tuple, list)) else (result,)
    return call


def function_text(i, name, tensors, args, results):
    from operators import NAMES, tensor_type

    def type_of(t):
        return tensor_type(NAMES[t.dtype], t.shape)
    types = [type_of(t) for t in tensors]
    outs = [type_of(t) for t in results]
    many = len(outs) > 1
    operands = ", ".join(f"%a{k}" for k in range(len(types)))
    given = ", ".join(f"%a{k}: {t}" for k, t in enumerate(types))
    texts = ", ".join(map(text_of, args))
    right = f"({', '.join(outs)})" if many else outs[0]
    return (f"func.func private @f{i}({given}) -> {outs[0]} {{\n"
            f"  %r{f':{len(outs)}' if many else ''} = aten.opaque "
            f'"aten::{name}"({operands}) [{texts}] : ({", ".join(types)}) -> '
            f"{right}\n  %c = aten.clone %r{'#0' if many else ''} : {outs[0]}\n"
            f"  return %c : {outs[0]}\n}}\n")


def gradients(call, tensors):
    """A function that runs forward and backward, or None without a
    derivative."""
    import torch

    inputs = [t.clone().requires_grad_() if t.is_floating_point() else t
              for t in tensors]
    floats = [t for t in inputs if t.requires_grad]
    results = [r for r in call(inputs) if r.requires_grad]
    if not results:
        return None
    given = [torch.randn_like(r) for r in results]

    def run():
        with torch.enable_grad():
            again = [r for r in call(inputs) if r.requires_grad]
            return torch.autograd.grad(again, floats, given, allow_unused=True)
    return run


def bounds(context):
    """Workspaces of opaque operators against the memory profiler's figures."""
    import torch
    from derivatives_cases import measured_workspace
    from plan_interpreter import operator

    torch.set_num_threads(1)
    chunks, cases = [], []
    for i, (name, tensors, args) in enumerate(rows()):
        call = caller(operator("aten::" + name), args)
        chunks.append(function_text(i, name, tensors, args, call(tensors)))
        cases.append((name, tensors, call))
    path = context.path("opaque.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(chunks))
    printed = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                           os.devnull, "--pass-pipeline=builtin.module("
                           "differentiate,print-functions)"])
    functions = {f["name"]: f for f in json.loads(printed)["functions"]}
    wrong, largest = [], 0.0
    for i, (name, tensors, call) in enumerate(cases):
        planned = [k.get("workspace", 0)
                   for k in functions[f"f{i}.joint"]["instructions"]
                   if k["kind"] == "opaque"]
        with torch.no_grad():
            measured = [measured_workspace(lambda: call(tensors))]
        run = gradients(call, tensors)
        if run:
            measured.append(measured_workspace(run))
        for what, most, got in zip(("forward", "backward"), planned, measured):
            largest = max(largest, got / most)
            if got > most:
                wrong.append(f"{name}, {what}: {got} bytes, bound {most}")
    check(not wrong, "\n".join(wrong))
    return f"{len(cases)} operators, at most {largest:.2f} of the bound"
