"""What Megatron-Bridge's performance recipes set, as passes/Validate/data/recipes.json.

Rows of its performance tables say sizes and degrees of parallelism; what is recomputed, replayed
as CUDA graphs and sent how is in the recipes of the release that measured them:
scripts/performance/configs until 26.06, perf_recipes since 26.08. They are run here with stand-ins
for the modules that they import.

    python test/bench/bridge_recipes.py CLONE_OF_MEGATRON_BRIDGE > passes/Validate/data/recipes.json
"""

import dataclasses
import importlib.abc
import importlib.machinery
import itertools
import json
import re
import subprocess
import sys
import types

TAGS = {
    "25.11": "v0.2.0",
    "26.02": "v0.3.0",
    "26.02.01": "v0.3.1",
    "26.04": "v0.4.0",
    "26.04.01": "v0.4.2",
    "26.06": "v0.5.0",
    "26.06.01": "v0.5.1",
    "26.08": "v0.6.0",
}
FAMILIES = (
    "deepseek/deepseek",
    "gpt_oss/gpt_oss",
    "kimi/kimi",
    "llama/llama3",
    "llama/llama31",
    "nemotronh/nemotron_3_nano",
    "nemotronh/nemotron_3",
    "nemotronh/nemotronh",
    "qwen/qwen3",
)
MODELS = {
    "DEEPSEEK_V3": "deepseekv3",
    "GPT_OSS_120B": "gptoss120b",
    "KIMI_K2": "kimik2",
    "LLAMA3_8B": "llama38b",
    "LLAMA3_70B": "llama370b",
    "LLAMA31_405B": "llama31405b",
    "NEMOTRON_3_NANO": "nemotron3nano",
    "NEMOTRON_3_SUPER": "nemotron3super",
    "NEMOTRON_3_ULTRA": "nemotron3ultra",
    "NEMOTRONH_56B": "nemotronh56b",
    "QWEN3_30B_A3B": "qwen330ba3b",
    "QWEN3_235B_A22B": "qwen3235ba22b",
}
# cross_entropy_fusion_impl of recipes/llama/llama3.py and of the bridges of DeepSeek and Kimi.
ENGINE_LOSS = ("deepseekv3", "kimik2", "llama38b", "llama370b", "llama31405b")
GPUS = ("h100", "b200", "b300", "gb200", "gb300")
# virtual_pipeline_parallelism of nemo/collections/llm/recipes/nemotron4_340b.py (NeMo 2).
NEMO = [
    {"framework": "nemo", "model": model, "stages": 8, "chunks": 12}
    for model in ("nemotron4340b", "nemotron340b")
]
PRECISIONS = {"BF16": "bf16", "FP8_CS": "fp8", "FP8_SC": "fp8", "FP8_MX": "mxfp8", "NVFP4": "nvfp4"}
FLAT_PRECISIONS = {"bf16": "bf16", "fp8cs": "fp8", "fp8sc": "fp8", "fp8mx": "mxfp8", "nvfp4": "nvfp4"}


def show(clone, tag, path):
    result = subprocess.run(
        ["git", "-C", clone, "show", f"{tag}:{path}"], capture_output=True, text=True
    )
    return result.stdout


def entry(release, model, gpu, precision, values):
    """A recipe with its defaults left out."""
    graphs = list(values["scope"] or []) if values["graphs"] not in (None, "none") else []
    if values["graphs"] == "full_iteration":
        graphs = ["full_iteration"]
    result = {
        "framework": "megatron-bridge",
        "release": release,
        "model": model,
        "gpu": gpu.lower(),
        "precision": precision,
        "micro_batch": values["micro_batch"],
        "stages": values["stages"],
    }
    if values["recompute"]:
        result["recompute_modules"] = values["recompute"]
    if graphs:
        result["cuda_graph_scope"] = graphs
    if values["dispatcher"]:
        result["dispatcher"] = values["dispatcher"]
    if values["fused"]:
        result["fused_experts"] = True
    if values.get("fsdp"):
        result["fsdp"] = True
    if values["overlap"]:
        result["overlap_experts"] = True
    if values["offloaded"]:
        result["cpu_offloading_num_layers"] = values["offloaded"]
    if model in ENGINE_LOSS:
        result["cross_entropy"] = "te"
    # exp_avg_dtype and mtp_num_layers of recipes/deepseek/deepseek_v3.py.
    if model == "deepseekv3":
        result["state_dtype"] = "bf16"
        result["mtp_num_layers"] = 1
    # mtp_num_layers of recipes/nemotronh/nemotron_3_super.py and _ultra.py.
    if model in ("nemotron3super", "nemotron3ultra"):
        result["mtp_num_layers"] = 2
    return result


def of_classes(clone, release, tag):
    source = show(clone, tag, "scripts/performance/utils/utils.py")
    pattern = r"@dataclass[^\n]*\nclass WorkloadBaseConfig:.*?(?=\n(?:class|def|@|[A-Za-z_]+ ?=))"
    names = {}
    header = "from __future__ import annotations\nfrom dataclasses import *\nfrom typing import *\n"
    exec(header + re.search(pattern, source, re.S).group(0), names)
    base = names["WorkloadBaseConfig"]
    utils = types.ModuleType("utils.utils")
    utils.WorkloadBaseConfig = base
    sys.modules.update({"utils": types.ModuleType("utils"), "utils.utils": utils})
    for family in FAMILIES:
        folder = "scripts/performance/configs"
        path = f"{folder}/{family}_workload_base_configs.py"
        before = f"{folder}/{family.split('/')[1]}/workload_base_configs.py"
        recipes = {}
        exec(show(clone, tag, path) or show(clone, tag, before), recipes)
        precision = "(BF16|FP8_CS|FP8_SC|FP8_MX|NVFP4)"
        for name, value in recipes.items():
            match = re.fullmatch(
                rf"(\w+)_PRETRAIN_CONFIG_(\w+?)_{precision}(?:_(V\d))?", name
            ) or re.fullmatch(rf"(\w+)_([A-Z]+\d00)_{precision}_BASE_CONFIG", name)
            if not isinstance(value, base) or not match or match.group(1) not in MODELS:
                continue
            config = dataclasses.asdict(value)
            yield entry(
                release,
                MODELS[match.group(1)],
                match.group(2),
                PRECISIONS[match.group(3)],
                {
                    "micro_batch": config["micro_batch_size"],
                    "stages": config["pipeline_model_parallel_size"],
                    "recompute": config["recompute_modules"],
                    "graphs": config["cuda_graph_impl"],
                    "scope": config["cuda_graph_scope"],
                    "dispatcher": config.get("moe_flex_dispatcher_backend"),
                    "overlap": config["moe_a2a_overlap"],
                    "fused": config.get("cutedsl_fused_grouped_mlp"),
                    "offloaded": config["cpu_offloading_num_layers"],
                    "fsdp": config.get("use_megatron_fsdp"),
                },
            )


class Anything:
    """An object whose attributes are made when they are read, and that can be called."""

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = Anything()
        return self.__dict__[name]

    def __call__(self, *args, **kwargs):
        return Anything(**kwargs)

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        return ()


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of the recipes come from the clone; all others that they import are stand-ins."""

    def __init__(self, clone, tag):
        self.clone, self.tag = clone, tag

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("megatron", "torch"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        if "perf_recipes." in name:
            path = "src/" + name.replace(".", "/") + ".py"
            source = show(self.clone, self.tag, path)
            if source:
                module.__file__ = path
                exec(compile(source, path, "exec"), module.__dict__)
                return
        if name.endswith(".utils.cuda_graph"):
            module.set_cuda_graph_modules = lambda model, modules: setattr(
                model, "cuda_graph_scope", modules
            )
        module.__getattr__ = lambda attribute: (
            Anything() if not attribute.startswith("__") else None
        )


def plain(value, default=None):
    return default if isinstance(value, Anything) else value


def of_functions(clone, release, tag):
    sys.meta_path.insert(0, StandIns(clone, tag))
    folder = "src/megatron/bridge/perf_recipes"
    listed = subprocess.run(
        ["git", "-C", clone, "ls-tree", "-r", tag, "--name-only", folder],
        capture_output=True,
        text=True,
    ).stdout.split()
    functions = []
    for path in listed:
        match = re.search(r"perf_recipes/(deepseek|gpt_oss|kimi|llama|nemotronh|qwen)/(\w+)/(?!__)\w+\.py$", path)
        if not match:
            continue
        module = importlib.import_module(path[len("src/") : -len(".py")].replace("/", "."))
        functions += vars(module).items()
    pattern = r"(\w+)_pretrain_(\d+)gpu_(\w+?)_(bf16|fp8cs|fp8sc|fp8mx|nvfp4)_config"
    found = [(re.fullmatch(pattern, name), function) for name, function in functions]
    found = [f for f in found if f[0] and f[0].group(1).upper() in MODELS]
    for match, function in sorted(found, key=lambda f: int(f[0].group(2))):
        config = function()
        yield entry(
            release,
            MODELS[match.group(1).upper()],
            match.group(3),
            FLAT_PRECISIONS[match.group(4)],
            {
                "micro_batch": plain(config.train.micro_batch_size),
                "stages": plain(config.model.pipeline_model_parallel_size),
                "recompute": plain(config.model.recompute_modules),
                "graphs": plain(config.model.cuda_graph_impl),
                "scope": plain(config.model.cuda_graph_scope),
                "dispatcher": plain(config.model.moe_flex_dispatcher_backend),
                "overlap": plain(config.comm_overlap.overlap_moe_expert_parallel_comm),
                "fused": plain(config.model.use_transformer_engine_op_fuser),
                "offloaded": plain(config.model.cpu_offloading_num_layers),
                "fsdp": plain(config.ddp.use_megatron_fsdp),
            },
        )


def main():
    clone = sys.argv[1]
    recipes = []
    for release, tag in TAGS.items():
        made = of_functions if release >= "26.08" else of_classes
        # Of variants the last is what the tables show: larger batches, more ranks.
        variants = {}
        for recipe in made(clone, release, tag):
            keys = ("model", "gpu", "precision", "micro_batch", "stages")
            variants[tuple(recipe[key] for key in keys)] = recipe
        recipes += variants.values()
    # Equal recipes of several releases are one.
    merged = {}
    for recipe in recipes:
        if recipe["gpu"] not in GPUS:
            continue
        # Of dense models only what is offloaded is not what tables say.
        if "llama" in recipe["model"] and "cpu_offloading_num_layers" not in recipe:
            continue
        key = json.dumps({k: v for k, v in recipe.items() if k != "release"}, sort_keys=True)
        one = merged.setdefault(key, {**recipe, "releases": []})
        if recipe["release"] not in one["releases"]:
            one["releases"].append(recipe["release"])
        one.pop("release", None)
    lines = [json.dumps(one) for one in NEMO + list(merged.values())]
    print("[\n " + ",\n ".join(lines) + "\n]")


if __name__ == "__main__":
    main()
