#!/usr/bin/env python3
"""Writes the model folders of the lit tests as the installed transformers'
save_pretrained writes them.

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
    for folder, (name, values) in FOLDERS.items():
        path = os.path.join(TEST, folder, "config.json")
        text = text_of(name, values)
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
