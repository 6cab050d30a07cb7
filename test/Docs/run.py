#!/usr/bin/env python3
"""Holds a page of docs/ against the program it describes.

  run.py PAGE [--build DIR] [--update]
  run.py --covered PAGE...

These blocks are checked; an HTML comment above a block says which:

  <!-- file: NAME -->     the block is written to NAME in an empty folder,
                          beside a copy of docs/examples
  <!-- excerpt: PATH -->  every line of the block stands in PATH of the
                          repository, in this order
  ```console              each `$ command` runs in that folder, and prints what
                          follows it; a line `...` stands for any lines
  <!-- run: CODES -->     each command of the block runs and ends with one of
                          these exit codes; what it prints is not compared
  <!-- python -->         the block runs as one script of Python

  <!-- setup: COMMAND --> anywhere, runs COMMAND, with the repository as $ROOT, and
                          shows readers nothing
  <!-- run by: PATH -->   above a block: the test PATH runs such commands, since
                          they install, need a cluster, or take minutes

Output is compared without trailing blanks. --update writes what the commands
print now into the page, where it differs. --covered holds that each block with
a command is one of these.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# What a block must have in it to be one of commands.
COMMAND = re.compile(r"(?:\$ )?(?:\S+=\S+ )*(?:\S*/)?(?:accel-opt|accel-run|pip|npm|"
                     r"docker|torchrun|srun|cmake|ninja|apt-get|tools/\S+|"
                     r"python3? -m|build/bin/\S+) ")
DIRECTIVE = re.compile(r"<!-- (file|excerpt|run|python|setup|run by)"
                       r"(?:: (.*?))? -->")


def blocks(lines):
    """(directive, language, first line after the fence, line of the end); a
    "setup" has no block, and ends where it begins."""
    i, directive = 0, None
    while i < len(lines):
        comment = DIRECTIVE.fullmatch(lines[i])
        fence = re.fullmatch(r"```(\w*)", lines[i])
        if fence:
            end = lines.index("```", i + 1)
            yield directive, fence.group(1), i + 1, end
            directive, i = None, end
        elif comment and comment.group(1) == "setup":
            yield comment.groups(), "", i, i
        elif comment:
            directive = comment.groups()
        elif lines[i].strip():
            directive = None
        i += 1


def goes_on(command):
    """Whether a shell would read another line: a quote is open, or a backslash
    is the last character."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def commands(body, prompt="$ "):
    """[(command, expected lines)]."""
    result = []
    for line in body:
        if result and not result[-1][1] and goes_on(result[-1][0]):
            result[-1] = (result[-1][0] + "\n" + line, [])
        elif line.startswith(prompt):
            result.append((line.removeprefix(prompt), []))
        elif result:
            result[-1][1].append(line)
    return result


def uncovered(page):
    """What is wrong with blocks of commands that no test runs."""
    with open(page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for directive, language, start, end in blocks(lines):
        kind, value = directive or ("", "")
        if kind == "run by" and not os.path.exists(os.path.join(ROOT, value)):
            yield f"{page}:{start + 1}: there is no '{value}'"
        elif not kind and language != "console" and any(
                COMMAND.match(line + " ") for line in lines[start:end]):
            yield f"{page}:{start + 1}: no test runs these commands"


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
    parser.add_argument("page", nargs="+")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--covered", action="store_true")
    args = parser.parse_args()
    if args.covered:
        wrong = [text for page in args.page for text in uncovered(page)]
        sys.exit("\n".join(wrong) or 0)
    for page in args.page:
        check(page, args)


def check(page, args):
    with open(page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    python = os.path.dirname(sys.executable)
    env = dict(os.environ, NO_COLOR="1", PATH=os.pathsep.join(
        [os.path.join(os.path.abspath(args.build), "bin"), python,
         os.environ["PATH"]]), PYTHONPATH=os.path.join(ROOT, "python"),
               ROOT=ROOT)
    failures, ran, edits = [], 0, []
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            return subprocess.run(
                command, cwd=work, env=env, text=True, timeout=120,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)

        examples = os.path.join(ROOT, "docs", "examples")
        for name in sorted(os.listdir(examples)):
            if os.path.isdir(os.path.join(examples, name)):
                shutil.copytree(os.path.join(examples, name),
                                os.path.join(work, name))
        for directive, language, start, end in blocks(lines):
            body = lines[start:end]
            kind, value = directive or ("", "")
            if kind == "file":
                path = os.path.join(work, value)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write("\n".join(body) + "\n")
            elif kind == "excerpt":
                missing = in_order(body, os.path.join(ROOT, value))
                ran += 1
                if missing:
                    failures.append(f"{page}:{start + 1}: {value} "
                                    f"has no line '{missing}' there")
            elif kind in ("run", "setup", "python"):
                codes = [int(c) for c in value.split(",")] if kind == "run" else [0]
                todo = [("bash", "-c", c) for c, _ in commands(body, "")]
                if kind == "setup":
                    todo = [("bash", "-c", value)]
                elif kind == "python":
                    todo = [(sys.executable, "-c", "\n".join(body))]
                for command in todo:
                    done = run(*command)
                    ran += 1
                    if done.returncode not in codes:
                        failures.append(
                            f"{page}:{start + 1}: '{command[-1]}' ends with "
                            f"{done.returncode}\n{done.stdout}")
            elif language == "console":
                shown = []
                for command, expected in commands(body):
                    actual = stripped(run("bash", "-c", command)
                                      .stdout.split("\n"))
                    ran += 1
                    good = matches(stripped(expected), actual)
                    shown += ("$ " + command).split("\n")
                    shown += expected if good else actual
                    if not good:
                        failures.append(
                            f"{page}:{start + 1}: '{command}' prints\n" +
                            "\n".join("  " + line for line in actual))
                edits.append((start, end, shown))
    if not ran:
        failures.append(f"{page}: no block that could be checked")
    if args.update:
        for start, end, shown in reversed(edits):
            lines[start:end] = shown
        with open(page, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    elif failures:
        sys.exit("\n".join(failures))
    print(f"{page}: {ran} checked")


if __name__ == "__main__":
    main()
