"""`accel-opt to-fsdp2` beside `accelerate to-fsdp2`, over generated files.

What a job does is read from Accelerate's own launch and plugins (see
accelerate_frontend.py), before and after: ours must keep it; where Accelerate's
conversion keeps it, both results must do the same.
"""
import collections
import json
import os
import random
import re
import subprocess
import unittest.mock as mock

import harness
from harness import check

STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
              "HYBRID_SHARD_ZERO2"]
# Keys of FSDP1 with valid values; None leaves the key out.
KEYS = {
    "fsdp_version": [None, None, "1", "'1'"],
    "fsdp_sharding_strategy": [None, *STRATEGIES, *STRATEGIES, "1", "2", "3",
                               "4", "5", "'2'", "full_shard"],
    "fsdp_reshard_after_forward": [None] * 4 + STRATEGIES + ["true"],
    "fsdp_auto_wrap_policy": [None] + ["TRANSFORMER_BASED_WRAP"] * 4
    + ["SIZE_BASED_WRAP", "NO_WRAP"],
    "fsdp_transformer_layer_cls_to_wrap": [None, None, "Layer",
                                           "'Layer,Other'"],
    "fsdp_min_num_params": [None, None, "1000", "0"],
    "fsdp_backward_prefetch": [None, "BACKWARD_PRE", "BACKWARD_POST",
                               "NO_PREFETCH"],
    "fsdp_forward_prefetch": [None, "false", "true"],
    "fsdp_state_dict_type": [None, "FULL_STATE_DICT", "SHARDED_STATE_DICT",
                             "LOCAL_STATE_DICT", "2"],
    "fsdp_use_orig_params": [None, "true", "false"],
    "fsdp_sync_module_states": [None, "true", "yes"],
    "fsdp_cpu_ram_efficient_loading": [None, "true", "false"],
    "fsdp_activation_checkpointing": [None, "false", "true"],
    "fsdp_offload_params": [None, None, "false", "true"],
    "fsdp_ignored_modules": [None, None, None, "'lm_head'"],
    "fsdp_unknown": [None, None, None, "1"],
}


def generate(rng):
    """(text, is it JSON) of a file for FSDP1."""
    top = {"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP"}
    machines = rng.choice([1, 1, 2, 4])
    if machines > 1 or rng.random() < 0.5:
        top["num_machines"] = str(machines)
    if machines > 1:
        top.update(main_process_ip="10.0.0.1", main_process_port="29500")
    top["num_processes"] = str(machines * rng.choice([1, 2, 8]))
    top["mixed_precision"] = rng.choice(["bf16", "fp16", "'no'"])
    inner = [(k, rng.choice(v)) for k, v in KEYS.items()]
    inner = [(k, v) for k, v in inner if v is not None]
    rng.shuffle(inner)
    bare = rng.random() < 0.15
    inner = [(k[len("fsdp_"):] if bare else k, v) for k, v in inner]
    if rng.random() < 0.05 and inner:
        inner.append(rng.choice(inner))  # a repetition
    form = rng.choice(["block"] * 6 + ["flow", "json"])
    count = 0

    def comment():
        nonlocal count
        if form == "json" or rng.random() > 0.3:
            return ""
        count += 1
        return f"  # note {count}"

    lines = []
    names = list(top) + ["fsdp_config"]
    rng.shuffle(names)
    if rng.random() < 0.15:
        names.append("parallelism_config")
    for name in names:
        if form != "json" and rng.random() < 0.2:
            lines.append(comment().strip() or "")
        if name == "fsdp_config" and form == "flow":
            lines.append("fsdp_config: {"
                         + ", ".join(f"{k}: {v}" for k, v in inner) + "}"
                         + comment())
        elif name == "fsdp_config":
            lines.append("fsdp_config:" + comment())
            step = " " * rng.choice([2, 4])
            for key, value in inner:
                if rng.random() < 0.15:
                    lines.append(step + comment().strip())
                lines.append(f"{step}{key}: {value}{comment()}")
            if not inner:
                lines[-1] = "fsdp_config: {}"
        elif name == "parallelism_config":
            lines.append("parallelism_config:")
            for axis in ("dp_replicate", "dp_shard", "tp", "cp"):
                lines.append(f"  parallelism_config_{axis}_size: 1"
                             + comment())
        else:
            lines.append(f"{name}: {top[name]}{comment()}")
    text = "\n".join(lines) + rng.choice(["\n", "\n", ""])
    if form == "json":
        import yaml
        return json.dumps(yaml.safe_load(text), indent=rng.choice([2, None])), \
            True
    if rng.random() < 0.1:
        text = text.replace("\n", "\r\n")
    return text, False


def convert(context, path, *options):
    """(exit code, the printed object)."""
    done = subprocess.run(
        [context.binary("accel-opt"), "to-fsdp2", path, "--format", "json",
         *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=60, env=harness.clean_environment())
    check(not done.stderr, f"{path}: {done.stderr.decode()}")
    return done.returncode, json.loads(done.stdout)


def read(path):
    import yaml
    with open(path, encoding="utf-8") as f:
        return json.load(f) if path.endswith(".json") else yaml.safe_load(f)


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)


def theirs(path, out):
    """Accelerate's conversion; (error, values) of what came out."""
    import accelerate_frontend
    from accelerate.commands import to_fsdp2
    config = to_fsdp2.convert_config_to_fsdp2(read(path))
    with open(out, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return accelerate_frontend.judge(out)


def wanted(values, ranks, machines):
    """What FSDP2 must do to keep what FSDP1 did."""
    sharding = values["sharding"]
    want = {k: values[k] for k in (
        "mixed_precision", "num_processes", "offload_params",
        "activation_checkpointing", "cpu_ram_efficient_loading",
        "ignored_modules", "state_dict_type", "wrap_policy", "wrap_classes",
        "min_num_params", "param_dtype", "reduce_dtype") if k in values}
    want["strategy"] = "fsdp2"
    want["reshard"] = sharding in ("FULL_SHARD", "HYBRID_SHARD")
    if want["state_dict_type"] == "LOCAL_STATE_DICT":
        want["state_dict_type"] = "SHARDED_STATE_DICT"
    if want["wrap_policy"] == "SIZE_BASED_WRAP" and want["min_num_params"]:
        # FSDP2's own rule fails for models with a list of layers.
        want["wrap_policy"] = "TRANSFORMER_BASED_WRAP"
        want.pop("min_num_params")
        want.pop("wrap_classes", None)
    mesh = (1, ranks)
    if sharding.startswith("HYBRID"):
        mesh = (machines, ranks // machines)
    return want, mesh


def replicates(values, ranks, machines):
    sharding = values["sharding"]
    return ranks > 1 and (sharding == "NO_SHARD" or
                          (sharding.startswith("HYBRID")
                           and ranks == machines))


def differs(want, mesh, got):
    """The first value that a judged file has otherwise, or ""."""
    for key, value in want.items():
        if got.get(key) != value:
            return f"{key} is {got.get(key)!r}, not {value!r}"
    ranks = mesh[0] * mesh[1]
    have = (got.get("dp_replicate", 1), got.get("dp_shard", ranks))
    return "" if have == mesh else f"mesh is {have}, not {mesh}"


def notes(text):
    return re.findall(r"# note \d+", text)


def corpus(context, seed, count, generator=generate):
    """(path, text, config, ranks, machines) of files that launch accepts."""
    import accelerate_frontend
    rng = random.Random(seed)
    for i in range(count):
        text, is_json = generator(rng)
        path = context.path(f"{i}.{'json' if is_json else 'yaml'}")
        write(path, text)
        error, values = accelerate_frontend.judge(path)
        config = read(path)
        machines = config.get("num_machines", 1)
        yield path, text, error, values, int(config["num_processes"]), machines


def to_fsdp2(context, seed=11, count=500):
    import accelerate_frontend
    import logging
    logging.disable(logging.WARNING)
    tally = collections.Counter()
    wrong = []
    for path, text, error, values, ranks, machines in corpus(context, seed,
                                                             count):
        code, mine = convert(context, path)
        codes = {d["code"] for d in mine["diagnostics"]
                 if d["severity"] == "error"}
        if error:
            tally["refused by launch"] += 1
            if code != 1:
                wrong.append(f"{text}\nlaunch: {error}\nconverted all the same")
            continue
        unwrapped = values["activation_checkpointing"] and (
            values["wrap_policy"] == "NO_WRAP"
            or values.get("min_num_params") == 0)
        if replicates(values, ranks, machines) or unwrapped:
            tally["no equivalent"] += 1
            if code != 1 or codes != {"no-equivalent"}:
                wrong.append(f"{text}\nhas no equivalent, exit code {code}, "
                             f"{codes}")
            continue
        if code:
            wrong.append(f"{text}\nrefused: {mine['diagnostics']}")
            continue
        out = path + ".mine" + os.path.splitext(path)[1]
        write(out, mine["text"])
        want, mesh = wanted(values, ranks, machines)
        failed, got = accelerate_frontend.judge(out)
        problem = failed or differs(want, mesh, got)
        if not problem and notes(mine["text"]) != notes(text):
            problem = f"comments {notes(mine['text'])}"
        if problem:
            wrong.append(f"{text}\n->\n{mine['text']}\n{problem}")
            continue
        tally["kept"] += 1
        failed, other = theirs(path, path + ".theirs.json")
        if failed or differs(want, mesh, other):
            tally["kept by ours only"] += 1
        elif any(other.get(k) != v for k, v in got.items()
                 if k not in ("dp_replicate", "dp_shard")):  # see differs()
            wrong.append(f"{text}\nAccelerate's conversion is right: {other}"
                         f"\nours does {got}")
        else:
            tally["the same as Accelerate's"] += 1
    logging.disable(logging.NOTSET)
    check(not wrong, f"{len(wrong)} of {count}:\n\n" + "\n\n".join(wrong[:4]))
    for name, least in (("kept", count / 4), ("kept by ours only", count / 20),
                        ("the same as Accelerate's", count / 20),
                        ("no equivalent", count / 20)):
        check(tally[name] > least, f"the sample tests too little: {tally}")
    return ", ".join(f"{v} {k}" for k, v in sorted(tally.items()))


def and_back(context, seed=12, count=200):
    """FSDP1 to FSDP2 to FSDP1 does what the first file did."""
    import accelerate_frontend
    tested = 0
    for path, text, error, values, ranks, machines in corpus(context, seed,
                                                             count):
        if error or convert(context, path)[0]:
            continue
        ending = os.path.splitext(path)[1]
        there, back = path + ".2" + ending, path + ".1" + ending
        write(there, convert(context, path)[1]["text"])
        code, mine = convert(context, there, "--to", "fsdp1")
        if values["sharding"].startswith("HYBRID") and machines == 1:
            values["sharding"] = values["sharding"].replace("HYBRID_SHARD_ZERO2",
                                                            "SHARD_GRAD_OP")
            values["sharding"] = values["sharding"].replace("HYBRID_SHARD",
                                                            "FULL_SHARD")
        if ranks == 1:  # all strategies are the same
            values.pop("sharding")
        check(code == 0, f"{text}\n->\n{open(there).read()}\n"
              f"{mine['diagnostics']}")
        write(back, mine["text"])
        failed, got = accelerate_frontend.judge(back)
        check(not failed, f"{mine['text']}\n{failed}")
        # What FSDP2 has no word for.
        for key in ("backward_prefetch", "forward_prefetch", "use_orig_params",
                    "sync_module_states"):
            values.pop(key)
        if values["state_dict_type"] == "LOCAL_STATE_DICT":
            values["state_dict_type"] = "SHARDED_STATE_DICT"
        if values["wrap_policy"] == "SIZE_BASED_WRAP":
            for key in ("wrap_policy", "min_num_params", "wrap_classes"):
                values.pop(key, None)
        for key, value in values.items():
            check(got.get(key) == value, f"{text}\n->\n{mine['text']}\n"
                  f"{key} is {got.get(key)!r}, was {value!r}")
        check(notes(mine["text"]) == notes(text),
              f"{text}\n->\n{mine['text']}\ncomments")
        tested += 1
    check(tested > count / 4, f"only {tested} files")
    return f"{tested} files"


def deepspeed_plugin(path):
    """What the ranks of a DEEPSPEED file build from the environment."""
    from accelerate.commands import launch as launching
    from accelerate.utils import DeepSpeedPlugin
    from accelerate.utils import launch as environment
    parser = launching.launch_command_parser()
    args = parser.parse_args(["--config_file", path, "script.py"])
    args.nondefault = []
    args, defaults, _ = launching._validate_launch_command(args)
    args.deepspeed_fields_from_accelerate_config = ",".join(
        defaults.deepspeed_config)
    with mock.patch.object(environment, "is_port_in_use", lambda port: False):
        command, env = environment.prepare_deepspeed_cmd_env(args)
    with mock.patch.dict(os.environ, {k: str(v) for k, v in env.items()},
                         clear=True):
        return args, command, DeepSpeedPlugin()


def to_others(context, seed=13, count=200):
    import accelerate_frontend
    tally = collections.Counter()
    for path, text, error, values, ranks, machines in corpus(context, seed,
                                                             count):
        if error:
            continue
        ending = os.path.splitext(path)[1]
        hybrid = values["sharding"].startswith("HYBRID") and machines > 1
        whole = replicates(values, ranks, machines)
        code, mine = convert(context, path, "--to", "deepspeed")
        impossible = (values["ignored_modules"] or (hybrid and not whole)
                      or (whole and values["offload_params"]))
        check((code == 1) == bool(impossible), f"{text}\n{code}, {mine}")
        if not impossible:
            out = path + ".ds" + ending
            write(out, mine["text"])
            args, command, plugin = deepspeed_plugin(out)
            stage = 0 if whole else \
                3 if values["sharding"] in ("FULL_SHARD", "HYBRID_SHARD") else 2
            cpu = "cpu" if values["offload_params"] else "none"
            got = (plugin.zero_stage, plugin.offload_optimizer_device,
                   plugin.offload_param_device, plugin.zero3_init_flag,
                   plugin.zero3_save_16bit_model, int(args.num_processes),
                   args.mixed_precision, command)
            want = (stage, cpu, cpu if stage == 3 else "none",
                    stage == 3 and values["cpu_ram_efficient_loading"],
                    stage == 3 and
                    values["state_dict_type"] == "FULL_STATE_DICT", ranks,
                    values["mixed_precision"], None)
            check(got == want, f"{text}\n->\n{mine['text']}\n{got}, not {want}")
            check("fsdp" not in re.sub("#.*", "", mine["text"]), mine["text"])
            check(notes(mine["text"]) == notes(text), mine["text"])
            tally[f"ZeRO {stage}"] += 1
        code, mine = convert(context, path, "--to", "ddp")
        possible = (whole or ranks == 1) and not values["offload_params"] \
            and not values["ignored_modules"]
        check((code == 0) == bool(possible), f"{text}\n{code}, {mine}")
        if possible:
            out = path + ".ddp" + ending
            write(out, mine["text"])
            failed, got = accelerate_frontend.judge(out)
            check(not failed and "strategy" not in got
                  and got["mixed_precision"] == values["mixed_precision"],
                  f"{mine['text']}\n{failed} {got}")
            check(notes(mine["text"]) == notes(text), mine["text"])
            tally["DDP"] += 1
    check(min(tally[k] for k in ("ZeRO 0", "ZeRO 2", "ZeRO 3", "DDP")) > 3,
          f"the sample tests too little: {tally}")
    return ", ".join(f"{v} {k}" for k, v in sorted(tally.items()))


def mutated(context, seed=14, count=800):
    """Files of all kinds, valid and not: each is converted or refused, and the
    check of the result never fails."""
    import frontend_cases
    rng = random.Random(seed)
    tally = collections.Counter()
    folder = os.path.join(harness.ROOT, "test", "Frontends", "Inputs",
                          "accelerate")
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
             for _ in range(4)]
    for i in range(count):
        kind = rng.random()
        text, is_json = generate(rng) if kind < 0.6 else \
            (frontend_cases.generate(rng), False)
        if kind < 0.3:
            text = frontend_cases.mutate(rng, text)
        paths.append(context.path(f"{i}.{'json' if is_json else 'yaml'}"))
        write(paths[-1], text)
    for number, path in enumerate(paths):
        to = ("fsdp2", "fsdp1", "deepspeed", "ddp")[number % 4]
        code, result = convert(context, path, "--to", to)
        check(code in (0, 1, 4), f"{path} --to {to}: exit code {code}")
        check((result["text"] is not None) == (code == 0), f"{path}: {result}")
        tally[code] += 1
    check(tally[0] > count / 10 and tally[1] > count / 10, str(tally))
    return f"{tally[0]} converted, {tally[1]} refused, {tally[4]} others"


CASES = [
    ("mutated", mutated),
    ("to-fsdp2", to_fsdp2),
    ("and-back", and_back),
    ("to-others", to_others),
]
