"""Whether each line of the files that `init` wrote says why it is there, and
whether transformers' and accelerate's readers see the values.

  check-reasons.py FOLDER
"""
import sys

import yaml

for name in ("accelerate.yaml", "training_arguments.yaml"):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as f:
        text = f.read()
    for line in text.splitlines():
        if not line.startswith("#") and "  # " not in line and \
                not line.endswith("_config:"):
            sys.exit(f"{name}: no reason: {line}")
    values = yaml.safe_load(text)
    for key in ("distributed_type", "mixed_precision", "num_processes",
                "per_device_train_batch_size", "gradient_accumulation_steps"):
        if key in values:
            print(f"{key}={values[key]!r}")
