"""Mixtures of experts compute what transformers computes, whatever the sizes.

Random configurations of mixtral, qwen2_moe, qwen3_moe, olmoe, deepseek_v3, glm4_moe, glm4_moe_lite,
granitemoe, granitemoehybrid and gpt_oss: odd numbers of heads, experts and choices, ties, biases, rotary kinds, dense layers between, the load
balancing loss. Functions run as a plan holds them (functions_cases.py).
"""
import json
import os
import random

import functions_cases
import harness
import hf_numerics_cases
import jobs
from harness import check

CONFIGS = 20


def random_rope(draw):
    kind = draw.choice(["default", "linear", "llama3"])
    rope = {"rope_type": kind, "rope_theta": draw.choice([100.0, 1e4, 1e6])}
    if kind == "linear":
        rope["factor"] = draw.choice([1.5, 4.0])
    if kind == "llama3":
        rope.update(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                    original_max_position_embeddings=32)
    return rope


def random_latent(draw):
    """DeepSeek-V3: latent attention, groups of experts, a shared one."""
    groups, each = draw.choice([1, 2, 3, 4]), draw.choice([2, 3, 5])
    best = draw.randrange(1, groups + 1)
    layers = draw.choice([1, 2, 3])
    rope = random_rope(draw)
    if draw.random() < 0.4:
        rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                "original_max_position_embeddings": 16, "mscale": 1.0,
                "mscale_all_dim": draw.choice([0.7, 1.0])}
    heads = draw.choice([1, 2, 3, 5])
    chosen = draw.randrange(1, min(best * each, 6) + 1)
    return dict(
        model_type="deepseek_v3", vocab_size=draw.randrange(17, 150),
        hidden_size=4 * draw.randrange(3, 17),
        intermediate_size=draw.randrange(3, 70),
        moe_intermediate_size=4 * draw.randrange(1, 12),
        num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads, max_position_embeddings=64,
        first_k_dense_replace=draw.randrange(0, layers + 1),
        n_routed_experts=groups * each, n_group=groups, topk_group=best,
        num_experts_per_tok=chosen,
        n_shared_experts=draw.choice([1, 2]),
        routed_scaling_factor=draw.choice([1.0, 2.5]),
        # The score of one alone is 1, and its gradient what rounding leaves.
        norm_topk_prob=draw.random() < 0.7 and chosen > 1,
        q_lora_rank=draw.choice([None, 6, 13]),
        kv_lora_rank=draw.choice([5, 12]),
        qk_rope_head_dim=2 * draw.randrange(1, 6),
        qk_nope_head_dim=draw.randrange(1, 14),
        v_head_dim=draw.randrange(1, 20), initializer_range=0.1,
        rope_interleave=draw.random() < 0.6,
        attention_bias=draw.random() < 0.4,
        tie_word_embeddings=draw.random() < 0.4, rope_parameters=rope)


def gpt_oss(config, experts, draw):
    """With limits that some values reach, and windows within and beyond."""
    config.update(num_local_experts=experts,
                  head_dim=2 * draw.randrange(2, 12),
                  attention_bias=draw.random() < 0.7,
                  sliding_window=draw.choice([2, 5, 32]),
                  swiglu_limit=draw.choice([7.0, 0.1]),
                  swiglu_alpha=draw.choice([1.702, 0.5]))
    if draw.random() < 0.5:
        config["layer_types"] = [
            draw.choice(["full_attention", "sliding_attention"])
            for _ in range(config["num_hidden_layers"])]
    kind = draw.choice(["given", "absent", "old"])
    if kind != "given":
        del config["rope_parameters"]
    if kind == "old":
        config.update(rope_theta=150000.0, rope_scaling={
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
            "beta_slow": 1.0, "truncate": False,
            "original_max_position_embeddings": 16})
    return config


def glm4_moe(draw):
    """DeepSeek-V3's experts beside whole queries and keys."""
    config = random_latent(draw)
    for key in ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim",
                "qk_nope_head_dim", "v_head_dim", "rope_interleave"):
        del config[key]
    groups = draw.choice([1, 2, 3])
    rope = random_rope(draw)
    if draw.random() < 0.6:
        rope["partial_rotary_factor"] = draw.choice([0.25, 0.5, 1.0])
    return {**config, "model_type": "glm4_moe", "rope_parameters": rope,
            "num_key_value_heads": groups,
            "num_attention_heads": groups * draw.choice([1, 2, 3]),
            "head_dim": 8 * draw.randrange(1, 4),
            "use_qk_norm": draw.random() < 0.5}


def glm4_moe_lite(draw):
    """DeepSeek-V3 with a list of the layers that have experts."""
    config = random_latent(draw)
    dense = config.pop("first_k_dense_replace")
    if "mscale" in config["rope_parameters"]:
        config["rope_parameters"] = random_rope(draw)
    config["model_type"] = "glm4_moe_lite"
    if draw.random() < 0.7:
        config["mlp_layer_types"] = [
            "dense" if i < dense else draw.choice(["sparse", "dense"])
            for i in range(config["num_hidden_layers"])]
    return config


def granitemoe(config, family, experts, draw):
    """With factors of all kinds; Granite 4 has an MLP beside experts, or alone,
    and may have no positions."""
    del config["head_dim"]
    config.update(
        hidden_size=8 * config["num_attention_heads"] *
        draw.choice([1, 2]), num_local_experts=experts,
        attention_bias=draw.random() < 0.5,
        embedding_multiplier=draw.choice([1.0, 12.0]),
        logits_scaling=draw.choice([1.0, 8.0]),
        residual_multiplier=draw.choice([1.0, 0.22]),
        attention_multiplier=draw.choice([1.0, 0.125]))
    if config["num_experts_per_tok"] == 1:
        # The softmax of one alone is 1, and its gradient what rounding leaves.
        config["num_experts_per_tok"] = min(2, experts)
    if family == "granitemoe":
        return config
    words = ["attention", "full_attention"]
    # Mamba's sizes are checked, though no layer has it.
    config.update(
        layer_types=[draw.choice(words)
                     for _ in range(config["num_hidden_layers"])],
        shared_intermediate_size=draw.randrange(3, 70), mamba_n_heads=4,
        position_embedding_type=draw.choice([None, "rope", "rope"]))
    if config["position_embedding_type"] is None:
        # The softmax cancels the bias of keys that do not turn.
        config["attention_bias"] = False
    if draw.random() < 0.5:
        config.update(num_local_experts=0, output_router_logits=False)
    return config


def random_config(family, draw):
    """Rows of experts' matrices are multiples of 16 bytes, all else is free."""
    if family == "deepseek_v3":
        return random_latent(draw)
    if family in ("glm4_moe", "glm4_moe_lite"):
        return globals()[family](draw)
    groups = draw.choice([1, 2, 3])
    experts = draw.choice([1, 2, 3, 5, 8, 11])
    config = dict(
        model_type=family, vocab_size=draw.randrange(17, 150),
        hidden_size=4 * draw.randrange(3, 17),
        intermediate_size=4 * draw.randrange(1, 20),
        num_hidden_layers=draw.choice([1, 2, 3]), num_key_value_heads=groups,
        num_attention_heads=groups * draw.choice([1, 2, 3]),
        head_dim=2 * draw.randrange(1, 12), max_position_embeddings=64,
        rms_norm_eps=draw.choice([1e-6, 1e-5]), initializer_range=0.1,
        hidden_act=draw.choice(["silu", "swish"]),
        tie_word_embeddings=draw.random() < 0.4,
        rope_parameters=random_rope(draw),
        num_experts_per_tok=draw.randrange(1, min(experts, 4) + 1),
        output_router_logits=draw.random() < 0.5,
        router_aux_loss_coef=draw.choice([0.001, 0.5]))
    if family == "gpt_oss":
        return gpt_oss(config, experts, draw)
    if family == "mixtral":
        config.update(num_local_experts=experts,
                      sliding_window=draw.choice([None, 6, 32]))
        return config
    if family in ("granitemoe", "granitemoehybrid"):
        return granitemoe(config, family, experts, draw)
    if family == "olmoe":
        del config["head_dim"]
        config.update(
            hidden_size=4 * config["num_attention_heads"] *
            draw.choice([1, 2, 3]), num_experts=experts,
            norm_topk_prob=draw.random() < 0.5,
            attention_bias=draw.random() < 0.5)
        return config
    if family == "qwen2_moe":
        del config["head_dim"]
        config.update(
            hidden_size=4 * config["num_attention_heads"] *
            draw.choice([1, 2, 3]), qkv_bias=draw.random() < 0.5,
            shared_expert_intermediate_size=draw.randrange(3, 70))
    layers = range(config["num_hidden_layers"])
    config.update(num_experts=experts,
                  moe_intermediate_size=4 * draw.randrange(1, 12),
                  intermediate_size=draw.randrange(3, 70),
                  norm_topk_prob=draw.random() < 0.5,
                  **({} if family == "qwen2_moe" else
                     {"attention_bias": draw.random() < 0.5}),
                  decoder_sparse_step=draw.choice([1, 1, 2]),
                  mlp_only_layers=[i for i in layers if draw.random() < 0.2])
    sparse = [i for i in layers if i not in config["mlp_only_layers"] and
              (i + 1) % config["decoder_sparse_step"] == 0]
    config["output_router_logits"] &= bool(sparse)
    return config


def random_configs(family, compute="f32", count=CONFIGS):
    def case(context):
        draw = random.Random(family)
        equal, worst = 0, ""
        for number in range(count):
            config = random_config(family, draw)
            if compute == "bf16":  # 8 elements are 16 bytes
                for key in ("hidden_size", "intermediate_size",
                            "moe_intermediate_size"):
                    if key in config:
                        config[key] = -(-config[key] // 8) * 8
            length = draw.randrange(2, 25)
            mode = draw.choice(["pointwise", "none", "full"])
            try:
                text = functions_cases.compare(
                    context, config, mode, batch=draw.choice([1, 2, 3]),
                    length=length, compute=compute)
            except harness.Failure as failure:
                raise harness.Failure(f"{number}: {json.dumps(config)}, "
                                      f"{mode}: {failure}") from None
            equal += text == "bit-equal"
            worst = max(worst, "" if text == "bit-equal" else
                        text.split()[1].rstrip(";"),
                        key=lambda e: float(e or 0))
        return f"{equal} of {count} bit-equal, the others within {worst or 0}"
    return case


def tokens_as_chosen(context):
    """All tokens to one expert, and experts that no token chooses."""
    import torch

    config = {**hf_numerics_cases.BASE, "model_type": "mixtral",
              "num_local_experts": 4, "num_experts_per_tok": 1,
              "num_hidden_layers": 1}
    jobs.write_config(context.path("model"), config)
    dump = json.loads(harness.run([context.binary("hf-model-dump"),
                                   context.path("model"), "2", "24"]))
    import transformers
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(context.path("model")))
    with torch.no_grad():  # only positive inputs' sums reach the first row
        model.model.embed_tokens.weight.abs_()
        gate = model.model.layers[0].mlp.gate.weight
        gate.zero_()
    parameters = {n: p.detach() for n, p in model.named_parameters()}
    ids = torch.randint(config["vocab_size"], (2, 24))
    loss = hf_numerics_cases.Interpreter(dump, parameters).loss(ids, ids)
    with torch.no_grad():
        want = model(input_ids=ids, labels=ids, shift_labels=ids).loss
    check(abs(loss.item() - want.item()) < 1e-5,
          f"loss {loss.item()}, transformers {want.item()}")
    return "one expert takes all"


def missing_experts(context):
    """A checkpoint that lacks an expert is refused, with its tensor's name."""
    from safetensors.torch import load_file, save_file

    jobs.make_job(context.path(), jobs.MODELS["mixtral"], ranks=2, steps=2)
    path = os.path.join(context.path("model"), "model.safetensors")
    weights = load_file(path)
    lost = "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    del weights[lost]
    save_file(weights, path, metadata={"format": "pt"})
    output = harness.run([context.binary("accel-opt"), "plan",
                          context.path("job.yaml")], expect=1)
    check(lost in output and "[weights-mismatch]" in output, output)
    return "refused"


def choice_bias(context):
    """The bias of DeepSeek-V3's choice of experts is a buffer that transformers
    stores: it is read, and a checkpoint that lacks it is refused."""
    from safetensors.torch import load_file, save_file

    jobs.make_job(context.path(), jobs.PEAKED["deepseek-v3"], ranks=2, steps=2)
    command = [context.binary("accel-opt"), "plan", context.path("job.yaml")]
    output = harness.run(command)
    check("surplus-weights" not in output, output)
    path = os.path.join(context.path("model"), "model.safetensors")
    weights = load_file(path)
    lost = "model.layers.1.mlp.gate.e_score_correction_bias"
    del weights[lost]
    save_file(weights, path, metadata={"format": "pt"})
    output = harness.run(command, expect=1)
    check(lost in output and "[weights-mismatch]" in output, output)
    return "read; refused where it is missing"


CASES = [
    ("mixtral-random", random_configs("mixtral")),
    ("qwen3-moe-random", random_configs("qwen3_moe")),
    ("deepseek-v3-random", random_configs("deepseek_v3")),
    ("deepseek-v3-random-bf16", random_configs("deepseek_v3", "bf16", 3)),
    ("mixtral-random-bf16", random_configs("mixtral", "bf16", 3)),
    ("qwen3-moe-random-bf16", random_configs("qwen3_moe", "bf16", 3)),
    ("qwen2-moe-random", random_configs("qwen2_moe")),
    ("glm4-moe-random", random_configs("glm4_moe")),
    ("glm4-moe-random-bf16", random_configs("glm4_moe", "bf16", 3)),
    ("glm4-moe-lite-random", random_configs("glm4_moe_lite")),
    ("granitemoe-random", random_configs("granitemoe")),
    ("granitemoe-random-bf16", random_configs("granitemoe", "bf16", 3)),
    ("granitemoehybrid-random", random_configs("granitemoehybrid")),
    ("granitemoehybrid-random-bf16",
     random_configs("granitemoehybrid", "bf16", 3)),
    ("olmoe-random", random_configs("olmoe")),
    ("gpt-oss-random", random_configs("gpt_oss")),
    ("gpt-oss-random-bf16", random_configs("gpt_oss", "bf16", 3)),
    ("one-expert-takes-all", tokens_as_chosen),
    ("missing-expert", missing_experts),
    ("choice-bias", choice_bias),
]
