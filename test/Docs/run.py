#!/usr/bin/env python3
"""Holds a page of docs/ against the program it describes.

  run.py PAGE [--build DIR] [--update]

Three kinds of blocks are checked; an HTML comment above a block says which:

  <!-- file: NAME -->     the block is written to NAME in an empty folder,
                          beside a copy of docs/examples
  <!-- excerpt: PATH -->  every line of the block stands in PATH of the
                          repository, in this order
  ```console              each `$ command` runs in that folder, and prints what
                          follows it; a line `...` stands for any lines

Output is compared without trailing blanks. --update writes what the commands
print now into the page, where it differs.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(lines):
    """(directive, language, first line after the fence, line of the end)."""
    i, directive = 0, None
    while i < len(lines):
        comment = re.fullmatch(r"<!-- (file|excerpt): (\S+) -->", lines[i])
        fence = re.fullmatch(r"```(\w*)", lines[i])
        if fence:
            end = lines.index("```", i + 1)
            yield directive, fence.group(1), i + 1, end
            directive, i = None, end
        elif comment:
            directive = comment.groups()
        elif lines[i].strip():
            directive = None
        i += 1


def commands(body):
    """(command, expected lines); a command goes on after a backslash."""
    result = []
    for line in body:
        if line.startswith("$ "):
            result.append(([line[2:]], []))
        elif result and not result[-1][1] and result[-1][0][-1].endswith("\\"):
            result[-1][0].append(line)
        elif result:
            result[-1][1].append(line)
    return [("\n".join(command), expected) for command, expected in result]


def matches(expected, actual):
    """Whether `actual` is `expected`, where "..." stands for any lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[i:])
                   for i in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and \
        matches(expected[1:], actual[1:])


def stripped(lines):
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def in_order(wanted, path):
    with open(path, encoding="utf-8") as f:
        have = [line.strip() for line in f]
    at = 0
    for line in wanted:
        line = line.strip()
        if not line or line == "...":
            continue
        try:
            at = have.index(line, at) + 1
        except ValueError:
            return line
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("page")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    with open(args.page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    env = dict(os.environ, NO_COLOR="1", PATH=os.pathsep.join(
        [os.path.join(os.path.abspath(args.build), "bin"), os.environ["PATH"]]))
    failures, ran, edits = [], 0, []
    with tempfile.TemporaryDirectory() as work:
        examples = os.path.join(ROOT, "docs", "examples")
        for name in sorted(os.listdir(examples)):
            if os.path.isdir(os.path.join(examples, name)):
                shutil.copytree(os.path.join(examples, name),
                                os.path.join(work, name))
        for directive, language, start, end in blocks(lines):
            body = lines[start:end]
            if directive and directive[0] == "file":
                path = os.path.join(work, directive[1])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write("\n".join(body) + "\n")
            elif directive:
                missing = in_order(body, os.path.join(ROOT, directive[1]))
                ran += 1
                if missing:
                    failures.append(f"{args.page}:{start + 1}: {directive[1]} "
                                    f"has no line '{missing}' there")
            elif language == "console":
                shown = []
                for command, expected in commands(body):
                    done = subprocess.run(
                        ["bash", "-c", command], cwd=work, env=env, text=True,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, timeout=120)
                    actual = stripped(done.stdout.split("\n"))
                    ran += 1
                    good = matches(stripped(expected), actual)
                    shown += ("$ " + command).split("\n")
                    shown += expected if good else actual
                    if not good:
                        failures.append(
                            f"{args.page}:{start + 1}: '{command}' prints\n" +
                            "\n".join("  " + line for line in actual))
                edits.append((start, end, shown))
    if not ran:
        failures.append(f"{args.page}: no block that could be checked")
    if args.update:
        for start, end, shown in reversed(edits):
            lines[start:end] = shown
        with open(args.page, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    elif failures:
        sys.exit("\n".join(failures))
    print(f"{args.page}: {ran} checked")


if __name__ == "__main__":
    main()
