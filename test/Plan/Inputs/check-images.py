"""Plans LLaVA and Qwen2.5-VL with images and checks what those add.

    check-images.py FOLDER
"""
import json
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
H, F, LAYERS = 1024, 4096, 24  # of CLIP-L
TEXT = {"hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 4, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 32064, "tie_word_embeddings": False}
MODELS = {
    "llava": {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 32000,
              "text_config": {"model_type": "llama", **TEXT},
              "vision_config": {"model_type": "clip_vision_model", "hidden_size": H, "intermediate_size": F,
                                "image_size": 336, "patch_size": 14, "num_attention_heads": 16,
                                "num_hidden_layers": LAYERS}},
    "qwen": {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", **TEXT,
             "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
             "vision_config": {"model_type": "qwen2_5_vl", "depth": 8, "hidden_size": 1280, "num_heads": 16,
                               "intermediate_size": 3420, "out_hidden_size": 2048}},
    "gemma": {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
              "text_config": {"model_type": "gemma3_text"}, "vision_config": {"model_type": "siglip_vision_model"}}}
for name, config in MODELS.items():
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
(folder / "adapter").mkdir(exist_ok=True)
(folder / "adapter" / "adapter_config.json").write_text(json.dumps({
    "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "bias": "none",
    "target_modules": r".*language_model.*\.(q|v)_proj"}))
CONFIG = folder / "one.yaml"
CONFIG.write_text("distributed_type: 'NO'\nnum_processes: 1\nmixed_precision: 'no'\n")
DDP = folder / "ddp.yaml"
DDP.write_text("distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: 'no'\n")


def call(config, model, *more):
    command = ["accel-opt", "plan", str(config), "--model", str(folder / model), "--seq-len", "2048",
               "--target", "h200", "--format", "json", *more]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8").stdout)


def images(count, size=None):
    return ["--images-per-sample", str(count), *(["--image-size", size] if size else [])]


BATCH = 4  # so that the peak is where the loss is


def memory(model, *more):
    made = call(CONFIG, model, "--micro-batch", str(BATCH), *more)["memory"]
    assert made["peak_where"].startswith("backward"), made["peak_where"]
    return made


def close(name, got, wanted, part, says):
    assert abs(got / wanted - 1) < part, (name, got, wanted)
    print(f"{name}: {says}")


# Of CLIP: patches and places, the norm before the layers, and those up to the last feature; the projector.
LAYER = 4 * (H * H + H) + 2 * H * F + F + H + 4 * H
READ = H * 3 * 14 * 14 + H + 577 * H + 2 * H + (LAYERS - 1) * LAYER + 3 * 2048 * H + 2 * 2048
READ += 2048 * 2048 - 2 * 2048 * H  # of the projector: H to 2048, and that again
text, one, two = (memory("llava", *more) for more in ((), images(1), images(2)))
close("states", one["persistent_bytes"] - text["persistent_bytes"], 4 * READ, 1e-3, "of what an image reaches")
# A layer keeps of a token: what its norms read and give, q, k, v, what attention gives, the first matmul's
# result, its sigmoid and their product, in 2 bytes each.
KEPT = BATCH * (LAYERS - 1) * 577 * 2 * (8 * H + 3 * F)
more = two["breakdown"]["activations"] - one["breakdown"]["activations"]
close("saved", more, KEPT, 0.03, "by the layers of another image")
recomputed = [memory("llava", *images(n), "--gradient-checkpointing")["breakdown"]["activations"] for n in (1, 2)]
assert recomputed[1] - recomputed[0] < KEPT / 5, recomputed
print("recomputed: a fraction of that")
lora = [memory("llava", "--adapter", str(folder / "adapter"), *rest) for rest in ((), images(2))]
assert lora[1]["persistent_bytes"] == lora[0]["persistent_bytes"], lora
more = lora[1]["breakdown"]["activations"] - lora[0]["breakdown"]["activations"]
assert more < KEPT / 20, (more, KEPT)
print("frozen beside an adapter: the tower keeps nothing")

# Twice the pixels are twice the patches, in windows but for one layer of eight.
halves = [memory("qwen", *images(1, size))["breakdown"]["activations"] for size in ("448x448", "448x896", "448x1792")]
close("qwen", halves[2] - halves[1], 2 * (halves[1] - halves[0]), 0.01, "by pixels")


def told(config, model, *more):
    (first, *_) = [d for d in call(config, model, *more)["diagnostics"]
                   if d["severity"] == "error" or d["code"] in ("images", "unused-parameters")]
    return f"{first['severity']}: {first['message']}"


print(told(CONFIG, "llava", *images(2)))
print(told(CONFIG, "llava"))
print(told(CONFIG, "llava", *images(2, "224x224")))
print(told(CONFIG, "llava", *images(4)))
print(told(CONFIG, "llava", "--image-size", "336x336"))
print(told(CONFIG, "qwen", *images(1, "252x420")))
print(told(CONFIG, "qwen", *images(1)))
print(told(CONFIG, "qwen", *images(1, "250x420")))
print(told(CONFIG, "gemma", *images(1)))
print(told(CONFIG, "llava", *images(1), "--executor", "accel-run"))
codes = [d["severity"] for d in call(DDP, "llava", *images(1))["diagnostics"] if d["code"] == "unused-parameters"]
print(f"ddp: {codes}")
