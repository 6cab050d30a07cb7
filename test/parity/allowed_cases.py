"""Which operators a plan may call: none that reads files, makes tensors of
addresses or prints, whoever wrote the plan or the .pt2 that it is made of."""
import json
import os
import re
import subprocess
import sys
import zipfile

import harness
import jobs
from harness import check

# What some of ATen's operators do beyond computing.
NEVER = ("from_file", "set_", "_print", "set_data", "resize_", "item",
         "record_stream", "_nested_view_from_buffer", "fbgemm_pack_gemm_matrix_fp16",
         "fbgemm_linear_int8_weight", "_sparse_coo_tensor_unsafe", "data",
         "_validate_sparse_coo_tensor_args", "pin_memory", "_use_cudnn_ctc_loss",
         "save", "tensor", "_tensor_to_list", "mkldnn_linear", "shallow_copy_data_")
TYPES = re.compile(
    r"^(Optional\[)?(List\[)?(Optional\[)?(Tensor|int|float|bool|number|Scalar|"
    r"str|Device|Generator|ScalarType|Layout|MemoryFormat|SymInt|"
    r"List\[(int|float|bool|Tensor)\])\]*$")


def names():
    path = os.path.join(harness.ROOT, "runtime", "plan", "data",
                        "operators.txt")
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def listed(context):
    """By torch's own schemas."""
    import torch

    allowed = set(names())
    check(not allowed & set(NEVER), f"listed: {allowed & set(NEVER)}")
    done = subprocess.run([sys.executable, os.path.join(
        harness.ROOT, "tools", "list-operators"), "--check"])
    check(done.returncode == 0, "tools/list-operators writes another list")
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if not schema.name.startswith("aten::") or name not in allowed:
            continue
        found.add(name)
        types = [str(a.type) for a in schema.arguments]
        # Overloads for names of dimensions and for lists of numbers of
        # TorchScript take what a plan cannot write.
        if any(t in ("t", "List[t]") or "Dict" in t or "List[str]" in t
               for t in types):
            continue
        for text in types:
            check(TYPES.match(text) or "Storage" not in text
                  and "Stream" not in text, f"{schema}: {text}")
        check("Storage" not in str(schema) and "Stream" not in str(schema),
              str(schema))
    missing = allowed - found
    check(len(missing) < 12, f"torch has no {sorted(missing)}")
    return f"{len(allowed)} operators, {len(missing)} not in this torch"


def exported(context):
    """A .pt2 that maps a file is refused, and the file is not made."""
    import torch

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x, y):
            loaded = torch.ops.aten.logspace(1, 2, 4)
            return torch.nn.functional.mse_loss(self.linear(x) + loaded, y)

    target, path = context.path("made-by-a-plan.bin"), context.path("m.pt2")
    program = torch.export.export(Reads(), (torch.ones(2, 4),
                                            torch.ones(2, 4)))
    torch.export.save(program, path)
    # torch.export does not trace from_file; a stranger writes it by hand.
    changed = context.path("model.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                model = json.loads(data)
                nodes = model["graph_module"]["graph"]["nodes"]
                node, = (n for n in nodes if "logspace" in n["target"])
                node["target"] = "torch.ops.aten.from_file.default"
                node["inputs"] = [
                    {"name": name, "arg": arg, "kind": 1} for name, arg in (
                        ("filename", {"as_string": target}),
                        ("shared", {"as_bool": True}),
                        ("size", {"as_int": 4}))]
                data = json.dumps(model)
            new.writestr(name, data)
    config = jobs.write_job(context.path(), jobs.accelerate_config(
        "single", 1, ""), "cpu.yaml")
    said = harness.run([context.binary("accel-opt"), "plan", config, "--model",
                        changed, "--executor", "accel-run", "--emit", "plan",
                        "-o", context.path("plan.json")], expect=None)
    check("a plan may not call" in said, said)
    check(not os.path.exists(context.path("plan.json")), "it wrote a plan")
    check(not os.path.exists(target), "it made the file")


def edited(context):
    """An operator that an edited module names is refused before it runs."""
    jobs.make_job(context.path(), jobs.MODELS["gqa"], steps=2)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"),
                 "--dump-phases", context.path("phases"))
    with open(context.path("phases", "0.model.mlir"), encoding="utf-8") as f:
        text = f.read()
    text, count = re.subn(
        r"aten\.silu (%[\w#]+) : (tensor<\S+>)",
        r'aten.opaque "aten::pin_memory"(\1) ["%0"] : (\2) -> \2', text)
    check(count, "the model has no silu")
    with open(context.path("edited.mlir"), "w", encoding="utf-8") as f:
        f.write(text)
    said = harness.run([context.binary("accel-opt"), "plan",
                        context.path("edited.mlir"), "--compile-from", "model",
                        "--target", "cpu", "--emit", "plan", "-o",
                        context.path("edited.json")], expect=None)
    if os.path.exists(context.path("edited.json")):
        said = harness.run([context.binary("accel-run"),
                            context.path("edited.json"), "--nproc", "2"],
                           expect=1)
    check("not among the operators that a plan may call" in said, said)


def moved(context):
    """A folder with a job, its model and its plan can be moved: it plans to the
    same bytes, and the plan that moved along trains on what moved along."""
    import shutil

    logs, plans = [], []
    first, second = context.path("a", "job"), context.path("b", "elsewhere")
    jobs.make_job(first, jobs.MODELS["gqa"], steps=4, evaluation={
        "every": 2, "batches": 1})
    for folder in (first, second):
        if folder == second:
            shutil.move(first, second)
        plan = os.path.join(folder, "plan.json")
        if folder == second:
            logs.append(harness.execute(context, plan, 2,
                                        context.path("moved.jsonl")))
        harness.plan(context, os.path.join(folder, "job.yaml"), plan)
        with open(plan, "rb") as f:
            plans.append(f.read())
        logs.append(harness.execute(context, plan, 2,
                                    os.path.join(folder, "log.jsonl")))
        shutil.rmtree(os.path.join(folder, "out"))
    check(plans[0] == plans[1], "the plans differ")
    check(os.fsencode(context.work) not in plans[0],
          "the plan names the folder it was made in")
    losses = [[line["loss"] for line in log] for log in logs]
    check(losses[0] == losses[1] == losses[2], f"losses differ: {losses}")
    return f"{len(plans[0])} bytes"


CASES = [("listed", listed), ("exported", exported), ("edited", edited),
         ("moved-folder", moved)]
