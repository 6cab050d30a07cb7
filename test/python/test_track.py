"""python -m accel_opt.track: a log of accel-run in trackers of Accelerate."""
import json
import os
import subprocess
import sys
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

LINES = [
    {"step": 1, "loss": 5.5, "grad_norm": None, "lr": 0.001,
     "tokens_per_s": 100.0, "step_s": 0.5, "peak_bytes": 1024},
    {"step": 2, "loss": 5.0, "grad_norm": 1.5, "lr": 0.002,
     "tokens_per_s": 110.0, "step_s": 0.4, "peak_bytes": 1024,
     "skipped": True, "eval_loss": 4.5, "eval_perplexity": 90.0,
     "samples": [{"prompt_ids": [1, 2], "ids": [3], "prompt": "ab",
                  "text": "c"}]}]

TRACKER = '''
import json
from accelerate.tracking import GeneralTracker

class ToFile(GeneralTracker):
    name, requires_logging_directory = "to-file", True
    def __init__(self, run, logging_dir):
        super().__init__()
        self.file = open(f"{logging_dir}/{run}.jsonl", "w")
    @property
    def tracker(self):
        return self.file
    def log(self, values, step=None, **kwargs):
        self.file.write(json.dumps([step, values]) + "\\n")
        self.file.flush()
    def finish(self):
        self.file.close()
'''


def track(folder, *words):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(
        [os.path.join(ROOT, "python"), str(folder)]))
    return subprocess.run(
        [sys.executable, "-m", "accel_opt.track", *words], cwd=folder, env=env,
        capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(TRACKER)
    (tmp_path / "log.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in LINES))
    return tmp_path


def test_a_tracker_of_ones_own(folder):
    done = track(folder, "log.jsonl", "--to", "own:ToFile", "--run", "first",
                 "--dir", ".")
    assert done.returncode == 0, done.stderr
    assert "2 steps are given" in done.stdout
    said = [json.loads(line)
            for line in (folder / "first.jsonl").read_text().splitlines()]
    assert said[0] == [1, {"loss": 5.5, "lr": 0.001, "tokens_per_s": 100.0,
                           "step_s": 0.5, "peak_bytes": 1024, "skipped": 0}]
    assert said[1][1]["samples"] == "ab -> c"
    assert said[1][1]["skipped"] == 1
    assert said[1][1]["eval_perplexity"] == 90.0


def test_a_log_that_grows(folder):
    first, second = (json.dumps(line) + "\n" for line in LINES)
    log = folder / "log.jsonl"
    log.write_text(first + second[:20])

    def grow():
        time.sleep(2)
        with open(log, "a") as file:
            file.write(second[20:])

    writer = threading.Thread(target=grow)
    writer.start()
    done = track(folder, "log.jsonl", "--to", "own:ToFile", "--dir", ".",
                 "--follow", "--steps", "2")
    writer.join()
    assert done.returncode == 0, done.stderr
    assert "2 steps are given" in done.stdout


def test_a_log_that_a_run_is_to_write(folder):
    log = folder / "later.jsonl"
    text = (folder / "log.jsonl").read_text()

    def begin():
        time.sleep(1)
        log.write_text(text)

    writer = threading.Thread(target=begin)
    writer.start()
    done = track(folder, "later.jsonl", "--to", "own:ToFile", "--dir", ".",
                 "--follow", "--steps", "1")
    writer.join()
    assert done.returncode == 0, done.stderr
    assert "1 steps are given" in done.stdout
    done = track(folder, "no/later.jsonl", "--to", "own:ToFile", "--dir", ".",
                 "--follow", "--steps", "1")
    assert done.returncode == 1
    assert "no such file" in done.stderr


def test_a_log_that_is_written_anew(folder):
    """As of a run that goes on from step 2, with as many bytes as before."""
    def lines(rate, steps):
        return "".join(json.dumps({"step": step, "loss": 1.0 + step,
                                   "lr": rate}) + "\n" for step in steps)

    log = folder / "log.jsonl"
    log.write_text(lines(0.25, range(1, 6)))

    said_file = folder / "accel-run.jsonl"

    def resume():
        end = time.monotonic() + 60
        while time.monotonic() < end and not (
                said_file.exists() and said_file.read_text().count("\n") == 5):
            time.sleep(0.1)
        log.write_text(lines(0.25, range(1, 3)) + lines(0.75, range(3, 8)))

    writer = threading.Thread(target=resume)
    writer.start()
    done = track(folder, "log.jsonl", "--to", "own:ToFile", "--dir", ".",
                 "--follow", "--steps", "7")
    writer.join()
    assert done.returncode == 0, done.stderr
    said = [json.loads(line)
            for line in said_file.read_text().splitlines()]
    assert [(step, values["lr"]) for step, values in said] == (
        [(step, 0.25) for step in range(1, 6)]
        + [(step, 0.75) for step in range(3, 8)])


def test_steps_are_where_following_ends(folder):
    done = track(folder, "log.jsonl", "--to", "own:ToFile", "--steps", "1")
    assert done.returncode == 1
    assert "add --follow" in done.stderr


def test_what_is_not_known(folder):
    done = track(folder, "log.jsonl", "--to", "tensorbord")
    assert done.returncode == 1
    assert "Accelerate knows" in done.stderr and "tensorboard" in done.stderr
    done = track(folder, "other.jsonl", "--to", "tensorboard")
    assert done.returncode == 1 and "no such file" in done.stderr


def test_tensorboard_reads_it(folder):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator")
    done = track(folder, "log.jsonl", "--to", "tensorboard", "--dir", "runs")
    assert done.returncode == 0, done.stderr
    events = reader.EventAccumulator(str(folder / "runs" / "accel-run"))
    events.Reload()
    losses = events.Scalars("loss")
    assert [(e.step, e.value) for e in losses] == [(1, 5.5), (2, 5.0)]
