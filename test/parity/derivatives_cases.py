"""Each derivative rule gives autograd's gradients, and each workspace is as
large as the memory profiler measures.

A rule is tested on a small function: its joint function is exported, run
operator by operator without autograd, and compared bit by bit.
"""
import json
import os

import harness
from harness import check

X = "tensor<4x6xf32>"
B = "tensor<6xf32>"


def unary(name):
    return f"  %0 = aten.{name} %x : {X}\n"


def scalar(name, value):
    return f"  %0 = aten.{name} %x, {value} : ({X}) -> {X}\n"


def binary(name):
    return f"  %0 = aten.{name} %x, %b : ({X}, {B}) -> {X}\n"


def rules():
    """name -> (body of f(%x, %b) -> %0, result type, PyTorch's function)."""
    import torch

    a = torch.ops.aten
    rows = {name: (unary(name), X, lambda x, b, f=name: getattr(a, f)(x))
            for name in ("neg", "cos", "sin", "exp", "sqrt", "rsqrt",
                         "reciprocal", "silu", "tanh", "relu", "clone")}
    for how in ("none", "tanh"):
        rows[f"gelu {how}"] = (
            f"  %1 = aten.sub.Scalar %x, 1.0 : ({X}) -> {X}\n"
            f'  %0 = aten.gelu %1, "{how}" : {X}\n', X,
            lambda x, b, how=how: a.gelu(x - 1.0, approximate=how))
    norm = ("  %0, %m, %r = aten.native_layer_norm %x, {0}, [6] "
            "{{eps = 1.0e-5 : f64, stats = f32}} : ({1}) -> "
            f"({X}, tensor<4x1xf32>, tensor<4x1xf32>)\n")
    rows["layer norm"] = (norm.format("%b bias %b", f"{X}, {B}, {B}"), X,
                          lambda x, b: torch.nn.functional.layer_norm(
                              x, (6,), b, b, 1e-5))
    rows["layer norm without bias"] = (
        norm.format("%b", f"{X}, {B}"), X,
        lambda x, b: torch.nn.functional.layer_norm(x, (6,), b, None, 1e-5))
    best, positions = "tensor<4x2xf32>", "tensor<4x2xi64>"
    rows["topk"] = (f"  %0, %i = aten.topk %x, 2, 1 : ({X}) -> "
                    f"({best}, {positions})\n", best,
                    lambda x, b: torch.topk(x, 2, 1).values)
    rows["sort"] = (f"  %0, %i = aten.sort.stable %x, 0, true : ({X}) -> "
                    f"({X}, tensor<4x6xi64>)\n", X,
                    lambda x, b: torch.sort(x, 0, descending=True).values)
    groups = ("tensor<6x4xf32>", "tensor<3x4x4xf32>", "tensor<3xi32>")
    rows["products by groups"] = (
        f"  %a = aten.view %x, [6, 4] : ({X}) -> {groups[0]}\n"
        f"  %c = aten.cat %x, %x dim 0 : ({X}, {X}) -> tensor<8x6xf32>\n"
        f"  %w = aten.view %c, [3, 4, 4] : (tensor<8x6xf32>) -> {groups[1]}\n"
        f"  %t = aten.transpose.int %w, 1, 2 : ({groups[1]}) -> {groups[1]}\n"
        f"  %e = aten.arange.start_step [2 : 7 : 2], i32 : {groups[2]}\n"
        f"  %0 = aten._grouped_mm %a, %t, %e : ({', '.join(groups)}) -> "
        f"{groups[0]}\n", groups[0],
        lambda x, b: torch._grouped_mm(
            x.view(6, 4), torch.cat([x, x]).view(3, 4, 4).transpose(1, 2),
            torch.tensor([2, 4, 6], dtype=torch.int32)))
    for name, value in (("add.Scalar", 1.5), ("sub.Scalar", 2.5),
                        ("rsub.Scalar", 1.5), ("mul.Scalar", -0.3),
                        ("div.Scalar", 7.0), ("pow.Tensor_Scalar", 2),
                        ("pow.Tensor_Scalar", 3), ("pow.Tensor_Scalar", 0.5)):
        packet, overload = name.split(".")
        rows[f"{name} {value}"] = (
            scalar(name, value), X,
            lambda x, b, p=packet, o=overload, v=value:
            getattr(getattr(a, p), o)(x, v))
    rows["pow.Scalar"] = (scalar("pow.Scalar", "3.0"), X,
                          lambda x, b: a.pow.Scalar(3.0, x))
    for name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"):
        packet, overload = name.split(".")
        rows[name] = (binary(name), X,
                      lambda x, b, p=packet, o=overload:
                      getattr(getattr(a, p), o)(x, b))
    rows["x twice"] = (
        f"  %0 = aten.mul.Tensor %x, %x : ({X}, {X}) -> {X}\n", X,
        lambda x, b: x * x)
    rows["where"] = (
        f"  %1 = aten.gt.Scalar %x, 1.0 : ({X}) -> tensor<4x6xi1>\n"
        f"  %0 = aten.where.self %1, %x, %b : "
        f"(tensor<4x6xi1>, {X}, {B}) -> {X}\n", X,
        lambda x, b: torch.where(x > 1.0, x, b))
    rows["casts"] = (
        f"  %1 = aten._to_copy %x, bf16 : ({X}) -> tensor<4x6xbf16>\n"
        f"  %0 = aten.mul.Tensor %1, %b : (tensor<4x6xbf16>, {B}) -> {X}\n",
        X, lambda x, b: x.to(torch.bfloat16) * b)
    rows["views"] = (
        f"  %1 = aten.t %x : ({X}) -> tensor<6x4xf32>\n"
        "  %2 = aten.unsqueeze %1, 1 : (tensor<6x4xf32>) -> tensor<6x1x4xf32>\n"
        "  %3 = aten.permute %2, [2, 1, 0] : (tensor<6x1x4xf32>) -> "
        "tensor<4x1x6xf32>\n"
        "  %4 = aten.expand %3, [4, 5, 6] : (tensor<4x1x6xf32>) -> "
        "tensor<4x5x6xf32>\n"
        "  %0 = aten.mul.Tensor %4, %b : (tensor<4x5x6xf32>, "
        f"{B}) -> tensor<4x5x6xf32>\n", "tensor<4x5x6xf32>",
        lambda x, b: x.t().unsqueeze(1).permute(2, 1, 0).expand(4, 5, 6) * b)
    rows["slices"] = (
        f"  %1 = aten.slice.Tensor %x, 1 [1 : 5 : 2] : ({X}) -> "
        "tensor<4x2xf32>\n"
        f"  %2 = aten.slice.Tensor %x, 1 [0 : 3 : 1] : ({X}) -> "
        "tensor<4x3xf32>\n"
        "  %0 = aten.cat %1, %2, %1 dim 1 : (tensor<4x2xf32>, "
        "tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x7xf32>\n",
        "tensor<4x7xf32>",
        lambda x, b: (lambda odd: torch.cat((odd, x[:, 0:3], odd), 1))(
            x[:, 1:5:2]))
    for name, torch_name in (("sum.dim_IntList", "sum"), ("mean.dim", "mean")):
        rows[name] = (
            f"  %1 = aten.{name} %x, [0], false : ({X}) -> {B}\n"
            f"  %0 = aten.mul.Tensor %1, %b : ({B}, {B}) -> {B}\n", B,
            lambda x, b, f=torch_name: getattr(x, f)(0) * b)
    rows["mm"] = (
        f"  %1 = aten.t %x : ({X}) -> tensor<6x4xf32>\n"
        f"  %0 = aten.mm %1, %x : (tensor<6x4xf32>, {X}) -> tensor<6x6xf32>\n",
        "tensor<6x6xf32>", lambda x, b: x.t().mm(x))
    rows["addmm"] = (
        f"  %1 = aten.t %x : ({X}) -> tensor<6x4xf32>\n"
        f"  %0 = aten.addmm %b, %1, %x : ({B}, tensor<6x4xf32>, {X}) -> "
        "tensor<6x6xf32>\n", "tensor<6x6xf32>",
        lambda x, b: torch.addmm(b, x.t(), x))
    rows["_log_softmax"] = (
        f"  %0 = aten._log_softmax %x, 1 : {X}\n", X,
        lambda x, b: torch.log_softmax(x, 1))
    rows["_softmax"] = (
        f"  %0 = aten._softmax %x, 1 : {X}\n", X,
        lambda x, b: torch.softmax(x, 1))
    rows["bmm"] = (
        f"  %1 = aten.view %x, [2, 2, 6] : ({X}) -> tensor<2x2x6xf32>\n"
        "  %2 = aten.transpose.int %1, 1, 2 : (tensor<2x2x6xf32>) -> "
        "tensor<2x6x2xf32>\n"
        "  %0 = aten.bmm %2, %1 : (tensor<2x6x2xf32>, tensor<2x2x6xf32>) -> "
        "tensor<2x6x6xf32>\n", "tensor<2x6x6xf32>",
        lambda x, b: (lambda y: y.transpose(1, 2).bmm(y))(x.view(2, 2, 6)))
    return rows


def joint(context, body, result):
    path = context.path("function.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"func.func private @f(%x: {X}, %b: {B}) -> {result} {{\n"
                f"{body}  return %0 : {result}\n}}\n")
    printed = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                           os.devnull, "--pass-pipeline=builtin.module("
                           "differentiate,print-functions)"])
    functions = {f["name"]: f for f in json.loads(printed)["functions"]}
    return functions["f.joint"]


def derivatives(context):
    import torch
    from plan_interpreter import execute

    torch.set_num_threads(1)
    torch.manual_seed(5)
    count = 0
    for name, (body, result, function) in rules().items():
        x = (torch.rand(4, 6) * 2 + 0.2).requires_grad_()
        b = (torch.rand(6) * 2 + 0.2).requires_grad_()
        expected = function(x, b)
        grad = torch.randn_like(expected)
        expected.backward(grad)
        outputs, _ = execute(joint(context, body, result),
                             [x.detach(), b.detach(), grad], {}, {})
        wanted = [expected] + [v.grad for v in (x, b) if v.grad is not None]
        check(len(outputs) == len(wanted),
              f"{name}: {len(outputs) - 1} gradients, not {len(wanted) - 1}")
        for got, want in zip(outputs, wanted):
            check(torch.equal(got, want),
                  f"{name}: off by {(got - want).abs().max().item():.1e}")
        count += 1
    return f"{count} rules, bit-equal"


def measured_workspace(function):
    """Bytes beyond the results that are allocated inside, each rounded."""
    from plan_interpreter import aligned
    from torch.profiler import ProfilerActivity, profile

    function()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        kept = function()
    events = [e for e in p.profiler.kineto_results.events()
              if e.name() == "[memory]"]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        size = event.nbytes()
        live += aligned(size) if size > 0 else -aligned(-size)
        peak = max(peak, live)
    del kept
    return peak - live


MIXTURE = dict(model_type="mixtral", num_local_experts=5, hidden_size=48,
               num_experts_per_tok=3, output_router_logits=True,
               sliding_window=None)


def workspaces(context, changes=dict(attention_bias=True)):
    """Every instruction of two layers and a head, forward and backward."""
    import plan_interpreter
    import torch
    import transformers
    from functions_cases import Graph, Trainer, export, read_bindings
    from hf_numerics_cases import BASE

    torch.set_num_threads(1)
    folder = context.path("model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as f:
        json.dump({**BASE, **changes, "num_hidden_layers": 1,
                   "max_position_embeddings": 256}, f)
    text = harness.run([context.binary("hf-model-dump"), folder, "2", "200",
                        "--mlir"])
    graph = Graph(text)
    graph.bindings, graph.input_gradients = read_bindings(context, text,
                                                          "pointwise")
    functions = export(context, text, "pointwise")
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(folder))
    parameters = {n: p.detach().clone() for n, p in model.named_parameters()}

    measured, call = [], plan_interpreter.call

    def measuring(op, args):
        if op._schema.is_mutable:  # repeating it would change its result
            measured.append(None)
        else:
            measured.append(measured_workspace(lambda: call(op, args)))
        return call(op, args)

    wrong, count, execute = [], 0, plan_interpreter.execute

    def checking(function, *arguments):
        nonlocal count
        measured.clear()
        result = execute(function, *arguments)
        for instruction, got in zip(function["instructions"], measured):
            want = instruction.get("workspace", 0)
            # Results that nobody reads are freed at once.
            unused = -1 in instruction.get("results", [])
            if got is None or unused:
                continue
            count += 1
            if got != want:
                wrong.append(f"{function['name']} {instruction['op']}: "
                             f"{want} planned, {got} measured")
        return result

    plan_interpreter.call, plan_interpreter.execute = measuring, checking
    try:
        ids = torch.randint(BASE["vocab_size"], (2, 200))
        Trainer(graph, functions, functions, parameters).run(ids, ids)
    finally:
        plan_interpreter.call, plan_interpreter.execute = call, execute
    check(not wrong, "\n".join(wrong[:20]))
    return f"{count} instructions"


CASES = [("all rules", derivatives), ("workspaces", workspaces),
         ("workspaces of experts",
          lambda context: workspaces(context, MIXTURE))]
