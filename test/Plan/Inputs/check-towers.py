"""Plans gemma-3-4b and checks what its tower holds under each framework.

    check-towers.py FOLDER
"""
import json
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
(folder / "config.json").write_text(json.dumps({
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                    "num_hidden_layers": 34, "sliding_window": 1024,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896,
                      "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
                      "patch_size": 14, "vision_use_head": False}}))
FSDP = ("distributed_type: FSDP\nnum_processes: 2\nmixed_precision: 'no'\nfsdp_config:\n  fsdp_version: %d\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  fsdp_transformer_layer_cls_to_wrap: Gemma3DecoderLayer\n")
CONFIGS = {
    "one process": "distributed_type: 'NO'\nnum_processes: 1\nmixed_precision: 'no'\n",
    "ddp": "distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: 'no'\n",
    "fsdp2": FSDP % 2,
    "fsdp1": FSDP % 1,
    "zero2": "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\n"
             "deepspeed_config:\n  zero_stage: 2\n",
}


def run(name, *more):
    path = folder / f"{name}.yaml".replace(" ", "-")
    path.write_text(CONFIGS[name])
    command = ["accel-opt", "plan", str(path), "--model", str(folder), "--seq-len", "512",
               "--target", "h200", "--format", "json", *more]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8").stdout)


def held(name, *more):
    """Bytes between steps."""
    return run(name, *more)["memory"]["persistent_bytes"]


command = ["accel-opt", "estimate-memory", str(folder), "--format", "json"]
estimate = json.loads(subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8").stdout)
ALL = estimate["parameters"]
# The vision tower: patches and their places, 27 layers, a norm; the projector.
H, F = 1152, 4304
TOWER = (H * 3 * 14 * 14 + H + 64 * 64 * H + 27 * (4 * H + 4 * (H * H + H) + 2 * H * F + F + H) + 2 * H
         + H * 2560 + H)
TEXT = ALL - TOWER
print(f"{ALL} parameters, {TOWER} of them beside the text")


def check(name, bytes_held, wanted, says):
    # A tensor is rounded to 512 bytes.
    assert abs(bytes_held / wanted - 1) < 1e-3, (name, bytes_held, wanted)
    print(f"{name}: {says}")


# Weights of 2 bytes, two states of 2 each; DeepSpeed has three fp32 numbers for each element instead.
check("one process", held("one process"), 2 * ALL + 4 * TEXT, "states of the text alone")
check("ddp", held("ddp"), 2 * ALL + 4 * TEXT + 2 * ALL, "and buckets of all")
check("fsdp2", held("fsdp2"), ALL + 2 * TEXT, "states of the text alone")
check("fsdp1", held("fsdp1"), ALL + 2 * ALL + ALL, "states and gradients of all")
check("zero2", held("zero2"), 2 * ALL + 6 * ALL, "states of all")
check("accel-run", held("fsdp2", "--executor", "accel-run"), ALL + 2 * TEXT, "states of the text alone")

# With a class of its own the tower is not gathered with the root, and FSDP1 has no states for it. Its patches,
# places and last norm, and the projector, stay in the root.
LAYERS = 27 * (4 * H + 4 * (H * H + H) + 2 * H * F + F + H)
for name in "fsdp2", "fsdp1":
    before = run(name)["memory"]
    CONFIGS[name] = CONFIGS[name].replace("Gemma3DecoderLayer", "Gemma3DecoderLayer,SiglipEncoderLayer")
    after = run(name)["memory"]
    gathered = before["breakdown"]["gathered"] - after["breakdown"]["gathered"]
    assert before["peak_where"] == after["peak_where"] and abs(gathered / (2 * LAYERS) - 1) < 1e-3, (before, after)
    states = before["persistent_bytes"] - after["persistent_bytes"]
    assert abs(states - (3 * LAYERS if name == "fsdp1" else 0)) < 1 << 20, (before, after)
print("wrapped, its layers are never gathered")


def told(*more):
    (one,) = [d for d in run("ddp", *more)["diagnostics"] if d["code"] == "unused-parameters"]
    return one["severity"]


print(f"ddp: {told()}; by the Trainer: {told('--trainer-script')}; recomputed by the Trainer: "
      f"{told('--trainer-script', '--gradient-checkpointing')}")
