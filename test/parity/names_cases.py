"""Parameter names, shapes, order and ties equal transformers' own.

configs/ has config.json files as published (values from the model cards), from
1B to 405B; the odd small ones are made here.
"""
import os
import sys

import harness
import jobs
from harness import check

# Billions of parameters as the published model cards count them, so that a
# wrong value in configs/ is noticed too.
PUBLISHED = {
    "llama-2-7b": 6.738, "llama-2-70b": 68.977, "llama-3-8b": 8.030,
    "llama-3.1-8b": 8.030, "llama-3.1-405b": 405.853, "llama-3.2-1b": 1.236,
    "mistral-7b-v0.3": 7.248, "qwen2-1.5b": 1.544, "qwen2.5-72b": 72.706,
    "qwen3-8b": 8.191, "mixtral-8x7b": 46.703, "qwen3-30b-a3b": 30.532,
    "mistral-7b-v0.1": 7.242, "gemma-7b": 8.538,
    "gemma-2-9b": 9.242, "gemma-3-1b": 1.000, "phi-3-mini-4k": 3.821,
    "gpt-neox-20b": 20.555, "falcon-7b": 6.922, "falcon-40b": 41.303,
    "mpt-7b": 6.649, "olmo-2-7b": 7.299,
}

ODD = {
    "one-layer": jobs.variant(num_hidden_layers=1, vocab_size=11,
                              hidden_size=24, intermediate_size=7,
                              num_attention_heads=3, num_key_value_heads=1),
    "head-dim": jobs.variant(head_dim=48, hidden_size=60,
                             num_attention_heads=5, num_key_value_heads=5),
    "biases-tied": jobs.variant(attention_bias=True, mlp_bias=True,
                                tie_word_embeddings=True),
    "qwen3-bias": jobs.variant(architectures=["Qwen3ForCausalLM"],
                               model_type="qwen3", attention_bias=True,
                               mlp_bias=jobs.ABSENT, head_dim=40),
    "old-spelling": jobs.variant(rope_parameters=jobs.ABSENT,
                                 dtype=jobs.ABSENT,
                                 rope_theta=10000.0, rope_scaling=None,
                                 torch_dtype="float32"),
    "defaults": {"model_type": "qwen2", "vocab_size": 100,
                 "architectures": ["Qwen2ForCausalLM"], "hidden_size": 64,
                 "intermediate_size": 100, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 4},
}


def expected(folder):
    """[(name, shape)] of named_parameters(), and {name: [other names]}."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    owners, aliases = {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = owners.setdefault(id(parameter), name)
        if first != name:
            aliases.setdefault(first, []).append(name)
    listed = [(name, list(p.shape)) for name, p in model.named_parameters()]
    return listed, aliases


def compare(context, folder):
    layer = jobs.LAYER_CLASS[model_type(folder)]
    config = jobs.accelerate_config("fsdp", 8, layer, precision="bf16")
    path = jobs.write_job(context.path(), config, "fsdp.yaml")
    plan = harness.plan(context, path, context.path("plan.json"),
                        "--model", folder)
    listed, aliases = expected(folder)
    got = [(p["fqn"], p["shape"]) for p in plan["parameters"]]
    for i, (a, b) in enumerate(zip(got, listed)):
        check(a == b, f"parameter {i} is {a}, transformers has {b}")
    check(len(got) == len(listed),
          f"{len(got)} parameters, transformers has {len(listed)}")
    got_aliases = {p["fqn"]: p["aliases"] for p in plan["parameters"]
                   if p.get("aliases")}
    check(got_aliases == aliases,
          f"ties {got_aliases}, transformers has {aliases}")
    total = 0
    for _, shape in got:
        numel = 1
        for size in shape:
            numel *= size
        total += numel
    return total


def model_type(folder):
    import json

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        return json.load(f)["model_type"]


def published(name, billions):
    def case(context):
        total = compare(context, os.path.join(harness.HERE, "configs", name))
        check(abs(total / 1e9 - billions) < 6e-4,
              f"{total} parameters; the model card says {billions} B")
        return f"{total / 1e9:.3f} B"
    return case


def odd(config):
    def case(context):
        jobs.write_spelled_config(context.path("model"), config)
        return f"{compare(context, context.path('model'))} parameters"
    return case


def fixtures(context):
    """The model folders of the lit tests are as transformers writes them."""
    said = harness.run([sys.executable, os.path.join(
        os.path.dirname(harness.HERE), "fixtures.py"), "--check"], expect=None)
    check(".json" not in said, said)
    return "as saved"


CASES = [("fixtures", fixtures)]
CASES += [(name, published(name, billions))
         for name, billions in PUBLISHED.items()]
CASES += [(name, odd(config)) for name, config in ODD.items()]
