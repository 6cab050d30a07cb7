"""No field of a saved config.json changes transformers' model in silence.

For each family a configuration is saved by `save_pretrained`, and each field of
the file takes other values, one at a time. Where transformers then has other
parameters, other first values, another loss or another gradient, what is read
from config.json must change as well, or be refused: a field that the reader
never looks at shows here.
"""
import copy
import json
import os
import subprocess
import zlib

from encoder_models import MASKED
from harness import check

HEADS = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=32,
             pad_token_id=3, bos_token_id=1, eos_token_id=2)
DECODER = dict(HEADS, intermediate_size=24, num_key_value_heads=2)
ENCODER = dict(HEADS, intermediate_size=24, type_vocab_size=2)
LENGTH = 12

BASES = {
    "llama": DECODER, "mistral": DECODER,
    "qwen2": DECODER, "qwen3": dict(DECODER, head_dim=8),
    "gemma": dict(DECODER, head_dim=8),
    "gemma2": dict(DECODER, head_dim=8, query_pre_attn_scalar=8),
    "gemma3_text": dict(DECODER, head_dim=8, query_pre_attn_scalar=8,
                        sliding_window=4),
    "phi3": dict(DECODER, original_max_position_embeddings=32),
    "olmo2": DECODER, "granite": DECODER, "starcoder2": DECODER,
    "smollm3": DECODER, "olmo3": dict(DECODER, sliding_window=4),
    "phi": DECODER, "stablelm": DECODER,
    "exaone4": dict(DECODER, sliding_window=4), "glm4": dict(DECODER, head_dim=8),
    "cohere": DECODER, "cohere2": dict(DECODER, sliding_window=4),
    "glm": dict(DECODER, head_dim=8), "arcee": dict(DECODER, hidden_act="relu2"),
    "seed_oss": dict(DECODER, head_dim=8),
    "olmoe": dict(DECODER, num_experts=4, num_experts_per_tok=2),
    "ministral": dict(DECODER, head_dim=8, sliding_window=4),
    "ministral3": dict(DECODER, head_dim=8),
    "hunyuan_v1_dense": dict(DECODER, head_dim=8),
    "ernie4_5": dict(DECODER, head_dim=8),
    "granitemoe": dict(DECODER, num_local_experts=4, num_experts_per_tok=2),
    "granitemoehybrid": dict(
        DECODER, num_local_experts=4, num_experts_per_tok=2, mamba_n_heads=4,
        shared_intermediate_size=20, position_embedding_type="rope",
        layer_types=["full_attention", "full_attention"]),
    "gpt2": dict(vocab_size=61, n_embd=32, n_layer=2, n_head=4,
                 n_positions=32, bos_token_id=1, eos_token_id=2),
    "gpt_bigcode": dict(vocab_size=61, n_embd=32, n_layer=2, n_head=4,
                        n_positions=32, bos_token_id=1, eos_token_id=2),
    "gpt_neox": dict(HEADS, intermediate_size=24),
    "opt": dict(HEADS, ffn_dim=24, word_embed_proj_dim=32),
    "falcon": HEADS,
    "mpt": dict(vocab_size=61, d_model=32, n_layers=2, n_heads=4,
                max_seq_len=32),
    "mixtral": dict(DECODER, num_local_experts=4, num_experts_per_tok=2),
    "qwen3_moe": dict(DECODER, head_dim=8, num_experts=4,
                      num_experts_per_tok=2, moe_intermediate_size=12),
    "qwen2_moe": dict(DECODER, num_experts=4, num_experts_per_tok=2,
                      moe_intermediate_size=12,
                      shared_expert_intermediate_size=20),
    "gpt_oss": dict(DECODER, head_dim=8, num_local_experts=4,
                    num_experts_per_tok=2, sliding_window=4),
    "deepseek_v3": dict(DECODER, num_key_value_heads=4, n_routed_experts=8,
                        n_group=4, topk_group=2, num_experts_per_tok=3,
                        moe_intermediate_size=12, first_k_dense_replace=1,
                        q_lora_rank=12, kv_lora_rank=16, qk_rope_head_dim=4,
                        qk_nope_head_dim=8, v_head_dim=8),
    "glm4_moe": dict(DECODER, head_dim=16, n_routed_experts=8, n_group=4,
                     topk_group=2, num_experts_per_tok=3,
                     moe_intermediate_size=12, first_k_dense_replace=1),
    "glm4_moe_lite": dict(DECODER, num_key_value_heads=4, n_routed_experts=8,
                          n_group=4, topk_group=2, num_experts_per_tok=3,
                          moe_intermediate_size=12, q_lora_rank=12,
                          kv_lora_rank=16, qk_rope_head_dim=4,
                          qk_nope_head_dim=8, v_head_dim=8),
    "nemotron_h": dict(
        {k: v for k, v in HEADS.items() if k != "num_hidden_layers"},
        layers_block_type=["linear_attention", "moe", "full_attention", "mlp"],
        num_key_value_heads=2, head_dim=8, intermediate_size=24,
        mamba_num_heads=4, mamba_head_dim=8, n_groups=2, ssm_state_size=8,
        conv_kernel=4, chunk_size=8, n_routed_experts=8, n_group=4,
        topk_group=2, num_experts_per_tok=3, moe_intermediate_size=12,
        moe_shared_expert_intermediate_size=20, moe_latent_size=16),
    "qwen3_5_text": dict(DECODER, head_dim=8, layer_types=["linear_attention", "full_attention"],
                         linear_num_key_heads=2, linear_num_value_heads=4,
                         linear_key_head_dim=4, linear_value_head_dim=8),
    "qwen3_5_moe_text": dict(
        {k: v for k, v in DECODER.items() if k != "intermediate_size"}, head_dim=8,
        layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=4, linear_value_head_dim=8, num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=20),
    "qwen3_next": dict(
        DECODER, head_dim=8, layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=4,
        linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
        shared_expert_intermediate_size=20),
    "bert": ENCODER, "roberta": ENCODER,
    "bert classifier": ENCODER, "roberta classifier": ENCODER,
    "vit": dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=24, image_size=8, patch_size=4),
    "t5": dict(vocab_size=61, d_model=32, d_kv=8, d_ff=24, num_layers=2,
               num_heads=4, decoder_start_token_id=0),
    "whisper": dict(vocab_size=61, d_model=32, encoder_layers=2,
                    decoder_layers=2, encoder_attention_heads=4,
                    decoder_attention_heads=4, encoder_ffn_dim=24,
                    decoder_ffn_dim=20, num_mel_bins=4,
                    max_source_positions=8, max_target_positions=16,
                    pad_token_id=3, bos_token_id=1, eos_token_id=2,
                    decoder_start_token_id=4, suppress_tokens=None,
                    begin_suppress_tokens=None),
}
CLASSES = {**MASKED, "bert classifier": "BertForSequenceClassification",
           "roberta classifier": "RobertaForSequenceClassification",
           "vit": "ViTForImageClassification",
           "t5": "T5ForConditionalGeneration",
           "whisper": "WhisperForConditionalGeneration"}
# Fields of every configuration that are written where they are not their
# default.
COMMON = {"is_decoder": False, "add_cross_attention": False,
          "chunk_size_feed_forward": 0, "tie_word_embeddings": None,
          "output_attentions": False, "output_hidden_states": False,
          "is_encoder_decoder": False, "pruned_heads": None,
          "problem_type": None, "id2label": None, "num_labels": None}
WORDS = ["relu", "silu", "gelu_new", "absolute", "relative_key_query", "linear",
         "full_attention", "sliding_attention", "yarn"]


def others(value):
    """Values that may stand in a field in place of `value`."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 2 or 5, 0, 1]
    if isinstance(value, float):
        return [value * 2 + 0.25, 0.0, 0.5]
    if isinstance(value, str):
        return [w for w in WORDS if w != value]
    if value is None:
        return [True, 1, 2, 5, 0.5]
    if isinstance(value, list):
        return [value[:-1], value + value[-1:]] + [
            value[:-1] + [last] for last in others(value[-1])] if value else []
    return []


def places(config, prefix=()):
    """(path, value) of each field, those inside of objects too."""
    for key, value in config.items():
        yield prefix + (key,), value
        if isinstance(value, dict) and key != "id2label":
            yield from places(value, prefix + (key,))


def changed(config, path, value):
    result = copy.deepcopy(config)
    at = result
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return result


def batch_of(torch, family, config):
    generator = torch.Generator().manual_seed(7)

    def ids(count, length=LENGTH):
        return torch.randint(5, count, (2, length), generator=generator)
    if family == "vit":
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=generator),
                "labels": torch.tensor([0, 1])}
    if family == "whisper":
        return {"input_features": torch.randn(2, 4, 16, generator=generator),
                "labels": ids(61)}
    if family.endswith("classifier"):
        return {"input_ids": ids(61), "labels": torch.tensor([0, 1])}
    batch = {"input_ids": ids(61), "labels": ids(61)}
    if family not in CLASSES:
        batch["shift_labels"] = batch["labels"]
        batch["use_cache"] = False
    return batch


def theirs(torch, transformers, family, folder):
    """What transformers makes of the file: names and shapes, first values,
    loss and gradients; the error's class where it refuses."""
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        maker = getattr(transformers, CLASSES[family])._from_config \
            if family in CLASSES \
            else transformers.AutoModelForCausalLM.from_config
        torch.manual_seed(1)
        model = maker(config).float()
        names = [(n, list(p.shape), round(p.double().std().item(), 9)
                  if p.numel() > 1 else 0.0, bool(p.any()))
                 for n, p in model.named_parameters()]
        for name, p in model.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            p.data = torch.randn(p.shape, generator=generator) * 0.2
        torch.manual_seed(2)
        model.train()
        loss = model(**batch_of(torch, family, config)).loss
        loss.backward()
        gradients = [None if p.grad is None else p.grad.double().norm().item()
                     for p in model.parameters()]
        return names, loss.item(), gradients
    except Exception as error:  # any class: transformers refuses in many ways
        return type(error).__name__


def same(a, b):
    """Numbers that differ by rounding are the same: whole models of other
    kernels are not what is looked for."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3)
    return a == b


def ours(context, folder):
    """What is read of the file, as text: modules, parameters with their first
    values, functions. None where it is refused."""
    text = ""
    for command in (["hf-dump", folder],
                    ["hf-model-dump", folder, "2", str(LENGTH), "--mlir"]):
        done = subprocess.run([context.binary(command[0]), *command[1:]],
                              capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode:
            return None
        text += done.stdout
    return text


def family(name):
    def case(context):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        torch.set_num_threads(1)
        folder = context.path("model")
        os.makedirs(folder, exist_ok=True)
        made = transformers.AutoConfig.for_model(
            name.split()[0], **BASES[name])
        if name in CLASSES:
            made.architectures = [CLASSES[name]]
        made.save_pretrained(folder)
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            saved = json.load(f)

        def write(config):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            return folder

        base = theirs(torch, transformers, name, folder), ours(context, folder)
        check(not isinstance(base[0], str), f"transformers says {base[0]}")
        check(base[1] is not None, "the saved file is refused")
        silent, count = [], 0
        for where, value in list(places({**COMMON, **saved})):
            if where[0] in ("model_type", "transformers_version"):
                continue
            for other in others(value):
                write(changed({**COMMON, **saved} if where[0] in COMMON
                              else saved, where, other))
                count += 1
                read = ours(context, folder)
                if read is None or read != base[1]:
                    continue  # it is looked at
                real = theirs(torch, transformers, name, folder)
                if not isinstance(real, str) and not same(real, base[0]):
                    silent.append(f"{'.'.join(where)}: {value} -> {other}")
        check(not silent, "transformers reads what is not read here:\n" +
              "\n".join(silent))
        return f"{count} changes"
    return case


CASES = [(name, family(name)) for name in BASES]
