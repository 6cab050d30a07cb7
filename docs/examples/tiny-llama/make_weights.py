#!/usr/bin/env python3
"""Makes model.safetensors beside a Llama config.json, from a seed.

  make_weights.py MODEL_FOLDER [--seed N]

Initial weights as transformers draws them (normal with initializer_range,
norms at one); the random numbers are NumPy's, a generator per tensor, so the
file does not depend on torch.
"""
import argparse
import json
import os
import zlib

import numpy as np
from safetensors.numpy import save_file


def shapes(config):
    """[(name, shape)] of LlamaForCausalLM without biases."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or hidden // heads
    kv = config.get("num_key_value_heads", heads) * size
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "self_attn.q_proj.weight", (heads * size, hidden)
        yield layer + "self_attn.k_proj.weight", (kv, hidden)
        yield layer + "self_attn.v_proj.weight", (kv, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, heads * size)
        yield layer + "mlp.gate_proj.weight", (inner, hidden)
        yield layer + "mlp.up_proj.weight", (inner, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, inner)
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config.get("tie_word_embeddings"):
        yield "lm_head.weight", (config["vocab_size"], hidden)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with open(os.path.join(args.folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    if config.get("model_type") != "llama" or config.get("attention_bias") \
            or config.get("mlp_bias"):
        parser.error(f"{args.folder} is not a llama without biases")
    deviation = np.float32(config.get("initializer_range", 0.02))
    tensors = {}
    for name, shape in shapes(config):
        if len(shape) == 1:
            tensors[name] = np.ones(shape, np.float32)
            continue
        rng = np.random.default_rng([args.seed, zlib.crc32(name.encode())])
        tensors[name] = deviation * rng.standard_normal(shape, np.float32)
    path = os.path.join(args.folder, "model.safetensors")
    save_file(tensors, path + ".part", metadata={"format": "pt"})
    os.replace(path + ".part", path)
    count = sum(t.size for t in tensors.values())
    print(f"{path}: {count / 1e6:.1f} M parameters from seed {args.seed}")


if __name__ == "__main__":
    main()
