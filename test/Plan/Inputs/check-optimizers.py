"""Takes the optimizers that `accel-opt plan` advises and checks that a plan of each is what was told.

    check-optimizers.py FOLDER MODEL
"""
import json
import pathlib
import subprocess
import sys

folder, model = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True, exist_ok=True)
SIZES = ["--model", model, "--seq-len", "2048", "--target", "a100-80gb"]
FSDP = ("distributed_type: FSDP\nnum_processes: 2\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: %d\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n%s")
ZERO = "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\ndeepspeed_config:\n  "
CONFIGS = {
    "ddp": "distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16\n",
    "fsdp1": FSDP % (1, ""),
    "fsdp2": FSDP % (2, ""),
    "zero2": ZERO + "zero_stage: 2\n",
}


def written(name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


def plan(*arguments):
    command = ["accel-opt", "plan", *arguments, "--format", "json"]
    run = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    return json.loads(run.stdout)


def advised(*arguments):
    """Changes of the optimizer alone."""
    return [r for r in plan(*arguments)["recommendations"] if r["subject"] == "optimizer"]


def check(told, planned):
    assert told["device_bytes"] == planned["memory"]["device_bytes"], told
    assert abs(told["step_s"] - planned["time"]["step_s"]) <= 1e-9 * told["step_s"], told


for name, text in CONFIGS.items():
    path = written(f"{name}.yaml", text)
    taken = []
    before = plan(path, *SIZES)["memory"]["device_bytes"]
    for change in advised(path, *SIZES):
        optim = change["flags"][0][1]
        assert change["flags"] == [["--optim", optim]], change
        assert change["otherwise"] == f"TrainingArguments: optim={optim}", change
        assert ("8bit" in optim) == (change["caution"] is not None), change
        # States of 8 bits take less.
        assert "8bit" not in optim or change["memory"] < -(1 << 28), change
        check(change, plan(path, *SIZES, "--optim", optim))
        assert change["device_bytes"] - change["memory"] == before, change
        taken.append(optim)
    print(f"{name}: {', '.join(sorted(taken))} as told")

script = {"per_device_train_batch_size": 1, "bf16": True, "optim": "adamw_torch"}
path = written("script.json", json.dumps(script))
for change in advised(path, "--num-processes", "2", *SIZES):
    (line,) = change["yaml"]
    assert line["key"] == "optim" and pathlib.Path(line["file"]).name == "script.json", line
    other = written("taken.json", json.dumps({**script, "optim": line["value"]}))
    check(change, plan(other, "--num-processes", "2", *SIZES))
print("script: a line of its file, as told")

axolotl = ("base_model: x\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nsequence_len: 2048\nbf16: true\n"
           "optimizer: adamw_torch\nlearning_rate: 1e-5\n")
path = written("axolotl.yaml", axolotl)
found = [change["yaml"][0] for change in advised(path, "--num-processes", "2", *SIZES) if not change["caution"]]
print("axolotl:", *(f"{line['key']}: {line['value']}" for line in found))



def searched(budget, *extra):
    """The optimizer of the best setting of DDP, which takes 18.9 GiB as configured."""
    answer = plan(str(folder / "ddp.yaml"), *SIZES, "--memory-budget", budget, "--tune", *extra)
    return answer["tune"]["best"]["setting"]["optimizer"]


name = searched("24GiB")
print("searched:", "fused" if name == "adamw_torch_fused" else name)
name = searched("14GiB", "--tune-precision")
print("searched with --tune-precision:", "8 bits" if "8bit" in name else name)

own = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True},
       "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, "train_micro_batch_size_per_gpu": 1}
ds = written("ds.json", json.dumps(own))
none = {
    "fused": [written("ddp.yaml", CONFIGS["ddp"]), "--optim", "adamw_torch_fused"],
    "own": [written("own.yaml", f"{ZERO}deepspeed_config_file: {ds}\n")],
    "host": [written("host.yaml", FSDP % (2, "  fsdp_offload_params: true\n"))],
    "accel-run": [written("fsdp2.yaml", CONFIGS["fsdp2"]), "--executor", "accel-run"],
}
for name, arguments in none.items():
    found = [c["flags"][0][1] for c in advised(*arguments, *SIZES)]
    assert all("8bit" in optim for optim in found) if name == "fused" else not found, (name, found)
print("none for a fused script, DeepSpeed's own optimizer, states on the host, accel-run")
