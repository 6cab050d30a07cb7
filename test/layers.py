"""The rooms of the house: which folder may include which.

Folders of C++ sources form no cycle by their includes, frontends and the
driver alone know files, the compiler knows no LibTorch, the runtime no MLIR.

  layers.py [ROOT]    prints what breaks a rule; exit code 1 if anything does
"""
import os
import re
import subprocess
import sys

# By first folders: what it must not include. A rule holds for the longest
# prefix, so that a folder can be stricter than the one it is in.
FORBIDDEN = {
    "frontends": r"passes/|tools/|ATen/|c10/|torch/",
    "frontends/Diagnostics": r"mlir/|llvm/|frontends/(?!Diagnostics)|runtime/",
    "frontends/Yaml": r"mlir/|passes/|runtime/",
    "frontends/Accelerate": r"mlir/|passes/",
    "frontends/Lint": r"mlir/|passes/",
    "dialects": r"frontends/|passes/|tools/|ATen/|c10/|torch/",
    "passes": r"tools/|ATen/|c10/|torch/",
    "passes/StepModel": r"mlir/|frontends/|tools/",
    "passes/Tune": r"mlir/|tools/",
    "runtime": r"mlir/|llvm/|dialects/|passes/|frontends/(?!Diagnostics)|tools/",
    "runtime/plan": r"mlir/|llvm/|ATen/|c10/|torch/|frontends/|passes/",
    "tools/accel-run": r"mlir/|llvm/|passes/|dialects/",
    "tools/driver": r"ATen/|c10/|torch/|tools/accel-",
    "tools/accel-opt": r"ATen/|c10/|torch/",
}


def room(path):
    parts = path.split("/")
    depth = 3 if parts[:2] == ["tools", "driver"] else 2
    return "/".join(parts[:min(depth, len(parts) - 1)])


def includes(root):
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard",
         "dialects", "frontends", "passes", "runtime", "tools"],
        stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    for path in sorted(listed):
        full = os.path.join(root, path)
        if not path.endswith((".h", ".cpp")) or not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                found = re.match(r'#include ["<]([^">]+)[">]', line)
                if found:
                    yield path, number, found.group(1)


def rule_of(path):
    folder = os.path.dirname(path)
    while folder and folder not in FORBIDDEN:
        folder = os.path.dirname(folder)
    return FORBIDDEN.get(folder)


def cycles(edges):
    """Groups of rooms that reach each other (Tarjan's components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in sorted(edges.get(at, ())):
            if to not in index:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == index[at]:
            group = []
            while not group or group[-1] != at:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for at in sorted(edges):
        if at not in index:
            visit(at)
    return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(
        os.path.dirname(os.path.abspath(__file__)))
    problems, edges, examples, count = [], {}, {}, 0
    for path, number, included in includes(root):
        count += 1
        rule = rule_of(path)
        if rule and re.match(rule, included):
            problems.append(f"{path}:{number}: error: {os.path.dirname(path)} "
                            f"must not include '{included}'")
        a, b = room(path), room(included)
        if a != b and os.path.isdir(os.path.join(root, b)):
            edges.setdefault(a, set()).add(b)
            examples.setdefault((a, b), f"{path}:{number}")
    for group in cycles(edges):
        problems.append(f"error: a cycle of folders: {', '.join(group)}")
        problems += [f"{place}: note: {a} includes {b}"
                     for (a, b), place in sorted(examples.items())
                     if a in group and b in group]
    for problem in problems:
        print(problem)
    print(f"{count} includes, {len(edges)} folders")
    # A scan that finds nothing to check has not checked anything.
    return 1 if problems or count < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
