"""Modules, parameters, initial values and ties equal transformers' own.

names_cases.py looks at the plan; this compares what config.json alone makes
(hf-dump, a test binary) with the model that transformers builds on the meta
device: module tree with classes, parameters in order, ties, the standard
deviation of fresh weights, and that both sides refuse the same mistakes.

  test/parity/hf_names.py [--hf-dump PATH]
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

BASE = dict(model_type="llama", vocab_size=97, hidden_size=48,
            intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=256)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=64)


def variant(**changes):
    return {k: v for k, v in {**BASE, **changes}.items() if v != "absent"}


ACCEPTED = {
    "plain": variant(),
    "one head": variant(num_attention_heads=1, num_key_value_heads=1),
    "multi-head by absence": variant(num_key_value_heads="absent"),
    "multi-head by null": variant(num_key_value_heads=None),
    "attention bias": variant(attention_bias=True),
    "MLP bias": variant(mlp_bias=True),
    "tied": variant(tie_word_embeddings=True),
    "tied with biases": variant(tie_word_embeddings=True, mlp_bias=True,
                                attention_bias=True),
    "head_dim": variant(head_dim=10),
    "head_dim null": variant(head_dim=None),
    "padding": variant(pad_token_id=3),
    "padding from the end": variant(pad_token_id=-1),
    "initializer_range": variant(initializer_range=0.1),
    "initializer_range 0": variant(initializer_range=0.0),
    "llama 3.1": variant(rope_scaling=LLAMA3, rope_theta=500000.0),
    "llama 3.1, new": variant(rope_parameters={**LLAMA3,
                                               "rope_theta": 500000.0}),
    "linear": variant(rope_scaling={"type": "linear", "factor": 2.0}),
    "swish": variant(hidden_act="swish"),
    "architectures": variant(architectures=["LlamaForCausalLM"]),
    "mistral": variant(model_type="mistral", sliding_window=None),
    "mistral head_dim": variant(model_type="mistral", sliding_window=None,
                                hidden_size=50, head_dim=12),
    "mistral default heads": variant(model_type="mistral", hidden_size=64,
                                     num_key_value_heads="absent",
                                     num_attention_heads=16,
                                     sliding_window=None),
    "mistral tied": variant(model_type="mistral", sliding_window=None,
                            tie_word_embeddings=True),
    "qwen2": variant(model_type="qwen2"),
    "qwen2 tied": variant(model_type="qwen2", tie_word_embeddings=True),
    "qwen2 ignored bias": variant(model_type="qwen2", attention_bias=True),
    "qwen2 window off": variant(model_type="qwen2", use_sliding_window=False,
                                sliding_window=128, max_window_layers=0),
    "qwen2 window above": variant(model_type="qwen2", use_sliding_window=True,
                                  sliding_window=128, max_window_layers=2),
    "qwen3": variant(model_type="qwen3"),
    "qwen3 head_dim": variant(model_type="qwen3", head_dim=8),
    "qwen3 bias": variant(model_type="qwen3", attention_bias=True),
    "qwen3 layer types": variant(model_type="qwen3",
                                 layer_types=["full_attention"] * 2),
}
MIXTRAL = variant(model_type="mixtral", num_local_experts=5, hidden_size=60)
QWEN3_MOE = variant(model_type="qwen3_moe", num_experts=6, hidden_size=44,
                    moe_intermediate_size=12, num_experts_per_tok=3,
                    head_dim=14, num_hidden_layers=4)
ACCEPTED.update({
    "mixtral": MIXTRAL,
    "mixtral tied": {**MIXTRAL, "tie_word_embeddings": True, "head_dim": None},
    "mixtral other name": {**MIXTRAL, "num_local_experts": 3,
                           "num_experts": 3},
    "mixtral window": {**MIXTRAL, "sliding_window": 128},
    "mixtral initializer_range": {**MIXTRAL, "initializer_range": 0.1},
    "qwen3_moe": QWEN3_MOE,
    "qwen3_moe bias": {**QWEN3_MOE, "attention_bias": True},
    "qwen3_moe steps": {**QWEN3_MOE, "decoder_sparse_step": 2},
    "qwen3_moe dense layers": {**QWEN3_MOE, "mlp_only_layers": [0, 2]},
    "qwen3_moe dense layers by null": {**QWEN3_MOE, "mlp_only_layers": None},
    "qwen3_moe no experts": {**QWEN3_MOE, "num_experts": 0},
    "qwen3_moe window off": {**QWEN3_MOE, "sliding_window": 8,
                             "use_sliding_window": False},
})
DEEPSEEK_V3 = dict(
    model_type="deepseek_v3", vocab_size=97, hidden_size=48,
    intermediate_size=52, moe_intermediate_size=20, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=4, n_routed_experts=6,
    n_group=3, topk_group=2, num_experts_per_tok=3, kv_lora_rank=16,
    q_lora_rank=20, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=10,
    first_k_dense_replace=1, max_position_embeddings=64)
ACCEPTED.update({
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v3 tied": {**DEEPSEEK_V3, "tie_word_embeddings": True},
    "deepseek_v3 dense": {**DEEPSEEK_V3, "first_k_dense_replace": 3},
    "deepseek_v3 queries whole": {**DEEPSEEK_V3, "q_lora_rank": None},
    "deepseek_v3 two shared": {**DEEPSEEK_V3, "n_shared_experts": 2},
})
GPT_OSS = dict(
    model_type="gpt_oss", vocab_size=97, hidden_size=44, intermediate_size=20,
    num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    head_dim=14, num_local_experts=5, num_experts_per_tok=2,
    max_position_embeddings=64)
QWEN2_MOE = {**QWEN3_MOE, "model_type": "qwen2_moe",
             "shared_expert_intermediate_size": 20}
ACCEPTED.update({
    "gpt_oss": GPT_OSS,
    "gpt_oss tied, no bias": {**GPT_OSS, "tie_word_embeddings": True,
                              "attention_bias": False},
    "gpt_oss initializer_range": {**GPT_OSS, "initializer_range": 0.1},
    "qwen2_moe": QWEN2_MOE,
    "qwen2_moe no bias": {**QWEN2_MOE, "qkv_bias": False},
    "qwen2_moe steps": {**QWEN2_MOE, "decoder_sparse_step": 2},
    "qwen2_moe dense layers": {**QWEN2_MOE, "mlp_only_layers": [0, 2]},
})
GPT2 = dict(model_type="gpt2", vocab_size=97, n_embd=48, n_layer=2, n_head=6,
            n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
ACCEPTED.update({
    "gpt2": GPT2,
    "gpt2 untied": {**GPT2, "tie_word_embeddings": False},
    "gpt2 n_inner": {**GPT2, "n_inner": 50, "n_head": 3},
    "gpt2 n_inner null": {**GPT2, "n_inner": None},
    "gpt2 activation": {**GPT2, "activation_function": "relu"},
    "gpt2 initializer_range": {**GPT2, "initializer_range": 0.1},
    "gpt2 architectures": {**GPT2, "architectures": ["GPT2LMHeadModel"]},
    "gpt2 common names": dict(model_type="gpt2", hidden_size=40,
                              num_hidden_layers=1, num_attention_heads=5,
                              max_position_embeddings=33, resid_pdrop=0,
                              embd_pdrop=0, attn_pdrop=0),
})
# Every size left to the classes' defaults, but few layers.
for family in ("llama", "qwen2", "qwen3", "mixtral", "qwen2_moe", "qwen3_moe",
               "deepseek_v3"):
    ACCEPTED[f"{family} defaults"] = {"model_type": family,
                                      "num_hidden_layers": 1}
ACCEPTED["mistral defaults"] = {"model_type": "mistral",
                                "num_hidden_layers": 1, "sliding_window": None}

# transformers fails on these too, at the latest when it builds the model.
REFUSED = {
    "experts in words": {**MIXTRAL, "num_local_experts": "many"},
    "layers in words": {**QWEN3_MOE, "mlp_only_layers": ["first"]},
    "a step of 0": {**QWEN3_MOE, "decoder_sparse_step": 0},
    "gpt2 heads that do not divide": {**GPT2, "n_head": 5},
    "heads that do not divide": variant(num_attention_heads=5,
                                        num_key_value_heads=1),
    "a size in words": variant(hidden_size="48"),
    "a fractional size": variant(hidden_size=48.5),
    "a negative size": variant(hidden_size=-48),
    "padding outside": variant(pad_token_id=97),
    "no model type": variant(model_type="absent"),
    "bias in words": variant(attention_bias="yes"),
    "odd head_dim": variant(head_dim=7),
}


def described(transformers, torch, folder):
    """What transformers makes, in hf-dump's lines."""
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    lines = [("module", name, type(module).__name__)
             for name, module in model.named_modules()]
    owners, aliases = {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = owners.setdefault(id(parameter), name)
        if first != name:
            aliases.setdefault(first, []).append(name)
    for name, parameter in model.named_parameters():
        lines.append(("param", name, tuple(parameter.shape),
                      tuple(aliases.get(name, []))))
    return lines


def dumped(binary, folder):
    """(exit code, lines, initializers, stderr) of hf-dump."""
    done = subprocess.run([binary, folder], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    lines, inits = [], {}
    for line in done.stdout.splitlines():
        fields = line.split("\t")
        if fields[0] == "module":
            lines.append(tuple(fields))
        else:
            shape = tuple(int(s) for s in fields[2].split(","))
            inits[fields[1]] = (fields[3], float(fields[4].split()[0]))
            lines.append(("param", fields[1], shape, tuple(fields[5].split())))
    return done.returncode, lines, inits, done.stderr


def check_initial_values(transformers, torch, folder, inits):
    """Fresh weights have the distribution that hf-dump names."""
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for name, parameter in model.named_parameters():
        kind, stddev = inits[name]
        value = parameter.detach().float()
        if kind != "normal":
            expected = 1.0 if kind == "ones" else 0.0
            if not bool((value == expected).all()):
                return f"{name} is not all {expected}"
            continue
        if name == "model.embed_tokens.weight" and \
                getattr(config, "pad_token_id", None) is not None:
            continue  # one row is zero
        # The sample deviation of n normal values is off by 1/sqrt(2n).
        bound = 5.0 / math.sqrt(2 * value.numel())
        if abs(value.std().item() / stddev - 1) > bound:
            return f"{name} has deviation {value.std().item()}, not {stddev}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hf-dump", default=os.path.join(
        ROOT, "build", "bin", "hf-dump"))
    binary = parser.parse_args().hf_dump
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    failures = []

    def compare(name, folder, small):
        code, got, inits, text = dumped(binary, folder)
        if code != 0:
            failures.append(f"{name}: exit code {code}: {text}")
            return
        expected = described(transformers, torch, folder)
        for mine, theirs in zip(got, expected):
            if mine != theirs:
                failures.append(f"{name}: {mine}, transformers has {theirs}")
                return
        if len(got) != len(expected):
            failures.append(f"{name}: {len(got)} lines, not {len(expected)}")
        elif small:
            problem = check_initial_values(transformers, torch, folder, inits)
            if problem:
                failures.append(f"{name}: {problem}")

    configs = os.path.join(HERE, "configs")
    for name in sorted(os.listdir(configs)):
        compare(name, os.path.join(configs, name), small=False)
    with tempfile.TemporaryDirectory() as folder:
        for name, config in {**ACCEPTED, **REFUSED}.items():
            with open(os.path.join(folder, "config.json"), "w",
                      encoding="utf-8") as f:
                json.dump(config, f)
            if name in ACCEPTED:
                compare(name, folder, small="hidden_size" in config)
                continue
            code, _, _, text = dumped(binary, folder)
            if code != 1 or text.count("error:") != 1:
                failures.append(f"{name}: exit code {code}: {text}")
            try:
                described(transformers, torch, folder)
                failures.append(f"{name}: transformers accepts it")
            except Exception:  # of whatever class transformers raises
                pass
    for failure in failures:
        print("FAIL", failure)
    total = len(os.listdir(configs)) + len(ACCEPTED) + len(REFUSED)
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
