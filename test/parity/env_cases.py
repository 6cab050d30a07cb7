"""`lint --emit env` against the environment that Accelerate itself prepares.

The installed `accelerate launch` runs up to the point where it would start
processes, in an empty environment and as if the devices and packages that a
file asks for were there.
"""
import collections
import contextlib
import glob
import json
import os
import types
import unittest.mock as mock

import harness
import launch_configs
from harness import check

# Set by the shell, or only on some machines.
FOREIGN = {"PATH", "LC_CTYPE"}


def patches(stack, args_type):
    """Devices, ports and packages as simulateLaunch assumes them."""
    from accelerate.commands import launch as launching
    from accelerate.utils import launch as utilities
    devices = {"MULTI_XPU": "is_xpu_available", "MULTI_NPU": "is_npu_available",
               "MULTI_HPU": "is_hpu_available",
               "MULTI_MLU": "is_mlu_available",
               "MULTI_NEURON": "is_neuron_available"}

    def port_in_use(port):
        import socket
        with socket.socket() as s:  # as the real one, which may not pass a str
            s.settimeout(0.01)
            with contextlib.suppress(OSError):
                s.connect_ex(("localhost", port))
        return False
    replace = {"is_fp8_available": lambda: True, "is_port_in_use": port_in_use,
               "_get_mpirun_args": lambda: ("mpirun", "-f", "-n", "-ppn", ""),
               "is_torch_xla_available": lambda *a, **k: True,
               "compare_versions": lambda *a: False,
               "get_free_port": lambda: 29777}
    for name in devices.values():
        replace[name] = lambda: False
    if args_type in devices:
        replace[devices[args_type]] = lambda: True
    for name, function in replace.items():
        stack.enter_context(mock.patch.object(utilities, name, function))
    stack.enter_context(mock.patch("psutil.cpu_count", lambda **k: 1))
    stack.enter_context(mock.patch.dict(os.environ, {"PATH": "/bin"},
                                        clear=True))
    return launching, utilities


def prepared(path, kind):
    """(launcher, environment) of the installed Accelerate."""
    with contextlib.ExitStack() as stack:
        launching, utilities = patches(stack, kind)
        args = launching.launch_command_parser().parse_args(
            ["--config_file", path, "script.py"])
        args.nondefault = []
        args, defaults, precision = launching._validate_launch_command(args)
        if args.use_deepspeed:
            fields = list(defaults.deepspeed_config.keys())
            if precision:
                fields.append("mixed_precision")
            args.deepspeed_fields_from_accelerate_config = ",".join(fields)
            env = utilities.prepare_deepspeed_cmd_env(args)[1]
            launcher = "deepspeed"
        elif args.use_fsdp or args.use_megatron_lm or args.multi_gpu:
            env, launcher = utilities.prepare_multi_gpu_env(args), "torchrun"
        elif args.tpu:
            pod = bool(args.tpu_use_cluster)
            env = utilities.prepare_tpu(args, {}, pod)[1]
            if pod:  # tpu_pod_launcher adds it
                env["ACCELERATE_IN_TPU_POD"] = "1"
            launcher = "tpu pod" if pod else "tpu"
        elif not isinstance(defaults.distributed_type, str) or \
                defaults.compute_environment.value == "LOCAL_MACHINE":
            command, env = utilities.prepare_simple_launcher_cmd_env(args)
            env = {**env, "": " ".join(command)}  # Popen wants strings
            del env[""]
            launcher = "simple"
        else:
            raise ValueError("SageMaker")
        for name, value in env.items():  # as subprocess.Popen would
            if launcher == "simple" and not isinstance(value, str):
                raise TypeError(f"{name}: expected str, not {value!r}")
            env[name] = str(value)  # as patch_environment does for torchrun
        return launcher, {k: v for k, v in env.items() if k not in FOREIGN}


def kind_of(path):
    import yaml
    with open(path, encoding="utf-8") as f:
        document = json.load(f) if path.endswith(".json") else \
            yaml.safe_load(f)
    return document.get("distributed_type") if isinstance(document, dict) \
        else None


def difference(path, mine):
    """Text if the two disagree on a file; and the launcher, or None."""
    import logging
    import warnings
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            launcher, env = prepared(path, kind_of(path))
        error = None
    except (Exception, SystemExit) as e:
        error, launcher = f"{type(e).__name__}: {e}", None
    finally:
        logging.disable(logging.NOTSET)
    if bool(error) != bool(mine["refused"]):
        return (f"Accelerate: {error or 'launches'}\nhere: "
                f"{mine['refused'] or 'launches'}"), None
    if error:
        return "", None
    if launcher != mine["launcher"]:
        return f"launcher {launcher}, here {mine['launcher']}", None
    out = []
    for name in sorted(env.keys() | mine["variables"].keys()):
        if name in mine["when"]:
            continue  # only the machine knows
        theirs, ours = env.get(name), mine["variables"].get(name)
        if theirs != ours:
            out.append(f"{name}: Accelerate {theirs!r}, here {ours!r}")
    return "\n".join(out), launcher


def environments(context, paths):
    lines = []
    for start in range(0, len(paths), 200):
        out = harness.run([context.binary("frontend-dump"), "--env", "1.15",
                           *paths[start:start + 200]])
        lines += [json.loads(line) for line in out.splitlines()]
    check(len(lines) == len(paths), "frontend-dump skipped a file")
    return lines


def compare(context, paths):
    wrong, launchers, variables = [], collections.Counter(), 0
    for path, mine in zip(paths, environments(context, paths)):
        text, launcher = difference(path, mine)
        launchers[launcher or "refused"] += 1
        variables += len(mine["variables"])
        if text:
            with open(path, encoding="utf-8") as f:
                wrong.append(f"{f.read()}{text}")
    check(not wrong, f"{len(wrong)} of {len(paths)} differ:\n\n"
          + "\n\n".join(wrong[:6]))
    return launchers, variables


def generated(context, count=1000):
    paths = []
    for i, text in enumerate(launch_configs.corpus(count)):
        paths.append(context.path(f"{i}.yaml"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(text)
    launchers, variables = compare(context, paths)
    for launcher in ("simple", "torchrun", "deepspeed", "tpu", "refused"):
        check(launchers[launcher] > 10, f"few files for {launcher}")
    return (f"{count} files, {variables} variables; "
            + ", ".join(f"{n} {k}" for k, n in sorted(launchers.items())))


def published(context):
    """The files of Accelerate's own repository."""
    folder = os.path.join(harness.ROOT, "test", "Frontends", "Inputs",
                          "accelerate")
    paths = sorted(glob.glob(os.path.join(folder, "*.y*ml")))
    check(len(paths) >= 20, f"{len(paths)} files in {folder}")
    launchers, variables = compare(context, paths)
    return f"{len(paths)} files, {variables} variables"


def command(context, count=25):
    """The command line prints the same, as text and as JSON."""
    import shlex
    tool = context.binary("accel-opt")
    checked = 0
    for i, text in enumerate(launch_configs.corpus(count, seed=11)):
        path = context.path(f"{i}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        mine = environments(context, [path])[0]
        out = harness.run([tool, "lint", path, "--emit", "env", "--format",
                           "json"], expect=None)
        told = json.loads(out)["environment"]
        check(bool(told["refused"]) == bool(mine["refused"]), text)
        check({v["name"]: v["value"] for v in told["variables"]}
              == mine["variables"], text)
        plain = harness.run(["sh", "-c", '"$0" lint "$1" --emit env 2>'
                             "/dev/null || true", tool, path])
        lines = [l for l in plain.splitlines() if not l.startswith("#")]
        said = dict(shlex.split(l)[0].split("=", 1) for l in lines)
        fixed = {k: v for k, v in mine["variables"].items()
                 if k not in mine["when"]}
        check(said == fixed, f"{text}{plain}")
        checked += len(said)
    return f"{count} files, {checked} variables"


def plugins(context, count=600):
    """Typed values of sections against the plugins that every rank builds from
    the environment."""
    from accelerate import utils
    paths = []
    for text in launch_configs.corpus(4 * count, seed=23):
        kind = text.split("\n")[0].split(": ")[1]
        if kind in ("DEEPSPEED", "MEGATRON_LM", "MULTI_GPU") and \
                "deepspeed_config_file" not in text and len(paths) < count:
            paths.append(context.path(f"{len(paths)}.yaml"))
            with open(paths[-1], "w", encoding="utf-8") as f:
                f.write(text)
    lines = []
    for start in range(0, len(paths), 200):
        out = harness.run([context.binary("frontend-dump"),
                           *paths[start:start + 200]])
        lines += [json.loads(line) for line in out.splitlines()]
    compared, wrong = collections.Counter(), []
    for path, line, env in zip(paths, lines, environments(context, paths)):
        mine = line["effective"]
        if env["refused"] or not mine:
            continue
        variables = {k: v for k, v in env["variables"].items() if v is not None}
        with mock.patch.dict(os.environ, variables, clear=True):
            for name, make in (("deepspeed", utils.DeepSpeedPlugin),
                               ("megatron", utils.MegatronLMPlugin),
                               ("dynamo", utils.TorchDynamoPlugin)):
                if name not in mine or (name == "dynamo" and
                                        env["launcher"] == "deepspeed"):
                    continue  # (launch exports no dynamo for DeepSpeed)
                try:
                    plugin = make()
                except Exception:
                    continue  # lint names these
                for key, value in mine[name].items():
                    if name == "dynamo" and mine[name]["backend"] == "NO" \
                            and key != "backend":
                        continue
                    attribute = "use_regional_compilation" \
                        if key == "regional" else key
                    theirs = getattr(plugin, attribute)
                    theirs = getattr(theirs, "value", theirs)
                    words = ("none", "cpu", "nvme", "auto")
                    if name == "deepspeed" and isinstance(theirs, str) and \
                            theirs not in words:
                        continue  # DeepSpeed itself refuses these
                    compared[name] += 1
                    if theirs != value:
                        with open(path, encoding="utf-8") as f:
                            wrong.append(f"{f.read()}{name}.{key}: plugin "
                                         f"{theirs!r}, here {value!r}")
    check(not wrong, f"{len(wrong)} differ:\n\n" + "\n\n".join(wrong[:5]))
    for name in ("deepspeed", "megatron", "dynamo"):
        check(compared[name] > 100, f"{compared}: too few")
    return ", ".join(f"{n} values of {k}" for k, n in compared.items())


CASES = [
    ("plugins", plugins),
    ("generated", generated),
    ("published", published),
    ("command", command),
]
