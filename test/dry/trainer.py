"""Jobs of transformers' Trainer on GPUs that do not exist.

torch itself, its allocator and transformers run over the stand-ins (DryGpu.h), with values, and tell
the bytes that they held at most. `accel-opt plan` predicts the same jobs. cuBLAS gets workspaces of
128 KiB: those that it has otherwise are counted with the device's context, and would hide the rest
of jobs as small as these. Jobs of the names "full-*" are those that GPUs were measured with
(test/bench/gpu_training_jobs.py), in their full size: values of large tensors are not computed, and
what the allocator reserves is compared too.
"""
import functools
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "bench"))
import gpu_training  # noqa: E402
import gpu_training_jobs  # noqa: E402
from gpu_training_jobs import ATTENTION, TEXT_ATTENTION, images, job  # noqa: E402

SMALL = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "vocab_size": 4096}
LLAMA = {**gpu_training_jobs.LLAMA_1B, **SMALL}
QWEN3 = {**gpu_training_jobs.QWEN3_06B, **SMALL}
MIXTURE = {**gpu_training_jobs.MOE, **SMALL, "moe_intermediate_size": 128,
           "num_experts": 8, "num_experts_per_tok": 2}
GPT2 = {**gpu_training_jobs.GPT2_MEDIUM, "n_embd": 256, "n_layer": 3, "n_head": 4,
        "vocab_size": 4096}
# The peak is where the gradients of a tied embedding are summed.
TIED = {**LLAMA, "vocab_size": 32768}
PHI3 = {**gpu_training_jobs.PHI3_16, **SMALL, "num_key_value_heads": 4,
        "pad_token_id": 0}
PHI3.pop("head_dim")


def beside_tower(model, projector, **vision):
    """A language model in a model with a tower, trained on text alone."""
    text = {k: v for k, v in model.items() if k != "architectures"}
    return {"architectures": [f"{projector.capitalize()}ForConditionalGeneration"],
            "model_type": projector, "text_config": text,
            "tie_word_embeddings": model["tie_word_embeddings"],
            "vision_config": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 2,
                              "num_attention_heads": 4, "image_size": 56, "patch_size": 14, **vision}}


GEMMA3_TOWER = beside_tower(
    {**gpu_training_jobs.GEMMA3_1B, **SMALL, "vocab_size": 4096}, "gemma3",
    model_type="siglip_vision_model")
GEMMA3_TOWER["mm_tokens_per_image"] = 4
MISTRAL3_TOWER = beside_tower(
    {**LLAMA, "model_type": "mistral", "sliding_window": None}, "mistral3", model_type="pixtral")
# A window of a quarter of the sequence, in every second layer of Gemma 2's, in all of Mistral's.
GEMMA2 = {**gpu_training_jobs.GEMMA2_2B, **SMALL, "sliding_window": 128}
MISTRAL = {**gpu_training_jobs.MISTRAL_4, **SMALL, "sliding_window": 128}
# As it was published: the language model's settings beside the tower's.
QWEN25_VL_TOWER = {
    **gpu_training_jobs.QWEN2_15B, **SMALL, "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "model_type": "qwen2_5_vl", "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
    "vision_config": {"model_type": "qwen2_5_vl", "depth": 2, "num_heads": 4, "hidden_size": 128,
                      "intermediate_size": 384, "out_hidden_size": 256, "patch_size": 14}}
QWEN25_VL_TOWER.pop("head_dim")
# Of images of 4 * 4 patches a token each, and of 12 * 12 patches, of which four are a token.
LLAVA_TOWER = beside_tower(LLAMA, "llava", model_type="clip_vision_model", num_hidden_layers=3)
LLAVA_TOWER["image_token_index"] = 4095
QWEN25_VL_IMAGES = {**QWEN25_VL_TOWER, "image_token_id": 4095, "video_token_id": 4094,
                    "vision_start_token_id": 4093, "vision_config": {
                        **QWEN25_VL_TOWER["vision_config"], "depth": 3, "fullatt_block_indexes": [1]}}
QWEN2_VL_IMAGES = {**QWEN25_VL_IMAGES, "architectures": ["Qwen2VLForConditionalGeneration"],
                   "model_type": "qwen2_vl", "vision_config": {
                       "model_type": "qwen2_vl", "depth": 3, "num_heads": 4, "embed_dim": 128,
                       "mlp_ratio": 3, "hidden_size": 256, "patch_size": 14}}
# Three layers of a gated delta rule, by transformers' loop over chunks, and one of attention.
QWEN35 = {"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
          **SMALL, "num_hidden_layers": 4, "linear_num_key_heads": 2,
          "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
          "tie_word_embeddings": False, "max_position_embeddings": 4096,
          "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "mrope_interleaved": True,
                              "mrope_section": [3, 3, 2], "partial_rotary_factor": 0.25}}
QWEN35_TOWER = {
    "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "text_config": {**{k: v for k, v in QWEN35.items() if k != "architectures"},
                    "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]},
    "vision_config": {"model_type": "qwen3_5_vision", "depth": 2, "num_heads": 4, "hidden_size": 128,
                      "intermediate_size": 384, "out_hidden_size": 256, "num_position_embeddings": 64}}
QWEN35_MOE = {
    **QWEN35, "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text",
    "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
    "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "num_experts": 8,
    "num_experts_per_tok": 2}
QWEN3_NEXT = {**QWEN35_MOE, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next"}
T5 = {**gpu_training_jobs.T5_BASE, "d_model": 256, "d_kv": 64, "d_ff": 768,
      "num_layers": 3, "num_decoder_layers": 3, "num_heads": 4,
      "vocab_size": 4096}
# As transformers' Trainer had it until 5.0.
REENTRANT = {"gradient_checkpointing_kwargs": {"use_reentrant": True}}
JOBS = {
    "llama-amp": job(LLAMA, 256, 4),
    "llama-bf16": job(LLAMA, 256, 4, weights="bfloat16"),
    "llama-checkpointing": job(LLAMA, 256, 4, gradient_checkpointing=True),
    "llama-accumulation": job(LLAMA, 256, 2, weights="bfloat16",
                              gradient_accumulation_steps=2),
    "tied-bf16": job(TIED, 64, 1, weights="bfloat16"),
    "tied-accumulation": job(TIED, 64, 1, weights="bfloat16",
                             gradient_accumulation_steps=2),
    "tied-amp": job(TIED, 64, 1, gradient_accumulation_steps=2),
    "llama-lora": job(LLAMA, 256, 4, weights="bfloat16", lora=(8, ATTENTION)),
    "qwen3-amp": job(QWEN3, 256, 4),
    "mixture-bf16": job(MIXTURE, 256, 4, weights="bfloat16"),
    "gpt2-fp16": job(GPT2, 256, 4, precision="fp16"),
    "llama-fp32": job(LLAMA, 256, 4, precision="no"),
    "llama-eager": job(LLAMA, 256, 4, attention="eager"),
    "llama-adafactor": job(LLAMA, 256, 4, weights="bfloat16", optim="adafactor"),
    "phi3-amp": job(PHI3, 256, 4),
    # Masks are made once, and layers that are computed again hold them.
    "gemma2-eager-amp-ckpt": job(GEMMA2, 512, 4, attention="eager",
                                 gradient_checkpointing=True),
    "gemma2-eager-bf16-ckpt": job(GEMMA2, 512, 4, weights="bfloat16", attention="eager",
                                  gradient_checkpointing=True),
    "mistral-window-bf16": job(MISTRAL, 512, 4, weights="bfloat16"),
    "mistral-window-lora-ckpt": job(MISTRAL, 512, 4, weights="bfloat16",
                                    lora=(8, ATTENTION), gradient_checkpointing=True),
    "mistral-window-amp-ckpt": job(MISTRAL, 512, 4, gradient_checkpointing=True),
    "mistral-window-eager": job(MISTRAL, 512, 4, weights="bfloat16", attention="eager",
                                gradient_checkpointing=True),
    "t5-amp": job(T5, 256, 4),
    "qwen3-5-tower-bf16": job(QWEN35_TOWER, 256, 2, weights="bfloat16"),
    "qwen3-5-moe-bf16": job(QWEN35_MOE, 256, 2, weights="bfloat16"),
    "qwen3-next-bf16": job(QWEN3_NEXT, 256, 2, weights="bfloat16"),
    "qwen3-next-lora": job(QWEN3_NEXT, 256, 2, weights="bfloat16", lora=(8, ATTENTION)),
    "qwen3-5-bf16": job(QWEN35, 1024, 2, weights="bfloat16"),
    "qwen3-5-amp": job(QWEN35, 1024, 2),
    "qwen3-5-bf16-ckpt": job(QWEN35, 1024, 2, weights="bfloat16", gradient_checkpointing=True),
    "qwen3-5-lora": job(QWEN35, 1024, 2, weights="bfloat16", lora=(8, "all-linear")),
    "qwen3-5-lora-ckpt": job(QWEN35, 1024, 2, weights="bfloat16", lora=(8, "all-linear"),
                             gradient_checkpointing=True),
    # No parameter of a tower has a gradient or states.
    "gemma3-tower-bf16": job(GEMMA3_TOWER, 256, 4, weights="bfloat16"),
    "gemma3-tower-amp": job(GEMMA3_TOWER, 256, 4),
    "gemma3-tower-lora": job(GEMMA3_TOWER, 256, 4, weights="bfloat16", lora=(8, "all-linear")),
    "mistral3-tower-bf16": job(MISTRAL3_TOWER, 256, 4, weights="bfloat16"),
    "qwen2-5-vl-tower-bf16": job(QWEN25_VL_TOWER, 256, 4, weights="bfloat16"),
    "qwen2-5-vl-tower-lora": job(QWEN25_VL_TOWER, 256, 4, weights="bfloat16", lora=(8, "all-linear")),
    # Images, whose tower is trained, or frozen beside an adapter of the language model.
    "llava-images-bf16": job(LLAVA_TOWER, 256, 4, weights="bfloat16", images=images(2, 56, 56)),
    "llava-images-amp": job(LLAVA_TOWER, 256, 4, images=images(2, 56, 56)),
    "llava-images-lora": job(LLAVA_TOWER, 256, 4, weights="bfloat16", lora=(8, TEXT_ATTENTION),
                             images=images(2, 56, 56)),
    "qwen2-5-vl-images-bf16": job(QWEN25_VL_IMAGES, 256, 4, weights="bfloat16",
                                  images=images(2, 168, 168)),
    "qwen2-5-vl-images-amp": job(QWEN25_VL_IMAGES, 256, 4, images=images(2, 168, 168)),
    "qwen2-vl-images-bf16": job(QWEN2_VL_IMAGES, 256, 4, weights="bfloat16",
                                images=images(2, 168, 168)),
    "qwen2-5-vl-images-lora": job(QWEN25_VL_IMAGES, 256, 4, weights="bfloat16",
                                  lora=(8, TEXT_ATTENTION), images=images(2, 168, 168)),
}
FULL = ("llama1b-amp", "llama1b-amp-ckpt", "llama1b-bf16", "llama1b-bf16-accum",
        "llama1b-fp32", "llama1b-fp16", "llama1b-eager", "llama1b-foreach",
        "llama1b-lora-dropout", "llama1b-dora", "llama3b-bf16-ckpt",
        "llama3b-adafactor", "llama8b-lora", "llama8b-lora-ckpt",
        "llama8b-bf16-ckpt", "qwen06b-amp", "qwen06b-bf16", "qwen15b-amp-ckpt",
        "qwen15b-lora", "qwen7b-bf16-ckpt", "gpt2m-fp16", "gpt2m-fp32-sgd",
        "gemma3-4b-bf16", "gemma3-4b-lora",
        "llava7b-images-lora", "llava7b-images-ckpt",
        "qwen3b-vl-images-bf16",
        "gemma2b-bf16", "gemma2b-amp-ckpt", "gemma3-1b-bf16", "moe-bf16", "moe-amp-ckpt",
        "mistral-window", "phi3-bf16", "phi2-half-bf16", "stablelm-amp",
        "olmo3-bf16", "glm4-ckpt", "cohere-bf16", "qwen2moe-bf16",
        "bert-large-amp", "glm9b-8layers-bf16", "cohere2-8layers-amp",
        "arcee4b-bf16-ckpt", "seed-oss-8layers-bf16", "olmoe7b-bf16-ckpt",
        "granite4-1b-bf16", "granite31-1b-moe-amp", "ministral3-3b-bf16",
        "ministral3-3b-bf16-ckpt", "hunyuan-1b-amp", "ernie45-bf16",
        "glm45-air-3layers-bf16", "glm47-flash-6layers-bf16-ckpt")
JOBS.update({f"full-{name}": gpu_training_jobs.JOBS[name] for name in FULL})
# Of the widths of Qwen3.5-0.8B, a sixth of its layers.
QWEN35_WIDE = {**QWEN35, "hidden_size": 1024, "intermediate_size": 3584, "num_attention_heads": 8,
               "head_dim": 256, "vocab_size": 248320, "tie_word_embeddings": True,
               "linear_num_key_heads": 16, "linear_num_value_heads": 16,
               "linear_key_head_dim": 128, "linear_value_head_dim": 128,
               "rope_parameters": {**QWEN35["rope_parameters"], "mrope_section": [11, 11, 10]}}
JOBS["full-qwen3-5-4layers-bf16"] = job(QWEN35_WIDE, 2048, 1, weights="bfloat16")
JOBS["full-qwen3-5-4layers-lora-ckpt"] = job(
    QWEN35_WIDE, 2048, 1, weights="bfloat16", lora=(8, "all-linear"), gradient_checkpointing=True)
# Its backward repeats all of a layer, and has what it is given until it returns; states fill
# what the loss leaves behind.
LLAMA_7B = {**gpu_training_jobs.LLAMA_8B, "vocab_size": 32000, "max_position_embeddings": 4096}
LLAMA2_7B = {**LLAMA_7B, "intermediate_size": 11008, "num_key_value_heads": 32}
JOBS.update({f"full-{name}-reentrant": job(
    config, 4096, 4, weights="bfloat16", optim=optimizer, gradient_checkpointing=True, **REENTRANT)
    for name, config, optimizer in (("llama7b", LLAMA_7B, "adamw_torch_fused"),
                                    ("llama7b-foreach", LLAMA_7B, "adamw_torch"),
                                    ("llama2-foreach", LLAMA2_7B, "adamw_torch"))})
# Of the suite; the others by --all.
CHOSEN = ("t5-amp", "gemma3-tower-lora", "llava-images-bf16", "full-llama7b-reentrant",
          "full-llama7b-foreach-reentrant",
          "qwen2-5-vl-images-lora", "full-llama1b-fp32",
          "full-llama1b-bf16-accum", "full-llama3b-adafactor",
          "full-llama8b-bf16-ckpt", "full-qwen06b-amp", "full-qwen15b-lora",
          "full-qwen7b-bf16-ckpt", "full-gpt2m-fp16", "full-gemma3-1b-bf16",
          "full-moe-bf16", "full-olmoe7b-bf16-ckpt",
          "full-bert-large-amp")
# Of tensors: lists of pointers, steps and scales. The largest that was seen is 9 KB.
TOLERANCE = 16 * 1024
# In full size: batches and positions of further micro-batches, and of layers that
# are computed again.
FULL_TOLERANCE = 128 * 1024
FULL_RESERVED = 0.01
# FSDP1's flat gradients, which may not be there for long where collectives end at
# once; of an adapter's layers, also the order in which small units are gathered.
# Of Llama-2-7B's states, which leave the loss its place in torch's second step, and not here.
KNOWN_RESERVED = {"full-qwen3-5-4layers-lora-ckpt": 0.02, "full-moe-amp-ckpt": 0.012,
                  "fsdp2-full-foreach": 0.011, "fsdp1-full-checkpoints": 0.011,
                  "fsdp1-full-reentrant": 0.011, "fsdp2-full-lora-reentrant": 0.011,
                  "full-llama2-foreach-reentrant": 0.032,
                  "fsdp1-full-lora-reentrant": 0.054}
# What blocks have above their tensors, or miss, where the allocator is asked in a
# slightly different order.
RESTS = 2_150_000
# Of T5: a gradient of its bias for each sample.
# Of bf16 towers: positions of features among tokens, and 26 KB of LLaVA's.
# Of updates by groups of tensors 270 KB, which are not explained.
KNOWN = {"t5-amp": 2_100_000, "llava-images-bf16": 20_000,
         "full-llama7b-foreach-reentrant": 160_000, "full-llama2-foreach-reentrant": 160_000,
         "qwen2-vl-images-bf16": 10_000,
         "qwen2-5-vl-images-bf16": 10_000}
# What a gated delta rule saves is one tensor in plans, and hundreds in torch.
KNOWN_BLOCKS = {"qwen3-5-lora": 6_000_000}
STEPS = 4


def multiply_columns():
    """torch compiles `prod` when it is first called (NVRTC), which nothing stands in for;
    grids of images have three columns."""
    import torch
    torch.Tensor.prod = lambda x, dim: functools.reduce(torch.mul, x.unbind(dim))


def train(here, result):
    """In a process of its own, over the stand-ins (prefork.py)."""
    gpu_training.STEPS = STEPS
    multiply_columns()
    with open(result, "w", encoding="utf-8") as f:
        json.dump(gpu_training.train(here), f)


def full(name):
    return "full-" in name


def stand_ins(tools, devices, name):
    """The environment of a process of torch over them, with small workspaces."""
    return {"LD_PRELOAD": os.path.join(tools.runtime, "dry-gpu.so"),
            "LD_LIBRARY_PATH": os.path.join(tools.runtime, "dry"),
            "DRY_COMPUTE": "small" if full(name) else "1", "DRY_DEVICES": str(devices),
            "CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "1"}


def examine(tools, name):
    """Fails where the bytes are not as predicted; else says them."""
    folder = os.path.join(tools.work, "trainer-" + name)
    here, result = os.path.join(folder, name), os.path.join(folder, "result")
    gpu_training.prepare(folder, {name: JOBS[name]})
    tools.prefork.call("trainer", [here, result], stand_ins(tools, 1, name),
                       os.path.join(folder, "text"))
    with open(result, encoding="utf-8") as f:
        held = json.load(f)
    plan = gpu_training.predicted(folder, name, os.path.join(
        tools.bin, "accel-opt"), "h200", JOBS[name])
    if not plan:
        raise AssertionError("the job is not planned")
    return compare(name, plan["memory"], held, KNOWN.get(name, 0))


def compare(name, memory, held, known=0):
    """Fails where the bytes of a run are not as predicted, but for those that are
    known; else says them. torch tells the bytes of tensors, and of the blocks that
    they are in."""
    tensors = memory["peak_bytes"] - held["requested"]
    blocks = memory["replayed_allocated_bytes"] - held["allocated"]
    reserved = memory["replayed_reserved_bytes"] / held["reserved"] - 1
    text = (f"tensors of {held['requested']} bytes, {tensors:+} predicted, in "
            f"blocks {blocks:+}, reserved {reserved:+.1%}")
    if abs(tensors) > known + (FULL_TOLERANCE if full(name) else TOLERANCE):
        raise AssertionError(text)
    if full(name):
        wrong = abs(reserved) > KNOWN_RESERVED.get(name, FULL_RESERVED)
    else:
        wrong = abs(blocks) > KNOWN_BLOCKS.get(name, RESTS)
    if wrong:
        raise AssertionError(text)
    return text
