#!/usr/bin/env python3
"""Data flows one way: checks the arrows between folders, by includes.

  layers.py [ROOT]

Two rules. A top-level folder includes only what ALLOWED says (the compiler
never includes LibTorch's half, the runtime never the compiler's). And the
second-level folders (passes/Cost, frontends/Yaml, ...) have no cycle, so that
each can be read after those that it names.
"""
import collections
import os
import re
import subprocess
import sys

# `runtime/plan` is below everything: the plan, neither MLIR nor LibTorch.
ALLOWED = {
    "runtime/plan": [],
    "runtime": ["runtime/plan", "runtime"],
    "frontends": ["runtime/plan", "frontends", "dialects"],
    "dialects": ["runtime/plan", "dialects"],
    "passes": ["runtime/plan", "frontends", "dialects", "passes"],
}


def layer(folder):
    return folder if folder in ALLOWED else folder.split("/")[0]


def includes(root):
    """(file, line, included path) of the project's own headers."""
    files = subprocess.run(["git", "ls-files", "*.h", "*.cpp"], cwd=root,
                           capture_output=True, text=True, check=True).stdout
    for path in files.split():
        if not os.path.exists(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                found = re.match(r'#include "([a-z]+/[^"]+)"', line)
                if found:
                    yield path, number, found.group(1)


def cycles(graph):
    """The strongly connected folders (Tarjan), each set of two or more."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, {}):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def problems(arrows):
    """What is wrong with (file, line, included path) triples."""
    result = []
    graph = collections.defaultdict(dict)
    for path, line, included in arrows:
        source = "/".join(path.split("/")[:2])
        target = "/".join(included.split("/")[:2])
        if target.endswith((".h", ".inc")):
            target = os.path.dirname(included)
        if layer(source) not in ALLOWED or layer(target) not in (
                *ALLOWED, "tools", "test"):
            continue
        if source == target:
            continue
        allowed = ALLOWED[layer(source)]
        if layer(target) not in allowed:
            result.append(f"{path}:{line}: {source} includes {included}; "
                          f"{layer(source)} may include "
                          f"{', '.join(allowed) or 'nothing of the project'}")
        graph[source].setdefault(target, f"{path}:{line}: includes {included}")
    for component in cycles(graph):
        result.append("folders in a circle: " + ", ".join(component))
        for source in component:
            result += [f"  {where}" for target, where in graph[source].items()
                       if target in component]
    return result


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(
        os.path.dirname(os.path.abspath(__file__)))
    # The check itself finds what it is for.
    assert problems([("runtime/execute/A.cpp", 1, "passes/Cost/B.h")])
    assert problems([("passes/A/x.h", 1, "passes/B/y.h"),
                     ("passes/B/y.h", 1, "passes/A/x.h")])
    assert not problems([("passes/A/x.h", 1, "frontends/Yaml/y.h")])
    wrong = problems(includes(root))
    if wrong:
        sys.exit("\n".join(wrong))
    print("includes go one way")


if __name__ == "__main__":
    main()
