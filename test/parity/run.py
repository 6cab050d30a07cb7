"""Runs the parity tests: accel-opt and accel-run against PyTorch.

  .venv/bin/python test/parity/run.py                  all cases
  .venv/bin/python test/parity/run.py -k fsdp names    cases with a text in them
  .venv/bin/python test/parity/run.py --list

A case is a function in a `*_cases.py` file of this folder, listed in its
CASES: [(name, function(Context) -> text or None)]. Scratch files stay under
BUILD/parity/CASE. The last line is "N passed, N failed".
"""
import argparse
import glob
import importlib
import json
import os
import re
import shutil
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


def collect():
    cases = []
    for path in sorted(glob.glob(os.path.join(harness.HERE, "*_cases.py"))):
        stem = os.path.basename(path)[:-len(".py")]
        family = stem[:-len("_cases")]
        try:
            module = importlib.import_module(stem)
            cases += [harness.Case(f"{family}.{name}", function)
                      for name, function in module.CASES]
        except Exception:
            text = traceback.format_exc()

            def broken(context, text=text):
                raise harness.Failure(text)
            cases.append(harness.Case(f"{family} (import)", broken))
    return cases


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir",
                        default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--report", help="write [{name, ok, detail}] as JSON")
    parser.add_argument("-k", nargs="+", default=[], metavar="TEXT")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    cases = [c for c in collect()
             if not args.k or any(text in c.name for text in args.k)]
    if args.list:
        print("\n".join(c.name for c in cases))
        return 0
    results = []
    for case in cases:
        work = os.path.join(args.build_dir, "parity",
                            re.sub(r"[^\w.-]+", "-", case.name))
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        start = time.time()
        try:
            detail = case.function(harness.Context(args.build_dir, work)) or ""
            ok = True
        except harness.Failure as failure:
            detail, ok = str(failure), False
        except Exception:
            detail, ok = traceback.format_exc(), False
        results.append({"name": case.name, "ok": ok, "detail": detail})
        first = detail.strip().splitlines()[0] if ok and detail else ""
        print(f"{'ok  ' if ok else 'FAIL'} {case.name:<36} "
              f"{time.time() - start:6.1f} s  {first}", flush=True)
        if not ok:
            print("\n".join("     " + line
                            for line in detail.strip().splitlines()[-25:]),
                  flush=True)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(results, f)
    failed = sum(not r["ok"] for r in results)
    print(f"{len(results) - failed} passed, {failed} failed", flush=True)
    if not results:
        return 5
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
