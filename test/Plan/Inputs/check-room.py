"""What --confidence leaves of a budget decides what fits, everywhere.

  check-room.py CONFIG MODEL
"""
import json
import subprocess
import sys

config, model = sys.argv[1:]


def plan(*options):
    done = subprocess.run(
        ["accel-opt", "plan", config, "--model", model, "--seq-len", "2048",
         "--target", "a100-80gb", "--memory-budget", "12GiB", "--format",
         "json", *options], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def room(report):
    return report["memory"]["room_bytes"]


def changes(report, limit):
    return all(c["fits"] == (c["device_bytes"] <= limit)
               for c in report["recommendations"])


def best(report):
    return report["tune"]["best"]["device_bytes"]


surer, plain = plan("--confidence", "90%"), plan()
budget = plain["memory"]["budget_bytes"]
right = (surer["memory"]["budget_bytes"] == budget == room(plain) > room(surer)
         and changes(surer, room(surer)) and changes(plain, budget)
         and not changes(plain, room(surer)))
print("changes: judged by the room, and by the budget without" if right else
      [surer["memory"], surer["recommendations"], plain["recommendations"]])

surer, plain = plan("--tune", "--confidence", "95%"), plan("--tune")
right = best(surer) <= room(surer) < best(plain) <= budget
print("tune: judged by the room, and by the budget without" if right else
      [best(surer), room(surer), best(plain), budget])
