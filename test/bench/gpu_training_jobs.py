"""The jobs of gpu_training.py: models by their config.json, and what the Trainer is told."""


def llama(layers, hidden, ffn, heads, kv, vocab, tied, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "hidden_size": hidden, "intermediate_size": ffn,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "head_dim": hidden // heads,
            "vocab_size": vocab, "tie_word_embeddings": tied,
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
            "rope_theta": 500000.0, "hidden_act": "silu",
            "bos_token_id": 1, "eos_token_id": 2, **more}


LLAMA_1B = llama(16, 2048, 8192, 32, 8, 128256, True)
LLAMA_3B = llama(28, 3072, 8192, 24, 8, 128256, True)
LLAMA_8B = llama(32, 4096, 14336, 32, 8, 128256, False)
LLAMA_8B_8 = llama(8, 4096, 14336, 32, 8, 128256, False)
QWEN3_06B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
    "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "tie_word_embeddings": True,
    "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000, "hidden_act": "silu"}
QWEN2_15B = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
    "num_attention_heads": 12, "num_key_value_heads": 2,
    "vocab_size": 151936, "tie_word_embeddings": True,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "hidden_act": "silu"}
GPT2_MEDIUM = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024,
    "vocab_size": 50257, "activation_function": "gelu_new",
    "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1,
    "bos_token_id": 50256, "eos_token_id": 50256}
GEMMA2_2B = {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "vocab_size": 256000, "tie_word_embeddings": True, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
    "query_pre_attn_scalar": 256, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "hidden_activation": "gelu_pytorch_tanh"}
MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
    "hidden_size": 1024, "intermediate_size": 3072,
    "moe_intermediate_size": 512, "num_hidden_layers": 12,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
    "num_experts": 32, "num_experts_per_tok": 4, "norm_topk_prob": True,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
    "tie_word_embeddings": True, "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu"}
MISTRAL_4 = {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral",
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 32000, "tie_word_embeddings": False, "sliding_window": 4096,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "silu"}
PHI3_16 = {
    "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 32064, "tie_word_embeddings": False, "sliding_window": None,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
    "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
    "hidden_act": "silu", "embd_pdrop": 0.0, "resid_pdrop": 0.0,
    "attention_dropout": 0.0, "pad_token_id": 32000}
BERT_LARGE = {
    "architectures": ["BertForMaskedLM"], "model_type": "bert",
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "vocab_size": 30522,
    "max_position_embeddings": 512, "type_vocab_size": 2,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
    "pad_token_id": 0}
T5_BASE = {
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
    "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12,
    "num_decoder_layers": 12, "num_heads": 12, "vocab_size": 32128,
    "relative_attention_num_buckets": 32, "dropout_rate": 0.1,
    "feed_forward_proj": "relu", "is_encoder_decoder": True,
    "tie_word_embeddings": True, "decoder_start_token_id": 0,
    "pad_token_id": 0, "eos_token_id": 1, "layer_norm_epsilon": 1e-6}
GEMMA3_1B = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
    "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
    "vocab_size": 262144, "tie_word_embeddings": True, "sliding_window": 512,
    "sliding_window_pattern": 6, "query_pre_attn_scalar": 256,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
    "hidden_activation": "gelu_pytorch_tanh"}
# The published file, whose text_config says what is not the class's default.
GEMMA3_4B = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "mm_tokens_per_image": 256, "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 34, "sliding_window": 1024,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896,
        "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
        "patch_size": 14, "vision_use_head": False}}
OLMO2_1B = {
    "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 16,
    "vocab_size": 100352, "tie_word_embeddings": False,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
    "rope_theta": 500000.0, "hidden_act": "silu"}
GRANITE_2B = {
    "architectures": ["GraniteForCausalLM"], "model_type": "granite",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 49155, "tie_word_embeddings": True,
    "embedding_multiplier": 12.0, "attention_multiplier": 0.015625,
    "residual_multiplier": 0.22, "logits_scaling": 8.0,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 5000000.0, "hidden_act": "silu"}
PYTHIA_1B = {
    "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 8, "vocab_size": 50304, "rotary_pct": 0.25,
    "rotary_emb_base": 10000, "use_parallel_residual": True,
    "max_position_embeddings": 2048, "layer_norm_eps": 1e-5,
    "hidden_act": "gelu", "tie_word_embeddings": False}
OPT_1B = {
    "architectures": ["OPTForCausalLM"], "model_type": "opt",
    "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
    "num_attention_heads": 32, "vocab_size": 50272,
    "word_embed_proj_dim": 2048, "max_position_embeddings": 2048,
    "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "activation_function": "relu", "do_layer_norm_before": True,
    "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1,
    "tie_word_embeddings": True}
GPT_OSS_4 = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss",
    "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 4,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "num_local_experts": 32, "num_experts_per_tok": 4, "vocab_size": 201088,
    "sliding_window": 128, "tie_word_embeddings": False,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 150000, "hidden_act": "silu", "attention_bias": True,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "output_router_logits": False}
MIXTRAL_4 = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
    "hidden_size": 2048, "intermediate_size": 7168, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
    "tie_word_embeddings": False, "sliding_window": None,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
    "rope_theta": 1000000.0, "hidden_act": "silu"}
QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "tie_word_embeddings": False,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "hidden_act": "silu"}
PHI_2 = {
    "architectures": ["PhiForCausalLM"], "model_type": "phi",
    "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 51200, "tie_word_embeddings": False,
    "max_position_embeddings": 2048, "partial_rotary_factor": 0.4,
    "rope_theta": 10000.0, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_dropout": 0.0}
STABLELM_2 = {
    "architectures": ["StableLmForCausalLM"], "model_type": "stablelm",
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
    "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 100352, "tie_word_embeddings": False,
    "max_position_embeddings": 4096, "partial_rotary_factor": 0.25,
    "rope_theta": 10000, "hidden_act": "silu", "layer_norm_eps": 1e-5,
    "use_qkv_bias": True}
OLMO3_8 = {
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3",
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 100278, "tie_word_embeddings": False,
    "max_position_embeddings": 65536, "sliding_window": 4096,
    "rms_norm_eps": 1e-6, "rope_theta": 500000, "hidden_act": "silu"}
GLM4_8 = {
    "architectures": ["Glm4ForCausalLM"], "model_type": "glm4",
    "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
    "vocab_size": 151552, "tie_word_embeddings": False,
    "max_position_embeddings": 32768, "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "attention_bias": True, "pad_token_id": 0}
COHERE_8 = {
    "architectures": ["CohereForCausalLM"], "model_type": "cohere",
    "hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 256000, "tie_word_embeddings": True, "logit_scale": 0.0625,
    "max_position_embeddings": 8192, "layer_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "silu", "use_qk_norm": False,
    "bos_token_id": 5, "eos_token_id": 6, "pad_token_id": 0}
GLM_9B_8 = {
    "architectures": ["GlmForCausalLM"], "model_type": "glm",
    "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
    "vocab_size": 151552, "tie_word_embeddings": False,
    "max_position_embeddings": 8192, "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1.5625e-7, "rope_theta": 10000.0, "hidden_act": "silu",
    "attention_bias": True, "pad_token_id": 151329}
COHERE2_7B_8 = {
    "architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2",
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 256000, "tie_word_embeddings": True, "logit_scale": 0.25,
    "max_position_embeddings": 132096, "layer_norm_eps": 1e-5,
    "rope_theta": 50000, "hidden_act": "silu", "sliding_window": 4096,
    "sliding_window_pattern": 4, "pad_token_id": 0}
AFM_4B = {
    "architectures": ["ArceeForCausalLM"], "model_type": "arcee",
    "hidden_size": 2560, "intermediate_size": 18432, "num_hidden_layers": 36,
    "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 128004, "tie_word_embeddings": False,
    "max_position_embeddings": 65536, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "relu2"}
SEED_OSS_8 = {
    "architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss",
    "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 8,
    "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 155136, "tie_word_embeddings": False,
    "max_position_embeddings": 524288, "rms_norm_eps": 1e-6,
    "rope_theta": 1e7, "hidden_act": "silu", "attention_bias": True,
    "attention_dropout": 0.1, "residual_dropout": 0.1, "pad_token_id": 1}
OLMOE_7B = {
    "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe",
    "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 64,
    "num_experts_per_tok": 8, "vocab_size": 50304,
    "tie_word_embeddings": False, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "pad_token_id": 1, "eos_token_id": 50279}
GLM45_AIR_3 = {
    "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe",
    "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 3,
    "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
    "vocab_size": 151552, "tie_word_embeddings": False,
    "max_position_embeddings": 131072, "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-5, "rope_theta": 1e6, "hidden_act": "silu",
    "attention_bias": True, "use_qk_norm": False, "norm_topk_prob": True,
    "routed_scaling_factor": 1.0, "pad_token_id": 151329}
GLM47_FLASH_6 = {
    "architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite",
    "hidden_size": 2048, "intermediate_size": 10240, "num_hidden_layers": 6,
    "num_attention_heads": 20, "num_key_value_heads": 20,
    "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4,
    "moe_intermediate_size": 1536, "q_lora_rank": 768, "kv_lora_rank": 512,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
    "vocab_size": 154880, "tie_word_embeddings": False,
    "max_position_embeddings": 202752, "rms_norm_eps": 1e-5,
    "rope_theta": 1e6, "hidden_act": "silu", "norm_topk_prob": True,
    "routed_scaling_factor": 1.8, "pad_token_id": 154820}
GRANITE4_1B = {
    "architectures": ["GraniteMoeHybridForCausalLM"],
    "model_type": "granitemoehybrid", "hidden_size": 2048,
    "intermediate_size": 4096, "shared_intermediate_size": 4096,
    "num_hidden_layers": 40, "num_attention_heads": 16,
    "num_key_value_heads": 4, "num_local_experts": 0,
    "num_experts_per_tok": 0, "layer_types": ["attention"] * 40,
    "position_embedding_type": "rope", "vocab_size": 100352,
    "tie_word_embeddings": True, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5, "rope_theta": 10000000, "hidden_act": "silu",
    "embedding_multiplier": 12, "logits_scaling": 8,
    "residual_multiplier": 0.22, "attention_multiplier": 0.0078125,
    "mamba_n_heads": 64, "mamba_d_head": 64, "pad_token_id": 100256}
GRANITE31_1B_MOE = {
    "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe",
    "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 24,
    "num_attention_heads": 16, "num_key_value_heads": 8,
    "num_local_experts": 32, "num_experts_per_tok": 8, "vocab_size": 49155,
    "tie_word_embeddings": True, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6, "rope_theta": 1500000.0, "hidden_act": "silu",
    "embedding_multiplier": 12.0, "logits_scaling": 6.0,
    "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
    "pad_token_id": 0}
MINISTRAL3_3B = {
    "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3",
    "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 131072, "tie_word_embeddings": True,
    "max_position_embeddings": 262144, "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0,
        "original_max_position_embeddings": 16384, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.1},
    "hidden_act": "silu", "pad_token_id": 11}
HUNYUAN_1_8B = {
    "architectures": ["HunYuanDenseV1ForCausalLM"],
    "model_type": "hunyuan_v1_dense", "hidden_size": 2048,
    "intermediate_size": 6144, "num_hidden_layers": 32,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 120818, "tie_word_embeddings": True,
    "max_position_embeddings": 262144, "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0,
                        "factor": 1.0, "alpha": 1000.0},
    "hidden_act": "silu", "pad_token_id": 120002}
ERNIE45_03B = {
    "architectures": ["Ernie4_5ForCausalLM"], "model_type": "ernie4_5",
    "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
    "vocab_size": 103424, "tie_word_embeddings": True,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "hidden_act": "silu", "pad_token_id": 0}
QWEN2_MOE_6 = {
    "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe",
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 6,
    "num_attention_heads": 16, "num_key_value_heads": 16,
    "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
    "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "vocab_size": 151936,
    "tie_word_embeddings": False, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu"}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
LINEARS = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]

# llava-hf/llava-1.5-7b-hf and Qwen/Qwen2.5-VL-3B-Instruct.
LLAVA_7B = {
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
    "image_token_index": 32000, "tie_word_embeddings": False,
    "text_config": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 32064, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 4096, "tie_word_embeddings": False},
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024,
        "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
        "projection_dim": 768}}
QWEN25_VL_3B = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "model_type": "qwen2_5_vl", "hidden_size": 2048,
    "intermediate_size": 11008, "num_hidden_layers": 36,
    "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151936,
    "tie_word_embeddings": True, "max_position_embeddings": 128000,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu",
    "image_token_id": 151655, "video_token_id": 151656,
    "vision_start_token_id": 151652,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {
        "model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280,
        "num_heads": 16, "intermediate_size": 3420, "out_hidden_size": 2048,
        "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31]}}
# Adapters of the language model alone.
TEXT_ATTENTION = r".*language_model.*\.(q|k|v|o)_proj"


def images(count, high, wide):
    return {"count": count, "size": [high, wide]}


def job(config, sequence, batch, precision="bf16", weights="float32",
        lora=None, attention=None, quantize=None, adapter=None, images=None, **arguments):
    """`lora`: its rank and modules, and `adapter` what else PEFT is told;
    `quantize`: the base, as --quantize says it; `images`: of a sample, their count and
    their rows and columns."""
    return {"config": config, "sequence": sequence, "precision": precision,
            "weights": weights, "lora": lora, "attention": attention,
            "quantize": quantize, "adapter": adapter or {}, "images": images,
            "arguments": {"per_device_train_batch_size": batch, **arguments}}


JOBS = {
    "llama1b-amp": job(LLAMA_1B, 2048, 4),
    "glm9b-8layers-bf16": job(GLM_9B_8, 2048, 2, weights="bfloat16"),
    "cohere2-8layers-amp": job(COHERE2_7B_8, 8192, 1),
    "arcee4b-bf16-ckpt": job(AFM_4B, 4096, 2, weights="bfloat16",
                             gradient_checkpointing=True),
    "seed-oss-8layers-bf16": job(SEED_OSS_8, 2048, 1, weights="bfloat16"),
    "glm45-air-3layers-bf16": job(GLM45_AIR_3, 2048, 1, weights="bfloat16"),
    "glm47-flash-6layers-bf16-ckpt": job(
        GLM47_FLASH_6, 2048, 2, weights="bfloat16",
        gradient_checkpointing=True),
    "granite4-1b-bf16": job(GRANITE4_1B, 2048, 2, weights="bfloat16"),
    "granite31-1b-moe-amp": job(GRANITE31_1B_MOE, 2048, 2),
    "ministral3-3b-bf16": job(MINISTRAL3_3B, 2048, 1, weights="bfloat16"),
    "ministral3-3b-bf16-ckpt": job(MINISTRAL3_3B, 4096, 2, weights="bfloat16",
                                   gradient_checkpointing=True),
    "hunyuan-1b-amp": job(HUNYUAN_1_8B, 2048, 1),
    "ernie45-bf16": job(ERNIE45_03B, 2048, 4, weights="bfloat16"),
    "olmoe7b-bf16-ckpt": job(OLMOE_7B, 2048, 2, weights="bfloat16",
                             gradient_checkpointing=True),
    "llama1b-amp-ckpt": job(LLAMA_1B, 2048, 8, gradient_checkpointing=True),
    "llama1b-bf16": job(LLAMA_1B, 4096, 2, weights="bfloat16"),
    "llama1b-bf16-accum": job(LLAMA_1B, 1024, 2, weights="bfloat16",
                              gradient_accumulation_steps=4),
    "llama1b-compile": job(LLAMA_1B, 2048, 4, weights="bfloat16",
                           torch_compile=True),
    "llama1b-fp32": job(LLAMA_1B, 1024, 2, precision="no"),
    "llama1b-tf32": job(LLAMA_1B, 1024, 4, precision="no", tf32=True),
    "llama1b-fp16": job(LLAMA_1B, 1024, 4, precision="fp16"),
    "llama1b-eager": job(LLAMA_1B, 1024, 4, attention="eager"),
    "llama3b-bf16-ckpt": job(LLAMA_3B, 4096, 2, weights="bfloat16",
                             gradient_checkpointing=True),
    "llama3b-adafactor": job(LLAMA_3B, 2048, 2, weights="bfloat16",
                             optim="adafactor"),
    "llama8b-lora-ckpt": job(LLAMA_8B, 4096, 1, weights="bfloat16",
                             lora=(16, LINEARS), gradient_checkpointing=True),
    "llama8b-lora": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                        lora=(16, ATTENTION)),
    "llama8b-lora-amp": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                            lora=(64, LINEARS), attention="sdpa"),
    "qwen06b-amp": job(QWEN3_06B, 4096, 2, optim="adamw_torch"),
    "llava7b-images-lora": job(LLAVA_7B, 2048, 2, weights="bfloat16",
                               lora=(16, TEXT_ATTENTION),
                               images=images(2, 336, 336)),
    "llava7b-images-ckpt": job(LLAVA_7B, 2048, 4, weights="bfloat16",
                               gradient_checkpointing=True,
                               images=images(1, 336, 336)),
    "qwen3b-vl-images-bf16": job(QWEN25_VL_3B, 2048, 2, weights="bfloat16",
                                 images=images(2, 448, 672)),
    "qwen06b-bf16": job(QWEN3_06B, 2048, 8, weights="bfloat16"),
    "qwen15b-amp-ckpt": job(QWEN2_15B, 2048, 8, gradient_checkpointing=True),
    "qwen15b-lora": job(QWEN2_15B, 2048, 4, weights="bfloat16",
                        lora=(8, ATTENTION)),
    "gpt2m-fp16": job(GPT2_MEDIUM, 1024, 8, precision="fp16"),
    "gpt2m-fp32-sgd": job(GPT2_MEDIUM, 1024, 8, precision="no", optim="sgd"),
    "gemma2b-bf16": job(GEMMA2_2B, 2048, 2, weights="bfloat16",
                        attention="eager"),
    "gemma2b-amp-ckpt": job(GEMMA2_2B, 1024, 4, gradient_checkpointing=True,
                            attention="eager"),
    "moe-bf16": job(MOE, 2048, 4, weights="bfloat16"),
    "llama8b-bf16-ckpt": job(LLAMA_8B, 2048, 1, weights="bfloat16",
                             gradient_checkpointing=True),
    "mistral-window": job(MISTRAL_4, 8192, 1, weights="bfloat16"),
    "phi3-bf16": job(PHI3_16, 2048, 2, weights="bfloat16"),
    "bert-large-amp": job(BERT_LARGE, 512, 16, precision="fp16"),
    "t5-base-amp": job(T5_BASE, 512, 8),
    "llama8b-8layers": job(LLAMA_8B_8, 8192, 1),
    "moe-amp-ckpt": job(MOE, 2048, 4, gradient_checkpointing=True),
    "llama8b-8layers-compile": job(LLAMA_8B_8, 8192, 1, torch_compile=True),
    "llama1b-liger": job(LLAMA_1B, 4096, 4, weights="bfloat16",
                         use_liger_kernel=True),
    "llama1b-liger-amp": job(LLAMA_1B, 2048, 8, use_liger_kernel=True),
    "qwen06b-liger-ckpt": job(QWEN3_06B, 8192, 4, weights="bfloat16",
                              use_liger_kernel=True,
                              gradient_checkpointing=True),
    "llama8b-liger-lora-ckpt": job(LLAMA_8B, 8192, 1, weights="bfloat16",
                                   lora=(16, LINEARS), use_liger_kernel=True,
                                   gradient_checkpointing=True),
    "llama1b-8bit": job(LLAMA_1B, 1024, 2, weights="bfloat16",
                        optim="adamw_bnb_8bit"),
    "llama1b-8bit-amp": job(LLAMA_1B, 1024, 2, optim="adamw_bnb_8bit"),
    "llama3b-paged-8bit": job(LLAMA_3B, 1024, 1, weights="bfloat16",
                              optim="paged_adamw_8bit"),
    "llama1b-torchao-8bit": job(LLAMA_1B, 1024, 2, weights="bfloat16",
                                optim="adamw_torch_8bit"),
    "llama8b-qlora-ckpt": job(LLAMA_8B, 2048, 4, weights="bfloat16",
                              lora=(16, LINEARS), optim="paged_adamw_32bit",
                              quantize="nf4,double_quant,prepared",
                              gradient_checkpointing=True),
    "llama8b-qlora": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                         lora=(64, ATTENTION), quantize="nf4"),
    "qwen7b-qlora-ckpt": job(QWEN2_7B, 4096, 2, weights="bfloat16",
                             lora=(8, LINEARS), quantize="nf4,double_quant",
                             gradient_checkpointing=True),
    "llama8b-int8-lora": job(LLAMA_8B, 1024, 2, weights="bfloat16",
                             lora=(16, ATTENTION), quantize="int8,threshold=0",
                             gradient_checkpointing=True),
    "llama1b-dora": job(LLAMA_1B, 2048, 4, weights="bfloat16",
                        lora=(16, LINEARS), adapter={"use_dora": True}),
    "llama1b-lora-dropout": job(LLAMA_1B, 2048, 4, weights="bfloat16",
                                lora=(16, LINEARS),
                                adapter={"lora_dropout": 0.05}),
    "gemma3-1b-bf16": job(GEMMA3_1B, 2048, 4, weights="bfloat16"),
    # Text alone, beside a tower.
    "gemma3-4b-bf16": job(GEMMA3_4B, 2048, 2, weights="bfloat16"),
    "gemma3-4b-lora": job(GEMMA3_4B, 2048, 1, weights="bfloat16",
                          lora=(16, "all-linear")),
    "olmo2-1b-amp": job(OLMO2_1B, 4096, 2),
    "granite-2b-ckpt": job(GRANITE_2B, 4096, 4, weights="bfloat16",
                           gradient_checkpointing=True),
    "pythia-1b-fp16": job(PYTHIA_1B, 2048, 4, precision="fp16"),
    "opt-1b-amp": job(OPT_1B, 2048, 4),
    "gpt-oss-bf16": job(GPT_OSS_4, 2048, 2, weights="bfloat16",
                        attention="eager"),
    "mixtral-bf16": job(MIXTRAL_4, 2048, 4, weights="bfloat16"),
    "qwen7b-bf16-ckpt": job(QWEN2_7B, 8192, 2, weights="bfloat16",
                            optim="adamw_torch", gradient_checkpointing=True),
    "llama1b-foreach": job(LLAMA_1B, 2048, 2, weights="bfloat16",
                           optim="adamw_torch"),
    "olmo2-1b-compile": job(OLMO2_1B, 2048, 4, weights="bfloat16",
                            torch_compile=True),
    "phi2-half-bf16": job(PHI_2, 2048, 2, weights="bfloat16"),
    "stablelm-amp": job(STABLELM_2, 2048, 2),
    "olmo3-bf16": job(OLMO3_8, 4096, 1, weights="bfloat16"),
    "glm4-ckpt": job(GLM4_8, 4096, 2, weights="bfloat16",
                     gradient_checkpointing=True),
    "cohere-bf16": job(COHERE_8, 2048, 2, weights="bfloat16"),
    "qwen2moe-bf16": job(QWEN2_MOE_6, 2048, 4, weights="bfloat16"),
}
