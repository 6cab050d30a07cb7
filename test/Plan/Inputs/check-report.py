"""Holds the page of --report against the plan of the same job.

  check-report.py PAGE accel-opt plan ...    without --report and --format

With ACCEL_CHROMIUM the page is opened too, on a network that refuses it: its
scripts must run without a message and fill what a reader looks at.
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

page, *command = sys.argv[1:]
subprocess.run([*command, "--report", page], stdout=subprocess.DEVNULL,
               check=False)
plan = json.loads(subprocess.run([*command, "--format", "json"], check=False,
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
assert "Permission is hereby granted" in text  # the library's license
assert len(text) < 800_000, len(text)
data = json.loads(parts.scripts[0])
del plan["planning_s"], data["plan"]["planning_s"]
assert data["plan"] == plan
step = data["step"]
if plan["time"]:
    levels = [sum(level[1:]) for level in step["levels"]]
    assert max(levels) == plan["memory"]["peak_bytes"]
    assert abs(step["seconds"] - plan["time"]["step_s"]) < 1e-9
else:
    assert step is None

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
        for expected in ("Memory over the step", "Units", "Decisions"):
            assert expected in headings, headings
        assert ("Streams" in headings) == bool(step)
        assert ("Memory against time" in headings) == bool(plan.get("tune"))
        charts = re.findall("<canvas[^>]*>", run.stdout)
        assert len(charts) == 2 * bool(step) + bool(plan.get("tune"))
        assert all("display: block" in c and "aria-label" in c for c in charts)
print("tune" if plan.get("tune") else "step" if step else "bytes")
