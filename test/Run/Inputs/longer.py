"""longer.py PLAN OTHER TIMES: the other's step is predicted to take at least so
many times as long."""
import json
import sys

seconds = []
for path in sys.argv[1:3]:
    with open(path, encoding="utf-8") as f:
        seconds.append(json.load(f)["predicted"]["time"]["step_s"])
assert seconds[1] > float(sys.argv[3]) * seconds[0], seconds
