"""The table of keys says what the installed Accelerate says.

Its dataclasses give the top-level keys and the loader's defaults, its command
line the nested keys, their types, choices and the launcher's defaults.
"""
import argparse
import dataclasses
import json
import typing

import harness
from harness import check

SECTIONS = {"fsdp_": "fsdp_config", "megatron_lm_": "megatron_lm_config",
            "parallelism_config_": "parallelism_config", "fp8_": "fp8_config",
            "dynamo_": "dynamo_config", "mpirun_": "mpirun_config"}
DEEPSPEED = ("zero_stage", "offload_", "gradient_", "zero3_", "deepspeed_")
# Keys that only a file can give: the parser has no such flag.
FILE_ONLY = {"fsdp_ignored_modules", "fp8_use_mxfp8_block_scaling"}


def table(context, version="1.15"):
    out = harness.run([context.binary("frontend-dump"), "--keys", version])
    return [json.loads(line) for line in out.splitlines()]


def section_of(dest):
    for prefix, section in SECTIONS.items():
        if dest.startswith(prefix):
            return section
    return "deepspeed_config" if dest.startswith(DEEPSPEED) else None


def same_default(text, value):
    import yaml
    written = None if text is None else yaml.safe_load(text)
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"  # str_to_bool reads these
    return str(written).lower() == str(value).lower()


def launcher(context):
    from accelerate.commands.launch import launch_command_parser
    keys = {(k["section"], k["name"]): k for k in table(context)
            if k["section"] not in ("", "sagemaker") and not k["misnomer"]}
    seen = set()
    for action in launch_command_parser()._actions:
        section = section_of(action.dest)
        if not section or isinstance(action, argparse._HelpAction):
            continue
        key = keys.get((section, action.dest))
        check(key, f"{section}.{action.dest} is missing")
        seen.add((section, action.dest))
        if key["owner"] == "accelerate launch":
            # (launch itself turns no backend into "no", no launcher into pdsh)
            default = {"dynamo_backend": "no",
                       "deepspeed_multinode_launcher": "pdsh"}.get(
                           action.dest, action.default)
            check(same_default(key["default"], default),
                  f"{action.dest}: default {key['default']}, Accelerate's is "
                  f"{default!r}")
        else:
            check(action.default is None, f"{action.dest}: the launcher has a "
                  f"default, {action.default!r}")
        kinds = {int: ("integer", "choice"), float: ("number",),
                 bool: ("boolean",)}.get(action.type)
        if kinds and action.dest != "fsdp_sharding_strategy":
            check(key["type"] in kinds, f"{action.dest}: {key['type']}")
        if action.choices and key["choices"]:
            mine = {c.lower() for c in key["choices"]}
            theirs = {c.lower() for c in action.choices}
            if action.dest == "dynamo_backend":
                # The command line's list is another one, with a slip in it.
                theirs.discard("torhchxla_trace_once")
                check(theirs <= mine, f"{theirs - mine}")
            else:
                check(mine == theirs, f"{action.dest}: {mine ^ theirs}")
    rest = {name for _, name in keys.keys() - seen} - FILE_ONLY
    check(not rest, f"not in Accelerate: {rest}")
    return f"{len(seen)} nested keys"


def files(context):
    from accelerate.commands.config import config_args
    count = 0
    for section, cls in (("", config_args.ClusterConfig),
                         ("sagemaker", config_args.SageMakerConfig)):
        keys = {k["name"]: k for k in table(context)
                if k["section"] == section and not k["misnomer"]}
        fields = {f.name: f for f in dataclasses.fields(cls)}
        check(keys.keys() == fields.keys(),
              f"{cls.__name__}: {keys.keys() ^ fields.keys()}")
        hints = typing.get_type_hints(cls)
        for name, field in fields.items():
            key = keys[name]
            count += 1
            if key["owner"] == "the file's loader" and \
                    field.default is not dataclasses.MISSING:
                check(same_default(key["default"], field.default),
                      f"{name}: {key['default']} against {field.default!r}")
            args = typing.get_args(hints[name]) or (hints[name],)
            plain = [a for a in args if a in (bool, int)]
            kind = {bool: "boolean", int: "integer"}.get(
                plain[0] if plain else None)
            check(kind is None or key["type"] == kind, f"{name}: {key['type']}")
    return f"{count} top-level keys"


def enumerations(context):
    from accelerate.utils import constants, dataclasses as types
    keys = {(k["section"], k["name"]): k for k in table(context)}

    def names(enum):
        return [e.value for e in enum]

    def compare(section, name, values):
        mine = {str(c).lower() for c in keys[section, name]["choices"]}
        theirs = {str(v).lower() for v in values}
        check(mine == theirs, f"{name}: {mine ^ theirs}")
    compare("", "distributed_type", names(types.DistributedType))
    compare("", "mixed_precision", names(types.PrecisionType))
    compare("", "compute_environment", names(types.ComputeEnvironment))
    compare("sagemaker", "distributed_type",
            names(types.SageMakerDistributedType))
    compare("dynamo_config", "dynamo_backend", names(types.DynamoBackend))
    compare("fp8_config", "fp8_backend",
            [b for b in names(types.FP8BackendType) if b != "NO"])
    compare("fsdp_config", "fsdp_sharding_strategy",
            constants.FSDP_SHARDING_STRATEGY)
    compare("fsdp_config", "fsdp_auto_wrap_policy",
            constants.FSDP_AUTO_WRAP_POLICY)
    compare("fsdp_config", "fsdp_backward_prefetch",
            constants.FSDP_BACKWARD_PREFETCH)
    compare("fsdp_config", "fsdp_state_dict_type",
            constants.FSDP_STATE_DICT_TYPE)
    compare("deepspeed_config", "deepspeed_multinode_launcher",
            constants.DEEPSPEED_MULTINODE_LAUNCHERS)
    compare("dynamo_config", "dynamo_mode", constants.TORCH_DYNAMO_MODES)
    return "12 enumerations"


CASES = [
    ("launcher", launcher),
    ("files", files),
    ("enumerations", enumerations),
]
