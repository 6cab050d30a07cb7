"""Decisions shown = decisions modelled: what `plan` lists as decided is, field
by field, what the step was predicted with, under every framework."""
import glob
import json
import os
import subprocess

import advice_cases
import harness
from harness import check

MODEL = os.path.join(harness.ROOT, "test", "parity", "configs", "llama-3.2-1b")


def plan(binary, path, *options):
    done = subprocess.run([binary, "plan", path, "--model", MODEL, "--seq-len",
                           "1024", "--format", "json", *options],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(done.stdout)


def differences(result):
    """Sentences; none where what is shown is what is modelled."""
    modelled = result["modelled"]
    decisions = result["decisions"]
    found = []

    def one(what):
        listed = [d["choice"] for d in decisions
                  if d["what"] == what and d["where"] == "job"]
        return listed[0] if listed else None

    def same(what, shown, model):
        if shown != model:
            found.append(f"{what}: shown {shown!r}, modelled {model!r}")

    same("executor", result["executor"], modelled["framework"])
    same("accumulation", one("accumulation"),
         f"{modelled['accumulation']} x {modelled['accumulation_mode']}")
    if one("prefetch") is not None:
        same("prefetch", one("prefetch"),
             f"forward {modelled['forward_prefetch']}, backward {modelled['backward_prefetch']}")
    eager = modelled["framework"] != "accel-run"
    if eager:
        same("update", one("update"), "at_end")
        same("optimizer", one("optimizer"), modelled["optimizer_kernel"] +
             (", gradients clipped" if modelled["clips"] else ""))
        place = {True: "host", False: "device"}
        shown = one("offload").split(", inputs")[0]
        same("offload", shown, f"parameters on the {place[modelled['offload_parameters']]}, "
             f"optimizer on the {place[modelled['offload_optimizer']]}")
    loss = [d["choice"] for d in decisions if d["what"] == "loss"]
    if eager:
        same("loss", loss[0] if loss else "1 chunks", f"{modelled['loss_chunks']} chunks")
    # Layers: the job's mode, or a decision of their own.
    usual = one("checkpoint")
    own = [d["choice"] for d in decisions if d["what"] == "checkpoint" and d["where"] != "job"]
    layers = sum(modelled["recompute"].values())
    shown = {mode: own.count(mode) for mode in set(own)}
    if layers > len(own):
        shown[usual] = shown.get(usual, 0) + layers - len(own)
    same("recompute", shown, modelled["recompute"])
    units = [u for u in result["units"] if not (eager and u["name"].endswith("/frozen"))]
    if eager:
        same("units", len(units), modelled["units"])
    for unit in units:
        if unit["storage"] != modelled["storage"] and unit["name"] and eager:
            found.append(f"unit {unit['name']}: storage {unit['storage']}")
    kept = [d for d in decisions if d["what"] == "reshard"]
    if modelled["framework"] in ("fsdp1", "fsdp2"):
        same("reshard", sum(d["choice"] == "freed after the forward" for d in kept
                            if not d["where"].endswith("/frozen")), modelled["units_resharded"])
    if modelled["framework"] in ("ddp", "single"):
        same("gathered", [u["gathered_bytes"] for u in units], [0] * len(units))
        same("reshard", kept, [])
        same("prefetch", one("prefetch"), None)
    expected = (f"storage {modelled['storage']}, compute {modelled['compute']}, reduce {modelled['reduce']}"
                + (", autocast" if modelled["autocast"] else "")
                + (", fp32 master copy" if modelled["master_copy"] else ""))
    # Units that are not trained have no master copy.
    choices = [d["choice"] for d in decisions if d["what"] == "precision"]
    same("precision", expected if expected in choices else choices[0], expected)
    if "buckets" in modelled:
        b = modelled["buckets"]
        same("buckets", one("buckets"),
             f"{b['bytes']} bytes, the first of {b['first_bytes']}"
             + (", gradients are views" if b["views"] else "") + (f", hook {b['hook']}" if b["hook"] else ""))
    if "zero" in modelled:
        z = modelled["zero"]
        same("zero", one("zero"), f"stage {z['stage']}, reduce bucket {z['reduce_bucket']}, prefetch bucket "
             f"{z['prefetch_bucket']}, persistence threshold {z['persistence_threshold']}"
             + (", communication overlapped" if z["overlap"] else "")
             + (f", updates of {z['sub_group']}" if z["sub_group"] != 1_000_000_000 else ""))
        plus = [part for part, there in [
            (f"a second copy of the parameters over {z['secondary']} ranks", z["secondary"] > 1),
            ("parameters gathered in 8 bits", z["quantized_weights"]),
            ("gradients between machines in 4 bits", z["quantized_gradients"])] if there]
        same("zero_plus", [p for p in (one("zero_plus") or "none").split(", ") if not p.startswith("one copy")],
             plus or ["none"])
    return found


def own(name, text, options):
    def case(context):
        path = context.path(name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        code, result = plan(context.binary("accel-opt"), path, *options)
        check(code in (0, 2), str(result["diagnostics"])[:500])
        found = differences(result)
        check(not found, "\n".join(found))
    return case


def real(context):
    files = sorted(glob.glob(os.path.join(advice_cases.SHARED, "accelerate_yamls", "**",
                                          "*.y*ml"), recursive=True))
    if not files:
        return "no files at hand"
    count, wrong = 0, []
    for path in files:
        code, result = plan(context.binary("accel-opt"), path, "--target", "h100-sxm-80gb")
        if code in (0, 2):
            count += 1
            wrong += [f"{os.path.basename(path)}: {text}" for text in differences(result)]
    check(not wrong, "\n".join(wrong[:20]))
    check(count > 40, f"only {count} files were planned")
    return f"{count} of {len(files)} files"


VARIATIONS = {
    "plain": [],
    "accum": ["--grad-accum", "4"],
    "recompute": ["--gradient-checkpointing"],
    "liger": ["--loss-chunks", "auto"],
    "cpu": ["--target", "cpu"],
}


def fitting(text, variation):
    """A CPU offloads nothing: its device is the host."""
    return text.replace("  offload_optimizer_device: cpu\n", "") if variation == "cpu" else text


CASES = [(f"{name}-{variation}", own(name, fitting(text, variation), options))
         for name, text in advice_cases.OWN.items()
         for variation, options in VARIATIONS.items()]
CASES += [(f"{name}-accel-run", own(name, text, ["--executor", "accel-run"]))
          for name, text in advice_cases.OWN.items() if name.startswith(("fsdp", "ddp", "one"))]
CASES += [(f"{name}-torchtitan-{variation}",
           own(name, text, ["--executor", "torchtitan", *options]))
          for name, text in advice_cases.OWN.items() if name.startswith("fsdp2")
          for variation, options in VARIATIONS.items()]
CASES += [("ddp-kwargs", own("ddp", advice_cases.OWN["ddp"], [
    "--ddp-kwargs", "bucket_cap_mb=50,comm_hook=bf16,gradient_as_bucket_view=true"]))]
CASES += [("real-files", real)]
