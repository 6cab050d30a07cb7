"""hf_names.py's comparisons, one parity case each."""
import json
import os

import harness
import hf_names
from harness import check


def compare(folder, small):
    def case(context):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        where = folder or context.path()
        code, got, inits, text = hf_names.dumped(context.binary("hf-dump"),
                                                 where)
        check(code == 0, f"exit code {code}: {text}")
        expected = hf_names.described(transformers, torch, where)
        for mine, theirs in zip(got, expected):
            check(mine == theirs, f"{mine}, transformers has {theirs}")
        check(len(got) == len(expected),
              f"{len(got)} lines, not {len(expected)}")
        if small:
            problem = hf_names.check_initial_values(transformers, torch, where,
                                                    inits)
            check(not problem, problem)
    return case


def made(config, function):
    def case(context):
        with open(context.path("config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        return function(context)
    return case


def refused(context):
    import torch
    import transformers

    code, _, _, text = hf_names.dumped(context.binary("hf-dump"),
                                       context.path())
    check(code == 1 and text.count("error:") == 1, f"exit code {code}: {text}")
    try:
        hf_names.described(transformers, torch, context.path())
    except Exception:  # of whatever class transformers raises
        return text.strip()
    raise harness.Failure("transformers accepts it")


CASES = [(f"published-{name}",
          compare(os.path.join(harness.HERE, "configs", name), False))
         for name in sorted(os.listdir(os.path.join(harness.HERE, "configs")))]
CASES += [(name.replace(" ", "-").replace(",", ""),
           made(config, compare(None, "hidden_size" in config)))
          for name, config in hf_names.ACCEPTED.items()]
CASES += [("refused-" + name.replace(" ", "-"), made(config, refused))
          for name, config in hf_names.REFUSED.items()]
