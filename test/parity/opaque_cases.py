"""Operators that the compiler does not model run, are differentiated by
LibTorch, and train to the same weights as if they were modelled.

A job's model phase is edited by hand: modelled operators become `aten.opaque`,
and back comes a plan that is trained beside the unedited one.
"""
import json
import os
import re

import harness
import jobs
import opaque_bounds
from harness import check

# name -> (pattern of an operation, what stands for it)
EDITS = {
    # A residual addition hands its gradient on as it came, to both sides.
    "add": (r"aten\.add\.Tensor (%[\w#]+), (%[\w#]+) : "
            r"\((tensor<\S+x64xf32>), (tensor<\S+x64xf32>)\) -> (tensor<\S+>)",
            r'aten.opaque "aten::add.Tensor"(\1, \2) ["%0", "%1", 1] : '
            r"(\3, \4) -> \5"),
    # One operand, as a numbered text argument would need too.
    "silu": (r"aten\.silu (%[\w#]+) : (tensor<\S+>)",
             r'aten.opaque "aten::silu"(\1) ["%0"] : (\2) -> \2'),
    # A composite of autograd's own, with a list argument.
    "view": (r"aten\.view (%[\w#]+), \[([\d, ]+)\] : \((\S+xf32>)\) -> (\S+)",
             r'aten.opaque "aten::reshape"(\1) ["%0", array<i64: \2>] : '
             r"(\3) -> \4"),
}


def train(context, edits):
    """The log and summary of a run whose model phase was edited."""
    name = "+".join(edits) or "none"
    with open(context.path("phases", "0.model.mlir"), encoding="utf-8") as f:
        text = f.read()
    count = 0
    for edit in edits:
        text, done = re.subn(*EDITS[edit], text)
        check(done, f"the model has no operator for '{edit}'")
        count += done
    path, plan_path = context.path(name + ".mlir"), context.path(name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    said = harness.run([context.binary("accel-opt"), "plan", path,
                        "--compile-from", "model", "--target", "cpu", "--emit",
                        "plan", "-o", plan_path], timeout=60)
    log = harness.execute(context, plan_path, 2, context.path(name + ".jsonl"),
                          "--summary", context.path(name + ".summary.json"))
    with open(plan_path, encoding="utf-8") as f:
        plan = json.load(f)
    with open(context.path(name + ".summary.json"), encoding="utf-8") as f:
        measured = json.load(f)["measured"]
    return said, log, plan, measured, count


def trained(context):
    jobs.make_job(context.path(), jobs.MODELS["gqa"], steps=10)
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"),
                 "--dump-phases", context.path("phases"))
    said, want, _, _, _ = train(context, ())
    check("[opaque-operator]" not in said, said)
    texts = []
    for edits in (("silu",), ("add",), ("silu", "add", "view")):
        said, got, plan, measured, count = train(context, edits)
        warned = said.count("[opaque-operator]")
        check(warned == len(edits),
              f"{len(edits)} operators, but {warned} warnings\n{said}")
        kinds = [i["op"] for f in plan["functions"] for i in f["instructions"]
                 if i["kind"] == "opaque"]
        check(len(kinds) >= 2 * count, f"the plan has {len(kinds)} opaque "
                                       f"instructions for {count}")
        worst = harness.compare_logs(got, want, "loss", 1e-6)
        predicted = plan["predicted"]["memory"]
        check(predicted["own_peak_bytes"] == measured["own_peak_bytes"],
              f"own buffers: predicted {predicted['own_peak_bytes']}, measured "
              f"{measured['own_peak_bytes']}")
        check(predicted["peak_bytes"] >= measured["peak_bytes"],
              f"peak: at most {predicted['peak_bytes']} predicted, measured "
              f"{measured['peak_bytes']}")
        texts.append(f"{'+'.join(edits)} {worst:.0e}, peak "
                     f"{measured['peak_bytes'] / predicted['peak_bytes']:.2f} "
                     "of the bound")
    return "; ".join(texts)


def refusals(context):
    """What cannot be opaque is refused, by the compiler or before a step."""
    rows = [
        ('aten.opaque "aten::relu_"(%x) ["%0"]',
         "writes to its first argument; use 'aten::relu'"),
        ('aten.opaque "aten::silu.out"(%x) ["%0"]', "writes to an argument"),
        ('aten.opaque "mine::silu"(%x) ["%0"]', "not of the namespace aten"),
        ('aten.opaque "aten::silu"(%x) ["%1"]', "names none of the 1 inputs"),
        ('aten.opaque "aten::silu"(%x) []', "input 0 stands 0 times"),
        ('aten.opaque "aten::mul.Tensor"(%x) ["%0", "%0"]',
         "input 0 stands 2 times"),
    ]
    for i, (text, message) in enumerate(rows):
        path = context.path(f"{i}.mlir")
        with open(path, "w", encoding="utf-8") as f:
            f.write("func.func @f(%x: tensor<4xf32>) {\n  %0 = " + text +
                    " : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}\n")
        printed = harness.run([context.binary("accel-opt"), "opt", path, "-o",
                               os.devnull], expect=1)
        check(message in printed, f"{text}: {printed}")
    return f"{len(rows)} refused"


CASES = [("trains as if modelled", trained), ("refused", refusals),
         ("within their bounds", opaque_bounds.bounds)]
