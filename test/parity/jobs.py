"""Small models, token files and job.yaml files for the parity tests.

One dict describes a job: it is written as job.yaml for accel-opt and read by
the PyTorch reference (fsdp2.py), so that both run the same thing.
"""
import json
import os
import threading

import numpy as np
import yaml

from model_configs import (ABSENT, FAMILIES, GEMMA, GPT2, LAYER_CLASS,  # noqa: F401
                           LLAMA, ROPE_LLAMA3, variant)

MODELS = {
    **FAMILIES,
    "gqa": LLAMA,
    "wide": variant(hidden_size=512, intermediate_size=1376, vocab_size=4099,
                    num_attention_heads=8, num_key_value_heads=4),
    "tied": variant(tie_word_embeddings=True),
    "mha-bias": variant(num_key_value_heads=4, attention_bias=True,
                        mlp_bias=True),
    "llama3-rope": variant(rope_parameters=ROPE_LLAMA3, head_dim=24),
    "mistral": variant(architectures=["MistralForCausalLM"],
                       # Absent means a window of 4096 keys, as the class has.
                       model_type="mistral", sliding_window=None,
                       attention_bias=ABSENT, mlp_bias=ABSENT, head_dim=16),
    "qwen2": variant(architectures=["Qwen2ForCausalLM"], model_type="qwen2",
                     attention_bias=ABSENT, mlp_bias=ABSENT,
                     use_sliding_window=False),
    "qwen3": variant(architectures=["Qwen3ForCausalLM"], model_type="qwen3",
                     mlp_bias=ABSENT, head_dim=32, tie_word_embeddings=True,
                     use_sliding_window=False),
    "mixtral": variant(architectures=["MixtralForCausalLM"],
                       model_type="mixtral", attention_bias=ABSENT,
                       mlp_bias=ABSENT, num_hidden_layers=2,
                       intermediate_size=44, num_local_experts=5,
                       num_experts_per_tok=2, sliding_window=64,
                       initializer_range=0.05),
    # Dense, with experts, dense; a load balancing loss that matters.
    "qwen3-moe": variant(architectures=["Qwen3MoeForCausalLM"],
                         model_type="qwen3_moe", mlp_bias=ABSENT, head_dim=24,
                         num_attention_heads=3, num_key_value_heads=1,
                         moe_intermediate_size=20, num_experts=7,
                         num_experts_per_tok=3, norm_topk_prob=True,
                         decoder_sparse_step=2, output_router_logits=True,
                         router_aux_loss_coef=0.1, initializer_range=0.05),
    "qwen2-moe": variant(architectures=["Qwen2MoeForCausalLM"],
                         model_type="qwen2_moe", attention_bias=ABSENT,
                         mlp_bias=ABSENT, num_hidden_layers=2,
                         moe_intermediate_size=20, num_experts=6,
                         num_experts_per_tok=2, sliding_window=None,
                         shared_expert_intermediate_size=36,
                         initializer_range=0.05),
    # A window, then all keys; sinks of attention, biases of experts.
    "gpt-oss": variant(architectures=["GptOssForCausalLM"],
                       model_type="gpt_oss", mlp_bias=ABSENT,
                       attention_bias=True, num_hidden_layers=2, head_dim=24,
                       intermediate_size=44, num_local_experts=5,
                       num_experts_per_tok=2, sliding_window=7,
                       rope_parameters=ABSENT, initializer_range=0.05),
    "gpt2": GPT2,
    "gpt2-untied": {**GPT2, "tie_word_embeddings": False,
                    "activation_function": "gelu", "n_inner": 200},
}


# What tensor parallelism divides, beside those whose peaks are compared.
PEAKED = {**MODELS, "even": variant(
    hidden_size=512, intermediate_size=1376, vocab_size=4096,
    num_attention_heads=8, num_key_value_heads=4),
    "halves": variant(intermediate_size=112, vocab_size=256,
                      num_attention_heads=4, num_key_value_heads=2),
    "six": variant(intermediate_size=112, vocab_size=256, num_hidden_layers=6,
                   num_attention_heads=4, num_key_value_heads=2),
    "six-tied": variant(intermediate_size=112, vocab_size=256,
                        num_hidden_layers=6, num_attention_heads=4,
                        num_key_value_heads=2, tie_word_embeddings=True),
    "six-dropout": variant(intermediate_size=112, vocab_size=256,
                           num_hidden_layers=6, num_attention_heads=4,
                           num_key_value_heads=2, attention_dropout=0.1),
    "halves-tied": variant(intermediate_size=112, vocab_size=256,
                           num_attention_heads=4, num_key_value_heads=2,
                           tie_word_embeddings=True),
    "halves-bias": variant(intermediate_size=112, vocab_size=256,
                           num_attention_heads=4, num_key_value_heads=4,
                           attention_bias=True, mlp_bias=True),
    # A norm of each head: its gradient is a sum over the ranks' heads.
    "halves-qwen3": variant(architectures=["Qwen3ForCausalLM"],
                            model_type="qwen3", mlp_bias=ABSENT, head_dim=32,
                            num_attention_heads=4, num_key_value_heads=2,
                            intermediate_size=112, vocab_size=256,
                            use_sliding_window=False),
    "halves-dropout": variant(intermediate_size=112, vocab_size=256,
                              num_attention_heads=4, num_key_value_heads=2,
                              attention_dropout=0.1),
    # Two layers of four with experts, of which two ranks have four each.
    "halves-qwen3-moe": {**MODELS["qwen3-moe"], "num_experts": 8,
                         "moe_intermediate_size": 24, "num_hidden_layers": 4},
    # Dense, then experts in groups, a shared one; queries and keys of low rank.
    "deepseek-v3": variant(architectures=["DeepseekV3ForCausalLM"],
                           model_type="deepseek_v3", mlp_bias=ABSENT,
                           head_dim=ABSENT, num_attention_heads=3,
                           num_key_value_heads=3, num_hidden_layers=3,
                           first_k_dense_replace=1, n_routed_experts=8,
                           n_group=4, topk_group=2, num_experts_per_tok=3,
                           moe_intermediate_size=20, n_shared_experts=1,
                           q_lora_rank=24, kv_lora_rank=20, qk_rope_head_dim=8,
                           qk_nope_head_dim=16, v_head_dim=20,
                           initializer_range=0.05),
    # The same experts beside whole queries and keys; the dense layer is last in
    # the second.
    "halves-glm4-moe": variant(
        architectures=["Glm4MoeForCausalLM"], model_type="glm4_moe",
        mlp_bias=ABSENT, head_dim=16, vocab_size=256, num_attention_heads=4,
        num_key_value_heads=2, num_hidden_layers=3, first_k_dense_replace=1,
        intermediate_size=112, n_routed_experts=8, n_group=2, topk_group=1,
        num_experts_per_tok=3, moe_intermediate_size=24, n_shared_experts=1,
        use_qk_norm=True, rope_parameters=ABSENT, initializer_range=0.05),
    "halves-glm4-moe-lite": variant(
        architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite",
        mlp_bias=ABSENT, head_dim=ABSENT, vocab_size=256,
        num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=2,
        mlp_layer_types=["sparse", "dense"], intermediate_size=112,
        n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
        n_shared_experts=1, q_lora_rank=24, kv_lora_rank=20,
        qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=20,
        initializer_range=0.05),
    # Of 32 positions the last 24 have scaled queries.
    "halves-ministral3": {**MODELS["ministral3"], "intermediate_size": 112,
                          "vocab_size": 256},
    "halves-hunyuan": {**MODELS["hunyuan_v1_dense"], "intermediate_size": 112,
                       "vocab_size": 256},
    "halves-granitemoe": variant(
        architectures=["GraniteMoeForCausalLM"], model_type="granitemoe",
        mlp_bias=ABSENT, vocab_size=256, num_attention_heads=4,
        num_key_value_heads=2, num_hidden_layers=2, intermediate_size=24,
        num_local_experts=8, num_experts_per_tok=3, embedding_multiplier=12.0,
        logits_scaling=2.0, residual_multiplier=0.5,
        attention_multiplier=0.25, initializer_range=0.05),
    "halves-qwen2-moe": {**MODELS["qwen2-moe"], "num_experts": 8,
                         "moe_intermediate_size": 64, "vocab_size": 256,
                         "hidden_size": 256, "num_attention_heads": 4,
                         "num_key_value_heads": 4,
                         "shared_expert_intermediate_size": 1024},
    "halves-mixtral": {**MODELS["mixtral"], "num_local_experts": 4},
    # Heads and vocabularies that two ranks divide too.
    "even-qwen3-moe": {**MODELS["qwen3-moe"], "num_experts": 8,
                       "moe_intermediate_size": 24, "num_hidden_layers": 3,
                       "num_attention_heads": 4, "num_key_value_heads": 2,
                       "vocab_size": 256},
    "even-mixtral": {**MODELS["mixtral"], "num_local_experts": 4,
                     "intermediate_size": 48,
                     "num_attention_heads": 4, "num_key_value_heads": 2,
                     "vocab_size": 256},
    "halves-phi3": {**FAMILIES["phi3"], "intermediate_size": 112,
                    "vocab_size": 256, "num_attention_heads": 4,
                    "num_key_value_heads": 2}}


def inner(config):
    """A language model as the text_config of a model that has a tower too."""
    return {k: v for k, v in config.items() if k not in ("architectures", "tie_word_embeddings")}


def layer_class(config):
    """Of the language model, which Mistral's model of images has two of."""
    text = config.get("text_config", {}).get("model_type")
    return LAYER_CLASS[text if text == "ministral3" else config["model_type"]]


# Trained on text, so that no parameter of the tower has a gradient.
TOWERS = {
    "gemma3-tower": {
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "text_config": inner(MODELS["gemma3"]), "mm_tokens_per_image": 4,
        "vision_config": {
            "model_type": "siglip_vision_model", "hidden_size": 32, "intermediate_size": 40,
            "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56,
            "patch_size": 14, "vision_use_head": False}},
    "mistral3-tower": {
        "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
        "text_config": inner(MODELS["mistral"]), "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "pixtral", "hidden_size": 32, "intermediate_size": 40,
            "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56,
            "patch_size": 14}},
}
TOWERS["ministral3-tower"] = {**TOWERS["mistral3-tower"],
                              "text_config": inner(MODELS["ministral3"])}
QWEN_TOWER = {"depth": 2, "num_heads": 4, "hidden_size": 32, "intermediate_size": 40,
              "patch_size": 4, "spatial_merge_size": 2, "out_hidden_size": 128}
# Without images a token's time, row and column are one number.
SECTIONS = {"mrope_section": [2, 3, 3]}
TOWERS |= {
    "llava-tower": {
        "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
        "text_config": inner(MODELS["gqa"]), "tie_word_embeddings": False, "image_seq_length": 4,
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 40,
            "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28, "patch_size": 14}},
    "qwen2-5-vl-tower": {  # as it was published
        **MODELS["qwen2"], "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl", "rope_theta": 30000.0, "tie_word_embeddings": False,
        "rope_scaling": {"type": "mrope", **SECTIONS},
        "vision_config": {**QWEN_TOWER, "model_type": "qwen2_5_vl"}},
    "qwen2-vl-tower": {
        "architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
        "tie_word_embeddings": True,
        "text_config": {**inner(MODELS["qwen2"]), "model_type": "qwen2_vl_text",
                        "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, **SECTIONS}},
        "vision_config": {"depth": 2, "num_heads": 4, "embed_dim": 32, "mlp_ratio": 2, "patch_size": 4,
                          "hidden_size": 128}},
    "qwen3-vl-tower": {
        "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl",
        "tie_word_embeddings": False,
        "text_config": {**inner(MODELS["qwen3"]), "model_type": "qwen3_vl_text",
                        "rope_scaling": {"mrope_interleaved": True, "rope_type": "default",
                                         "mrope_section": [4, 6, 6]}},
        "vision_config": {**QWEN_TOWER, "num_position_embeddings": 16,
                          "deepstack_visual_indexes": [0]}},
}
PEAKED.update(TOWERS)


def mesh_of(shards, tp=1, cp=1):
    """A parallelism_config of these axes."""
    sizes = {"parallelism_config_dp_shard_size": shards}
    for axis, size in (("cp", cp), ("tp", tp)):
        if size > 1:
            sizes[f"parallelism_config_{axis}_size"] = size
    return sizes


def write_config(folder, config):
    """config.json as the installed transformers writes it."""
    import transformers

    transformers.AutoConfig.for_model(**config).save_pretrained(folder)


def write_spelled_config(folder, config):
    """config.json key by key: as other releases spell it, or wrong."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2)
        f.write("\n")


# torch's generator and default dtype are one for all threads: weights of models
# that two threads make at once would depend on who draws first.
DRAWING = threading.Lock()


def text_model(transformers, config):
    """The class that is trained on text: one with a tower is no AutoModelForCausalLM."""
    return transformers.AutoModelForImageTextToText if hasattr(config, "vision_config") \
        else transformers.AutoModelForCausalLM


def make_model(folder, config, seed=0):
    """A Hugging Face folder with config.json and random safetensors weights.

    Norm weights and biases get random values too: at their usual 1 and 0, a
    missing multiplication or addition would not be seen.
    """
    import torch
    import transformers

    write_config(folder, config)
    hf_config = transformers.AutoConfig.from_pretrained(folder)
    with DRAWING:
        torch.manual_seed(seed)
        model = text_model(transformers, hf_config).from_config(hf_config, dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape,
                                                 generator=generator))
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)


def make_tokens(path, count, vocab, seed=0, dtype="uint16"):
    """A token file that a model can learn: a noisy affine walk."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 4, size=count)
    tokens = np.empty(count, dtype=np.int64)
    state = 1
    for i in range(count):
        state = (state * 5 + 7 + int(noise[i])) % vocab
        tokens[i] = state
    tokens.astype(dtype).tofile(path)


def accelerate_config(kind, ranks, layer_class, *, precision="no",
                      replicate=1, activation_checkpointing=False,
                      reshard=True, tp=1, cp=1, clipping="auto"):
    """What `accelerate config` writes for this kind of job; `clipping` is
    DeepSpeed's, whose "auto" is the script's."""
    config = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": {"fsdp": "FSDP", "ddp": "MULTI_CPU",
                             "single": "NO"}.get(kind, "DEEPSPEED"),
        "mixed_precision": precision,
        "machine_rank": 0,
        "num_machines": 1,
        "num_processes": ranks,
        "main_training_function": "main",
    }
    if kind.startswith("zero"):
        config["deepspeed_config"] = {"zero_stage": int(kind[-1]),
                                      "gradient_clipping": clipping}
        return config
    if kind != "fsdp":
        config["use_cpu"] = True
        return config
    config["fsdp_config"] = {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_transformer_layer_cls_to_wrap": layer_class,
        "fsdp_reshard_after_forward": reshard,
        "fsdp_activation_checkpointing": activation_checkpointing,
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_offload_params": False,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    }
    # Accelerate refuses FSDP2 without ranks to shard over: the job's own mesh.
    if replicate > 1 or tp * cp > 1 and ranks > tp:
        config["parallelism_config"] = mesh_of(
            ranks // replicate // tp // cp, tp, cp)
    if replicate > 1:
        config["parallelism_config"][
            "parallelism_config_dp_replicate_size"] = replicate
    return config


def make_job(folder, model_config, *, kind="fsdp", ranks=2, replicate=1,
             steps=50, sequence_length=32, micro_batch=2, accumulation=1,
             precision=None, activation_checkpointing="pointwise",
             max_grad_norm=None, groups=None, schedule=None, lr=1e-3,
             tokens=None, checkpoint_every=0, reshard=True, weights_seed=0,
             evaluation=None, optimizer=None, tp=1, cp=1, sp=1, pp=1, ep=1,
             chunks=1, pipeline=None, ddp=None):
    """Writes model, tokens and job.yaml under `folder`; returns the job dict.

    Accelerate has `sp` for DeepSpeed alone, and neither `pp` nor `ep`: the mesh
    is then the job's own.

    `precision` is None for fp32 or {param, reduce, output}.
    `activation_checkpointing`: pointwise, none or full; full is asked for in
    the accelerate keys, as a user would.
    """
    os.makedirs(folder, exist_ok=True)
    make_model(os.path.join(folder, "model"), model_config, weights_seed)
    need = (steps * accumulation * ranks * micro_batch + 8) * sequence_length
    count = tokens or max(4096, need) + 1
    vocabulary = model_config.get("text_config", model_config)["vocab_size"]
    make_tokens(os.path.join(folder, "train.bin"), count, vocabulary)
    full = activation_checkpointing == "full"
    optimizer = dict(optimizer or {
        "name": "adamw", "lr": lr, "betas": [0.9, 0.95], "eps": 1e-8,
        "weight_decay": 0.1})
    if max_grad_norm is not None:
        optimizer["max_grad_norm"] = max_grad_norm
    if groups:
        optimizer["groups"] = groups
    mixed = "no" if precision is None else {"bf16": "bf16", "fp16": "fp16"}[
        precision["param"]]
    job = {
        "accelerate": accelerate_config(
            kind, ranks, layer_class(model_config),
            precision=mixed, replicate=replicate if pp == ep == 1 else 1,
            activation_checkpointing=full, reshard=reshard,
            clipping=0.0 if max_grad_norm is None else "auto",
            **({"tp": tp, "cp": cp} if sp == pp == ep == 1 else {})),
        "model": "model",
        "init": "pretrained",
        "data": {"tokens": "train.bin", "dtype": "uint16",
                 "sequence_length": sequence_length,
                 "micro_batch": micro_batch, "shuffle": False, "seed": 0},
        "gradient_accumulation_steps": accumulation,
        "optimizer": optimizer,
        "schedule": schedule or {"steps": steps, "warmup_steps": 0,
                                 "decay": "constant"},
        "checkpoint": {"dir": "out", "every": checkpoint_every, "keep": 2},
        **({"mesh": {axis: size for axis, size in (
            ("pp", pp), ("dp_replicate", replicate), ("cp", cp), ("sp", sp),
            ("tp", tp), ("ep", ep))
                     if size > 1}} if pp > 1 or ep > 1 else
           {"mesh": {"sp": sp, "tp": tp}} if sp > 1 else
           {"mesh": {"tp": tp}} if ranks == tp > 1 else {}),
        **({"pipeline": {"schedule": "interleaved-1f1b", "chunks": chunks}}
           if chunks > 1 else
           {"pipeline": {"schedule": pipeline}} if pipeline else {}),
        "target": "cpu",
    }
    job["schedule"]["steps"] = steps
    if precision is not None:
        job["precision"] = precision
    if ddp:
        job["ddp"] = ddp
    if not full:
        job["activation_checkpointing"] = activation_checkpointing
    if evaluation:
        make_tokens(os.path.join(folder, "val.bin"), 4097, vocabulary, seed=7)
        job["eval"] = {"tokens": "val.bin", **evaluation}
    if not checkpoint_every:
        del job["checkpoint"]["every"]
    write_job(folder, job)
    return job


ENCODERS = {
    "bert": {
        "architectures": ["BertForMaskedLM"], "model_type": "bert",
        "vocab_size": 97, "hidden_size": 40, "num_hidden_layers": 3,
        "num_attention_heads": 5, "intermediate_size": 72,
        "max_position_embeddings": 33, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0},
    "roberta": {
        "architectures": ["RobertaForSequenceClassification"],
        "model_type": "roberta", "vocab_size": 97, "hidden_size": 40,
        "num_hidden_layers": 3, "num_attention_heads": 5,
        "intermediate_size": 72, "max_position_embeddings": 33,
        "type_vocab_size": 1, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "id2label": {"0": "a", "1": "b", "2": "c"}},
    "vit": {
        "architectures": ["ViTForImageClassification"], "model_type": "vit",
        "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5,
        "intermediate_size": 72, "image_size": 12, "patch_size": 3,
        "id2label": {"0": "a", "1": "b", "2": "c"}},
    "whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper", "vocab_size": 97, "d_model": 40,
        "num_mel_bins": 7, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 5, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 72, "decoder_ffn_dim": 56,
        "max_source_positions": 13, "max_target_positions": 24,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 3, "suppress_tokens": None,
        "begin_suppress_tokens": None},
}
ENCODERS["t5"] = {
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
    "vocab_size": 97, "d_model": 40, "d_kv": 7, "d_ff": 72, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 5, "dropout_rate": 0.0,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20, "initializer_factor": 0.3,
    "feed_forward_proj": "gated-gelu", "pad_token_id": 0, "eos_token_id": 1,
    "decoder_start_token_id": 0}
ENCODER_LAYERS = {
    "t5": "T5Block",
    "bert": "BertLayer", "roberta": "RobertaLayer", "vit": "ViTLayer",
    "whisper": "WhisperEncoderLayer,WhisperDecoderLayer",
}


def make_arrays(config, samples, length):
    """Inputs of one sample a row, and labels that follow from them."""
    rng = np.random.default_rng(3)
    kind = config["model_type"]
    if kind == "vit":
        channels, size = 3, config["image_size"]
        pixels = rng.standard_normal((samples, channels, size, size))
        labels = rng.integers(0, len(config["id2label"]), samples)
        pixels += labels[:, None, None, None]
        return {"pixel_values": pixels.astype(np.float32), "labels": labels}
    tokens = rng.integers(4, config["vocab_size"], (samples, length))
    if kind == "whisper":
        features = rng.standard_normal(
            (samples, config["num_mel_bins"],
             2 * config["max_source_positions"]))
        labels = tokens.copy()
        labels[:, length - 3:] = -100
        return {"input_features": features.astype(np.float16), "labels": labels}
    if "id2label" in config:
        labels = rng.integers(0, len(config["id2label"]), samples)
        tokens[:, 1] = 10 + labels
        tokens[::3, length - 2:] = 1  # RoBERTa's padding
        return {"input_ids": tokens.astype(np.int32), "labels": labels}
    if kind == "t5":
        mask = np.ones_like(tokens, dtype=bool)
        mask[::3, length - 4:] = False
        labels = tokens[:, :length - 5].copy()
        labels[1, length - 8:] = -100
        return {"input_ids": tokens, "labels": labels, "attention_mask": mask}
    labels = np.where(rng.random(tokens.shape) < 0.3, tokens, -100)
    labels[:, 0] = tokens[:, 0]
    types = (np.arange(length) > length // 2) * np.ones_like(tokens)
    return {"input_ids": np.where(labels >= 0, 3, tokens).astype(np.uint16),
            "labels": labels.astype(np.int16), "token_type_ids": types}


def make_array_job(folder, name, *, ranks=2, steps=12, length=16, lr=2e-3,
                   accumulation=1, max_grad_norm=None, model_config=None,
                   precision=None):
    """As make_job, for a model that is fed by data.arrays."""
    import torch
    import transformers

    os.makedirs(folder, exist_ok=True)
    config = model_config or ENCODERS[name]
    model = os.path.join(folder, "model")
    write_config(model, config)
    made = transformers.AutoConfig.from_pretrained(model)
    with DRAWING, torch.no_grad():
        torch.manual_seed(0)
        network = getattr(transformers, config["architectures"][0])._from_config(
            made, dtype=torch.float32)
        for parameter in network.parameters():
            if parameter.dim() == 1 and parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    transformers.utils.logging.disable_progress_bar()
    network.save_pretrained(model)
    data = {"arrays": {}, "micro_batch": 2}
    for key, array in make_arrays(config, 7, length).items():
        np.save(os.path.join(folder, key + ".npy"), array)
        data["arrays"][key] = key + ".npy"
    if config["model_type"] != "vit":
        data["sequence_length"] = length
    if config["model_type"] == "t5":
        data["target_length"] = length - 5
    optimizer = {"name": "adamw", "lr": lr, "betas": [0.9, 0.95], "eps": 1e-8,
                 "weight_decay": 0.1}
    if max_grad_norm is not None:
        optimizer["max_grad_norm"] = max_grad_norm
    job = {
        "accelerate": accelerate_config(
            "fsdp", ranks, ENCODER_LAYERS[name],
            precision=precision["param"] if precision else "no"),
        "model": "model", "init": "pretrained", "data": data,
        "gradient_accumulation_steps": accumulation, "optimizer": optimizer,
        "schedule": {"steps": steps, "warmup_steps": 0, "decay": "constant"},
        "checkpoint": {"dir": "out", "keep": 1}, "target": "cpu",
    }
    if precision is not None:
        job["precision"] = precision
    write_job(folder, job)
    return job


def write_job(folder, job, name="job.yaml"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(job, f, sort_keys=False)
    return path
