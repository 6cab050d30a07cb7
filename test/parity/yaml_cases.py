"""The YAML (and JSON) that accel-opt reads is what Accelerate reads: generated,
mutated and random texts are accepted or refused as PyYAML's safe_load (and the
json module) does, and mean the same values.

    python test/parity/yaml_cases.py BUILD_DIR COUNT [SEED]    a longer run
"""
import datetime
import io
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from harness import check  # noqa: E402

SEEDS = [
    "a: &x {b: 1, c: [1, 2]}\nd: *x\ne: {<<: *x, b: 2}\n",
    "a: 1e8\nb: 0x1F\nc: 017\nd: 1:30\ne: 1.5e+3\nf: .inf\ng: no\nh: ~\n",
    "a: !!str 12\nb: !!int '0x10'\nc: ! x\nd: 'it''s'\ne: \"a\\tb\"\n",
    "- |\n  x\n- >-\n  y\n- 'q'\n-\n- - 1\n  - {}\n",
    "# comment\nfsdp_config:\n  fsdp_version: 2 # two\n  a: [yes, No, 'on']\n"
    "num_processes: 8\n",
    "? a\n: b\n? [c]\n: d\n",
    "{a: b, 'c': \"d\", e, ? f : g, h: [i: j, {k: }]}\n",
    "%YAML 1.1\n%TAG !e! tag:yaml.org,2002:\n---\na: !e!int 3\n...\n",
    "a: \"x \\\n  y\\u00e9\\x41\\n\n\n  z\"\nb: 'l1\n\n  l2'\nc: p q\n  r\n",
    "a: |2-\n   x\n  y\n\nb: >+\n  f\n\n   g\n  h\n\n",
    "a: 2001-12-14t21:59:43.10-05:00\nb: 2001-1-1 1:02:03 Z\nc: 2002-12-14\n",
    "a: !!binary aGVsbG8=\nb: !!set {x, y}\nc: !!omap [a: 1, b: 2]\n"
    "d: !!pairs [a: 1, a: 2]\ne: !!null x\nf: !!float 1\ng: !!bool 'Yes'\n",
    "a: &r [*r, 1]\nb: &m {c: *m}\n",
    "- &a {x: 1, y: 2}\n- &b {x: 3}\n- {<<: [*a, *b], z: 4}\n- <<: *a\n  y: 5\n",
    "1: a\ntrue: b\n1.0: c\nnull: d\n2001-01-01: e\n.5: f\n=: g\n",
]
PIECES = [": ", "- ", "\n", "  ", "'", '"', "{", "}", "[", "]", ", ", " #",
          "&a ", "*a", "!!int ", "| ", "> ", "<<: ", "---\n", "...\n", "\t",
          "yes", "0x", "1_0", "=", "~", "@", "`", "\r\n", "\u00e9", "1e8",
          "0o7", "08", "+.inf", "-", ":", "? ", "?", "#", "!", "!!str ", "!x ",
          "!<tag:yaml.org,2002:int> ", "%", "%YAML 1.2\n---\n", "\\", "\\x41",
          "\\u263a", "|+\n", ">-\n ", "|2\n", "\u2028", "\x85", "\ufeff",
          "\r", "\u3000", "\U0001f600", "1:30:45.5", "190:20:30", "1_000.5_0",
          "2001-12-14", "<<: *x", "*x", "&x ", "!!binary ", "!!omap ",
          "!!set ", "!!float ", "!!bool ", "!!map ", "!!seq ", "--- ", "-\t",
          "key: value\n", "a:b", "[a:b]", "::", ",", "''", '""', " ", "0",
          ".", "_", "+", "e+1", "!e!int ", "!", "%TAG ! tag:yaml.org,2002:\n"]
WORDS = ["a", "b c", "no", "1", "0x1f", "-.5", "1e3", "1.0e+3", "~", "null",
         "0", "-0", "017", "08", "1:30", "x#y", "x #y", "http://h:1/p", "-",
         "?x", ":x", "a:", "'q'", '"d"', "'a: b'", '"\\u00e9"', "*x", "&y z",
         "!!int 3", "!!str 3", "=", "<<", "2001-01-01", "[1, 2]", "{a: 1}",
         "", "|\n    t\n", ">\n    f\n    g\n", "yes", "on", "True", ".nan",
         "1_000", "0b11", "a, b", "a]", "%x", "@x", "- x", "\u00fc\u4e2d"]


def generate(rng, depth=0):
    """A random block or flow structure of tricky words."""
    indent = "  " * depth
    lines = []
    for _ in range(rng.randint(1, 4)):
        word = rng.choice(WORDS)
        kind = rng.random()
        if kind < 0.5:
            lines.append(f"{indent}{rng.choice(WORDS[:24])}: {word}\n")
        elif kind < 0.7 and depth < 4:
            lines.append(f"{indent}k{rng.randint(0, 3)}:\n"
                         + generate(rng, depth + 1))
        elif kind < 0.85:
            inner = ", ".join(rng.choice(WORDS) for _ in range(3))
            lines.append(f"{indent}f{rng.randint(0, 3)}: "
                         + rng.choice(["[%s]", "{%s}"]) % inner + "\n")
        else:
            lines.append(f"{indent}l:\n" + "".join(
                f"{indent}  - {rng.choice(WORDS)}\n" for _ in range(2)))
    return "".join(lines)


def mutate(rng, text):
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.55:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind < 0.85:
            text = text[:at] + text[at + rng.randint(1, 4):]
        elif text:
            # Some of the text again, elsewhere.
            begin = rng.randint(0, len(text) - 1)
            text = text[:at] + text[begin:begin + rng.randint(1, 20)] + text[at:]
    return text


def soup(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 12)))


def corpus():
    folder = os.path.join(harness.ROOT, "test", "Frontends", "Inputs",
                          "accelerate")
    texts = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts.append(f.read())
    return texts


def json_text(rng, depth=0):
    kind = rng.randint(0, 8 if depth < 3 else 6)
    if kind == 7:
        return "[" + ", ".join(json_text(rng, depth + 1)
                               for _ in range(rng.randint(0, 3))) + "]"
    if kind == 8:
        return "{" + ",".join(f'"{rng.choice("abc")}": '
                              + json_text(rng, depth + 1)
                              for _ in range(rng.randint(0, 3))) + "}"
    return rng.choice(["1", "-2.5", "1e8", "1E-400", "true", "null", "NaN",
                       "-Infinity", '"x"', '"\\u00e9"', '"\\ud83d\\ude00"',
                       '"\\ud83d"', '"a\\nb"', '""', "0", "-0", "123456789012"
                       "34567890", "[]", "{}", "1.", "01", "'x'", "+1"])


JSON_PIECES = ['"', "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\t", "0",
               "1", "-", ".", "e5", "true", "null", "NaN", "\\u12", "\u00e9",
               "\ufeff", "'", "\r", "Infinity"]


def samples(seed, count):
    """(file name, text) pairs."""
    rng = random.Random(seed)
    files = corpus()
    for i in range(count):
        kind = rng.random()
        if kind < 0.1:
            text = json_text(rng)
            if rng.random() < 0.5:
                at = rng.randint(0, len(text))
                text = text[:at] + rng.choice(JSON_PIECES) + \
                    text[at + rng.randint(0, 2):]
            yield "t.json", text
        elif kind < 0.3:
            yield "t.yaml", generate(rng)
        elif kind < 0.45:
            yield "t.yaml", mutate(rng, generate(rng))
        elif kind < 0.6:
            yield "t.yaml", mutate(rng, rng.choice(files))
        elif kind < 0.7:
            yield "t.yaml", soup(rng)
        else:
            yield "t.yaml", mutate(rng, rng.choice(SEEDS))


def typed(value, open_=()):
    """As frontend-dump --values prints it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, str):
        return {"str": value.encode("utf-8", "surrogatepass").hex()}
    if isinstance(value, (list, tuple, dict)) and any(value is o
                                                      for o in open_):
        return {"other": "{...}" if isinstance(value, dict) else "[...]"}
    open_ = (*open_, value)
    if isinstance(value, tuple):
        return {"tuple": [typed(v, open_) for v in value]}
    if isinstance(value, list):
        return {"list": [typed(v, open_) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[typed(k), typed(v, open_)]
                         for k, v in value.items()]}
    if isinstance(value, set):
        return {"set": sorted(json.dumps(typed(v), separators=(",", ":"))
                              for v in value)}
    assert isinstance(value, (bytes, datetime.date)), type(value)
    return {"other": repr(value)}


def python_reads(name, data):
    """(value or None, error or None), as Accelerate opens files."""
    import yaml
    try:
        stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        value = json.load(stream) if name.endswith(".json") else \
            yaml.safe_load(stream)
        return typed(value), None
    except Exception as error:  # whatever it is, the file is refused
        return None, f"{type(error).__name__}: {error}"


def compare(binary, items, path):
    """Texts that are read differently, each with what both say."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump([[n, list(d)] for n, d in items], f)
    out = subprocess.run([binary, "--values", path], stdout=subprocess.PIPE,
                         check=True, timeout=600).stdout.decode()
    lines = [json.loads(x) for x in out.splitlines()]
    check(len(lines) == len(items), f"{len(lines)} lines of {len(items)}")
    wrong, refused = [], 0
    for (name, data), mine in zip(items, lines):
        value, error = python_reads(name, data)
        refused += error is not None
        # A value inside of itself looks different from each place.
        circle = error is None and '..."' in json.dumps(value)
        if (error is not None) != ("error" in mine) or \
                (error is None and not circle and value != mine["value"]):
            wrong.append(f"{name} {data!r}\n  Python: {error or value}\n"
                         f"  here:   {mine.get('error', mine.get('value'))}")
    return wrong, refused


def run(binary, path, seed, count, show=5):
    items = []
    rng = random.Random(seed + 1)
    for name, text in samples(seed, count):
        data = text.encode("utf-8", "surrogatepass")
        if rng.random() < 0.02 and data:
            at = rng.randint(0, len(data) - 1)
            data = data[:at] + bytes([rng.randint(0, 255)]) + data[at + 1:]
        items.append((name, data))
    wrong, refused = compare(binary, items, path)
    check(not wrong, f"{len(wrong)} of {count} texts differ:\n\n"
          + "\n\n".join(wrong[:show]))
    check(count / 5 < refused < count * 4 / 5, "the sample tests too little")
    return f"{count} texts, {refused} refused by both, the rest mean the same"


def texts(context):
    return run(context.binary("frontend-dump"), context.path("texts.json"), 11,
               6000)


CASES = [("texts", texts)]

if __name__ == "__main__":
    start = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    total, batch = int(sys.argv[2]), 5000
    for first in range(0, total, batch):
        try:
            print(run(os.path.join(sys.argv[1], "bin", "frontend-dump"),
                      os.path.join(sys.argv[1], "texts.json"), start + first,
                      min(batch, total - first), show=40), flush=True)
        except harness.Failure as failure:
            print(failure, flush=True)
