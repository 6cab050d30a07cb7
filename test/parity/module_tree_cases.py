"""Module trees equal those of transformers, class by class, tensor by tensor.

Each family gets random small configurations with every switch that changes the
tree, written as the few keys that a person would write and as the whole file
that save_pretrained writes; each described architecture is made on torch's
meta device and compared.
"""
import json
import os
import random

import harness
from harness import check

DECODER = {
    "vocab_size": [64, 101], "hidden_size": [32, 48], "intermediate_size": [40],
    "num_hidden_layers": [0, 1, 3], "num_attention_heads": [4],
    "num_key_value_heads": [1, 2, 4], "tie_word_embeddings": [True, False],
    "max_position_embeddings": [64], "dtype": ["bfloat16", "float16", None],
    "num_labels": [2, 5],
}
HEADS = ["ForCausalLM", "Model", "ForSequenceClassification",
         "ForTokenClassification", "ForQuestionAnswering"]
WINDOW = {"use_sliding_window": [True, False], "sliding_window": [8],
          "max_window_layers": [0, 2]}
HEAD_DIM = {"head_dim": [8, 20]}
BIAS = {"attention_bias": [True, False]}
ENCODER = {
    "vocab_size": [64, 101], "hidden_size": [32, 48], "intermediate_size": [40],
    "num_hidden_layers": [0, 2], "num_attention_heads": [4],
    "max_position_embeddings": [64], "type_vocab_size": [2, 3],
    "hidden_act": ["gelu", "relu", "gelu_new", "silu"], "num_labels": [2, 3],
    "tie_word_embeddings": [True, False],
}
GPT2 = {
    "vocab_size": [64], "n_embd": [32], "n_layer": [0, 2], "n_head": [4],
    "n_positions": [32], "n_inner": [None, 50], "num_labels": [2, 4],
    "add_cross_attention": [False, False, True],
    "tie_word_embeddings": [True, False],
    "activation_function": ["gelu_new", "relu"],
}
TOWER = {
    "hidden_size": [32, 48], "intermediate_size": [40], "num_hidden_layers": [0, 2],
    "num_attention_heads": [4], "image_size": [56, 60], "patch_size": [14, 8],
}
# Whose classes fail where no head_dim is given, or whose default is not described.
NO_DEFAULTS = ("granitemoehybrid", "hunyuan_v1_dense", "ministral")
# Layers of a gated delta rule beside attention.
DELTA = {k: v for k, v in DECODER.items() if k != "intermediate_size"} | BIAS | {
    "num_hidden_layers": [1, 3, 5], "head_dim": [8, 16], "linear_conv_kernel_dim": [2, 4],
    "linear_key_head_dim": [4, 8], "linear_value_head_dim": [8, 12], "linear_num_key_heads": [2],
    "linear_num_value_heads": [2, 4, 6], "full_attention_interval": [2, 3],
    "partial_rotary_factor": [0.25, 0.5], "pad_token_id": [0]}
DELTA_EXPERTS = DELTA | {
    "num_experts": [4, 8], "num_experts_per_tok": [2], "moe_intermediate_size": [24],
    "shared_expert_intermediate_size": [24, 40]}
# model_type: (class prefix, architectures, switches)
FAMILIES = {
    "llama": ("Llama", HEADS, DECODER | BIAS | HEAD_DIM
              | {"mlp_bias": [True, False], "hidden_act": ["silu", "gelu"]}),
    "mistral": ("Mistral", HEADS, DECODER | HEAD_DIM
                | {"sliding_window": [None, 8]}),
    "ministral": ("Ministral", HEADS, DECODER | HEAD_DIM
                  | {"sliding_window": [8]}),
    "ministral3": ("Ministral3", HEADS, DECODER | HEAD_DIM
                   | {"sliding_window": [None, 8], "pad_token_id": [0]}),
    "hunyuan_v1_dense": ("HunYuanDenseV1", HEADS[:3],
                         DECODER | BIAS | HEAD_DIM),
    "ernie4_5": ("Ernie4_5", HEADS[:2], DECODER | HEAD_DIM
                 | {"use_bias": [True, False]}),
    "qwen2": ("Qwen2", HEADS, DECODER | WINDOW),
    "qwen3": ("Qwen3", HEADS, DECODER | WINDOW | BIAS | HEAD_DIM),
    "mixtral": ("Mixtral", HEADS, DECODER | {
        "num_local_experts": [2, 5], "sliding_window": [None, 8]}),
    "qwen2_moe": ("Qwen2Moe", HEADS, DECODER | {
        "num_experts": [4], "moe_intermediate_size": [24],
        "shared_expert_intermediate_size": [24], "decoder_sparse_step": [1, 2],
        "mlp_only_layers": [[], [0]], "qkv_bias": [True, False]}),
    "qwen3_moe": ("Qwen3Moe", HEADS, DECODER | BIAS | HEAD_DIM | {
        "num_experts": [4], "moe_intermediate_size": [24],
        "decoder_sparse_step": [1, 2], "mlp_only_layers": [[], [1]]}),
    "deepseek_v3": ("DeepseekV3", HEADS[:4], DECODER | BIAS | {
        "num_key_value_heads": [4], "n_routed_experts": [4, 8],
        "n_group": [2], "topk_group": [1], "num_experts_per_tok": [2],
        "moe_intermediate_size": [24], "n_shared_experts": [1, 2],
        "first_k_dense_replace": [0, 1, 5], "q_lora_rank": [None, 12],
        "kv_lora_rank": [10], "qk_rope_head_dim": [4, 8],
        "qk_nope_head_dim": [6], "v_head_dim": [5, 12]}),
    "glm4_moe": ("Glm4Moe", HEADS[:2], DECODER | BIAS | HEAD_DIM | {
        "n_routed_experts": [4, 8], "n_group": [2], "topk_group": [1],
        "num_experts_per_tok": [2], "moe_intermediate_size": [24],
        "n_shared_experts": [1, 2], "first_k_dense_replace": [0, 1, 5],
        "use_qk_norm": [True, False]}),
    "glm4_moe_lite": ("Glm4MoeLite", HEADS[:2], DECODER | BIAS | {
        "num_key_value_heads": [4], "n_routed_experts": [4, 8],
        "num_hidden_layers": [2], "num_experts_per_tok": [2],
        "mlp_layer_types": [None, ["dense", "sparse"], ["sparse", "dense"]],
        "moe_intermediate_size": [24], "n_shared_experts": [1, 2],
        "q_lora_rank": [None, 12], "kv_lora_rank": [10],
        "qk_rope_head_dim": [4, 8], "qk_nope_head_dim": [6],
        "v_head_dim": [5, 12]}),
    "gemma": ("Gemma", HEADS[:4], DECODER | BIAS | HEAD_DIM),
    "gemma2": ("Gemma2", HEADS[:4], DECODER | BIAS | HEAD_DIM
               | {"sliding_window": [8]}),
    "gemma3_text": ("Gemma3", ["ForCausalLM", "TextModel"],
                    DECODER | BIAS | HEAD_DIM | {"sliding_window": [8]}),
    "phi3": ("Phi3", HEADS[:4], DECODER | {
        "sliding_window": [None, 8], "pad_token_id": [0]}),
    "olmo2": ("Olmo2", HEADS[:2], DECODER | BIAS),
    "olmo3": ("Olmo3", HEADS[:3], DECODER | BIAS | {"sliding_window": [8]}),
    "exaone4": ("Exaone4", HEADS, DECODER | HEAD_DIM | {
        "sliding_window": [8], "sliding_window_pattern": [2, 4]}),
    "stablelm": ("StableLm", HEADS[:4], DECODER | {
        "use_qkv_bias": [True, False], "qk_layernorm": [True, False],
        "use_parallel_residual": [True, False]}),
    "glm4": ("Glm4", HEADS[:4], DECODER | BIAS | HEAD_DIM
             | {"pad_token_id": [0]}),
    "cohere": ("Cohere", HEADS[:2], DECODER | BIAS | {
        "use_qk_norm": [True, False], "pad_token_id": [0]}),
    "cohere2": ("Cohere2", HEADS[:2], DECODER | BIAS | {
        "sliding_window": [8], "sliding_window_pattern": [2, 4],
        "pad_token_id": [0]}),
    "glm": ("Glm", HEADS[:4], DECODER | BIAS | HEAD_DIM
            | {"pad_token_id": [0]}),
    "arcee": ("Arcee", HEADS, DECODER | BIAS | HEAD_DIM | {
        "mlp_bias": [True, False], "hidden_act": ["relu2", "silu"]}),
    "seed_oss": ("SeedOss", HEADS, DECODER | BIAS | HEAD_DIM | {
        "attention_out_bias": [True, False], "mlp_bias": [True, False],
        "pad_token_id": [0]}),
    "olmoe": ("Olmoe", HEADS[:2], DECODER | BIAS | {
        "num_experts": [4], "num_experts_per_tok": [2],
        "pad_token_id": [0]}),
    "granitemoe": ("GraniteMoe", HEADS[:2], DECODER | BIAS | {
        "num_local_experts": [4], "num_experts_per_tok": [2]}),
    "granitemoehybrid": ("GraniteMoeHybrid", HEADS[:2], DECODER | BIAS | {
        "num_hidden_layers": [2], "num_local_experts": [0, 4],
        "layer_types": [["attention", "full_attention"]],
        "shared_intermediate_size": [24], "mamba_n_heads": [4],
        "position_embedding_type": ["rope", None]}),
    "granite": ("Granite", HEADS[:1], DECODER | BIAS | {
        "mlp_bias": [True, False]}),
    "smollm3": ("SmolLM3", HEADS, DECODER | BIAS | {
        "mlp_bias": [True, False], "use_sliding_window": [True, False],
        "sliding_window": [8, None], "pad_token_id": [0]}),
    "gpt_oss": ("GptOss", HEADS[:4], DECODER | BIAS | {
        "num_local_experts": [4, 5], "head_dim": [8, 20],
        "num_experts_per_tok": [2], "sliding_window": [8],
        # In fp16 from_pretrained alone keeps its norms in fp32.
        "dtype": ["bfloat16", None]}),
    "gpt2": ("GPT2", ["LMHeadModel"] + HEADS[1:], GPT2),
    "nemotron_h": ("NemotronH", ["ForCausalLM", "Model"], {
        "vocab_size": [64, 101], "hidden_size": [32, 48],
        "hybrid_override_pattern": ["M", "ME*-", "E*MM-E", "**"],
        "num_attention_heads": [4], "num_key_value_heads": [1, 2, None],
        "head_dim": [8], "intermediate_size": [40], "mlp_bias": [True, False],
        "use_bias": [True, False], "use_conv_bias": [True, False],
        "mamba_num_heads": [4, 6], "mamba_head_dim": [8], "n_groups": [1, 2],
        "ssm_state_size": [8, 16], "conv_kernel": [2, 4],
        "n_routed_experts": [4, 8], "moe_intermediate_size": [24],
        "moe_shared_expert_intermediate_size": [24],
        "moe_latent_size": [None, 12], "mlp_hidden_act": ["relu2", "silu"],
        "dtype": ["bfloat16", "float16", None], "num_labels": [2],
        "tie_word_embeddings": [True, False]}),
    "qwen3_5_text": ("Qwen3_5", ["ForCausalLM", "TextModel"], DELTA | {
        "intermediate_size": [40]}),
    "qwen3_5_moe_text": ("Qwen3_5Moe", ["ForCausalLM", "TextModel"], DELTA_EXPERTS),
    "qwen3_next": ("Qwen3Next", HEADS, DELTA_EXPERTS | {
        "intermediate_size": [40], "decoder_sparse_step": [1, 2], "mlp_only_layers": [[], [1]]}),
    # Not gpt_bigcode: its mask is a buffer of truth values, a dtype that trees
    # do not have; Accelerate counts it as an eighth of a byte an element.
    "gpt_neox": ("GPTNeoX", HEADS[:4], {
        k: v for k, v in DECODER.items() if k != "num_key_value_heads"} | BIAS),
    "phi": ("Phi", HEADS[:3], DECODER | {"qk_layernorm": [True, False]}),
    "starcoder2": ("Starcoder2", HEADS[:2], DECODER
                   | {"use_bias": [True, False], "sliding_window": [None, 8]}),
    "opt": ("OPT", HEADS[:3], {
        "vocab_size": [64], "hidden_size": [32], "ffn_dim": [48],
        "num_hidden_layers": [0, 2], "num_attention_heads": [4],
        "max_position_embeddings": [32], "word_embed_proj_dim": [32, 16],
        "do_layer_norm_before": [True, False], "enable_bias": [True, False],
        "layer_norm_elementwise_affine": [True, False], "num_labels": [2, 3],
        "tie_word_embeddings": [True, False]}),
    "falcon": ("Falcon", HEADS[:3], {
        "vocab_size": [64], "hidden_size": [32], "num_hidden_layers": [0, 2],
        "num_attention_heads": [4], "num_kv_heads": [None, 2],
        "new_decoder_architecture": [True, False], "parallel_attn": [True],
        "multi_query": [True, False], "bias": [True, False],
        "alibi": [True, False], "ffn_hidden_size": [None, 40],
        "activation": ["gelu", "relu"], "num_labels": [2, 3],
        "tie_word_embeddings": [True, False]}),
    "mpt": ("Mpt", HEADS[:3], {
        "vocab_size": [64], "d_model": [32], "n_layers": [0, 2],
        "n_heads": [4], "max_seq_len": [32], "num_labels": [2, 3],
        "tie_word_embeddings": [True, False]}),
    "bert": ("Bert", ["Model", "ForMaskedLM", "LMHeadModel", "ForPreTraining",
                      "ForSequenceClassification", "ForNextSentencePrediction",
                      "ForMultipleChoice", "ForTokenClassification",
                      "ForQuestionAnswering"], ENCODER),
    "roberta": ("Roberta", ["Model", "ForMaskedLM", "ForCausalLM",
                            "ForSequenceClassification", "ForMultipleChoice",
                            "ForTokenClassification", "ForQuestionAnswering"],
                ENCODER),
    "distilbert": ("DistilBert", ["Model", "ForMaskedLM",
                                  "ForSequenceClassification",
                                  "ForTokenClassification"], {
        "vocab_size": [64], "dim": [32], "hidden_dim": [48], "n_layers": [0, 2],
        "n_heads": [4], "activation": ["gelu", "relu"], "num_labels": [2, 3],
        "tie_word_embeddings": [True, False]}),
    "vit": ("ViT", ["Model", "ForImageClassification"], {
        "hidden_size": [32], "intermediate_size": [48],
        "num_hidden_layers": [0, 2], "num_attention_heads": [4],
        "image_size": [32], "patch_size": [8, 16], "num_channels": [1, 3],
        "qkv_bias": [True, False], "num_labels": [2, 7],
        "hidden_act": ["gelu", "relu"]}),
    "t5": ("T5", ["ForConditionalGeneration", "Model", "EncoderModel",
                  "ForSequenceClassification", "ForTokenClassification"], {
        "vocab_size": [64], "d_model": [32], "d_kv": [8], "d_ff": [48],
        "num_layers": [0, 2], "num_decoder_layers": [1, 3], "num_heads": [4],
        "relative_attention_num_buckets": [8], "num_labels": [2, 3],
        "feed_forward_proj": ["relu", "gated-gelu", "gated-silu"],
        "tie_word_embeddings": [True, False]}),
    "siglip_vision_model": ("Siglip", ["VisionModel"], TOWER | {
        "hidden_act": ["gelu_pytorch_tanh", "gelu"], "num_channels": [1, 3],
        "vision_use_head": [True, False]}),
    "pixtral": ("Pixtral", ["VisionModel"], TOWER | {
        "hidden_act": ["gelu", "silu"], "num_channels": [1, 3]}),
}
QWEN_TOWER = {
    "depth": [0, 2], "num_heads": [2, 4], "hidden_size": [48, 80], "in_channels": [1, 3],
    "patch_size": [7, 14], "spatial_merge_size": [1, 2], "temporal_patch_size": [1, 2]}
QWEN_TEXT = {k: v for k, v in DECODER.items() if k != "tie_word_embeddings"} | {
    "hidden_act": ["silu", "gelu"]}
# Found in the models below alone.
PARTS = {
    "qwen2_vl_text": QWEN_TEXT | WINDOW,
    "qwen2_vl_vision": QWEN_TOWER | {
        "embed_dim": [32, 48], "mlp_ratio": [2, 4], "hidden_act": ["quick_gelu", "silu"]},
    "qwen2_5_vl_text": QWEN_TEXT | WINDOW,
    "qwen2_5_vl_vision": QWEN_TOWER | {
        "intermediate_size": [40, 56], "out_hidden_size": [32, 48], "hidden_act": ["silu", "gelu"]},
    "qwen3_vl_text": QWEN_TEXT | BIAS | HEAD_DIM,
    "qwen3_vl_vision": QWEN_TOWER | {
        "intermediate_size": [40, 56], "out_hidden_size": [32, 48], "num_position_embeddings": [16, 64],
        "deepstack_visual_indexes": [[], [0], [0, 1]], "hidden_act": ["gelu_pytorch_tanh", "silu"]},
    **{kind: QWEN_TOWER | {
        "intermediate_size": [40, 56], "out_hidden_size": [32, 48], "num_position_embeddings": [16, 64],
        "hidden_act": ["gelu_pytorch_tanh", "silu"]} for kind in ("qwen3_5_vision", "qwen3_5_moe_vision")},
    "clip_vision_model": TOWER | {"hidden_act": ["quick_gelu", "gelu"], "num_channels": [1, 3]},
}
# model_type: (class, language model, tower, switches of the whole)
WRAPPERS = {
    "gemma3": ("Gemma3ForConditionalGeneration", "gemma3_text",
               "siglip_vision_model", {"mm_tokens_per_image": [4]}),
    "mistral3": ("Mistral3ForConditionalGeneration", "mistral", "pixtral",
                 {"spatial_merge_size": [1, 2],
                  "multimodal_projector_bias": [True, False],
                  "projector_hidden_act": ["gelu", "silu"]}),
    "llava": ("LlavaForConditionalGeneration", "llama", "clip_vision_model",
              {"vision_feature_layer": [-2, [-2], [-2, -1]],
               "multimodal_projector_bias": [True, False],
               "projector_hidden_act": ["gelu", "silu"]}),
    **{kind: (f"{prefix}ForConditionalGeneration", f"{kind}_text", f"{kind}_vision", {})
       for kind, prefix in (("qwen2_vl", "Qwen2VL"), ("qwen2_5_vl", "Qwen2_5_VL"), ("qwen3_vl", "Qwen3VL"),
                            ("qwen3_5", "Qwen3_5"), ("qwen3_5_moe", "Qwen3_5Moe"))},
}
# Their older files have the language model's settings beside vision_config, whose
# model_type is then the whole's.
FLAT = ("qwen2_vl", "qwen2_5_vl")
DTYPES = {"torch.float32": "f32", "torch.bfloat16": "bf16",
          "torch.float16": "f16", "torch.int64": "i64", "torch.bool": "i1"}


def name_of(model, module):
    for name, other in model.named_modules():
        if other is module:
            return name
    return None


def described(model, config):
    first, parameters = {}, []
    for name, p in model.named_parameters(remove_duplicate=False):
        original = first.setdefault(id(p), name)
        parameters.append([name, list(p.shape), DTYPES[str(p.dtype)],
                           original if original != name else None])
    base = getattr(model, model.base_model_prefix, None) \
        if model.base_model_prefix else None
    output = model.get_output_embeddings()
    config = config.get_text_config()
    types = getattr(config, "layer_types", None)
    layers = getattr(config, "num_hidden_layers", 0)
    if types is None and getattr(config, "sliding_window", None):
        types = ["sliding_attention"] * layers
    elif types is None:
        types = ["full_attention"] * layers
    return {
        "modules": [[n, type(m).__name__] for n, m in model.named_modules()],
        "parameters": parameters,
        "buffers": sorted([n, list(b.shape), DTYPES[str(b.dtype)]]
                          for n, b in model.named_buffers()),
        "no_split": sorted(model._no_split_modules or []),
        "base": name_of(model, base) if base is not None else None,
        "input": name_of(model, model.get_input_embeddings()),
        "output": name_of(model, output) if output is not None else None,
        "sliding": [t != "full_attention" for t in types],
        "tp": bool(getattr(config, "base_model_tp_plan", None)),
        "numel": sum(p.numel() for p in model.parameters()),
    }


def differences(mine, theirs):
    if "modules" not in mine:
        return [str(mine["diagnostics"])]
    mine["buffers"].sort()
    if not mine["sliding"]:  # encoders have no causal window
        theirs.pop("sliding")
    lines = []
    for key, value in theirs.items():
        if mine[key] == value:
            continue
        if isinstance(value, list):
            wrong = [(a, b) for a, b in zip(mine[key], value) if a != b]
            lines.append(f"{key}: {len(mine[key])} and {len(value)}, first "
                         f"{wrong[:2] or [mine[key][len(value):], value[len(mine[key]):]]}")
        else:
            lines.append(f"{key}: here {mine[key]}, transformers {value}")
    return lines


def family(model_type, count=6):
    def case(context):
        import torch
        import transformers
        transformers.logging.set_verbosity_error()
        prefix, heads, switches = FAMILIES[model_type]
        rng = random.Random(model_type)
        wanted, folders = [], []
        for number in range(max(count, len(heads))):
            values = {k: rng.choice(v) for k, v in switches.items()}
            for key in rng.sample(sorted(values), rng.choice([0, 0, 1])):
                if key not in ("num_experts", "num_local_experts", "head_dim",
                               "layer_types", "mamba_n_heads"):
                    del values[key]
            values = {k: v for k, v in values.items()
                      if v is not None or k in ("sliding_window", "n_inner")}
            architecture = prefix + heads[number % len(heads)]
            dtype = values.pop("dtype", None)
            config = transformers.CONFIG_MAPPING[model_type](**values)
            config.architectures = [architecture]
            folder = context.path(str(number))
            os.mkdir(folder)
            if number % 2:
                config.dtype = dtype
                config.save_pretrained(folder)
            else:
                labels = values.pop("num_labels", 2)
                text = values | {
                    "model_type": model_type, "architectures": [architecture],
                    "id2label": {str(i): str(i) for i in range(labels)}}
                if dtype:
                    text["torch_dtype"] = dtype
                with open(os.path.join(folder, "config.json"), "w",
                          encoding="utf-8") as f:
                    json.dump(text, f)
            config = transformers.AutoConfig.from_pretrained(folder)
            with torch.device("meta"):
                model = getattr(transformers, architecture)._from_config(
                    config, dtype=getattr(torch, dtype or "float32"))
            wanted.append((architecture, described(model, config)))
            folders.append(folder)
        out = harness.run([context.binary("module-tree-dump"), *folders])
        wrong = []
        for folder, (architecture, theirs), line in zip(
                folders, wanted, out.splitlines()):
            lines = differences(json.loads(line), theirs)
            if lines:
                with open(os.path.join(folder, "config.json")) as f:
                    wrong.append(f"{architecture} {f.read()}\n"
                                 + "\n".join(lines))
        check(not wrong, f"{len(wrong)} of {len(folders)} differ:\n"
              + "\n\n".join(wrong[:3]))
        return f"{len(folders)} models of {len(heads)} classes"
    return case


def wrapper(model_type, count=8):
    """A language model and a tower as parts of a whole."""
    def case(context):
        import torch
        import transformers
        transformers.logging.set_verbosity_error()
        architecture, text, vision, switches = WRAPPERS[model_type]
        rng = random.Random(model_type)

        def draw(table):
            values = {k: rng.choice(v) for k, v in table.items()}
            values.pop("dtype", None)
            values.pop("num_labels", None)
            return values
        folders, wrong = [], []
        for number in range(count):
            dtype = rng.choice(["bfloat16", "float16", "float32"])
            if model_type == "mistral3":
                text = ("mistral", "ministral3")[number % 2]
            text_config, vision_config = (
                draw(PARTS.get(part) or FAMILIES[part][2]) for part in (text, vision))
            config = draw(switches) | {
                "model_type": model_type, "architectures": [architecture],
                "tie_word_embeddings": rng.choice([True, False]),
                "torch_dtype": dtype,
                "text_config": text_config | {"model_type": text},
                "vision_config": vision_config | {"model_type": vision}}
            if model_type in FLAT and number % 4 < 2:
                config["vision_config"]["model_type"] = model_type
                config |= text_config
                del config["text_config"]
            if model_type in FLAT and number % 4 == 2:  # as releases 4.52 to 4.57 wrote it
                config["text_config"]["tie_word_embeddings"] = config.pop("tie_word_embeddings")
            if number % 4 == 3:  # as the class has it
                del config["tie_word_embeddings"]
                del config["vision_config"]["hidden_act"]
            folder = context.path(str(number))
            os.mkdir(folder)
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            read = transformers.AutoConfig.from_pretrained(folder)
            if number % 2:
                read.save_pretrained(folder)
            folders.append((folder, described_on_meta(transformers, torch, architecture, read, dtype)))
        out = harness.run([context.binary("module-tree-dump"), *(folder for folder, _ in folders)])
        for (folder, theirs), line in zip(folders, out.splitlines()):
            lines = differences(json.loads(line), theirs)
            if lines:
                with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
                    wrong.append(f.read() + "\n" + "\n".join(lines))
        check(not wrong, f"{len(wrong)} of {count} differ:\n" + "\n\n".join(wrong[:3]))
        empty = context.path("empty")
        os.mkdir(empty)
        with open(os.path.join(empty, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"model_type": model_type}, f)
        (line,) = harness.run([context.binary("module-tree-dump"), empty]).splitlines()
        check("'vision_config' is missing" in line, line)
        return f"{count} models of {architecture}"
    return case


def described_on_meta(transformers, torch, architecture, config, dtype):
    with torch.device("meta"):
        model = getattr(transformers, architecture)._from_config(
            config, dtype=getattr(torch, dtype))
    return described(model, config)


def complete(context):
    """Every described family is compared above."""
    out = harness.run([context.binary("module-tree-dump"), "--families"])
    check(sorted([*FAMILIES, *PARTS, *WRAPPERS, "gpt_bigcode"]) == out.split(), out)


def defaults(context):
    """A config.json that names its model_type alone."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    folders, wanted = [], []
    for model_type in sorted(set(FAMILIES) - set(NO_DEFAULTS)):
        folder = context.path(model_type)
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w",
                  encoding="utf-8") as f:
            json.dump({"model_type": model_type}, f)
        config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            wanted.append(described(
                transformers.AutoModel.from_config(config), config))
        folders.append(folder)
    out = harness.run([context.binary("module-tree-dump"), "--architecture",
                       "base", *folders])
    wrong = []
    for folder, theirs, line in zip(folders, wanted, out.splitlines()):
        lines = differences(json.loads(line), theirs)
        if lines:
            wrong.append(folder + "\n" + "\n".join(lines))
    check(not wrong, "\n\n".join(wrong))
    return f"{len(folders)} families"


def shipped(*path):
    """A file of configurations that is part of the compiler."""
    with open(os.path.join(harness.ROOT, *path), encoding="utf-8") as f:
        return json.load(f)


def on_meta(context, name, config):
    """The model's folder, its tree as it is read, and the shapes that
    transformers gives its parameters, on the meta device."""
    import torch
    import transformers
    folder = context.path(name)
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    loaded = transformers.AutoConfig.from_pretrained(folder)
    if hasattr(loaded, "quantization_config"):
        del loaded.quantization_config
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])(loaded) \
            if "architectures" in config else \
            transformers.AutoModelForCausalLM.from_config(loaded)
    theirs = {n: list(p.shape) for n, p in
              model.named_parameters(remove_duplicate=False)}
    tree = json.loads(harness.run(
        [context.binary("module-tree-dump"), folder]))
    mine = {p[0]: p[1] for p in tree["parameters"]}
    check(mine == theirs, f"{name}: parameters differ")
    return folder, tree, theirs


def hybrids(context):
    """Published hybrid models that ship with the compiler."""
    known = {json.dumps(config): (name, config) for name, config
             in sorted(shipped("passes", "Validate", "data",
                               "models.json").items())
             if config["model_type"] == "nemotron_h"}
    lines = []
    for name, config in known.values():
        folder, tree, theirs = on_meta(context, name, config)
        read = [line.split("\t") for line in
                harness.run([context.binary("hf-dump"), folder]).splitlines()]
        mine = {line[1]: [int(n) for n in line[2].split(",")]
                for line in read if line[0] == "param"}
        check(mine == theirs, f"{name}: parameters differ")
        lines.append(f"{name} {tree['numel']}")
    check(len(lines) >= 5, str(lines))
    return ", ".join(lines)


def published(context):
    """Models that --model takes by name have as many parameters as on the Hub,
    and the names and shapes that transformers gives them."""
    models = shipped("frontends", "HuggingFace", "data", "published.json")
    shapes = set()
    for model in models:
        config = model["config"]
        # The same but for positions, names and dtypes.
        shape = json.dumps({key: value for key, value in config.items()
                            if "theta" not in key and "scaling" not in key and
                            key not in ("max_position_embeddings",
                                        "torch_dtype", "rms_norm_eps")})
        if shape in shapes:
            continue
        shapes.add(shape)
        name = model["names"][0]
        _, tree, _ = on_meta(context, name.replace("/", "--"), config)
        check(tree["numel"] == model["parameters"],
              f"{name}: {tree['numel']} parameters, published are "
              f"{model['parameters']}")
    check(len(models) > 150 and len(shapes) > 80, f"{len(shapes)} shapes")
    return f"{len(models)} models, {len(shapes)} shapes"


CASES = [("complete", complete), ("defaults", defaults), ("hybrids", hybrids),
         ("published", published)]
CASES += [(name.replace("_", "-"), family(name)) for name in sorted(FAMILIES)]
CASES += [(name, wrapper(name)) for name in sorted(WRAPPERS)]
