"""Runs a whole sharding.graph forward and backward, call by call.

The functions are those of a plan (plan_interpreter.py); what every argument
and result of a backward function is bound to is read from the printed module,
so values that several segments read, and several input gradients, work.
"""
import json
import os
import re

import harness
from plan_interpreter import execute

PASSES = ("apply-precision{compute=f32},select-kernels{device=cpu},"
          "differentiate,select-saved-tensors{mode=%s},partition")
CALL = re.compile(r"((?:%[\w]+(?::\d+)?) = )?sharding\.call @([\w.]+)\((.*?)\) "
                  r'at "([^"]*)"')
BINDING = re.compile(r"#aten\.binding<(\w+) (\d+)>")


def optimise(context, path, passes, *more):
    return harness.run([context.binary("accel-opt"), "opt", path,
                        "--pass-pipeline=builtin.module(" + passes + ")",
                        *more])


def printed_json(output):
    """What was printed behind remarks."""
    return json.loads(output[re.search(r"^\{", output, re.M).start():])


class Graph:
    def __init__(self, context, text, mode="pointwise", passes=None):
        path = context.path("model.mlir")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        passes = passes or PASSES % mode
        printed = optimise(context, path, passes)
        self.read(printed)
        self.functions, self.accumulating = (
            {f["name"]: f for f in printed_json(optimise(
                context, path,
                f"{passes},print-functions{{accumulate={flag} gradients=f32}}",
                "-o", os.devnull))["functions"]}
            for flag in ("false", "true"))

    def read(self, text):
        body = text[text.index("sharding.graph"):]
        self.inputs = re.findall(r"%(\w+): tensor", body.splitlines()[0])
        self.calls = []
        for line in body.splitlines():
            found = CALL.search(line)
            if found:
                operands = [o.strip("% ") for o in found[3].split(",")
                            if o.strip()]
                result = (found[1] or "").split(" = ")[0].strip("% ")
                self.calls.append((result, found[2], operands, found[4]))
        self.loss = re.search(r"sharding\.return %(\w+)", body)[1]
        self.bindings = {}
        for line in text.splitlines():
            found = re.search(r"@([\w.]+\.backward)\((.*?)\) -> (.*) \{$",
                              line)
            if found:
                self.bindings[found[1]] = [
                    [(kind, int(index)) for kind, index in
                     BINDING.findall(part) if not kind.startswith("param")]
                    for part in found.group(2, 3)]

    def train(self, inputs, parameters):
        """(loss, gradients by parameter)."""
        return Run(self, parameters).train(inputs)


class Run:
    def __init__(self, graph, parameters):
        self.graph, self.parameters = graph, parameters
        self.gradients, self.tangents = {}, {}

    def train(self, inputs):
        graph = self.graph
        values = {name: inputs[name] for name in graph.inputs}
        frames = []
        for result, name, operands, path in graph.calls:
            trained = name + ".forward" in graph.functions
            function = graph.functions[name + ".forward" if trained else name]
            given = [values[o] for o in operands]
            returned = self.call(function, path, given)
            count = len(graph.functions[name]["outputs"])
            bundle = result.split(":")[0]
            names = ([bundle] if count == 1 else
                     [f"{bundle}#{i}" for i in range(count)])
            values.update(zip(names, returned))
            if trained:
                frames.append((name, path, operands, given, names,
                               returned[:count], returned[count:]))
        self.tangents[graph.loss] = self.like(values[graph.loss], 1.0)
        for frame in reversed(frames):
            self.backward(*frame)
        return values[graph.loss], self.gradients

    def fqn(self, path, name):
        return f"{path}.{name}" if path else name

    def call(self, function, path, inputs):
        parameters = {name: self.parameters[self.fqn(path, name)]
                      for _, name in function["params"]}
        gradients = {}
        for _, name in function["gradients"]:
            full = self.fqn(path, name)
            self.gradients.setdefault(
                full, self.like(self.parameters[full], float("nan")))
            gradients[name] = self.gradients[full]
        return self.execute(function, inputs, parameters, gradients)

    def execute(self, function, inputs, parameters, gradients):
        return execute(function, inputs, parameters, gradients)[0]

    def like(self, tensor, value):
        import torch
        return torch.full_like(tensor, value)

    def backward(self, name, path, operands, inputs, results, outputs, saved):
        name += ".backward"
        function = self.graph.functions[name]
        full = [self.fqn(path, n) for _, n in function["gradients"]]
        if any(n in self.gradients for n in full):
            function = self.graph.accumulating[name]
            for n in full:
                self.gradients.setdefault(
                    n, self.like(self.parameters[n], 0.0))
        bound = {"input": lambda i: inputs[i], "output": lambda i: outputs[i],
                 "saved": lambda i: saved[i],
                 "tangent": lambda i: self.tangents[results[i]],
                 "carry": lambda i: self.tangents[operands[i]]}
        arguments, gradients = self.graph.bindings[name]
        given = [bound[kind](index) for kind, index in arguments]
        for (kind, index), value in zip(gradients,
                                        self.call(function, path, given),
                                        strict=True):
            carried = ("carry", index) in arguments
            assert kind == "input_grad", kind
            assert (operands[index] in self.tangents) == carried, operands
            self.tangents[operands[index]] = value
