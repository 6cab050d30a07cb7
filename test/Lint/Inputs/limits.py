"""Hostile and huge files: a clear error (or none), within 2 s of CPU and 256 MB.

    limits.py ACCEL_OPT FOLDER     prints a line for each file
"""
import json
import os
import random
import subprocess
import sys
import time

SECONDS, BYTES = 2.0, 256e6
MIB = 1 << 20
LIMIT = 4 * MIB - 4096  # just below what is read at all


def fill(unit, head="", tail=""):
    """About LIMIT bytes."""
    unit = unit.encode() if isinstance(unit, str) else unit
    count = (LIMIT - len(head) - len(tail)) // len(unit)
    return head.encode() + unit * count + tail.encode()


def alias_bomb(kind):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]" if kind == "list"
             else "a0: &a0 {a: 1, b: 2}"]
    for i in range(1, 40):
        inner = [f"*a{i - 1}"] * 9
        lines.append(f"a{i}: &a{i} [{','.join(inner)}]" if kind == "list" else
                     f"a{i}: &a{i} {{<<: [{','.join(inner)}], k{i}: *a{i - 1}}}")
    return "\n".join(lines).encode()


def numbered(pattern):
    return "".join(pattern % (i, i) for i in range(LIMIT // 24)).encode()[:LIMIT]


FILES = {  # name: (bytes, what the output must have)
    "alias-bomb.yaml": (lambda: alias_bomb("list"), "[yaml-limit]"),
    "merge-bomb.yaml": (lambda: alias_bomb("map"), "[yaml-limit]"),
    "many-merges.yaml": (lambda: b"a: &a {x: 1}\nb:\n" + b"  <<: *a\n" * 100000, ""),
    "chained-merges.yaml": (lambda:
        b"r: {q: &a0 {x: 1}}\n" + b"".join(
            b"k%d: &a%d {<<: *a%d}\n" % (i, i, i - 1)
            for i in range(1, 30000)) + b"<<: *a29999\n", ""),
    "100-mb.yaml": (lambda: b"# x\n" * (25 * MIB), "[yaml-limit]"),
    "100-mb.json": (lambda: b" " * (100 * MIB), "[yaml-limit]"),
    "comments.yaml": (lambda: fill("# comment\n"), "[not-a-mapping]"),
    "newlines.yaml": (lambda: fill("\n"), "[not-a-mapping]"),
    "blanks.yaml": (lambda: fill(" "), "[not-a-mapping]"),
    "plain.yaml": (lambda: fill("x", "a: "), "error"),
    "plain-words.yaml": (lambda: fill("x ", "a: "), "error"),
    "plain-lines.yaml": (lambda: fill("  x\n", "a:\n"), "error"),
    "quoted.yaml": (lambda: fill("x", "a: '", "'\n"), "error"),
    "open-quote.yaml": (lambda: fill("x\n", 'a: "'), "[yaml-syntax]"),
    "escapes.yaml": (lambda: fill("\\u00e9", 'a: "', '"\n'), "error"),
    "literal.yaml": (lambda: fill("  x\n", "a: |\n"), "error"),
    "list.yaml": (lambda: fill("- x\n"), "[yaml-limit]"),
    "keys.yaml": (lambda: numbered("key%d: %d\n"), "[yaml-limit]"),
    "equal-keys.yaml": (lambda: fill("a: 1\n"), "[yaml-limit]"),
    "many-keys.yaml": (lambda: "".join(f"key{i}: {i}\n" for i in range(20000))
                       .encode(), "more errors not shown"),
    "many-equal.yaml": (lambda: b"a: 1\n" * 20000, "warnings"),
    "section-keys.yaml": (lambda: "fsdp_config:\n".encode() + "".join(
        f"  fsdp_wrong{i}: {i}\n" for i in range(100000)).encode(), "warnings"),
    "brackets.yaml": (lambda: fill("["), "[yaml-limit]"),
    "braces.yaml": (lambda: fill("{a: "), "[yaml-limit]"),
    "dashes.yaml": (lambda: fill("- "), "[yaml-limit]"),
    "questions.yaml": (lambda: fill("? "), "[yaml-limit]"),
    "flow-keys.yaml": (lambda: fill("a:,", "[", "]"), "[yaml-limit]"),
    "flow-nulls.yaml": (lambda: fill("?,", "[", "]"), "[yaml-limit]"),
    "colons.yaml": (lambda: fill(":"), "error"),
    "deep.yaml": (lambda: "".join(" " * i + "a:\n" for i in range(5000)).encode(),
                  "[yaml-limit]"),
    "anchors.yaml": (lambda: "".join(f"- &a{i} x\n" for i in range(50000)).encode(),
                     "error"),
    "tabs.yaml": (lambda: fill("\t"), "[yaml-syntax]"),
    "tabs-between.yaml": (lambda: fill("a:\tb\n"), "error"),
    "tab-blocks.yaml": (lambda: b"".join(b"k%d: |\n  \tx\n" % i
                                 for i in range(100000)), "error"),
    "percent.yaml": (lambda: fill("%x\n"), "[yaml-syntax]"),
    "tags.yaml": (lambda: fill("!x "), "error"),
    "marks.yaml": (lambda: fill("\ufeff"), "error"),
    "breaks.yaml": (lambda: fill("\u2028"), "error"),
    "random.yaml": (lambda: random.Random(1).randbytes(LIMIT), "[file-encoding]"),
    "zeros.yaml": (lambda: bytes(LIMIT), "[file-encoding]"),
    "ff.yaml": (lambda: b"\xff" * LIMIT, "[file-encoding]"),
    "utf16.yaml": (lambda: "distributed_type: FSDP\n".encode("utf-16"),
                   "[file-encoding]"),
    "digits.yaml": (lambda: fill("9", "num_processes: "), "error"),
    "hex.yaml": (lambda: fill("f", "num_processes: 0x"), "error"),
    "sexagesimal.yaml": (lambda: fill(":59", "num_processes: 1"), "error"),
    "ignores.yaml": (lambda: fill("a: 1 # accel-opt: ignore=x\n"), "[yaml-limit]"),
    "ignored-codes.yaml": (lambda: fill("x,", "# accel-opt: ignore=", "\na: 1\n"),
                           "error"),
    "regex.yaml": (lambda: b"distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n"
                   b"  fsdp_ignored_modules: " + b"(" * 100000, ""),
    "brackets.json": (lambda: fill("["), "[yaml-limit]"),
    "blanks.json": (lambda: fill(" "), "[yaml-syntax]"),
    "string.json": (lambda: fill("x", '{"a": "', '"}'), "error"),
    "open-string.json": (lambda: fill("x", '"'), "[yaml-syntax]"),
    "numbers.json": (lambda: fill("1,", "[", "1]"), "[yaml-limit]"),
    "equal-keys.json": (lambda: b"{" + b'"a":1,' * 20000 + b'"a":1}', "warnings"),
    "surrogates.json": (lambda: fill("\\ud800", '["', '"]'), "error"),
}


MODES = ([], ["--format", "json"], ["--fix=diff"])
ALL_MODES = ("many-keys.yaml", "many-equal.yaml", "section-keys.yaml",
             "plain.yaml", "digits.yaml", "tabs-between.yaml", "ignores.yaml",
             "ignored-codes.yaml", "equal-keys.json")


def measure(command):
    """(exit code, output, CPU seconds, peak bytes) of a process."""
    read, write = os.pipe()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)])
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        output = stream.read().decode(errors="replace")
    _, status, usage = os.wait4(pid, 0)
    return (os.waitstatus_to_exitcode(status), output,
            usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def main():
    if sys.argv[1] == "--measure":
        return print(json.dumps(measure(sys.argv[2:])))
    binary, folder = sys.argv[1:3]
    if os.sep not in binary:
        binary = subprocess.check_output(["which", binary], text=True).strip()
    os.makedirs(folder, exist_ok=True)
    bad = 0
    for name, (data, expected) in FILES.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(data())
        for extra in MODES if name in ALL_MODES else MODES[:1]:
            start = time.time()
            # A small process in between: a child's peak starts with the size
            # of its parent.
            code, output, seconds, peak = json.loads(subprocess.check_output(
                [sys.executable, __file__, "--measure", binary, "lint", path,
                 *extra]))
            wall = time.time() - start
            want = expected.strip("[]") if extra == ["--format", "json"] \
                else expected
            if expected in ("more errors not shown", "warnings"):
                want = ""
            good = code in (0, 1) and want in output and seconds <= SECONDS \
                and peak <= BYTES and \
                (extra == ["--fix=diff"] or len(output) < 4e6)
            bad += not good
            print(f"{'ok ' if good else 'BAD'} {name} {' '.join(extra)}: exit "
                  f"{code}, {seconds:.2f} s CPU, {wall:.2f} s, "
                  f"{peak / 1e6:.0f} MB, {len(output)} bytes out")
            if not good:
                print("   ", output[:300])
        os.remove(path)
    print(f"{len(FILES)} files, {bad} bad")


if __name__ == "__main__":
    main()
