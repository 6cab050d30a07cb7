"""Gives a log of accel-run to a tracker of Accelerate.

  python -m accel_opt.track LOG --to NAME [--run RUN] [--dir DIR] [--follow]

LOG is what `accel-run --log` writes. NAME is a tracker that Accelerate knows
(tensorboard, wandb, trackio, mlflow, ...), whose package must be installed, or
MODULE:CLASS, a GeneralTracker of one's own. --dir is where trackers write that
need a folder (default: runs). --follow waits for further lines, until the step
of the log's last line is --steps N, or the program is interrupted.

Nothing is sent that the tracker does not send: WANDB_MODE=offline and the like
mean what they mean there.
"""
import argparse
import importlib
import json
import os
import sys
import time


def fail(message):
    sys.exit(f"accel_opt.track: error: {message}")


def tracker_of(name, run, folder):
    """A started tracker."""
    try:
        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS
    except ImportError as error:
        fail(f"trackers are Accelerate's, which cannot be imported: {error}")
    if ":" in name:
        module, _, attribute = name.partition(":")
        try:
            kind = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            fail(f"--to {name}: {error}")
    elif name in LOGGER_TYPE_TO_CLASS:
        kind = LOGGER_TYPE_TO_CLASS[name]
    else:
        fail(f"--to {name}: Accelerate knows "
             + ", ".join(sorted(LOGGER_TYPE_TO_CLASS))
             + "; one of your own is MODULE:CLASS")
    PartialState()
    try:
        tracker = kind(run, logging_dir=folder) \
            if kind.requires_logging_directory else kind(run)
        if hasattr(tracker, "start"):  # made lazily since Accelerate 1.8
            tracker.start()
    except ImportError as error:
        fail(f"--to {name}: its package is not installed ({error})")
    return tracker


def values_of(line):
    """(step, numbers and texts) of a line of the log, or None."""
    try:
        record = json.loads(line)
        step = record.pop("step")
    except (ValueError, KeyError, AttributeError):
        return None
    values = {key: value for key, value in record.items()
              if isinstance(value, (int, float))
              and not isinstance(value, bool)}
    values["skipped"] = int(bool(record.get("skipped")))
    texts = [f"{sample.get('prompt', sample['prompt_ids'])} -> "
             f"{sample.get('text', sample['ids'])}"
             for sample in record.get("samples", [])]
    if texts:
        values["samples"] = "\n\n".join(texts)
    return step, values


def whole_lines(path, offset, last):
    """(from the start again?, the whole lines behind `offset`, where they end).
    A run that goes on from a checkpoint writes its log anew: then the line
    `last`, which ended at `offset`, may not be there, whatever the size is."""
    with open(path, "rb") as file:
        file.seek(offset - len(last))
        again = file.read(len(last)) != last
        if again:
            offset = 0
        file.seek(offset)
        lines = file.read().split(b"\n")[:-1]
    return again, lines, offset + sum(len(line) + 1 for line in lines)


def follow(path, steps, wait):
    """Whole lines of the file; with `wait` also those that come, until the
    one of step `steps`. Of a log that is written anew, the lines at its start
    that have been given are not given again."""
    given, number = [], 0  # hashes of lines; how many of the file are read
    offset, last = 0, b""
    while True:
        try:
            again, lines, offset = whole_lines(path, offset, last)
        except FileNotFoundError:  # of a run that begins, or being replaced
            again, lines, offset, last = True, [], 0, b""
        if again:
            number, last = 0, b""
        for line in lines:
            last = line + b"\n"
            known = given[number:number + 1] == [hash(line)]
            number += 1
            if known:
                continue
            given[number - 1:] = [hash(line)]
            yield line.decode("utf-8", "replace")
            done = values_of(line)
            if steps and done and done[0] >= steps:
                return
        if not wait:
            return
        time.sleep(0.5)


def main(words=None):
    parser = argparse.ArgumentParser(
        prog="python -m accel_opt.track", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--to", required=True, metavar="NAME")
    parser.add_argument("--run", default="accel-run")
    parser.add_argument("--dir", default="runs")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--steps", type=int, default=0)
    options = parser.parse_args(words)
    if options.steps and not options.follow:
        fail("--steps is the step at which --follow ends: add --follow, or "
             "leave --steps out")
    if not os.path.isfile(options.log) and not (
            options.follow and
            os.path.isdir(os.path.dirname(options.log) or ".") and
            not os.path.exists(options.log)):
        fail(f"no such file: '{options.log}'")
    tracker = tracker_of(options.to, options.run, options.dir)
    count = 0
    try:
        for line in follow(options.log, options.steps, options.follow):
            if found := values_of(line):
                tracker.log(found[1], step=found[0])
                count += 1
    except KeyboardInterrupt:
        pass
    tracker.finish()
    print(f"{count} steps are given to {options.to}")


if __name__ == "__main__":
    main()
