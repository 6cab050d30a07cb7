"""A .pt2 of torch.export is planned and trained like the same model's
config.json, and modules of one's own like PyTorch trains them."""
import importlib.machinery
import importlib.util
import json
import os

import harness
import jobs
from harness import check

LOSS = 1e-5      # relative; another order of sums where shapes differ
PEAK = 0.01      # of the predicted peak
EXPORTER = os.path.join(harness.ROOT, "tools", "export-model")


def _export(arguments):
    """tools/export-model in this process, which has torch already."""
    import sys

    loader = importlib.machinery.SourceFileLoader("export_model", EXPORTER)
    spec = importlib.util.spec_from_loader("export_model", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.argv = ["export-model", *arguments]
    module.main()


def export(context, *arguments):
    harness.in_python(_export, [({}, (list(arguments),))],
                      context.path("export.out"))


def compare_plans(got, want, weights):
    """The same parameters in the same units; peaks within PEAK. Initial values
    are only noted where none are exported."""
    ignored = ("offset", "init") if weights else ("offset",)

    def parameters(plan):
        return {p["fqn"]: {k: v for k, v in p.items() if k not in ignored}
                for p in plan["parameters"]}
    a, b = parameters(got), parameters(want)
    check(list(a) == list(b), f"parameters {sorted(set(a) ^ set(b))[:6]} are on "
                              "one side only, or in another order")
    for name in a:
        check(a[name] == b[name], f"{name}: {a[name]}, of config.json {b[name]}")
    units = [[(u["name"], u["numel"]) for u in p["units"]]
             for p in (got, want)]
    check(units[0] == units[1], f"units {units[0]}, of config.json {units[1]}")
    peaks = [p["predicted"]["memory"]["peak_bytes"] for p in (got, want)]
    check(harness.relative(*peaks) <= PEAK,
          f"predicted peak {peaks[0]} bytes, of config.json {peaks[1]}")
    return f"peaks {peaks[0] / peaks[1]:.4f}"


def same(context, model, weights, **options):
    """20 steps on 2 ranks from config.json and from the .pt2."""
    job = jobs.make_job(context.path(), jobs.MODELS[model], ranks=2, steps=20,
                        **options)
    job.pop("checkpoint", None)
    if not weights:
        job["init"] = {"seed": 3}
    jobs.write_job(context.path(), job)
    data = job["data"]
    arguments = [context.path("model"), "-o", context.path("model.pt2")]
    if weights:
        arguments += ["--weights", "--batch", str(data["micro_batch"]),
                      "--seq-len", str(data["sequence_length"])]
    else:
        arguments += ["--dynamic"]
    export(context, *arguments)
    exported = dict(job, model="model.pt2")
    jobs.write_job(context.path(), exported, "exported.yaml")
    plans = [harness.plan(context, context.path(name), context.path("p.json"))
             for name in ("exported.yaml", "job.yaml")]
    text = compare_plans(*plans, weights)
    logs = []
    for name, job_name in (("exported", "exported.yaml"), ("config", "job.yaml")):
        plan_path = context.path(name + ".json")
        harness.plan(context, context.path(job_name), plan_path)
        logs.append(harness.execute(
            context, plan_path, 2, context.path(name + ".jsonl"),
            "--summary", context.path(name + ".summary.json")))
    check(logs[1][-1]["loss"] < logs[1][0]["loss"], "nothing was learnt")
    worst = harness.compare_logs(logs[0], logs[1], "loss", LOSS)
    memory = harness.compare_memory(plans[0], context.path("exported.summary.json"))
    return f"loss {worst:.1e}, {text}, {memory}"


def case(model, weights=True, **options):
    return lambda context: same(context, model, weights, **options)


CASES = [
    ("llama", case("gqa")),
]
