"""`accel-opt estimate-memory` prints the table that Accelerate prints.

Accelerate asks the Hub about the model first, which is answered from the
folder's config.json here; everything else is its own code.
"""
import contextlib
import io
import json
import os
import random
import subprocess
import types
import unittest.mock as mock

import harness
from harness import check

OPTIONS = [[], ["--dtypes", "float32"], ["--dtypes", "int4", "float16"],
           ["--library_name", "transformers"],
           ["--library-name=transformers", "--dtypes=int8"]]


def theirs(folder, options):
    from accelerate.commands import estimate

    def on_hub(name, token=None):
        with open(os.path.join(name, "config.json"), encoding="utf-8") as f:
            return types.SimpleNamespace(library_name="transformers",
                                         config=json.load(f))
    parser = estimate.estimate_command_parser()
    out = io.StringIO()
    with mock.patch.object(estimate, "verify_on_hub", on_hub), \
            contextlib.redirect_stdout(out):
        estimate.estimate_command(parser.parse_args([folder, *options]))
    # (behind "Loading pretrained config for ...")
    return out.getvalue().split("\n", 1)[1]


def mine(context, folder, options):
    done = subprocess.run(
        [context.binary("accel-opt"), "estimate-memory", folder, *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=60, env=harness.clean_environment())
    check(done.returncode == 0, f"{folder}: {done.stderr.decode()}")
    return done.stdout.decode()


def compare(context, folders):
    import transformers
    transformers.logging.set_verbosity_error()
    wrong = []
    for number, folder in enumerate(folders):
        options = OPTIONS[number % len(OPTIONS)]
        want, got = theirs(folder, options), mine(context, folder, options)
        if not got.startswith(want + "\n"):
            wrong.append(f"{folder} {options}\n{want}{got[:len(want) + 200]}")
    check(not wrong, f"{len(wrong)} of {len(folders)} differ:\n"
          + "\n\n".join(wrong[:3]))
    return f"{len(folders)} tables"


def published(context):
    base = os.path.join(harness.HERE, "configs")
    folders = sorted(os.path.join(base, name) for name in os.listdir(base))
    check(len(folders) >= 10, f"{len(folders)} models")
    return compare(context, folders)


def random_configs(context, seed=5, count=3):
    """Every family that module trees describe."""
    import module_tree_cases
    import transformers
    rng = random.Random(seed)
    folders = []
    for model_type, (prefix, heads, switches) in sorted(
            module_tree_cases.FAMILIES.items()):
        for number in range(count):
            values = {k: rng.choice(v) for k, v in switches.items()}
            dtype = values.pop("dtype", None)
            config = transformers.CONFIG_MAPPING[model_type](
                **{k: v for k, v in values.items() if v is not None})
            config.architectures = [prefix + rng.choice(heads)]
            config.dtype = dtype
            # Names of all lengths: they make the table wider.
            name = model_type + "-" + "x" * rng.choice([0, 1, 2, 40])
            folder = context.path(f"{name}{number}")
            config.save_pretrained(folder)
            folders.append(folder)
    return compare(context, folders)


def defaults(context):
    """Models of full size, from their model_type alone."""
    import module_tree_cases
    folders = []
    for model_type in sorted(set(module_tree_cases.FAMILIES)
                             - set(module_tree_cases.NO_DEFAULTS)):
        # Accelerate makes each tensor before it drops it, here up to 30 GB of
        # experts.
        if model_type in ("deepseek_v3", "glm4_moe", "glm4_moe_lite"):
            continue
        folder = context.path(model_type)
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w",
                  encoding="utf-8") as f:
            json.dump({"model_type": model_type}, f)
        folders.append(folder)
    return compare(context, folders)


def own_code(context):
    """A file that maps AutoModelFor... makes Accelerate build that class."""
    base = os.path.join(harness.HERE, "configs", "llama-3.2-1b")
    with open(os.path.join(base, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config["auto_map"] = {"AutoConfig": "c.C",
                          "AutoModelForCausalLM": "m.LlamaForCausalLM"}
    folders = []
    for tied in (False, True):
        folders.append(context.path(f"mapped-{tied}"))
        os.mkdir(folders[-1])
        config["tie_word_embeddings"] = tied
        with open(os.path.join(folders[-1], "config.json"), "w",
                  encoding="utf-8") as f:
            json.dump(config, f)
    return compare(context, folders)


def true_sizes(context):
    """Parameters and bytes of the class that is trained, from torch itself."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    tested = 0
    base = os.path.join(harness.HERE, "configs")
    for name in sorted(os.listdir(base)):
        folder = os.path.join(base, name)
        config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=torch.bfloat16)
        n = sum(p.numel() for p in model.parameters())
        got = json.loads(mine(context, folder, ["--format", "json"]))
        check(got["parameters"] == n, f"{name}: {got['parameters']}, torch {n}")
        loaded = {row["dtype"]: row["bytes"] for row in got["loaded"]}
        want = sum(t.numel() * t.element_size() for t in model.parameters())
        want += sum(t.numel() * t.element_size() for t in model.buffers())
        check(loaded["float16, bfloat16"] == want,
              f"{name}: {loaded}, torch {want}")
        tied = model.lm_head.weight is model.get_input_embeddings().weight
        check(got["missing"][0].startswith("lm_head.weight") != tied,
              f"{name}: {got['missing'][0]}")
        check(got["training"][1]["total_bytes"] == 18 * n, str(got["training"]))
        activations = got["activations"]
        check((activations is not None)
              != any(m.startswith("activations: not known")
                     for m in got["missing"]), str(got["missing"]))
        tested += 1
    return f"{tested} models"


CASES = [
    ("published", published),
    ("random", random_configs),
    ("defaults", defaults),
    ("own-code", own_code),
    ("true-sizes", true_sizes),
]
