"""The units of a plan are those that Accelerate itself makes of the same YAML."""
import json

import accelerate_units
import harness
import jobs
from harness import check

LAYER = "LlamaDecoderLayer"


def units_by_accelerate(context, path, folder, *adapter):
    return harness.in_python(accelerate_units.units_of,
                             [({}, (path, folder, *adapter))],
                             context.path("accelerate.out"), timeout=120)[0]


def planned_units(plan):
    """FQNs by unit, for the units that are sharded."""
    units = {unit["name"]: [] for unit in plan["units"] if unit["shard_axes"]}
    for parameter in plan["parameters"]:
        if parameter["unit"] in units:
            units[parameter["unit"]].append(parameter["fqn"])
    # What is frozen is a unit of its own to accel-run, but not to FSDP.
    for name in [n for n in units if n.endswith("/frozen")]:
        units[name.removesuffix("/frozen")] += units.pop(name)
    return [sorted(names) for names in units.values()]


def without_copies(plan, units, copies):
    """Accelerate's units by the plan's names. Where a tied tensor falls into two
    groups, `fully_shard` gives the last, the root, a copy of its own, which
    nothing reads after the model is tied again: these must be `copies`, and the
    plan has such tensors once."""
    first = {alias: parameter["fqn"] for parameter in plan["parameters"]
             for alias in parameter.get("aliases", [])}
    named = [sorted(first.get(name, name) for name in unit) for unit in units]
    root = next(i for i, unit in enumerate(units) if set(copies) <= set(unit))
    other = {n for i, unit in enumerate(named) if i != root for n in unit}
    found = sorted(n for n in units[root] if first.get(n, n) in other)
    check(found == sorted(copies), f"tied tensors in two units: {found}")
    named[root] = [n for n in named[root] if n not in other]
    return named


def case(model="gqa", fails=False, version=2, copies=(), **fsdp):
    def compare(context):
        folder = context.path("model")
        jobs.write_config(folder, {**jobs.MODELS, **jobs.ENCODERS}[model])
        config = jobs.accelerate_config("fsdp", 2,
                                        jobs.ENCODER_LAYERS.get(model, LAYER))
        if version == 1:
            config["fsdp_config"].pop("fsdp_reshard_after_forward")
            config["fsdp_config"]["fsdp_sharding_strategy"] = "FULL_SHARD"
        config["fsdp_config"]["fsdp_version"] = version
        for key, value in fsdp.items():
            if value is None:
                config["fsdp_config"].pop("fsdp_" + key, None)
            else:
                config["fsdp_config"]["fsdp_" + key] = value
        path = jobs.write_job(context.path(), config, "fsdp.yaml")
        want = units_by_accelerate(context, path, folder)
        command = [context.binary("accel-opt"), "plan", path, "--model", folder,
                   "--emit", "plan", "-o", context.path("plan.json")]
        if fails:
            check("error" in want, "Accelerate accepts this file: "
                  f"{want.get('units')}")
            output = harness.run(command, expect=1)
            check("error:" in output, f"no error in:\n{output}")
            return f"refused by both; Accelerate: {want['error'][:90]}"
        check("units" in want, f"Accelerate failed: {want.get('error')}")
        harness.run(command, expect=0)
        with open(context.path("plan.json"), encoding="utf-8") as f:
            plan = json.load(f)
        got = planned_units(plan)
        if copies:
            want["units"] = without_copies(plan, want["units"], copies)
        check(sorted(got) == sorted(want["units"]),
              "units differ\n" + describe("accel-opt ", got)
              + describe("accelerate", want["units"]))
        return f"{len(got)} units"
    return compare


LORA = dict(r=2, target_modules=["q_proj", "up_proj"])


def adapter_case(model="gqa", version=2, dtype="float32", refusal=None,
                 adapter=None, **fsdp):
    """Units of a PeftModel; `refusal` is what torch says where it refuses."""
    def compare(context):
        import adapter_cases

        folder = context.path("model")
        jobs.write_config(folder, dict(jobs.MODELS[model], dtype=dtype))
        adapter_cases.write_adapter(context.path("adapter"), adapter or LORA)
        config = jobs.accelerate_config("fsdp", 2, LAYER)
        if version == 1:
            config["fsdp_config"].pop("fsdp_reshard_after_forward")
            config["fsdp_config"]["fsdp_sharding_strategy"] = "FULL_SHARD"
        config["fsdp_config"]["fsdp_version"] = version
        for key, value in fsdp.items():
            config["fsdp_config"]["fsdp_" + key] = value
        path = jobs.write_job(context.path(), config, "fsdp.yaml")
        want = units_by_accelerate(context, path, folder, adapter or LORA,
                                   dtype)
        command = [context.binary("accel-opt"), "plan", path, "--model", folder,
                   "--adapter", context.path("adapter"), "--emit", "plan",
                   "-o", context.path("plan.json")]
        if refusal:
            check(refusal in want.get("error", ""), f"torch says {want}")
            output = harness.run(command, expect=1)
            check(refusal in output, f"no such error in:\n{output}")
            return f"refused by both: {refusal}"
        check("units" in want, f"Accelerate failed: {want.get('error')}")
        output = harness.run(command, expect=0)
        check("parameters are trained" in output, f"no note in:\n{output}")
        if version == 1:
            check("makes and reduces gradients for all" in output,
                  f"no warning in:\n{output}")
        with open(context.path("plan.json"), encoding="utf-8") as f:
            got = planned_units(json.load(f))
        check(sorted(got) == sorted(want["units"]),
              "units differ\n" + describe("accel-opt ", got)
              + describe("accelerate", want["units"]))
        return f"{len(got)} units"
    return compare


def describe(name, units):
    return "".join(f"{name} {len(u):3} parameters: {', '.join(u[:3])} ...\n"
                   for u in sorted(units))


CASES = [
    ("v2-layers", case()),
    ("v2-layers-tied", case("tied")),
    ("v2-layers-tied-qwen3", case("qwen3",
                                  transformer_layer_cls_to_wrap=None)),
    ("v2-no-split-modules", case(transformer_layer_cls_to_wrap=None)),
    ("v2-nested-classes",
     case(transformer_layer_cls_to_wrap=LAYER + ",LlamaMLP")),
    ("v2-inner-class-only", case(transformer_layer_cls_to_wrap="LlamaMLP")),
    ("v2-embedding-class",
     case(transformer_layer_cls_to_wrap=LAYER + ",Embedding")),
    ("v2-norm-class",
     case(transformer_layer_cls_to_wrap=LAYER + ",LlamaRMSNorm")),
    ("v2-no-wrap", case(auto_wrap_policy="NO_WRAP",
                        transformer_layer_cls_to_wrap=None)),
    ("v2-no-policy", case(auto_wrap_policy=None,
                          transformer_layer_cls_to_wrap=None)),
    ("v2-no-wrap-tied", case("tied", auto_wrap_policy="NO_WRAP",
                             transformer_layer_cls_to_wrap=None)),
    ("v2-size-above-all", case(auto_wrap_policy="SIZE_BASED_WRAP",
                               transformer_layer_cls_to_wrap=None,
                               min_num_params=10000000)),
    ("v2-size-hits-containers", case(auto_wrap_policy="SIZE_BASED_WRAP",
                                     transformer_layer_cls_to_wrap=None,
                                     min_num_params=60000, fails=True)),
    ("v2-size-zero", case(auto_wrap_policy="SIZE_BASED_WRAP",
                          transformer_layer_cls_to_wrap=None,
                          min_num_params=0)),
    ("v2-ignored-layer", case(ignored_modules=r"model\.layers\.1")),
    ("v2-ignored-mlps", case(ignored_modules=r".*\.mlp")),
    ("v2-ignored-head", case(ignored_modules="lm_head")),
    ("v2-unknown-class", case(transformer_layer_cls_to_wrap="LlamaLayer",
                              fails=True)),
    ("v2-checkpointing", case(activation_checkpointing=True)),
    ("v2-bias", case("mha-bias")),
    ("v2-roberta", case("roberta")),
    ("v2-bert", case("bert", copies=["cls.predictions.bias"])),
    ("v2-t5", case("t5", copies=["encoder.embed_tokens.weight"])),
    ("v2-vit", case("vit")),
    ("v1-layers", case(version=1)),
    ("v1-nested-classes",
     case(version=1, transformer_layer_cls_to_wrap=LAYER + ",LlamaAttention")),
    ("v1-no-wrap", case(version=1, auto_wrap_policy="NO_WRAP",
                        transformer_layer_cls_to_wrap=None)),
    ("v1-size", case(version=1, auto_wrap_policy="SIZE_BASED_WRAP",
                     transformer_layer_cls_to_wrap=None,
                     min_num_params=30000)),
    ("v2-adapter", adapter_case()),
    ("v2-adapter-saved", adapter_case(
        adapter=dict(LORA, modules_to_save=["embed_tokens", "norm"]))),
    ("v1-adapter", adapter_case(version=1, use_orig_params=True)),
    ("v1-adapter-flat", adapter_case(
        version=1, use_orig_params=False,
        refusal="Must flatten tensors with uniform `requires_grad` when "
                "`use_orig_params=False`")),
    ("v1-adapter-bf16", adapter_case(
        version=1, use_orig_params=True, dtype="bfloat16",
        refusal="Must flatten tensors with uniform dtype")),
    ("v1-unknown-class", case(version=1, fails=True,
                              transformer_layer_cls_to_wrap="LlamaLayer")),
]
