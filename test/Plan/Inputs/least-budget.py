"""The smallest budget that the plan on stdin fits, in bytes."""
import json
import sys

print(json.load(sys.stdin)["memory"]["device_bytes"] + 1)
