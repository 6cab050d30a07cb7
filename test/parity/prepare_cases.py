"""Plans for CUDA devices, prepared where no device is: every function of every
family and precision against the schemas of LibTorch (names, number, types and
defaults of arguments). Nothing runs."""
import os

import harness
import jobs
from harness import check

PRECISIONS = ("no", "bf16", "fp16")
# What kernels of a GPU do instead of those of a CPU.
KERNEL = "aten::_scaled_dot_product_{}_attention_backward"
TARGETS = {"h200": "cudnn", "a100-80gb": "flash"}


# torch._grouped_mm takes rows of a multiple of 16 bytes.
ROWS = {"mixtral": {"intermediate_size": 48},
        "gpt-oss": {"intermediate_size": 48},
        "qwen2-moe": {"moe_intermediate_size": 24},
        "qwen3-moe": {"moe_intermediate_size": 24}}


def models():
    for name, config in {**jobs.MODELS, **jobs.ENCODERS}.items():
        config = {**config, **ROWS.get(name, {})}
        if name in jobs.ENCODERS:
            layer = jobs.ENCODER_LAYERS[name]
        else:
            layer = jobs.LAYER_CLASS[config["model_type"]]
        yield name, config, layer


def planned(context, precision, name, config, layer, target="h200"):
    """The path of the plan of one model on two devices."""
    folder = context.path(f"{name}-{precision}-{target}")
    jobs.write_config(os.path.join(folder, "model"), config)
    yaml = jobs.write_job(
        folder, jobs.accelerate_config("fsdp", 2, layer, precision=precision),
        "fsdp.yaml")
    path = os.path.join(folder, "plan.json")
    harness.plan(context, yaml, path, "--model", os.path.join(folder, "model"),
                 "--executor", "accel-run", "--target", target, "--seq-len",
                 "16")
    return path


def prepared(context, paths):
    text = harness.run([context.binary("runtime-prepare"), *paths],
                       expect=None)
    bad = [line for line in text.splitlines() if " functions for cuda:" not in
           line]
    check(not bad, "\n".join(bad))
    lines = text.splitlines()
    check(len(lines) == len(paths), text)
    return {op for line in lines for op in line.split(": ", 2)[-1].split()}


def families(precision):
    def case(context):
        plans = operators = 0
        # In fp32 all devices have the same kernels.
        for target in ["h200"] if precision == "no" else TARGETS:
            paths = [planned(context, precision, *model, target)
                     for model in models()]
            used = prepared(context, paths)
            want = KERNEL.format("efficient" if precision == "no" else
                                 TARGETS[target])
            check(want in used, f"{target}: no plan has {want}: "
                  f"{sorted(used)}")
            plans, operators = plans + len(paths), operators + len(used)
        return f"{plans} plans, {operators} operators"
    return case


CASES = [(f"cuda-{p if p != 'no' else 'fp32'}", families(p))
         for p in PRECISIONS]
