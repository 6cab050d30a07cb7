"""predicted.py PLAN LEAST MOST: a step is predicted to take so many seconds."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    seconds = json.load(f)["predicted"]["time"]["step_s"]
assert float(sys.argv[2]) < seconds < float(sys.argv[3]), seconds
