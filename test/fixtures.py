#!/usr/bin/env python3
"""Writes the model folders of the lit tests and the fuzzer's seeds, one for each
family, as save_pretrained of the installed transformers and PEFT writes them.

  test/fixtures.py           writes them
  test/fixtures.py --check   writes nothing; exit 1 if one is another

The parity case `names.fixtures` holds them current.
"""
import argparse
import os
import sys
import tempfile

TEST = os.path.dirname(os.path.abspath(__file__))

LLAMA_1B = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                num_attention_heads=32, num_key_value_heads=8,
                dtype="bfloat16")

# Folder: class, and what is not its default.
FOLDERS = {
    "Lint/Inputs/models/bert": ("BertForMaskedLM", {}),
    "Lint/Inputs/models/distilbert": ("DistilBertForMaskedLM", {}),
    "Lint/Inputs/models/gpt2": ("GPT2LMHeadModel", {}),
    "Lint/Inputs/models/large": ("LlamaForCausalLM", dict(
        hidden_size=8192, intermediate_size=28672, num_hidden_layers=80,
        num_attention_heads=64, num_key_value_heads=8, vocab_size=128256,
        dtype="bfloat16")),
    "Lint/Inputs/models/llama": ("LlamaForCausalLM", dict(
        LLAMA_1B, vocab_size=32000)),
    "Lint/Inputs/models/mistral": ("MistralForCausalLM", dict(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=8,
        num_attention_heads=16, num_key_value_heads=8, sliding_window=4096)),
    "Lint/Inputs/models/mixtral": ("MixtralForCausalLM", dict(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=2)),
    # Sizes that do not divide by the usual numbers of ranks.
    "Lint/Inputs/models/odd": ("LlamaForCausalLM", dict(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, vocab_size=100)),
    "Lint/Inputs/models/qwen2": ("Qwen2ForCausalLM", dict(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, vocab_size=151936,
        tie_word_embeddings=True, sliding_window=32768,
        use_sliding_window=False, dtype="bfloat16")),
    "Lint/Inputs/models/t5-fp16": ("T5ForConditionalGeneration", dict(
        dtype="float16")),
    "Lint/Inputs/models/tied": ("LlamaForCausalLM", dict(
        LLAMA_1B, vocab_size=128256, tie_word_embeddings=True)),
    # A family that is not known.
    "Lint/Inputs/models/unknown": ("BloomForCausalLM", {}),
    "Plan/Inputs/tiny-llama": ("LlamaForCausalLM", dict(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=64,
        max_position_embeddings=32, tie_word_embeddings=True,
        dtype="float32")),
}


SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             vocab_size=64)
GATED = dict(SMALL, intermediate_size=48, num_key_value_heads=2)

# Seed of the fuzzer of models: class, and what is not its default.
SEEDS = {
    "bert": ("BertForMaskedLM", dict(SMALL, intermediate_size=48)),
    "roberta": ("RobertaForSequenceClassification",
                dict(SMALL, intermediate_size=48, num_labels=3)),
    "vit": ("ViTForImageClassification", dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, image_size=32, patch_size=8, num_labels=3)),
    "t5": ("T5ForConditionalGeneration", dict(
        d_model=32, d_ff=48, d_kv=8, num_heads=4, num_layers=2,
        vocab_size=64, decoder_start_token_id=0)),
    "whisper": ("WhisperForConditionalGeneration", dict(
        d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3, begin_suppress_tokens=None)),
    "gpt2": ("GPT2LMHeadModel", dict(n_embd=32, n_layer=2, n_head=4,
                                     vocab_size=64)),
    "gpt-neox": ("GPTNeoXForCausalLM", dict(SMALL, intermediate_size=48)),
    "opt": ("OPTForCausalLM", dict(SMALL, ffn_dim=48,
                                   word_embed_proj_dim=32)),
    "mpt": ("MptForCausalLM", dict(d_model=32, n_layers=2, n_heads=4,
                                   vocab_size=64)),
    "falcon": ("FalconForCausalLM", SMALL),
    "falcon-alibi": ("FalconForCausalLM", dict(SMALL, alibi=True)),
    "llama": ("LlamaForCausalLM", GATED),
    "mistral": ("MistralForCausalLM", GATED),
    "mixtral": ("MixtralForCausalLM", GATED),
    "qwen2": ("Qwen2ForCausalLM", GATED),
    "qwen3": ("Qwen3ForCausalLM", GATED),
    "qwen3-moe": ("Qwen3MoeForCausalLM", dict(
        GATED, moe_intermediate_size=16, num_experts=4,
        num_experts_per_tok=2)),
    "qwen2-moe": ("Qwen2MoeForCausalLM", dict(
        GATED, moe_intermediate_size=16, num_experts=4,
        num_experts_per_tok=2, shared_expert_intermediate_size=24)),
    "gpt-oss": ("GptOssForCausalLM", dict(
        GATED, head_dim=8, num_local_experts=4, num_experts_per_tok=2)),
    "gemma2": ("Gemma2ForCausalLM", dict(GATED, head_dim=8)),
    "gemma3": ("Gemma3ForCausalLM", dict(GATED, head_dim=8)),
    "olmo2": ("Olmo2ForCausalLM", GATED),
    "phi3": ("Phi3ForCausalLM", dict(GATED, pad_token_id=0)),
    "phi": ("PhiForCausalLM", GATED),
    "olmo3": ("Olmo3ForCausalLM", GATED),
    "stablelm": ("StableLmForCausalLM", GATED),
    "exaone4": ("Exaone4ForCausalLM", GATED),
    "glm4": ("Glm4ForCausalLM", dict(GATED, head_dim=8, pad_token_id=0)),
    "cohere": ("CohereForCausalLM", GATED),
    "cohere2": ("Cohere2ForCausalLM", GATED),
    "glm": ("GlmForCausalLM", dict(GATED, head_dim=8, pad_token_id=0)),
    "arcee": ("ArceeForCausalLM", GATED),
    "seed-oss": ("SeedOssForCausalLM", dict(GATED, head_dim=8)),
    "ministral": ("MinistralForCausalLM", dict(GATED, head_dim=8)),
    "ministral3": ("Ministral3ForCausalLM", dict(GATED, head_dim=8)),
    "hunyuan-v1-dense": ("HunYuanDenseV1ForCausalLM", dict(GATED, head_dim=8)),
    "ernie4-5": ("Ernie4_5ForCausalLM", dict(GATED, head_dim=8)),
    "granitemoe": ("GraniteMoeForCausalLM", dict(
        GATED, num_local_experts=4, num_experts_per_tok=2)),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", dict(
        GATED, num_local_experts=0, shared_intermediate_size=48,
        layer_types=["full_attention"] * 2, position_embedding_type="rope",
        mamba_n_heads=4)),
    "glm4-moe": ("Glm4MoeForCausalLM", dict(
        GATED, head_dim=8, moe_intermediate_size=16, n_routed_experts=4,
        num_experts_per_tok=2)),
    "glm4-moe-lite": ("Glm4MoeLiteForCausalLM", dict(
        GATED, num_key_value_heads=4, moe_intermediate_size=16,
        n_routed_experts=4, num_experts_per_tok=2, q_lora_rank=12,
        kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4,
        v_head_dim=8)),
    "olmoe": ("OlmoeForCausalLM", dict(GATED, num_experts=4,
                                       num_experts_per_tok=2)),
}


def adapter_text():
    from peft import LoraConfig

    config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj"],
                        task_type="CAUSAL_LM")
    # PEFT writes a set.
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        with open(os.path.join(folder, "adapter_config.json"),
                  encoding="utf-8") as f:
            return f.read()


def text_of(name, values):
    import transformers

    config = getattr(transformers, name).config_class(**values)
    config.architectures = [name]
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            return f.read()


def differing():
    """Paths that are not as transformers writes them, and their texts."""
    result = {}
    seeds = os.path.join(TEST, "fuzz", "corpus", "model")
    wanted = {os.path.join(TEST, folder, "config.json"): text_of(*of)
              for folder, of in FOLDERS.items()}
    wanted |= {os.path.join(seeds, name + ".json"): text_of(*of)
               for name, of in SEEDS.items()}
    wanted[os.path.join(seeds, "adapter.json")] = adapter_text()
    for path, text in wanted.items():
        old = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                old = f.read()
        if old != text:
            result[path] = text
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    found = differing()
    for path, text in found.items():
        print(path)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    sys.exit(bool(found) and check)


if __name__ == "__main__":
    main()
