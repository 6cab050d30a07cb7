"""falls.py [--equal|--bytes] PLAN.json...: bytes and seconds of each plan are below
those of the one before, or equal; --bytes: bytes alone are below."""
import json
import sys

how = sys.argv[1] if sys.argv[1].startswith("--") else ""
plans = [json.load(open(name)) for name in sys.argv[1 + bool(how):]]
found = [(plan["memory"]["peak_bytes"], plan["time"]["step_s"])
         for plan in plans]
for before, after in zip(found, found[1:]):
    falls = [b > a for b, a in zip(before, after)]
    if not (before == after if how == "--equal" else
            falls[0] if how == "--bytes" else all(falls)):
        sys.exit(f"{before} and then {after}")
