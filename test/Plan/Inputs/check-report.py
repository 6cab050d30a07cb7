"""Holds the page of --report against the JSON of the same command.

  check-report.py PAGE accel-opt plan|diff|validate|explain|lint|pipeline ...

The command is without --report and --format.

With ACCEL_CHROMIUM the page is opened too, on a network that refuses it: its
scripts must run without a message and fill what a reader looks at.
"""
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import tempfile

page, *command = sys.argv[1:]
subprocess.run([*command, "--report", page], stdout=subprocess.DEVNULL,
               check=False)
shown = json.loads(subprocess.run([*command, "--format", "json"], check=False,
                                 stdout=subprocess.PIPE).stdout)
with open(page, encoding="utf-8") as f:
    text = f.read()


class Parts(html.parser.HTMLParser):
    """What the page refers to, and its scripts."""
    def __init__(self):
        super().__init__()
        self.links, self.scripts, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href", "action")]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


parts = Parts()
parts.feed(text)
assert not parts.links, parts.links
assert not re.search(r"@import|url\(", text)
assert "default-src 'none'" in text
if "lint" != command[1]:
    assert "Permission is hereby granted" in text  # the library's license
assert len(text) < 800_000, len(text)
data = json.loads(parts.scripts[0])
if "lint" in data:
    kind = "lint"
    assert data["lint"] == shown and len(text) < 60_000
    files = {d["file"] for d in shown["diagnostics"]}
    expected = [f"Findings in {file}" for file in files]
    expected += ["What each key does"] if shown.get("effective") else []
    expected += ["Repairs"] if shown.get("diff") else []
    assert set(data["sources"]) == files
    absent, charts = [], 0
elif "validation" in data:
    kind = "validate"
    assert data["validation"] == shown
    expected = ["Errors by family", "Runs"]
    absent, charts = [], 0
    for name, error in (("Memory", "memory_error"),
                        ("Tokens a second of a rank", "tokens_per_s_error")):
        measured = any(row[error] is not None for row in shown["rows"])
        (expected if measured else absent).append(name)
        charts += measured
elif "diff" in data:
    kind = "diff"
    assert data["diff"] == shown
    expected = ["Memory per rank", "Decisions", "Numerics"]
    expected += ["Time of a step"] if shown["time"] else []
    absent, charts = [], 1 + bool(shown["time"])
elif "pipeline" in data:
    kind = "pipeline"
    assert data["pipeline"] == shown
    expected, absent, charts = ["Schedule", "Ranks"], [], 1
elif "timeline" in data:
    kind = "explain"
    expected, absent = ["Held at the peak", "Decisions"], []
    expected += [f"Memory by instruction, program {name}" for name in
                 {t["program"] for t in data["timeline"]}]
    charts = len(expected) - 2
    if data["run"]:
        assert data["run"] == shown
        expected += ["Predicted beside measured", "Loss", "Seconds of a step"]
        charts += 2
    else:
        absent += ["Loss", "Predicted beside measured"]
        assert [d["choice"] for d in data["decisions"] if d["where"] == "job"] \
            == [d["choice"] for d in shown]
else:
    del shown["planning_s"], data["plan"]["planning_s"]
    assert data["plan"] == shown
    step = data["step"]
    if shown["time"]:
        levels = [sum(level[1:]) for level in step["levels"]]
        assert max(levels) == shown["memory"]["peak_bytes"]
        assert abs(step["seconds"] - shown["time"]["step_s"]) < 1e-9
    else:
        assert step is None
    tuned = bool(shown.get("tune"))
    kind = "tune" if tuned else "step" if step else "bytes"
    expected, absent = ["Memory over the step", "Units", "Decisions"], []
    (expected if step else absent).append("Streams")
    ranks = math.prod(axis["size"] for axis in shown["mesh"]["axes"])
    (expected if ranks > 1 else absent).append("Mesh")
    (expected if tuned else absent).append("Memory against time")
    (expected if shown["pipeline"] else absent).append("Pipeline")
    charts = 2 * bool(step) + tuned + bool(shown["pipeline"])

chromium = os.environ.get("ACCEL_CHROMIUM")
if chromium:
    for size in ("1280,2000", "390,2000"):
        with tempfile.TemporaryDirectory() as home:
            run = subprocess.run(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", f"--user-data-dir={home}",
                 "--enable-logging=stderr", "--proxy-server=127.0.0.1:1",
                 f"--window-size={size}", "--virtual-time-budget=4000",
                 "--dump-dom", "file://" + os.path.abspath(page)],
                check=True, capture_output=True, text=True, timeout=120)
        assert "CONSOLE" not in run.stderr, run.stderr
        headings = re.findall("<h2>(.*?)</h2>", run.stdout)
        assert set(expected) <= set(headings), headings
        assert not set(absent) & set(headings), headings
        drawn = re.findall("<canvas[^>]*>", run.stdout)
        assert len(drawn) == charts, drawn
        assert all("display: block" in c and "aria-label" in c for c in drawn)
print(kind)
