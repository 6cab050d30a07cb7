"""Arguments of training scripts, against the classes that read them.

Tables are held against the installed transformers, accelerate and PEFT; command
lines against HfArgumentParser, argument by argument; files against what
TrainingArguments makes of them; fsdp_config against the plugin that Trainer
builds.
"""
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import warnings

import harness
from harness import check

DATA = os.path.join(harness.ROOT, "frontends", "Scripts", "data")


def current_tables(context):
    tool = os.path.join(harness.ROOT, "tools", "list-arguments")
    for name in ("transformers", "accelerate", "peft"):
        made = subprocess.run([sys.executable, tool, name], check=True, capture_output=True, text=True).stdout
        with open(os.path.join(DATA, name + ".txt"), encoding="utf-8") as f:
            check(made == f.read(), f"{name}.txt is not what tools/list-arguments writes")
    return "3 tables"


def dump(context, mode, items):
    path = context.path("items.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(items, f)
    lines = harness.run([context.binary("script-dump"), mode, path]).splitlines()
    check(len(lines) == len(items), "script-dump skipped an item")
    return [json.loads(line) for line in lines]


def errors(line):
    return [d["message"] for d in line["diagnostics"] if d["severity"] == "error"]


# --- command lines --------------------------------------------------------------------------------


def random_words(rng, parser):
    words = []
    actions = [a for a in parser._actions if a.option_strings and a.dest != "help"]
    for action in rng.sample(actions, rng.randint(1, 6)):
        option = rng.choice([o for o in action.option_strings if o.startswith("--")])
        if action.const is False and action.nargs == 0:  # --no_x
            words.append(option)
            continue
        if rng.random() < 0.1 and len(option) > 14:
            option = option[:-rng.randint(1, 4)]  # a prefix, perhaps of several
        if action.choices:
            value = str(rng.choice(list(action.choices)))
        elif action.type is int:
            value = str(rng.choice([0, 1, 2, 7, 64]))
        elif action.type is float:
            value = str(rng.choice([0, 1, 0.5, "1e-5", 3.25]))
        elif getattr(action.type, "__name__", "") == "string_to_bool":
            value = rng.choice(["true", "False", "yes", "0", "no", "t"])
        elif rng.random() < 0.5:
            value = rng.choice(["word", "two words", "all", "none"])
        else:
            value = '{"a": 1}' if action.type is dict else "x"
        if rng.random() < 0.08:
            value = rng.choice(["maybe", "", "12x"])
        if action.nargs == "?" and rng.random() < 0.4:
            words.append(option)
        elif rng.random() < 0.4:
            words.append(f"{option}={value}")
        else:
            words += [option, value]
    return words


def plain(value):
    value = getattr(value, "value", value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def same(mine, theirs):
    theirs = plain(theirs)
    if isinstance(theirs, str) and theirs.startswith("{"):
        theirs = json.loads(theirs)
    if isinstance(mine, list) and len(mine) == 1 and not isinstance(theirs, list):
        mine = mine[0]
    if isinstance(mine, bool) or isinstance(theirs, bool):
        # What stands for a truth value and more keeps its text in Python.
        return mine == theirs or (isinstance(theirs, str) and str(mine).lower() == theirs.lower())
    if isinstance(theirs, (int, float)) and isinstance(mine, (int, float)):
        return float(mine) == float(theirs)
    return mine == theirs


def command_lines(context):
    from transformers import HfArgumentParser, TrainingArguments
    parser = HfArgumentParser(TrainingArguments)
    rng = random.Random(7)
    lines = [random_words(rng, parser) for _ in range(250)]
    mine = dump(context, "--arguments", [{"reader": "TrainingArguments", "words": words} for words in lines])
    refused = 0
    defaults = parser.parse_known_args([])[0]  # texts among them become values
    for words, got in zip(lines, mine):
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                namespace, rest = parser.parse_known_args(words)
        except (SystemExit, Exception):  # argparse's own, or of a dict's type
            namespace = None
        if namespace is None:
            refused += 1
            check(errors(got), f"{words}: HfArgumentParser refuses it, here it is read as {got['given']}")
            continue
        check(not errors(got), f"{words}: {errors(got)}, and HfArgumentParser reads it")
        for name, value in got["given"].items():
            check(same(value, getattr(namespace, name)),
                  f"{words}: {name} is {getattr(namespace, name)!r} there and {value!r} here")
        for name, value in vars(namespace).items():
            if name not in got["given"]:
                check(plain(value) == plain(getattr(defaults, name)), f"{words}: {name}={value!r} was not read")
    return f"{len(lines)} command lines, {refused} refused"


# --- files ----------------------------------------------------------------------------------------


def make_arguments(values, folder):
    from transformers import TrainingArguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TrainingArguments(output_dir=folder, use_cpu=True, **values)


def files(context):
    rng = random.Random(11)
    pool = {
        "per_device_train_batch_size": [1, 2, 16], "gradient_accumulation_steps": [1, 4],
        "bf16": [True, False], "fp16": [True, False], "optim": ["adamw_torch", "sgd", "adamw_torch_fused"],
        "learning_rate": [1e-4, 3e-5], "weight_decay": [0.0, 0.1], "max_grad_norm": [0.0, 1.0, 0.5],
        "activation_checkpointing": [True, False, None], "gradient_checkpointing": [True, False],
        "eval_strategy": ["no", "epoch"], "save_strategy": ["no", "epoch"], "load_best_model_at_end": [True, False],
        "lr_scheduler_type": ["linear", "reduce_lr_on_plateau"], "dataloader_prefetch_factor": [2, None],
        "dataloader_num_workers": [0, 2], "bf16_full_eval": [True, False], "fp16_full_eval": [True, False],
    }
    jobs, cases = [], []
    for i in range(150):
        names = rng.sample(sorted(pool), rng.randint(2, 8))
        values = {name: rng.choice(pool[name]) for name in names}
        path = context.path(f"{i}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(values, f)
        jobs.append({"trainer": [path], "processes": 2})
        cases.append(values)
    refused = 0
    for values, got in zip(cases, dump(context, "--jobs", jobs)):
        try:
            args = make_arguments(values, context.path("out"))
        except ValueError as error:
            refused += 1
            check(errors(got), f"{values}: TrainingArguments stops with {error}, here it is read")
            continue
        check(not errors(got), f"{values}: {errors(got)}, and TrainingArguments takes it")
        script = got["script"]
        for mine, theirs in (("micro_batch", args.per_device_train_batch_size),
                             ("accumulation", args.gradient_accumulation_steps),
                             ("optim", args.optim.value), ("learning_rate", args.learning_rate),
                             ("weight_decay", args.weight_decay), ("max_grad_norm", args.max_grad_norm),
                             ("layer_checkpointing", bool(args.activation_checkpointing))):
            check(script[mine] == theirs, f"{values}: {mine} is {theirs!r} there and {script[mine]!r} here")
        check(got["accelerate"]["mixed_precision"] == args.mixed_precision,
              f"{values}: mixed precision {args.mixed_precision} there, {got['accelerate']['mixed_precision']} here")
    return f"{len(cases)} files, {refused} refused"


# --- fsdp_config ----------------------------------------------------------------------------------


def fsdp_configs(context):
    import accelerate_frontend
    rng = random.Random(3)
    common = {"transformer_layer_cls_to_wrap": ["Layer", ["Layer"], ["Layer", "Other"]],
              "auto_wrap_policy": ["TRANSFORMER_BASED_WRAP", "NO_WRAP"], "cpu_offload": [True, False],
              "cpu_ram_efficient_loading": [False, "false"], "activation_checkpointing": [False, True, "false"],
              "state_dict_type": ["FULL_STATE_DICT", "SHARDED_STATE_DICT"]}
    second = dict(common, reshard_after_forward=[True, False, "true"])
    first = dict(common, reshard_after_forward=["full_shard", "shard_grad_op"], use_orig_params=[True, False],
                 backward_prefetch=["backward_pre", "NO_PREFETCH"], forward_prefetch=[True, False],
                 sync_module_states=[True])
    jobs, cases = [], []
    for i in range(80):
        version = rng.choice([1, 2, None])
        pool = first if version == 1 else second
        config = {} if version is None else {"version": version}
        for name in rng.sample(sorted(pool), rng.randint(0, 5)):
            prefix = "fsdp_" if rng.random() < 0.2 else ""
            config[prefix + name] = rng.choice(pool[name])
        legacy = rng.choice([True, "full_shard auto_wrap", "shard_grad_op auto_wrap", True])
        values = {"fsdp": legacy, "fsdp_config": config, "bf16": True}
        path = context.path(f"{i}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(values, f)
        jobs.append({"trainer": [path], "processes": 8})
        cases.append(values)
    for values, got in zip(cases, dump(context, "--jobs", jobs)):
        text = json.dumps(values)
        for name in [n for n in os.environ if n.startswith(("FSDP_", "ACCELERATE_"))]:
            del os.environ[name]
        args = make_arguments(json.loads(text), context.path("out"))
        os.environ["ACCELERATE_MIXED_PRECISION"] = args.mixed_precision
        _, theirs = accelerate_frontend.fsdp_plugin(args.fsdp_plugin_args)
        mine = got["accelerate"]
        check(mine is not None, f"{text}: {errors(got)}")
        if theirs["wrap_policy"] == "NO_WRAP":
            theirs.pop("wrap_classes", None)
        for name, value in theirs.items():
            check(mine[name] == value, f"{text}: {name} is {value!r} there and {mine[name]!r} here")
    return f"{len(cases)} configurations"


def transformers_units(folders):
    """For each model: units of transformers' own sharding (apply_fully_sharded_data_parallelism)
    as lists of parameters, with whether they stay gathered, and what is left to the root."""
    import torch
    import transformers
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.fsdp import is_norm_and_head_pair

    result = []
    for folder in folders:
        config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        plan = model._resolve_parallel_plans(DistributedConfig(fsdp_size=2))[2]
        kept = [(n, model.get_submodule(n)) for n, style in plan.items()
                if style == "keep_full_weight"]
        groups = [[n] for n, style in plan.items() if style != "keep_full_weight"]
        tail = [n for n, _ in kept]
        groups += [tail] if is_norm_and_head_pair(kept, model) else [[n] for n in tail]
        names, units = [n for n, _ in model.named_parameters()], []
        for group in groups:
            inside = sorted(n for n in names if any(n.startswith(g + ".") for g in group))
            units.append((inside, group == tail))
            names = [n for n in names if n not in inside]
        result.append((units, names))
    return result


def own_shards(context):
    """DistributedConfig: units as transformers plans them, and the families of which it leaves
    parameters to the root refused."""
    import jobs
    families = ("gqa", "tied", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "mixtral",
                "qwen3-moe", "phi3", "olmo2", "gpt2", "gpt-neox", "opt", "falcon", "mpt",
                "gpt-bigcode")
    folders = [context.path(name) for name in families]
    for name, folder in zip(families, folders):
        jobs.write_config(folder, jobs.MODELS[name])
    wanted = harness.in_python(transformers_units, [({}, (folders,))], context.path("torch.out"))[0]
    planned = 0
    for name, folder, (units, rest) in zip(families, folders, wanted):
        recipe = jobs.write_job(folder, {
            "model_name_or_path": folder, "max_length": 16, "save_strategy": "no",
            "gradient_checkpointing": False, "bf16": False,
            "model_init_kwargs": {"distributed_config": {"fsdp_size": 2}}}, "own.yaml")
        command = [context.binary("accel-opt"), "plan", recipe, "--num-processes", "2", "--target",
                   "h100-sxm-80gb", "--format", "json"]
        if rest:
            said = harness.run(command, expect=4)
            check("does not name its embedding" in said, f"{name}: {said}")
            continue
        got = json.loads(harness.run(command))
        kept = {d["where"]: d["choice"].startswith("kept") for d in got["decisions"]
                if d["what"] == "reshard"}
        mine = sorted((sorted(u["parameters"]), kept[u["name"]]) for u in got["units"])
        check(mine == sorted(units), f"{name}: units {mine}, transformers has {sorted(units)}")
        planned += 1
    check(planned == 12, f"{planned} families are planned")
    return f"{planned} families"


CASES = [("own-shards", own_shards), ("tables", current_tables), ("command_lines", command_lines), ("files", files),
         ("fsdp_config", fsdp_configs)]
