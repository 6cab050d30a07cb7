"""Random small configurations of each decoder family.

Every switch that changes what a family computes takes each of its values in
some of them: head counts that are odd or shared, biases, norms, activations,
kinds of rotary embedding, windows, ties. Seeded, so that a failure repeats.
"""
import random

ACTIVATIONS = ["gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh", "relu",
               "relu2", "silu", "swish", "tanh"]
LENGTH = 20


def llama3(rng):
    return {"rope_type": "llama3", "rope_theta": rng.choice([100.0, 10000.0]),
            "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16}


def yarn(rng):
    scaling = {"rope_type": "yarn", "factor": rng.choice([1.0, 4.0]),
               "original_max_position_embeddings": rng.choice([4, 16, 64]),
               "rope_theta": rng.choice([30.0, 10000.0])}
    for key, values in {"beta_fast": [8, 2.5], "beta_slow": [2, 0.5],
                        "attention_factor": [0.7], "truncate": [False],
                        "mscale": [0.7, 1.0], "mscale_all_dim": [1.5]}.items():
        if rng.random() < 0.4:
            scaling[key] = rng.choice(values)
    return scaling


def long_rope(rng, frequencies):
    """Of positions before and behind LENGTH."""
    return {"rope_type": "longrope", "rope_theta": 200.0,
            "original_max_position_embeddings": rng.choice([8, LENGTH, 64]),
            **({"factor": 2.0} if rng.random() < 0.5 else {}),
            **({"attention_factor": 1.2} if rng.random() < 0.3 else {}),
            "short_factor": [rng.choice([1.0, 1.1, 1.7])
                             for _ in range(frequencies)],
            "long_factor": [rng.choice([2.0, 3.5])
                            for _ in range(frequencies)]}


def rope(rng, frequencies=0):
    """Keys of one of the spellings, old and new. `frequencies` of a head, where
    they are known."""
    kind = rng.choice(["default", "linear", "llama3", "old", "theta", "yarn",
                       "yarn", "dynamic", "longrope"])
    if kind == "yarn":
        return {"rope_parameters": yarn(rng)}
    if kind == "longrope" and frequencies:
        return {"rope_parameters": long_rope(rng, frequencies)}
    if kind == "dynamic":
        # Some are shorter than LENGTH.
        return {"rope_parameters": {"rope_type": "dynamic", "factor": 2.5,
                                    "rope_theta": 90.0},
                "max_position_embeddings": rng.choice([12, 64])}
    if kind == "llama3":
        return {"rope_parameters": llama3(rng)}
    if kind == "linear":
        return {"rope_scaling": {"type": "linear", "factor": 3.0},
                "rope_theta": 500.0}
    if kind == "old":
        return {"rope_scaling": None, "rope_theta": 200.0}
    if kind == "theta":
        return {"rope_parameters": {"rope_type": "default",
                                    "rope_theta": 50.0}}
    return {}


def heads(rng, shared=True):
    """Heads, key heads and an even head size."""
    count = rng.choice([1, 2, 3, 4, 5, 6])
    groups = [g for g in range(1, count + 1) if count % g == 0]
    return count, rng.choice(groups) if shared else count, rng.choice([4, 6, 8])


def decoder(rng, own_dim=True):
    count, groups, dim = heads(rng)
    if own_dim:
        config = {"head_dim": dim,
                  "hidden_size": count * rng.choice([4, 6, 10])}
    else:
        config = {"hidden_size": count * dim}
    return {**config, "num_attention_heads": count,
            "num_key_value_heads": groups, "vocab_size": rng.choice([61, 97]),
            "num_hidden_layers": rng.choice([1, 2, 3]),
            "intermediate_size": rng.choice([10, 17, 24]),
            "max_position_embeddings": 64, "initializer_range": 0.1,
            "tie_word_embeddings": rng.random() < 0.5,
            "pad_token_id": rng.choice([None, 0, 7])}


def flag(rng):
    return rng.random() < 0.5


def window(rng):
    return rng.choice([None, 2, 3, 5, LENGTH - 1, LENGTH, 64])


def llama(rng):
    config = decoder(rng)
    return {**config, **rope(rng, config["head_dim"] // 2), "attention_bias": flag(rng),
            "mlp_bias": flag(rng), "rms_norm_eps": rng.choice([1e-6, 1e-2]),
            "hidden_act": rng.choice(["silu", "swish"])}


def mistral(rng):
    return {**decoder(rng), **rope(rng), "sliding_window": window(rng)}


def qwen(rng):
    config = {**decoder(rng), **rope(rng)}
    kind = rng.choice(["off", "on", "types"])
    if kind == "on":
        config.update(use_sliding_window=True, sliding_window=rng.choice([2, 4]),
                      max_window_layers=rng.choice([0, 1, 5]))
    if kind == "types":
        config.update(use_sliding_window=True, sliding_window=3, layer_types=[
            rng.choice(["full_attention", "sliding_attention"])
            for _ in range(config["num_hidden_layers"])])
    return config


def qwen2(rng):
    config = qwen(rng)
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 8
    return config


def qwen3(rng):
    return {**qwen(rng), "attention_bias": flag(rng)}


def gpt2(rng):
    count, _, dim = heads(rng)
    return {"n_embd": count * rng.choice([dim, 5]), "n_head": count,
            "n_layer": rng.choice([1, 2, 3]), "n_positions": 64,
            "vocab_size": 61, "n_inner": rng.choice([None, 13]),
            "activation_function": rng.choice([
                a for a in ACTIVATIONS if a != "swish"]),
            "scale_attn_weights": flag(rng), "tie_word_embeddings": flag(rng),
            "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
            "bos_token_id": None, "eos_token_id": None,
            "initializer_range": 0.1}


def olmo2(rng):
    return {**decoder(rng, own_dim=False), **rope(rng),
            "attention_bias": flag(rng), "hidden_act": rng.choice(ACTIVATIONS)}


def layer_types(rng, config):
    """Some files say them."""
    if flag(rng):
        config["layer_types"] = [
            rng.choice(["full_attention", "sliding_attention"])
            for _ in range(config["num_hidden_layers"])]
    return config


def olmo3(rng):
    config = {**decoder(rng, own_dim=False), "attention_bias": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS),
              "sliding_window": rng.choice([2, 5, LENGTH, 64])}
    config["hidden_size"] = config["num_attention_heads"] * 8
    kind = rng.choice(["default", "old", "new"])
    if kind == "old":
        config.update(rope_theta=1000.0, rope_scaling={
            "rope_type": "linear", "factor": 8.0})
    if kind == "new":
        config["rope_parameters"] = {
            "full_attention": {**llama3(rng)},
            "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    return layer_types(rng, config)


def turned_share(rng, config):
    """A share of a head that is turned, in one of the spellings."""
    share = rng.choice([0.25, 0.5, 1.0])
    kind = rng.choice(["default", "old", "new"])
    if kind == "old":
        config["partial_rotary_factor"] = share
    if kind == "new":
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": 90.0,
                                     "partial_rotary_factor": share}
    return config


def phi(rng):
    config = {**decoder(rng, own_dim=False), "qk_layernorm": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS)}
    config["hidden_size"] = config["num_attention_heads"] * 8
    return turned_share(rng, {**config, "layer_norm_eps": rng.choice([1e-5, 1e-2])})


def stablelm(rng):
    config = {**decoder(rng, own_dim=False), "use_qkv_bias": flag(rng),
              "use_parallel_residual": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS)}
    config["hidden_size"] = config["num_attention_heads"] * 8
    return turned_share(rng, {**config, "layer_norm_eps": rng.choice([1e-5, 1e-2])})


def exaone4(rng):
    config = {**decoder(rng), **rope(rng),
              "hidden_act": rng.choice(ACTIVATIONS),
              "sliding_window": rng.choice([2, 5, LENGTH, 64]),
              "sliding_window_pattern": rng.choice([2, 4])}
    return layer_types(rng, config)


def cohere(rng):
    config = {**decoder(rng, own_dim=False), **rope(rng),
              "attention_bias": flag(rng), "use_qk_norm": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS),
              "logit_scale": rng.choice([0.0625, 1.0, 2.0])}
    return {**config, "layer_norm_eps": rng.choice([1e-5, 1e-2])}


def cohere2(rng):
    config = {**cohere(rng), "sliding_window": rng.choice([2, 5, LENGTH, 64]),
              "sliding_window_pattern": rng.choice([2, 4])}
    del config["use_qk_norm"]
    config = layer_types(rng, config)
    # Layers that see all keys have no positions, so the softmax cancels the
    # keys' bias to rounding.
    config["attention_bias"] &= "full_attention" not in config.get(
        "layer_types", []) and config["num_hidden_layers"] < 2
    return config


def ministral(rng):
    config = {**decoder(rng), "sliding_window": rng.choice([2, 5, LENGTH, 64]),
              **rope(rng), "hidden_act": rng.choice(ACTIVATIONS)}
    config["head_dim"] = config.get("head_dim") or 8
    return layer_types(rng, config)


def ministral3(rng):
    """Within the original context, a token beyond it, and several times it."""
    config = {**decoder(rng), "hidden_act": rng.choice(ACTIVATIONS),
              "sliding_window": rng.choice([None, 5])}
    context = rng.choice([3, LENGTH - 1, 64, None])
    if context:
        config["rope_parameters"] = {
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
            "original_max_position_embeddings": context, "beta_fast": 32.0,
            "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": rng.choice([0.1, 0.7])}
    return config


def hunyuan(rng):
    config = {**decoder(rng), **rope(rng), "attention_bias": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS)}
    config["head_dim"] = config.get("head_dim") or 8
    if flag(rng):
        config["rope_parameters"] = {
            "rope_type": "dynamic", "rope_theta": 1e4, "factor": 1.0,
            "alpha": rng.choice([0.0, 5.0, 1000.0])}
    return config


def ernie4_5(rng):
    return {**decoder(rng), **rope(rng), "use_bias": flag(rng),
            "hidden_act": rng.choice(ACTIVATIONS)}


def arcee(rng):
    return {**decoder(rng, own_dim=False), **rope(rng),
            "attention_bias": flag(rng), "mlp_bias": flag(rng),
            "hidden_act": rng.choice([*ACTIVATIONS, "relu2"])}


def seed_oss(rng):
    return {**decoder(rng), **rope(rng), "attention_bias": flag(rng),
            "attention_out_bias": flag(rng), "mlp_bias": flag(rng),
            "hidden_act": rng.choice(ACTIVATIONS), "attention_dropout": 0.0,
            "residual_dropout": 0.0}


def glm4(rng):
    config = {**decoder(rng), "attention_bias": flag(rng),
              "hidden_act": rng.choice(ACTIVATIONS)}
    config["head_dim"] = 8
    return turned_share(rng, config)


def granite(rng):
    return {**decoder(rng, own_dim=False), **rope(rng),
            "attention_bias": flag(rng), "mlp_bias": flag(rng),
            "hidden_act": rng.choice(ACTIVATIONS),
            "embedding_multiplier": rng.choice([1.0, 12.0]),
            "residual_multiplier": rng.choice([1.0, 0.22]),
            "attention_multiplier": rng.choice([1.0, 0.125]),
            "logits_scaling": rng.choice([1.0, 8.0])}


def starcoder2(rng):
    return {**decoder(rng, own_dim=False), **rope(rng),
            "use_bias": flag(rng), "sliding_window": window(rng),
            "hidden_act": rng.choice(ACTIVATIONS)}


def smollm3(rng):
    sliding = flag(rng)
    return {**decoder(rng, own_dim=False), **rope(rng),
            "attention_bias": flag(rng), "mlp_bias": flag(rng),
            "hidden_act": rng.choice(ACTIVATIONS),
            "no_rope_layer_interval": rng.choice([1, 2, 3]),
            "use_sliding_window": sliding,
            "sliding_window": window(rng) if sliding else None}


def phi3(rng):
    partial = rng.choice([1.0, 0.5, 0.75])
    config = {**decoder(rng, own_dim=False), "sliding_window": window(rng),
              "hidden_act": rng.choice(ACTIVATIONS),
              "partial_rotary_factor": partial}
    config["hidden_size"] = config["num_attention_heads"] * 8
    if flag(rng):
        del config["partial_rotary_factor"]
        config["rope_parameters"] = {"rope_type": "default",
                                     "rope_theta": 300.0,
                                     "partial_rotary_factor": partial}
    elif flag(rng):
        scaling = long_rope(rng, int(8 * partial) // 2)
        config["original_max_position_embeddings"] = scaling.pop(
            "original_max_position_embeddings")
        scaling["type"] = scaling.pop("rope_type")
        config["rope_scaling"] = {**scaling, "partial_rotary_factor": partial}
    return config


def gemma(rng):
    return {**decoder(rng), **rope(rng), "attention_bias": flag(rng),
            "hidden_act": rng.choice(ACTIVATIONS)}


def gemma2(rng):
    config = {**decoder(rng), **rope(rng), "attention_bias": flag(rng),
              "hidden_activation": rng.choice(ACTIVATIONS),
              "query_pre_attn_scalar": rng.choice([4, 9, 256]),
              "sliding_window": rng.choice([2, 3, 5, LENGTH, 64]),
              "attn_logit_softcapping": rng.choice([None, 0.5, 5.0]),
              "final_logit_softcapping": rng.choice([None, 0.5, 30.0])}
    if flag(rng):
        config["layer_types"] = [
            rng.choice(["full_attention", "sliding_attention"])
            for _ in range(config["num_hidden_layers"])]
    return config


def gemma3(rng):
    config = {**gemma2(rng), "sliding_window_pattern": rng.choice([2, 3, 6])}
    del config["attn_logit_softcapping"]
    for key in ("rope_parameters", "rope_scaling", "rope_theta"):
        config.pop(key, None)
    kind = rng.choice(["default", "old", "new"])
    if kind == "old":
        config.update(rope_theta=1000.0, rope_local_base_freq=40.0,
                      rope_scaling={"rope_type": "linear", "factor": 8.0})
    if kind == "new":
        config["rope_parameters"] = {
            "full_attention": {**llama3(rng)},
            "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    return config


def gpt_neox(rng):
    count, _, dim = heads(rng)
    dim *= 2
    config = {"hidden_size": count * dim, "num_attention_heads": count,
              "num_hidden_layers": rng.choice([1, 2, 3]), "vocab_size": 61,
              "intermediate_size": rng.choice([11, 20]),
              "hidden_act": rng.choice(ACTIVATIONS),
              "max_position_embeddings": 64, "initializer_range": 0.1,
              "layer_norm_eps": rng.choice([1e-5, 1e-2]),
              "use_parallel_residual": flag(rng), "attention_bias": flag(rng),
              "tie_word_embeddings": flag(rng),
              "rotary_pct": rng.choice([0.25, 0.5, 1.0])}
    if flag(rng):
        config["rotary_emb_base"] = 77.0
    if flag(rng):
        config["rope_scaling"] = {"type": "linear", "factor": 2.0}
    return config


def gpt_bigcode(rng):
    count, _, dim = heads(rng)
    return {"n_embd": count * dim, "n_head": count,
            "n_layer": rng.choice([1, 2, 3]), "vocab_size": 61,
            "n_inner": rng.choice([None, 11, 20]), "n_positions": 64,
            "activation_function": rng.choice(ACTIVATIONS),
            "initializer_range": 0.1, "multi_query": flag(rng),
            "scale_attn_weights": flag(rng), "resid_pdrop": 0.0,
            "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1,
            "eos_token_id": 2, "layer_norm_epsilon": rng.choice([1e-5, 1e-2]),
            "tie_word_embeddings": flag(rng)}


def opt(rng):
    count, _, dim = heads(rng)
    return {"hidden_size": count * rng.choice([dim, 5]),
            "num_attention_heads": count,
            "num_hidden_layers": rng.choice([1, 2, 3]), "vocab_size": 61,
            "ffn_dim": rng.choice([11, 20]), "max_position_embeddings": 48,
            "activation_function": rng.choice(ACTIVATIONS),
            "do_layer_norm_before": flag(rng),
            "word_embed_proj_dim": rng.choice([None, 12]),
            "_remove_final_layer_norm": flag(rng), "enable_bias": flag(rng),
            "tie_word_embeddings": flag(rng), "dropout": 0.0,
            "pad_token_id": rng.choice([None, 1]), "init_std": 0.1}


def falcon(rng):
    count, groups, dim = heads(rng)
    config = {"hidden_size": count * dim, "num_attention_heads": count,
              "num_hidden_layers": rng.choice([1, 2, 3]), "vocab_size": 61,
              "max_position_embeddings": 64, "initializer_range": 0.1,
              "bias": flag(rng), "alibi": flag(rng),
              "multi_query": flag(rng), "parallel_attn": flag(rng),
              "activation": rng.choice(ACTIVATIONS),
              "ffn_hidden_size": rng.choice([None, 13]),
              "layer_norm_epsilon": rng.choice([1e-5, 1e-2]),
              "tie_word_embeddings": flag(rng)}
    if flag(rng):
        config.update(new_decoder_architecture=True, parallel_attn=True,
                      num_kv_heads=groups)
        if flag(rng):
            config["num_ln_in_parallel_attn"] = rng.choice([1, 2])
    if not config["alibi"] and flag(rng):
        config.update(rope_theta=90.0)
    return config


def mpt(rng):
    count, _, dim = heads(rng)
    config = {"d_model": count * rng.choice([dim, 5]), "n_heads": count,
              "n_layers": rng.choice([1, 2, 3]), "vocab_size": 61,
              "max_seq_len": rng.choice([LENGTH, 40]),
              "layer_norm_epsilon": rng.choice([1e-5, 1e-2]),
              "initializer_range": 0.1, "tie_word_embeddings": flag(rng)}
    if flag(rng):
        config["attn_config"] = {
            "softmax_scale": rng.choice([None, 0.3]),
            "alibi_bias_max": rng.choice([4, 8]), "attn_pdrop": 0}
    return config


FAMILIES = {
    "llama": llama, "mistral": mistral, "qwen2": qwen2, "qwen3": qwen3,
    "gpt2": gpt2, "olmo2": olmo2, "phi3": phi3, "gemma": gemma,
    "gemma2": gemma2, "gemma3_text": gemma3, "gpt_bigcode": gpt_bigcode, "gpt_neox": gpt_neox, "opt": opt,
    "falcon": falcon, "mpt": mpt, "granite": granite,
    "starcoder2": starcoder2, "smollm3": smollm3, "olmo3": olmo3, "phi": phi,
    "stablelm": stablelm, "exaone4": exaone4, "glm4": glm4,
    "cohere": cohere, "cohere2": cohere2, "glm": glm4, "arcee": arcee,
    "seed_oss": seed_oss, "ministral": ministral, "ministral3": ministral3,
    "hunyuan_v1_dense": hunyuan, "ernie4_5": ernie4_5,
}


def configs(family, count):
    """`count` configurations; the same ones each time."""
    rng = random.Random(f"{family} of accel-opt")
    return [{"model_type": family, **FAMILIES[family](rng)}
            for _ in range(count)]
