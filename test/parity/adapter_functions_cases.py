"""Adapters as axolotl computes them: what autograd saves of each layer, and the
peak of a step."""
import json
import os
import re

import adapter_cases
import graph_runner
import harness
import jobs
import saved_tensors
import tracked_step
from executor_cases import SINGLE, adapted_case, dump, fsdp2_case, near
from harness import check

FUNCTIONS = {  # model, LoraConfig
    "all-linear": ("gqa", dict(r=4, target_modules="all-linear")),
    "dropout": ("gqa", dict(r=4, lora_dropout=0.1,
                            target_modules="all-linear")),
    "biased": ("mha-bias", dict(r=3, use_rslora=True,
                                target_modules="all-linear")),
    "norms": ("qwen3", dict(r=4, target_modules="all-linear")),
    "gelu": ("gemma3", dict(r=4, target_modules="all-linear")),
    # Queries and keys have an adapter, values have none: PEFT's modules.
    "in-part": ("gqa", dict(r=4, target_modules=[
        "q_proj", "k_proj", "o_proj", "up_proj"])),
}


def peak_case(model, batch, length, dtype, **options):
    def compare(context):
        folder = context.path("model")
        jobs.write_config(folder, dict(jobs.MODELS[model], dtype=dtype))
        adapter_cases.write_adapter(folder, options)
        saved_tensors.mark(folder)
        want = harness.in_python(
            tracked_step.adapted, [({}, (folder, batch, length, dtype))],
            context.path("torch.out"), timeout=240)[0]["Total"]
        got = dump(context, SINGLE, folder, batch, length, "single",
                   options=["functions"])
        return near(got, want, model, batch, length)
    return compare


LAYER = os.path.join(harness.ROOT, "test", "Passes", "Inputs",
                     "decoder-layer.mlir")
SIZES = re.compile(r'sharding\.param "([^"]+)" : tensor<([^>]*)xf32>')


def values_case(context):
    """The functions' loss and gradients are those of PEFT's layers."""
    import torch

    with open(LAYER, encoding="utf-8") as f:
        text = f.read()
    results = []
    for activation in ("silu", "gelu"):
        module = text
        if activation == "gelu":
            module = re.sub(r"aten\.silu (%12) :", r'aten.gelu \1, "none" :',
                            text)
            check(module != text, "the layer's activation is another one")
        for rank in (4, 1):
            folder = context.path(f"{activation}-{rank}")
            os.makedirs(folder)
            with open(f"{folder}/adapter_config.json", "w") as f:
                json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": 3,
                           "target_modules": ["q_proj", "k_proj", "v_proj",
                                              "o_proj", "gate_proj", "up_proj",
                                              "down_proj"]}, f)
            found = []
            for functions in ("false", "true"):
                before = (f"apply-adapter{{config={folder} "
                          f"functions={functions}}}")
                passes = f"{before},{graph_runner.PASSES % 'none'}"
                printed = graph_runner.optimise(context, LAYER, before)
                check(("aten.lora_mlp" in printed) == (functions == "true"),
                      "the functions are not where they should be")
                graph = graph_runner.Graph(context, module, passes=passes)
                generator = torch.Generator().manual_seed(1)
                draw = lambda *sizes: torch.randn(
                    sizes, generator=generator) * 0.3
                parameters = {name: draw(*map(int, sizes.split("x")))
                              for name, sizes in SIZES.findall(printed)}
                found.append(graph.train(
                    {"x": draw(8, 16), "labels": torch.arange(8)}, parameters))
            (loss, want), (other, got) = found
            check(torch.allclose(loss, other, rtol=1e-6), f"{loss}, {other}")
            check(want.keys() == got.keys() and len(got) == 14,
                  f"gradients of {sorted(got)}")
            for name, gradient in want.items():
                distance = (gradient - got[name]).abs().max()
                check(distance <= 1e-5 * gradient.abs().max(),
                      f"{name} is off by {distance}")
            results.append(len(got))
    return f"{sum(results)} gradients equal"


CASES = [
    ("values", values_case),
    ("saved", adapted_case("float32", adapted=FUNCTIONS, functions=True)),
    ("saved-bf16", adapted_case("bfloat16", adapted=FUNCTIONS,
                                functions=True)),
    ("peak", peak_case("gqa", 8, 128, "float32", r=4,
                       target_modules="all-linear")),
    ("peak-fsdp2", fsdp2_case("wide", 2, 64, 4, False, functions=True,
                              adapter=dict(r=64, target_modules="all-linear"))),
    ("peak-bf16", peak_case("gqa", 8, 128, "bfloat16", r=4, lora_dropout=0.1,
                            target_modules="all-linear")),
]
