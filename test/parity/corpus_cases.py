"""Real accelerate files of about 80 projects: lint and plan find no error that
the installed Accelerate does not find, refuse nothing without a reason, and
never fail inside.

The files are beside the checkout (../shared/accelerate_yamls), or below
ACCEL_SHARED; without them the cases have nothing to do.
"""
import glob
import json
import os
import subprocess

import harness
from harness import check

SHARED = os.environ.get("ACCEL_SHARED",
                        os.path.join(os.path.dirname(harness.ROOT), "shared"))
CORPUS = os.path.join(SHARED, "accelerate_yamls")
MODEL = os.path.join(harness.ROOT, "test", "Plan", "Inputs", "tiny-llama")
# What Accelerate refuses and lint only notes: a template for any number of
# processes, and a JSON that is where the job starts; and what this machine
# lacks.
LINT_NOTES = ("manually pass in `--num_processes`",
              "Expected a string path to an existing deepspeed config",
              "FP8 is not available on this machine",
              "mpirun or mpiexec were not found")
# Errors of plan alone: it needs the number, DeepSpeed's JSON and the classes.
PLAN_ALONE = {"missing-key", "deepspeed-file-missing", "not-supported"}


def files(*patterns):
    found = [p for pattern in patterns for p in glob.glob(
        os.path.join(CORPUS, "**", pattern), recursive=True)]
    return sorted(p for p in found if not p.endswith("index.csv"))


def is_accelerate(path):
    import yaml

    try:
        with open(path, encoding="utf-8") as f:
            value = yaml.safe_load(f)
    except yaml.YAMLError:
        return False
    return isinstance(value, dict) and "distributed_type" in value


def run(context, *arguments):
    done = subprocess.run([context.binary("accel-opt"), *arguments,
                           "--format", "json"], capture_output=True, text=True,
                          timeout=120, check=False,
                          env=harness.clean_environment())
    try:
        return done.returncode, json.loads(done.stdout)["diagnostics"]
    except (ValueError, KeyError):
        raise harness.Failure(f"{arguments}: exit code {done.returncode}\n"
                              f"{done.stdout[-500:]}{done.stderr[-500:]}")


def errors(diagnostics):
    return [d for d in diagnostics if d["severity"] == "error"]


def accelerates_error(path):
    """What launch or a plugin of the installed Accelerate raises, or None."""
    import accelerate_frontend
    import lint_cases
    import yaml

    with open(path, encoding="utf-8") as f:
        kind = yaml.safe_load(f)["distributed_type"]
    if kind == "DEEPSPEED":
        return lint_cases.deepspeed_error(path)
    return accelerate_frontend.judge(path)[0]


def nothing_to_do():
    return None if os.path.isdir(CORPUS) else f"skipped: there is no {CORPUS}"


def lint(context):
    if nothing_to_do():
        return nothing_to_do()
    wrong, count, refused = [], 0, 0
    for path in filter(is_accelerate, files("*.yaml", "*.yml")):
        code, found = run(context, "lint", path)
        mine = errors(found)
        theirs = accelerates_error(path)
        if theirs and any(text in theirs for text in LINT_NOTES):
            theirs = None
        count += 1
        refused += bool(theirs)
        name = os.path.basename(path)
        if code != (1 if mine else 0):
            wrong.append(f"{name}: exit code {code}")
        if any(d["code"] == "not-supported" for d in found):
            wrong.append(f"{name}: lint says not supported")
        # Which launch finds when the machines do not meet.
        mine = [d for d in mine if "main_process_ip is not set" not in
                d["message"] or theirs]
        if bool(mine) != bool(theirs):
            wrong.append(f"{name}: Accelerate: {theirs}; here: "
                         f"{[d['message'] for d in mine]}")
    check(count >= 80, f"only {count} files")
    check(not wrong, "\n".join(wrong))
    return f"{count} files, {refused} refused by both"


def plan(context):
    if nothing_to_do():
        return nothing_to_do()
    wrong, codes = [], {}
    for path in filter(is_accelerate, files("*.yaml", "*.yml")):
        lint_errors = {d["code"] for d in errors(run(context, "lint", path)[1])}
        code, found = run(context, "plan", path, "--model", MODEL,
                          "--seq-len", "16", "--target", "h100-sxm-80gb")
        mine = errors(found)
        codes[code] = codes.get(code, 0) + 1
        name = os.path.basename(path)
        if code == 3 or code not in (0, 1, 2, 4):
            wrong.append(f"{name}: exit code {code}")
        if bool(mine) != (code in (1, 4)):
            wrong.append(f"{name}: exit code {code} with {mine}")
        for d in mine:
            # Another model's layers, which this one does not have.
            other = "could not find the transformer layer class" in d["message"]
            if d["code"] not in PLAN_ALONE | lint_errors and not other:
                wrong.append(f"{name}: {d['code']}: {d['message']}")
            if d["code"] == "not-supported" and not d["key"]:
                wrong.append(f"{name}: refused without a key: {d['message']}")
    check(not wrong, "\n".join(wrong))
    return f"exit codes {dict(sorted(codes.items()))}"


def deepspeed_files(context):
    """Every JSON of the corpus: no error in lint, and plan counts it or names
    what it does not count."""
    if nothing_to_do():
        return nothing_to_do()
    wrong, count = [], 0
    for path in files("*.json"):
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
        if "zero_optimization" not in value:
            continue
        count += 1
        yaml_path = context.path(f"{count}.yaml")
        with open(yaml_path, "w", encoding="utf-8") as f:
            f.write("distributed_type: DEEPSPEED\nnum_processes: 8\n"
                    f"deepspeed_config: {{deepspeed_config_file: {path}}}\n")
        name = os.path.basename(path)
        # A batch size may belong to another number of ranks.
        mine = [d for d in errors(run(context, "lint", yaml_path)[1])
                if d["code"] != "deepspeed-batch"]
        if mine:
            wrong.append(f"{name}: {mine}")
        code, found = run(context, "plan", yaml_path, "--model", MODEL,
                          "--seq-len", "16", "--target", "h100-sxm-80gb")
        mine = [d for d in errors(found) if d["code"] != "deepspeed-batch"]
        if (code not in (0, 2, 4) and len(mine) == len(errors(found))) or any(
                d["code"] != "not-supported" for d in mine):
            wrong.append(f"{name}: plan: exit code {code}, {mine}")
    check(count, "no DeepSpeed file")
    check(not wrong, "\n".join(wrong))
    return f"{count} files"


CASES = [("lint", lint), ("plan", plan), ("deepspeed files", deepspeed_files)]
