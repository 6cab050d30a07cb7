"""Every diagnostic code in the sources has a section in docs/diagnostics.md,
and every section a code in the sources.   check-codes.py ROOT"""
import glob
import os
import re
import sys

root = sys.argv[1]
CODE = r'"([a-z0-9]+(?:-[a-z0-9]+)*)"'
# Where a code stands: after a severity, in error("code", ...), or assigned.
HYPHENED = r'"([a-z0-9]+(?:-[a-z0-9]+)+)"'
CALLS = [
    re.compile(r"\b(?:error|warning|note|report)\([^;\"]{0,80}?" + HYPHENED),
    re.compile(r"\b(?:engine|diagnostics)\.(?:error|warning|note)\(\s*"
               + CODE + r"\s*,"),
    re.compile(r"\bcode = (?:[^;\"]*\?\s*)?" + CODE),
    re.compile(r"\bnotSupportedCode = " + CODE),
]
# In the frontends a literal with a hyphen is nothing but a code.
LITERAL = re.compile(HYPHENED)
NAMES = {"accel-opt", "accel-run", "accel-run-1", "accel-run-out",
         "accelerate-launch",
         "all-linear",
         "by-name", "flash-attn", "flash-attn3", "interleaved-1f1b",
         "llamafactory-cli",
         "max-autotune", "max-autotune-no-cudagraphs", "megatron-bert", "reduce-overhead",
         "torch-dcp", "torch-save", "zb-h1", "zb-v"}
# Tables of other people's words.
DATA = {"KeyData.cpp", "Differences.cpp"}

found = {}
for folder in ("frontends", "passes", "tools/accel-opt", "tools/driver"):
    pattern = os.path.join(root, folder, "**", "*.*")
    for path in glob.glob(pattern, recursive=True):
        if not path.endswith((".cpp", ".h")):
            continue
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"//[^\n]*", "", f.read())
        codes = set()
        for call in CALLS:
            codes.update(call.findall(text))
        if folder == "frontends" and os.path.basename(path) not in DATA:
            codes.update(LITERAL.findall(text))
        for code in codes - NAMES:
            found.setdefault(code, os.path.relpath(path, root))
with open(os.path.join(root, "docs", "diagnostics.md"), encoding="utf-8") as f:
    page = f.read()
sections = re.split(r"^### ", page, flags=re.M)[1:]
documented = {s.split("`")[1]: s for s in sections}

for code in sorted(found.keys() - documented.keys()):
    print(f"not documented: {code} ({found[code]})")
for code in sorted(documented.keys() - found.keys()):
    print(f"not in the sources: {code}")
for code, section in sorted(documented.items()):
    if "**Fix:**" not in section:
        print(f"no fix: {code}")
print(f"{len(found)} codes in the sources, {len(documented)} documented")
