"""`accel-opt schema` under a public validator (python jsonschema).

A schema sees one key at a time. So a file that lint finds nothing wrong with
must be valid, and one with a wrong type, value or key must not be; what lint
says about several keys together the schema cannot know.
"""
import collections
import glob
import json
import os
import random
import re

import harness
from harness import check

VERSIONS = [f"0.{minor}" for minor in range(11, 35)] \
    + [f"1.{minor}" for minor in range(0, 16)]
# Findings about one value or key, which a schema must share.
SINGLE = {"unknown-key", "invalid-value", "invalid-key", "yaml-boolean",
          "yaml-null", "yaml-number", "yaml-list", "quoted-number",
          "regex-list", "wrap-class-list", "missing-key"}


def schema(context, *options):
    return json.loads(harness.run([context.binary("accel-opt"), "schema",
                                   *options]))


def validator(context, *options):
    import jsonschema
    document = schema(context, *options)
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def read(path):
    import yaml
    with open(path, encoding="utf-8") as f:
        return yaml.safe_load(f)


def problem(check_with, value):
    """The deepest complaint, as text; empty if there is none."""
    import jsonschema
    error = jsonschema.exceptions.best_match(check_with.iter_errors(value))
    return f"{error.json_path}: {error.message}"[:300] if error else ""


def valid(context):
    sizes = []
    for version in VERSIONS:
        for options in ((), ("--job",)):
            validator(context, "--accelerate-version", version, *options)
            text = harness.run([context.binary("accel-opt"), "schema",
                                "--accelerate-version", version, *options])
            sizes.append(len(text))
    for version in ("1.15", "1.15.0"):
        check(schema(context, "--accelerate-version", version)
              == schema(context), version)
    return f"{2 * len(VERSIONS)} schemas of {min(sizes)} to {max(sizes)} bytes"


def against_lint(context, paths):
    import frontend_cases
    check_with = validator(context)
    tally, wrong = collections.Counter(), []
    for path, line in zip(paths, frontend_cases.dump(context, paths)):
        try:
            value = read(path)
        except Exception:
            continue
        found = {d["code"] for d in line["diagnostics"]
                 if d["severity"] != "note"}
        errors = {d["code"] for d in line["diagnostics"]
                  if d["severity"] == "error"}
        said = problem(check_with, value)
        # A wrong value that nobody reads is worth a note only; 2.0 is 2 in
        # JSON Schema.
        notes = any(d["key"] and said.startswith(f"$.{d['key']}:")
                    for d in line["diagnostics"])
        errors -= {d["code"] for d in line["diagnostics"]
                   if d["message"].endswith("this is 2.0")}
        if not found and said and not notes:
            wrong.append(f"{open(path).read()}lint finds nothing, the schema "
                         f"says {said}")
        elif errors & SINGLE and not said:
            kept = [f"{d['message']} [{d['code']}]" for d in line["diagnostics"]
                    if d["severity"] == "error"]
            wrong.append(f"{open(path).read()}the schema accepts it, lint says "
                         f"{kept}")
        tally["valid" if not said else "invalid"] += 1
        if said and not errors:
            tally["invalid with warnings only"] += 1
    check(not wrong, f"{len(wrong)} of {len(paths)} differ:\n\n"
          + "\n\n".join(wrong[:6]))
    return tally


def generated(context, seed=31, count=1500):
    """Files with the values that people write, see frontend_cases.py."""
    import frontend_cases
    rng = random.Random(seed)
    paths = []
    for i in range(count):
        paths.append(context.path(f"{i}.yaml"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(frontend_cases.generate(rng))
    tally = against_lint(context, paths)
    check(min(tally["valid"], tally["invalid"]) > count / 5, str(tally))
    return ", ".join(f"{v} {k}" for k, v in sorted(tally.items()))


def published(context):
    folder = os.path.join(harness.ROOT, "test", "Frontends", "Inputs",
                          "accelerate")
    paths = sorted(glob.glob(os.path.join(folder, "*.y*ml")))
    check(len(paths) >= 15, f"{len(paths)} files")
    tally = against_lint(context, paths)
    return ", ".join(f"{v} {k}" for k, v in sorted(tally.items()))


def sample_value(key):
    """A value of each key's own type."""
    kind = key["type"]
    if kind == "choice":
        value = key["choices"][0]
        return int(value) if str(value).isdigit() else value
    return {"string": "text", "boolean": True, "integer": 2, "number": 1.0,
            "list of strings": ["a"], "list of three booleans": [True] * 3,
            "mapping": {}}[kind]


def by_version(context):
    """Each key is known in exactly the versions that have it."""
    base = {"distributed_type": "NO"}
    sage = {"compute_environment": "AMAZON_SAGEMAKER",
            "distributed_type": "NO", "ec2_instance_type": "a",
            "iam_role_name": "b"}
    everything, known = {}, {}
    for version in VERSIONS:
        lines = harness.run([context.binary("frontend-dump"), "--keys",
                             version]).splitlines()
        for line in lines:
            key = json.loads(line)
            everything[key["section"], key["name"]] = key
            known.setdefault(version, set()).add((key["section"], key["name"]))
    count = 0
    for version in VERSIONS:
        check_with = validator(context, "--accelerate-version", version)
        sections = {name for section, name in known[version] if not section}
        for (section, name), key in everything.items():
            if section == "sagemaker":
                value = sage | ({} if name in sage else
                                {name: sample_value(key)})
            elif section and section not in sections:
                continue
            elif (section, "fsdp_" + name) in known[version]:
                continue  # a spelling of the other
            elif section:
                value = base | {section: {name: sample_value(key)}}
            else:
                value = base | ({} if name in base else
                                {name: sample_value(key)})
            said = problem(check_with, value)
            there = (section, name) in known[version]
            check(there == (not said), f"accelerate {version}, {section}.{name}"
                  f" is {'known' if there else 'not known'}: {said}")
            count += 1
    return f"{count} keys and versions"


def explained(context):
    """Every key has a description, and every choice one of its own."""
    count = 0

    def walk(node, path):
        nonlocal count
        if isinstance(node, list):
            for item in node:
                walk(item, path)
        if not isinstance(node, dict):
            return
        if "enumDescriptions" in node:
            check(len(node["enum"]) == len(node["enumDescriptions"])
                  and all(node["enumDescriptions"]), path)
        for key, value in node.items():
            if key == "properties" and "then" not in path:
                for name, inner in value.items():
                    if "if" not in path:
                        check(inner.get("description"), f"{path}.{name}")
                        count += 1
                    walk(inner, f"{path}.{name}")
            else:
                walk(value, f"{path}.{key}")
    document = schema(context)
    for name, section in document["$defs"].items():
        walk(section, name)
    return f"{count} keys"


JOB = """accelerate: {distributed_type: MULTI_CPU, num_processes: 2}
model: m
data: {tokens: t.bin, dtype: uint16, sequence_length: 8, micro_batch: 1}
"""
JOBS = [  # (lines, valid)
    ("init: pretrained", True), ("init: {seed: 3}", True),
    ("init: {sed: 3}", False), ("init: random", False),
    ("optimizer: {name: adamw, lr: 1e-4, betas: [0.9, 0.95]}", True),
    ("optimizer: {lr: fast}", False), ("optimizer: {betas: [0.9]}", False),
    ("optimizer: {groups: [{match: norm, weight_decay: 0.0}]}", True),
    ("optimizer: {groups: [{weight_decay: 0.0}]}", False),
    ("optimizer: {name: sgd, momentum: 0.9, nesterov: true}", True),
    ("optimizer: {name: sgd, betas: [0.9, 0.99]}", False),
    ("optimizer: {name: sgd, nesterov: 1}", False),
    ("optimizer: {name: lion, lr: 1e-4, betas: [0.9, 0.99]}", True),
    ("optimizer: {name: lion, betas: [0.9, 1.0]}", False),
    ("optimizer: {name: adafactor, decay_rate: -0.5}", True),
    ("optimizer: {name: adafactor, decay_rate: 0.5}", False),
    ("optimizer: {momentum: 0.9}", False), ("optimizer: {name: lino}", False),
    ("schedule: {steps: 10, decay: cosine}", True),
    ("schedule: {steps: 0}", False), ("schedule: {decay: cosin}", False),
    ("checkpoint: {dir: out, every: 5, state_dict: full}", True),
    ("checkpoint: {every: 5}", False),
    ("precision: {param: bf16, reduce: fp32}", True),
    ("precision: {param: fp8}", False),
    ("activation_checkpointing: full", True),
    ("activation_checkpointing: yes", False),
    ("trainable: 'lora'", True), ("target: cpu", True),
    ("eval: {tokens: v.bin, every: 10, batches: 2}", True),
    ("eval: {every: 10}", False), ("gradient_accumulation_steps: 0", False),
    ("modle: m", False), ("steps: 3", False), ("data2: {}", False),
]


def jobs(context):
    """job.yaml, and the reader's own opinion of the same files."""
    import frontend_cases
    import yaml
    check_with = validator(context, "--job")
    os.mkdir(context.path("m"))
    with open(context.path("m", "config.json"), "w", encoding="utf-8") as f:
        f.write("{}")
    for name in ("t.bin", "v.bin"):
        with open(context.path(name), "wb") as f:
            f.write(bytes(200))
    paths = []
    for number, (line, _) in enumerate(JOBS):
        paths.append(context.path(f"{number}.yaml"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(JOB + line + "\n")
    for path, (line, want), found in zip(paths, JOBS,
                                         frontend_cases.dump(context, paths)):
        said = problem(check_with, read(path))
        check((not said) == want, f"{line}: {said or 'valid'}")
        check((found["outcome"] == 0) == want, f"{line}: {found}")
    for text in (JOB, "model: m\ndata: {text: a.txt}\ndistributed_type: FSDP\n"
                 "num_processes: 2\nfsdp_config: {version: 2}\n"):
        said = problem(check_with, yaml.safe_load(text))
        check(not said, f"{text}{said}")
    for text in ("model: m\ndata: {text: a.txt}\n",
                 JOB.replace("FSDP", "fsdp").replace("MULTI_CPU", "MULTI"),
                 JOB.replace("tokens: t.bin", "tokens: t.bin, text: b.txt")):
        check(problem(check_with, yaml.safe_load(text)), text)
    example = os.path.join(harness.ROOT, "docs", "examples", "tiny-llama")
    said = problem(check_with, read(os.path.join(example, "job.yaml")))
    check(not said, said)
    said = problem(validator(context), read(os.path.join(example, "fsdp.yaml")))
    check(not said, said)
    return f"{len(JOBS)} files"


def job_keys(context):
    """The keys of the schema are those that frontends/Job reads."""
    text = ""
    for name in ("JobReader.cpp", "JobData.cpp", "JobFiles.cpp", "JobLoop.cpp",
                 "JobMesh.cpp", "JobOptimizer.cpp", "AdapterReader.cpp"):
        with open(os.path.join(harness.ROOT, "frontends", "Job", name),
                  encoding="utf-8") as f:
            text += f.read()
    lists = re.findall(r"(?:checkKeys\(|keys = |known = |axes = |Keys\[\] = |"
                       r"char \*key : )\s*\{(?!\{)([^}]*)\}", text)
    lists += re.findall(r'push_back\(("[a-z_]+")\)', text)
    with open(os.path.join(harness.ROOT, "runtime", "plan", "Mesh.h"),
              encoding="utf-8") as f:
        axes = f.read()
    for constant in re.findall(r"push_back\(plan::(\w+)\)", text):
        lists += re.findall(rf'\b{constant} = ("[a-z_]+");', axes)
    # A key that one decay alone reads stands before the decay.
    own = re.search(r"ownKeys\[\] = \{(.*?)\};", text, re.S).group(1)
    lists += re.findall(r'\{("[a-z_]+"),', own)
    reader = {key for entry in lists for key in re.findall(r'"([a-z_]+)"',
                                                           entry)}
    optimizers = json.loads(harness.run([context.binary("accel-opt"),
                                         "optimizers", "--format", "json"]))
    reader.update(key for each in optimizers for key in each["defaults"])
    found = set()

    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "properties":
                    found.update(value)
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)
    document = schema(context, "--job")
    accelerate = schema(context)["$defs"]["local_machine"]["properties"]
    for name, value in document["properties"].items():
        if name not in accelerate:
            found.add(name)
            if name != "accelerate":
                walk(value)
    check(found == reader, f"in one of the two only: {found ^ reader}")
    return f"{len(found)} keys"


CASES = [
    ("valid", valid),
    ("generated", generated),
    ("published", published),
    ("by-version", by_version),
    ("explained", explained),
    ("jobs", jobs),
    ("job-keys", job_keys),
]
