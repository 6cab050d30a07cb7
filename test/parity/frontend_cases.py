"""The text frontends accept, refuse and understand what Accelerate does.

Files are generated from a fixed seed: a plain job, with a few keys set to
values that people write, the traps of YAML 1.1 among them.
"""
import json
import os
import random

import harness
from harness import check

BOOLS = ["true", "false", "yes", "off", "'true'", "'no'", "1", "0", "null",
         "'1'", "maybe", "~", "[true]", "'None'", "TRUE", "'t'"]
FSDP = {
    "fsdp_version": ["1", "2", "'2'", "'1'", "3", "2.0", "true", "null",
                     "' 2 '", "0x2"],
    "fsdp_sharding_strategy": [
        "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
        "HYBRID_SHARD_ZERO2", "full_shard", "1", "5", "6", "'2'", "FULL",
        "null", "true"],
    "fsdp_reshard_after_forward": BOOLS + ["FULL_SHARD", "SHARD_GRAD_OP",
                                           "2"],
    "fsdp_offload_params": BOOLS,
    "fsdp_auto_wrap_policy": [
        "TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP", "no_wrap",
        "Transformer_Based_Wrap", "TRANSFORMER", "null", "''", "1"],
    "fsdp_transformer_layer_cls_to_wrap": [
        "Layer", "Layer,Other", "'Layer, Other'", "[Layer, Other]", "''",
        "null", "'Layer,'", "Other"],
    "fsdp_min_num_params": ["1000", "1e8", "'2000'", "0", "-1", "1.5", "null",
                            "1_000", "'1_0'", "true", "1.0e+3", "0x10"],
    "fsdp_backward_prefetch": ["BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH",
                               "backward_pre", "1", "2", "3", "null", "none",
                               "false"],
    "fsdp_forward_prefetch": BOOLS,
    "fsdp_state_dict_type": ["FULL_STATE_DICT", "SHARDED_STATE_DICT",
                             "LOCAL_STATE_DICT", "full_state_dict", "1", "3",
                             "4", "null", "SHARDED"],
    "fsdp_use_orig_params": BOOLS,
    "fsdp_sync_module_states": BOOLS,
    "fsdp_cpu_ram_efficient_loading": BOOLS,
    "fsdp_activation_checkpointing": BOOLS,
    "fsdp_activation_checkpointing_offload": BOOLS,
    "fsdp_ignored_modules": ["null", "'lm_head'", "'.*norm'"],
    "fsdp_typo": ["1"],
}
TOP = {
    "mixed_precision": ["no", "'no'", "bf16", "fp16", "BF16", "null", "fp32",
                        "8", "''"],
    "num_processes": ["1", "2", "8", "7", "-1", "0", "'4'", "null", "1.5",
                      "eight"],
    "gpu_ids": ["all", "'0,1,2,3,4,5,6,7'", "0", "null", "[0, 1]"],
    "main_process_port": ["29501", "0", "'29501'", "null"],
    "machine_rank": ["0", "null"],
    "use_cpu": ["true", "false"],
    "debug": ["true", "no"],
    "rdzv_backend": ["c10d", "static"],
    "same_network": ["true"],
    "downcast_bf16": ["'no'"],
    "typo_key": ["1"],
    "fp16": ["true", "false"],
    "ipex_config": ["{}"],
    "compute_environment": ["LOCAL_MACHINE", "MY_MACHINE", "AMAZON_SAGEMAKER"],
    "dynamo_backend": ["INDUCTOR", "'NO'", "nonsense"],
    "dynamo_config": ["{dynamo_backend: inductor}", "{backend: EAGER}", "{}"],
}
SIZES = ["1", "2", "4", "8", "0", "'2'", "null", "1.5"]
TYPES = ["FSDP"] * 12 + ["MULTI_GPU"] * 3 + ["'NO'", "'NO'", "NO", "MULTI_CPU",
                                             "fsdp", "TPU", "MULTI_XPU"]


def generate(rng):
    kind = rng.choice(TYPES)
    lines = {"distributed_type": kind, "num_processes": "8"}
    if rng.random() < 0.1:
        del lines["num_processes"]
    for key in rng.sample(sorted(TOP), rng.choice([0, 0, 0, 1, 1, 2])):
        lines[key] = rng.choice(TOP[key])
    if rng.random() < 0.1 and kind != "MULTI_CPU":
        lines["num_machines"] = rng.choice(["1", "2", "8"])
        lines["main_process_ip"] = "10.0.0.1"
        lines["main_process_port"] = "29500"
    text = "".join(f"{k}: {v}\n" for k, v in lines.items())
    if kind == "FSDP":
        inner = {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
        if rng.random() < 0.7:
            inner["fsdp_version"] = "2"
        for key in rng.sample(sorted(FSDP), rng.choice([0, 1, 1, 2, 3])):
            inner[key] = rng.choice(FSDP[key])
        text += "fsdp_config:\n"
        for key, value in inner.items():
            if rng.random() < 0.2:
                key = key[len("fsdp_"):]
            text += f"  {key}: {value}\n"
    if kind in ("FSDP", "MULTI_GPU") and rng.random() < 0.3:
        text += "parallelism_config:\n"
        for axis in ("dp_replicate", "dp_shard", "tp", "cp"):
            if rng.random() < (0.7 if axis.startswith("dp") else 0.15):
                text += (f"  parallelism_config_{axis}_size: "
                         f"{rng.choice(SIZES)}\n")
        if text.endswith("parallelism_config:\n"):
            text += "  parallelism_config_dp_shard_size: 8\n"
    return text


def dump(context, paths, *options):
    lines = []
    for start in range(0, len(paths), 200):
        out = harness.run([context.binary("frontend-dump"), *options,
                           *paths[start:start + 200]])
        lines += [json.loads(line) for line in out.splitlines()]
    check(len(lines) == len(paths), "frontend-dump skipped a file")
    return lines


def compare(path, text, mine, error, values):
    """A text that says how the two differ, or nothing."""
    errors = [d for d in mine["diagnostics"] if d["severity"] == "error"]
    if bool(errors) != bool(error):
        return (f"{text}Accelerate: {error or 'accepts'}\nhere: "
                + ("; ".join(d["message"] for d in errors) or "accepts"))
    if error:
        return ""
    got = mine["effective"]
    ranks = values.pop("num_processes")
    # With several machines launch rounds down, which Accelerate never says.
    if got["strategy"] not in ("single", "other") and \
            not any(d["code"] == "process-count" for d in mine["diagnostics"]):
        values["num_processes"] = int(ranks)
    for key, value in values.items():
        if got[key] != value:
            return f"{text}{key}: Accelerate {value!r}, here {got[key]!r}"
    return ""


def configurations(context, seed=20, count=600):
    import accelerate_frontend
    rng = random.Random(seed)
    paths, texts = [], []
    for i in range(count):
        paths.append(context.path(f"{i}.yaml"))
        texts.append(generate(rng))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(texts[-1])
    mine = dump(context, paths)
    wrong, refused = [], 0
    for path, text, line in zip(paths, texts, mine):
        error, values = accelerate_frontend.judge(path)
        refused += bool(error)
        if error and TEMPLATE in error:
            continue  # a note: --num_processes is on the command line
        difference = compare(path, text, line, error, values)
        if difference:
            wrong.append(difference)
    check(not wrong, f"{len(wrong)} of {count} differ:\n\n"
          + "\n\n".join(wrong[:5]))
    check(count / 5 < refused < count * 4 / 5, "the sample tests too little")
    return f"{count} files, {refused} refused by both, the rest mean the same"


TEMPLATE = "manually pass in `--num_processes`"
SEEDS = [
    "a: &x {b: 1, c: [1, 2]}\nd: *x\ne: {<<: *x, b: 2}\n",
    "a: 1e8\nb: 0x1F\nc: 017\nd: 1:30\ne: 1.5e+3\nf: .inf\ng: no\nh: ~\n",
    "a: !!str 12\nb: !!int '0x10'\nc: ! x\nd: 'it''s'\ne: \"a\\tb\"\n",
    "- |\n  x\n- >-\n  y\n- 'q'\n-\n- - 1\n  - {}\n",
    "# comment\nfsdp_config:\n  fsdp_version: 2 # two\n  a: [yes, No, 'on']\n"
    "num_processes: 8\n",
]
PIECES = [": ", "- ", "\n", "  ", "'", '"', "{", "}", "[", "]", ", ", " #",
          "&a ", "*a", "!!int ", "| ", "> ", "<<: ", "---\n", "...\n", "\t",
          "yes", "0x", "1_0", "=", "~", "@", "`", "\r\n", "\u00e9", "1e8",
          "0o7", "08", "+.inf", "-", ":"]


def mutate(rng, text):
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        if rng.random() < 0.6:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        else:
            text = text[:at] + text[at + rng.randint(1, 4):]
    return text


def documents(context, seed=7, count=1500):
    import yaml
    rng = random.Random(seed)
    paths, expected, texts = [], [], []
    for i in range(count):
        text = mutate(rng, rng.choice(SEEDS))
        paths.append(context.path(f"{i}.yaml"))
        with open(paths[-1], "w", encoding="utf-8", newline="") as f:
            f.write(text)
        try:
            with open(paths[-1], encoding="utf-8") as f:
                expected.append(str(yaml.safe_load(f)))
        except Exception:
            expected.append(None)
        texts.append(text)
    mine = dump(context, paths, "--yaml")
    wrong = [f"{t!r}\nPyYAML: {e}\nhere:   {m}"
             for t, e, m in zip(texts, expected, mine)
             # Escapes of repr() and sets are not imitated.
             if e != m and "\\" not in str(e) and "'set'" not in str(e)
             and "..." not in str(e)]
    # libyaml and PyYAML's scanner differ in a few corners of flow style.
    check(len(wrong) <= count / 500, f"{len(wrong)} of {count} differ:\n\n"
          + "\n\n".join(wrong[:5]))
    return f"{count} documents, {len(wrong)} read otherwise"


def published(context):
    """The files of Accelerate's own repository, where they are at hand."""
    import accelerate_frontend
    folder = os.path.join(harness.ROOT, "test", "Frontends", "Inputs",
                          "accelerate")
    paths = sorted(os.path.join(folder, n) for n in os.listdir(folder)
                   if n.endswith((".yaml", ".yml")))
    check(len(paths) >= 15, f"{len(paths)} files in {folder}")
    for path, line in zip(paths, dump(context, paths)):
        name = os.path.basename(path)
        error, _ = accelerate_frontend.judge(path)
        mine = line["outcome"] != 0
        # These need packages or programs that are not installed here.
        if error and ("FP8 is not available" in error or "mpirun" in error or
                      TEMPLATE in error):
            error = None
        check(mine == bool(error), f"{name}: Accelerate {error or 'accepts'}, "
              f"here {line['diagnostics']}")
    return f"{len(paths)} files"


CASES = [
    ("configurations", configurations),
    ("documents", documents),
    ("published", published),
]
