"""config.json of a small model of each decoder family, for the parity tests."""

# Deliberately odd sizes: 257 rows and 176 columns do not divide by 3 ranks.
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 257,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "dtype": "float32",
}

LAYER_CLASS = {
    "llama": "LlamaDecoderLayer",
    "mistral": "MistralDecoderLayer",
    "qwen2": "Qwen2DecoderLayer",
    "qwen3": "Qwen3DecoderLayer",
    "gpt2": "GPT2Block",
    "mixtral": "MixtralDecoderLayer",
    "qwen2_moe": "Qwen2MoeDecoderLayer",
    "qwen3_moe": "Qwen3MoeDecoderLayer",
    "gpt_oss": "GptOssDecoderLayer",
    "deepseek_v3": "DeepseekV3DecoderLayer",
    "olmo2": "Olmo2DecoderLayer",
    "olmo3": "Olmo3DecoderLayer",
    "phi": "PhiDecoderLayer",
    "stablelm": "StableLmDecoderLayer",
    "exaone4": "Exaone4DecoderLayer",
    "glm4": "Glm4DecoderLayer",
    "cohere": "CohereDecoderLayer",
    "cohere2": "Cohere2DecoderLayer",
    "glm": "GlmDecoderLayer",
    "arcee": "ArceeDecoderLayer",
    "seed_oss": "SeedOssDecoderLayer",
    "olmoe": "OlmoeDecoderLayer",
    "granite": "GraniteDecoderLayer",
    "starcoder2": "Starcoder2DecoderLayer",
    "smollm3": "SmolLM3DecoderLayer",
    "phi3": "Phi3DecoderLayer",
    "gemma": "GemmaDecoderLayer",
    "gemma2": "Gemma2DecoderLayer",
    "gemma3_text": "Gemma3DecoderLayer",
    "gemma3": "Gemma3DecoderLayer",
    "mistral3": "MistralDecoderLayer",
    "llava": "LlamaDecoderLayer",
    "qwen2_5_vl": "Qwen2_5_VLDecoderLayer",
    "qwen2_vl": "Qwen2VLDecoderLayer",
    "qwen3_vl": "Qwen3VLTextDecoderLayer",
    "gpt_bigcode": "GPTBigCodeBlock",
    "gpt_neox": "GPTNeoXLayer",
    "opt": "OPTDecoderLayer",
    "falcon": "FalconDecoderLayer",
    "mpt": "MptBlock",
}


ABSENT = object()


def variant(**changes):
    """LLAMA with some keys changed; ABSENT removes a key, None writes null."""
    config = dict(LLAMA)
    config.update(changes)
    return {k: v for k, v in config.items() if v is not ABSENT}


ROPE_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

GPT2 = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "vocab_size": LLAMA["vocab_size"], "n_embd": 128, "n_layer": 3,
    "n_head": 4, "n_positions": 128, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
    "attn_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None,
    "initializer_range": 0.06,
}

GEMMA = {
    "architectures": ["GemmaForCausalLM"], "model_type": "gemma",
    "vocab_size": 257, "hidden_size": 48, "intermediate_size": 88,
    "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
    "head_dim": 16, "max_position_embeddings": 128, "initializer_range": 0.05,
    "pad_token_id": None,
}
# One of each family, small: two layers, sequences of 32 tokens.
FAMILIES = {
    "mistral-window": {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral",
        **{k: LLAMA[k] for k in ("vocab_size", "hidden_size",
                                 "intermediate_size", "num_attention_heads",
                                 "num_key_value_heads")},
        "num_hidden_layers": 2, "sliding_window": 7, "pad_token_id": None},
    "olmo2": variant(architectures=["Olmo2ForCausalLM"], model_type="olmo2",
                     num_hidden_layers=2, mlp_bias=ABSENT, pad_token_id=None),
    "olmo3": variant(architectures=["Olmo3ForCausalLM"], model_type="olmo3",
                     num_hidden_layers=2, mlp_bias=ABSENT, pad_token_id=None,
                     sliding_window=7, rope_parameters=ABSENT,
                     layer_types=["sliding_attention", "full_attention"]),
    "phi": variant(architectures=["PhiForCausalLM"], model_type="phi",
                   num_hidden_layers=2, mlp_bias=ABSENT, attention_bias=ABSENT,
                   pad_token_id=None, rope_parameters=ABSENT,
                   hidden_act="gelu_new"),
    "stablelm": variant(architectures=["StableLmForCausalLM"],
                        model_type="stablelm", num_hidden_layers=2,
                        mlp_bias=ABSENT, attention_bias=ABSENT,
                        pad_token_id=None, rope_parameters=ABSENT,
                        use_qkv_bias=True),
    "exaone4": variant(architectures=["Exaone4ForCausalLM"],
                       model_type="exaone4", num_hidden_layers=2,
                       mlp_bias=ABSENT, attention_bias=ABSENT,
                       pad_token_id=None, sliding_window=7,
                       layer_types=["sliding_attention", "full_attention"]),
    "glm4": variant(architectures=["Glm4ForCausalLM"], model_type="glm4",
                    num_hidden_layers=2, mlp_bias=ABSENT, attention_bias=True,
                    head_dim=16, pad_token_id=None, rope_parameters=ABSENT),
    # With use_qk_norm under autocast of fp32 weights autograd saves 9 % more
    # of a layer than is counted: not understood yet.
    "cohere": variant(architectures=["CohereForCausalLM"], model_type="cohere",
                      num_hidden_layers=2, mlp_bias=ABSENT, pad_token_id=None,
                      tie_word_embeddings=True),
    "cohere2": variant(architectures=["Cohere2ForCausalLM"],
                       model_type="cohere2", num_hidden_layers=2,
                       mlp_bias=ABSENT, pad_token_id=None,
                       tie_word_embeddings=True, sliding_window=7,
                       layer_types=["sliding_attention", "full_attention"]),
    "glm": variant(architectures=["GlmForCausalLM"], model_type="glm",
                   num_hidden_layers=2, mlp_bias=ABSENT, attention_bias=True,
                   head_dim=16, pad_token_id=None, rope_parameters=ABSENT),
    "arcee": variant(architectures=["ArceeForCausalLM"], model_type="arcee",
                     num_hidden_layers=2, pad_token_id=None,
                     hidden_act="relu2"),
    "seed_oss": variant(architectures=["SeedOssForCausalLM"],
                        model_type="seed_oss", num_hidden_layers=2,
                        head_dim=16, attention_bias=True, pad_token_id=None,
                        attention_dropout=0.0, residual_dropout=0.0),
    "olmoe": variant(architectures=["OlmoeForCausalLM"], model_type="olmoe",
                     num_hidden_layers=2, mlp_bias=ABSENT, pad_token_id=None,
                     intermediate_size=32, num_experts=4,
                     num_experts_per_tok=2),
    "granite": variant(
        architectures=["GraniteForCausalLM"], model_type="granite",
        num_hidden_layers=2, pad_token_id=None, embedding_multiplier=12.0,
        residual_multiplier=0.22, attention_multiplier=0.125,
        logits_scaling=8.0),
    "smollm3": variant(
        architectures=["SmolLM3ForCausalLM"], model_type="smollm3",
        num_hidden_layers=2, no_rope_layer_interval=2, pad_token_id=None),
    "starcoder2": {
        "architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2",
        **{k: LLAMA[k] for k in ("vocab_size", "hidden_size",
                                 "intermediate_size", "num_attention_heads",
                                 "num_key_value_heads")},
        "num_hidden_layers": 2, "sliding_window": 9, "pad_token_id": None,
        "max_position_embeddings": 128},
    "phi3": variant(architectures=["Phi3ForCausalLM"], model_type="phi3",
                    num_hidden_layers=2, attention_bias=ABSENT,
                    mlp_bias=ABSENT, pad_token_id=None, sliding_window=9,
                    rope_parameters={"rope_type": "default",
                                     "rope_theta": 10000.0,
                                     "partial_rotary_factor": 0.5}),
    "gemma": GEMMA,
    "gemma2": {**GEMMA, "architectures": ["Gemma2ForCausalLM"],
               "model_type": "gemma2", "sliding_window": 8,
               "query_pre_attn_scalar": 16},
    "gemma3": {**GEMMA, "architectures": ["Gemma3ForCausalLM"],
               "model_type": "gemma3_text", "sliding_window": 8,
               "query_pre_attn_scalar": 16, "sliding_window_pattern": 2},
    "gpt-bigcode": {
        "architectures": ["GPTBigCodeForCausalLM"],
        "model_type": "gpt_bigcode", "vocab_size": 257, "n_embd": 64,
        "n_inner": 100, "n_layer": 2, "n_head": 4, "n_positions": 128,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "initializer_range": 0.05},
    "gpt-neox": {
        "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox",
        "vocab_size": 257, "hidden_size": 64, "intermediate_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 128, "initializer_range": 0.05},
    "opt": {
        "architectures": ["OPTForCausalLM"], "model_type": "opt",
        "vocab_size": 257, "hidden_size": 64, "ffn_dim": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "dropout": 0.0,
        "max_position_embeddings": 128, "word_embed_proj_dim": 48,
        "pad_token_id": None, "init_std": 0.05},
    "falcon": {
        "architectures": ["FalconForCausalLM"], "model_type": "falcon",
        "vocab_size": 257, "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_kv_heads": 2, "bias": True,
        "new_decoder_architecture": True, "initializer_range": 0.05},
    "falcon-alibi": {
        "architectures": ["FalconForCausalLM"], "model_type": "falcon",
        "vocab_size": 257, "hidden_size": 60, "num_hidden_layers": 2,
        "num_attention_heads": 3, "alibi": True, "parallel_attn": False,
        "initializer_range": 0.05},
    "mpt": {
        "architectures": ["MptForCausalLM"], "model_type": "mpt",
        "vocab_size": 257, "d_model": 60, "n_layers": 2, "n_heads": 3,
        "max_seq_len": 64, "initializer_range": 0.05},
}
