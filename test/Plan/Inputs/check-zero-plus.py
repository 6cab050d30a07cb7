"""Plans of one job with ZeRO++ and MiCS against the plan without them.

  check-zero-plus.py FOLDER PARAMETERS RANKS GROUP
"""
import json
import os
import sys

folder = sys.argv[1]
parameters, ranks, group = map(int, sys.argv[2:])


def load(name):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as f:
        plan = json.load(f)
    return plan, plan["memory"]["peak_bytes"], plan["time"]["step_s"]


def near(text, found, expected, share=0.01):
    assert abs(found - expected) <= share * expected, (text, found, expected)


_, plain, slow = load("plain")
plan, peak, seconds = load("hpz")
# 2 bytes an element over the group; the peak is in the backward, before which
# all units have left their parts.
near("second copy", peak - plain, 2 * parameters / group)
assert seconds < slow, "gathers within a machine are no faster"

_, peak, seconds = load("weights")
assert seconds < slow, "half of the bytes take no less time"
# What is gathered ahead has a byte an element until it is used.
assert 0 < plain - peak < parameters, (plain, peak)

_, _, seconds = load("gradients")
assert seconds < slow, "an eighth of the bytes takes no less time"
_, _, alone = load("alone")
_, _, quantized = load("alone-gradients")
assert alone == quantized, "one machine reduces gradients as they are"

# The update of a group at a time: fp32 gradients of less than all.
_, whole, _ = load("pair")
_, peak, _ = load("groups")
assert peak < whole, "smaller groups take as much"

# Each group of ranks has all states.
plan, peak, _ = load("mics")
near("states", peak - plain,
     (2 + 12 + 2) * parameters * (1 / group - 1 / ranks), 0.02)
modelled = plan["modelled"]
assert (modelled["shard_ranks"], modelled["replicate_ranks"]) == (
    group, ranks // group), modelled
print("as DeepSpeed has it")
