"""The functions of a plan compute what transformers computes.

The model phase is differentiated, checkpointed and split, and the functions
are exported as a plan holds them. They run here operator by operator, without
autograd: forward, then backward from the loss. Loss and every gradient are
compared with transformers' under autograd, in fp32.
"""
import json
import os
import re

import harness
from harness import check
from hf_numerics_cases import (BASE, GPT2, GPT2_MODELS, LLAMA3,
                               least_gradient, relative)

PIPELINE = ("builtin.module(apply-precision{compute=%s},"
            "select-kernels{device=cpu},differentiate,select-saved-tensors{mode=%s},"
            "partition,print-functions{accumulate=%s gradients=%s})")
CALL = re.compile(r"((?:%\w+(?::\d+)?) = )?sharding\.call @([\w.]+)\((.*?)\) "
                  r'at "([^"]*)"')


def export(context, text, mode, accumulate=False, compute="f32"):
    """Functions by name, as the plan holds them."""
    path = context.path("model.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    pipeline = PIPELINE % (compute, mode, str(accumulate).lower(), compute)
    printed = harness.run([context.binary("accel-opt"), "opt", path,
                           "-o", os.devnull, "--pass-pipeline=" + pipeline])
    return {f["name"]: f for f in json.loads(printed)["functions"]}


class Graph:
    """The calls of sharding.graph, in order."""

    def __init__(self, text):
        body = text[text.index("sharding.graph"):]
        self.inputs = re.findall(r"(%[\w.]+): tensor", body.splitlines()[0])
        self.calls = []
        for line in body.splitlines():
            found = CALL.search(line)
            if found:
                result = found[1].split(" = ")[0]
                self.calls.append((result, found[2],
                                   found[3].split(", "), found[4]))
        self.loss = re.search(r"sharding\.return (%\w+)", body)[1]


class Trainer:
    """One forward and backward over the graph."""

    def __init__(self, graph, functions, accumulating, parameters):
        self.graph, self.functions = graph, functions
        self.accumulating, self.parameters = accumulating, parameters
        self.gradients = {}
        self.peaks = {}

    def run(self, *inputs):
        import torch

        values, frames = dict(zip(self.graph.inputs, inputs)), []
        for result, name, operands, path in self.graph.calls:
            trained = name + ".forward" in self.functions
            function = self.functions[name + ".forward" if trained else name]
            given = [values[o] for o in operands]
            returned = self.call(function, path, given)
            count = len(self.functions[name]["outputs"])
            bundle = result.split(":")[0]
            names = [f"{bundle}#{i}" if count > 1 else bundle
                     for i in range(count)]
            values.update(zip(names, returned))
            if trained:
                frames.append((name, path, operands, given, names,
                               returned[:count], returned[count:]))
        loss = values[self.graph.loss]
        tangents = {self.graph.loss: torch.ones(())}
        for frame in reversed(frames):
            self.backward(frame, tangents)
        return loss

    def call(self, function, path, inputs):
        import torch
        from plan_interpreter import execute

        def fqn(name):
            return f"{path}.{name}" if path else name
        parameters = {name: self.parameters[fqn(name)]
                      for _, name in function["params"]}
        gradients = {}
        for _, name in function["gradients"]:
            self.gradients.setdefault(
                fqn(name), torch.full_like(self.parameters[fqn(name)],
                                           float("nan")))
            gradients[name] = self.gradients[fqn(name)]
        outputs, peak = execute(function, inputs, parameters, gradients)
        self.peaks[function["name"]] = peak
        return outputs

    def backward(self, frame, tangents):
        import torch

        name, path, operands, inputs, names, outputs, saved = frame
        function = self.functions[name + ".backward"]
        written = [(f"{path}.{n}" if path else n) in self.gradients
                   for _, n in function["gradients"]]
        if any(written):  # a tied parameter: the second gradient is added
            function = self.accumulating[name + ".backward"]
            for (_, n), old in zip(function["gradients"], written):
                if not old:  # its first gradient is added to zeros
                    full = f"{path}.{n}" if path else n
                    self.gradients[full] = torch.zeros_like(
                        self.parameters[full])
        given = []
        for kind, index in self.bindings(name, function):
            given.append({"input": inputs, "output": outputs,
                          "saved": saved}[kind][index]
                         if kind != "tangent" else tangents[names[index]])
        returned = self.call(function, path, given)
        wanted = self.graph.input_gradients[name + ".backward"]
        for index, gradient in zip(wanted, returned, strict=True):
            check(operands[index] not in tangents,
                  f"{operands[index]} has two gradients")
            tangents[operands[index]] = gradient

    def bindings(self, name, function):
        """What each input is bound to, from the printed signature."""
        return self.graph.bindings[name + ".backward"]


def print_joint(context, text, mode, compute="f32"):
    """The module with its forward and backward functions."""
    path = context.path("model.mlir")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    pipeline = PIPELINE % (compute, mode, "false", compute)
    pipeline = pipeline[:pipeline.index(",print-functions")] + ")"
    return harness.run([context.binary("accel-opt"), "opt", path,
                        "--pass-pipeline=" + pipeline])


def read_bindings(context, text, mode, compute="f32"):
    return bindings_of(print_joint(context, text, mode, compute))


def bindings_of(printed):
    """By backward function: what its inputs are, which inputs' gradients its
    results are."""
    found, gradients = {}, {}
    for line in printed.splitlines():
        signature = re.search(r"@([\w.]+\.backward)\((.*?)\) (?:->|\{)(.*)",
                              line)
        if signature:
            gradients[signature[1]] = [int(index) for index in re.findall(
                r"#aten\.binding<input_grad (\d+)>", signature[3])]
            found[signature[1]] = [
                (kind, int(index)) for kind, index in
                re.findall(r"#aten\.binding<(\w+) (\d+)>", signature[2])
                if kind != "param"]
    return found, gradients


def compare(context, changes, mode="pointwise", batch=2, length=24,
            compute="f32", base=BASE):
    import torch
    import transformers

    config = {**base, **changes}
    folder = context.path("model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as f:
        json.dump(config, f)
    text = harness.run([context.binary("hf-model-dump"), folder, str(batch),
                        str(length), "--mlir"])
    graph = Graph(text)
    graph.bindings, graph.input_gradients = read_bindings(context, text, mode,
                                                          compute)
    # bf16 rounds to 8 bits; sums in another order differ by a few of those.
    dtype, bound = {"f32": (torch.float32, 1e-5),
                    "bf16": (torch.bfloat16, 3e-2)}[compute]

    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(folder))
    for parameter in model.parameters():  # frequencies stay in fp32
        parameter.data = parameter.data.to(dtype)
    with torch.no_grad():  # also biases and norms get values that matter
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
        buffers = [model.get_buffer(name[1:]) for name in graph.inputs[2:]]
        for buffer in buffers:
            buffer.add_(torch.randn_like(buffer) * 0.05)
    parameters = {name: p.detach().clone()
                  for name, p in model.named_parameters()}
    ids = torch.randint(config["vocab_size"], (batch, length))
    labels = torch.randint(config["vocab_size"], (batch, length))
    labels[0, 3:6] = -100

    model.train()
    expected = model(input_ids=ids, labels=labels, shift_labels=labels,
                     use_cache=False).loss
    expected.backward()
    trainer = Trainer(graph, export(context, text, mode, False, compute),
                      export(context, text, mode, True, compute), parameters)
    loss = trainer.run(ids, labels, *buffers)

    check(loss.shape == () and loss.dtype == torch.float32, "0-d fp32 loss")
    worst = relative(loss, expected.detach())
    equal = loss.item() == expected.item()
    check(worst < bound, f"loss {loss.item()}, transformers {expected.item()}")
    different, least = [], least_gradient(model)
    for name, parameter in model.named_parameters():
        got = trainer.gradients.get(name)
        check(got is not None, f"{name} has no gradient")
        error = relative(got, parameter.grad, least)
        check(error < bound, f"gradient of {name} is off by {error:.1e}")
        worst = max(worst, error)
        if not torch.equal(got, parameter.grad):
            different.append(name)
    if equal and not different:
        return "bit-equal"
    return f"within {worst:.1e}; not bit-equal: {', '.join(different[:3])}"


MODELS = {
    "llama": {},
    "multi-head": dict(num_key_value_heads=6),
    "biases": dict(attention_bias=True, mlp_bias=True),
    "tied": dict(tie_word_embeddings=True),
    "padding": dict(pad_token_id=5),
    "llama 3.1": dict(rope_scaling=LLAMA3, rope_theta=100.0),
    "qwen2": dict(model_type="qwen2"),
    "qwen3": dict(model_type="qwen3", head_dim=12),
    **GPT2_MODELS,
}

CASES = [(name, lambda context, changes=changes: compare(context, changes))
         for name, changes in MODELS.items()]
CASES += [(f"{mode} checkpointing",
           lambda context, mode=mode: compare(context, {}, mode))
          for mode in ("none", "full")]
CASES += [(f"gpt2 {mode} checkpointing",
           lambda context, mode=mode: compare(context, GPT2, mode))
          for mode in ("none", "full")]
CASES += [("gpt2 bf16",
           lambda context: compare(context, GPT2, compute="bf16"))]
CASES += [("bf16", lambda context: compare(context, {}, compute="bf16"))]
