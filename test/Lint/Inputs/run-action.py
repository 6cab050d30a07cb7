"""Runs the steps of action.yml as GitHub's runner does (bash -eo pipefail), but
for the installation.

  run-action.py ACTION.yml FOLDER NAME=INPUT...
"""
import os
import re
import subprocess
import sys

import yaml

path, folder, *given = sys.argv[1:]
with open(path, encoding="utf-8") as f:
    action = yaml.safe_load(f)
inputs = {name: spec["default"] for name, spec in action["inputs"].items()}
inputs.update({"package": ""}, **dict(word.split("=", 1) for word in given))
assert set(inputs) == set(action["inputs"]), inputs
summary = os.path.join(folder, "summary.md")
open(summary, "w", encoding="utf-8").close()


def filled(text):
    return re.sub(r"\${{ inputs\.([\w-]+) }}", lambda m: inputs[m[1]], text)


for step in action["runs"]["steps"]:
    name = re.fullmatch(r"inputs\.([\w-]+) != ''", step["if"])[1]
    if not inputs[name]:
        continue
    environment = {key: filled(value) for key, value in step["env"].items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=dict(os.environ, GITHUB_STEP_SUMMARY=summary, **environment),
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(f"{step['name']}: exit code {done.returncode}")
    print(done.stdout + done.stderr, end="")
    if done.returncode:
        break
with open(summary, encoding="utf-8") as f:
    print("summary:", f.read(), sep="\n", end="")
