"""Said = planned: every change that `plan` prints, taken and planned again,
has the bytes, the seconds and the verdict that were printed; what `--emit
accelerate` writes passes our own lint and is planned as the search said."""
import glob
import json
import os
import shutil
import subprocess
import tempfile

import yaml

import harness

ROOT = harness.ROOT
SHARED = os.environ.get("ACCEL_SHARED", os.path.join(ROOT, "..", "shared"))
MODELS = os.path.join(ROOT, "test", "parity", "configs")
SHORT = ["--seq-len", "512"]  # no model's positions end before
OPTIONS = ["--target", "h100-sxm-80gb", "--seq-len", "2048", "--format", "json"]

FSDP = """distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
fsdp_config:
  fsdp_version: {version}
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  {more}
"""
OWN = {
    "fsdp2": FSDP.format(version=2, more="fsdp_reshard_after_forward: true"),
    "fsdp2-keep": FSDP.format(version=2, more="fsdp_reshard_after_forward: false"),
    "fsdp2-two": FSDP.format(version=2, more="fsdp_reshard_after_forward: true").replace(
        "num_processes: 8", "num_processes: 2"),
    "fsdp1": FSDP.format(version=1, more="fsdp_sharding_strategy: FULL_SHARD"),
    "ddp": "distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n",
    "one": "distributed_type: 'NO'\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 1\n",
    "zero2": "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
             "deepspeed_config:\n  zero_stage: 2\n",
    "zero3": "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
             "deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n",
}
JSON = ("distributed_type: DEEPSPEED\nnum_machines: 1\nnum_processes: 8\n"
        "deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: false\n")
JOB = """model: unused
init: {{seed: 0}}
accelerate: {accelerate}
data: {{tokens: tokens.bin, sequence_length: 2048, micro_batch: 4}}
gradient_accumulation_steps: 2
optimizer: {{name: adamw, lr: 1.0e-4}}
schedule: {{steps: 10}}
"""
# Where one rank's settings stand in several files: name -> the file that is
# planned, the files beside it, options.
SEVERAL = {
    "zero2-json": (JSON, {"ds.json": json.dumps({
        "bf16": {"enabled": True}, "zero_optimization": {"stage": 2},
        "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto"})}, []),
    "zero3-json": (JSON, {"ds.json": json.dumps({
        "bf16": {"enabled": True}, "train_batch_size": 32,
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})}, []),
    "ddp-compiled": (OWN["ddp"], {}, ["--compile", "--micro-batch", "4"]),
    "zero2-compiled": (OWN["zero2"], {}, ["--compile", "--micro-batch", "2"]),
    "zero3-compiled": (OWN["zero3"], {}, ["--compile", "--micro-batch", "2"]),
    "accel-run": (OWN["fsdp2"], {}, ["--executor", "accel-run", "--micro-batch", "4"]),
    "accel-run-two": (OWN["fsdp2-two"], {}, ["--executor", "accel-run"]),
    "accel-run-job": (JOB.format(accelerate="fsdp2.yaml"),
                      {"fsdp2.yaml": OWN["fsdp2"], "tokens.bin": "0" * 100000}, []),
    "accel-run-inline": (JOB.format(accelerate="\n  " + OWN["fsdp2-two"].strip().replace("\n", "\n  ")),
                         {"tokens.bin": "0" * 100000}, []),
}


def plan(binary, path, model, *options):
    done = subprocess.run([binary, "plan", path, "--model", model, *OPTIONS, *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1, 2, 4), (done.returncode, done.stderr)
    return done.returncode, json.loads(done.stdout)


def set_line(document, key, value):
    *sections, name = key.split(".")
    for section in sections:
        if not isinstance(document.get(section), dict):
            document[section] = {}
        document = document[section]
    document[name] = yaml.safe_load(value)


def taken(path, change, root):
    """The file with the change's lines, by a YAML library of its own."""
    home = os.path.dirname(os.path.abspath(path))
    # A level below the root, so that a file named by "../" has its place too.
    folder = os.path.join(root, "of", os.path.basename(home))
    os.makedirs(folder)
    # What a file names (DeepSpeed's JSON, a job's YAML) stands beside it.
    for kind in ("*.json", "*.yaml", "*.yml", "*.bin"):
        for sibling in glob.glob(os.path.join(home, kind)):
            shutil.copy(sibling, folder)
    for line in change["yaml"] or []:
        source = os.path.abspath(line["file"])
        out = os.path.normpath(os.path.join(folder, os.path.relpath(source, home)))
        if not os.path.exists(out):
            os.makedirs(os.path.dirname(out), exist_ok=True)
            shutil.copy(source, out)
        with open(out, encoding="utf-8") as f:
            document = yaml.safe_load(f) or {}
        set_line(document, line["key"], line["value"])
        with open(out, "w", encoding="utf-8") as f:
            if out.endswith(".json"):
                json.dump(document, f)
            else:
                yaml.safe_dump(document, f)
    return os.path.join(folder, os.path.basename(path))


def check(binary, path, model, options=()):
    """Takes every printed change of one file; the number of changes."""
    code, first = plan(binary, path, model, *options)
    if code not in (0, 2):
        return 0
    count = 0
    for change in first["recommendations"]:
        if not change["yaml"] and not change["flags"]:
            continue  # neither a line nor an option says it
        with tempfile.TemporaryDirectory() as folder:
            file = taken(path, change, folder)
            flags = ["=".join(word for word in pair if word) for pair in change["flags"]]
            code, second = plan(binary, file, model, *options, *flags)
        what = f"{os.path.basename(path)}: {change['change']}"
        assert code in (0, 2), (what, second["diagnostics"])
        memory, time = second["memory"], second["time"]
        assert memory["device_bytes"] == change["device_bytes"], (
            what, change["device_bytes"], memory["device_bytes"])
        assert time["step_s"] == change["step_s"], (what, change["step_s"], time["step_s"])
        assert memory["fits"] == change["fits"], what
        assert memory["device_bytes"] - first["memory"]["device_bytes"] == change["memory"], what
        count += 1
    return count


def emitted(binary, path, model, options=()):
    """--emit accelerate: lint has no error, and the plan is what was said."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, os.path.basename(path))
        code, said = plan(binary, path, model, *options, "--emit", "accelerate", "-o", out)
        if not os.path.exists(out):
            return 0
        lint = subprocess.run([binary, "lint", out, "--model", model], capture_output=True, text=True)
        assert lint.returncode == 0, (path, lint.stdout)
        code, second = plan(binary, out, model, *options)
    best = said["tune"]["yaml_alone"]["best"]
    assert second["memory"]["device_bytes"] == best["device_bytes"], (
        path, best["device_bytes"], second["memory"]["device_bytes"])
    assert second["time"]["step_s"] == best["step_s"], (path, best["step_s"], second["time"]["step_s"])
    assert second["memory"]["fits"], path
    return 1


def own(name, text):
    def case(context):
        path = context.path(name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        binary = context.binary("accel-opt")
        count = sum(check(binary, path, os.path.join(MODELS, model))
                    for model in ("llama-3-8b", "qwen2-1.5b"))
        harness.check(count > 0, "no change was printed")
        return f"{count} changes taken"
    return case


def published(binary):
    """The smallest published model of each family."""
    listed = subprocess.run([binary, "models", "--format", "json"], capture_output=True, text=True,
                            check=True).stdout
    smallest = {}
    for model in json.loads(listed)["models"]:
        known = smallest.get(model["model_type"])
        if not known or model["parameters"] < known["parameters"]:
            smallest[model["model_type"]] = model
    return {family: model["name"] for family, model in smallest.items()}


def families(file, options):
    """Of each family something is told beside what no file says: a change whose
    plan fails is left out, and all are where a model cannot be planned anew."""
    def case(context):
        path = context.path(file + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(OWN[file])
        binary = context.binary("accel-opt")
        total, silent = 0, []
        for family, model in published(binary).items():
            code, _ = plan(binary, path, model, *options)
            if code not in (0, 2):
                continue
            count = check(binary, path, model, options)
            total += count
            if not count:
                silent.append(family)
        harness.check(not silent, f"no change is told of {', '.join(silent)}")
        harness.check(total > 50, f"only {total} changes were printed")
        return f"{total} changes taken"
    return case


def emit(name, text):
    def case(context):
        path = context.path(name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        written = emitted(context.binary("accel-opt"), path,
                          os.path.join(MODELS, "llama-3-8b"))
        return "written" if written else "nothing to write"
    return case


def several(name, act):
    text, beside, options = SEVERAL[name]

    def case(context):
        path = context.path(name + ".yaml")
        for file, content in {name + ".yaml": text, **beside}.items():
            with open(context.path(file), "w", encoding="utf-8") as f:
                f.write(content)
        count = sum(act(context.binary("accel-opt"), path, os.path.join(MODELS, model), options)
                    for model in ("llama-3-8b", "qwen2-1.5b"))
        harness.check(count > 0, "nothing was printed")
        return f"{count} taken"
    return case


def real(context):
    """The files of others are read where they lie; the project copies none."""
    files = sorted(glob.glob(os.path.join(SHARED, "accelerate_yamls", "**",
                                          "*.y*ml"), recursive=True))
    if not files:
        return "no files at hand"
    binary = context.binary("accel-opt")
    total, wrong = 0, []
    for path in files:
        try:
            total += check(binary, path, os.path.join(MODELS, "llama-3-8b"))
        except AssertionError as error:
            wrong.append(str(error)[:300])
    harness.check(not wrong, f"{len(wrong)} of {total} changes:\n" + "\n".join(wrong))
    harness.check(total > 50, f"only {total} changes were printed")
    return f"{total} changes of {len(files)} files taken"


CASES = [(name, own(name, text)) for name, text in OWN.items()] + [
    ("emit-" + name, emit(name, text)) for name, text in OWN.items()] + [
    (name, several(name, check)) for name in SEVERAL] + [
    ("emit-" + name, several(name, emitted)) for name in SEVERAL if "json" in name] + [
    ("families-fsdp2", families("fsdp2-two", ["--micro-batch", "4", *SHORT])),
    ("families-adapters", families("fsdp2-two", [
        "--micro-batch", "4", "--lora-r", "16", "--dtype", "f32", *SHORT])),
    ("real-files", real)]

REPEATED = {"families-adapters"}
