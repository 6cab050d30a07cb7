"""Every decoder family on random configurations: names and initial values as
transformers has them, losses within 1e-5 and gradients within 2e-5 in fp32.

hf_names.py and hf_numerics_cases.py compare single configurations; one case
here takes 20 of a family. Two of them run as a plan's functions too, kernels
selected, differentiated and recomputed.
"""
import functions_cases
import hf_names
import hf_numerics_cases
import hf_random
import jobs
from harness import check

CONFIGS, AS_PLANS = 20, 2


def family(name):
    def case(context):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        worst = 0.0
        for i, config in enumerate(hf_random.configs(name, CONFIGS)):
            try:
                worst = max(worst, compare(context, config, torch,
                                           transformers, saved=i % 2))
                if i < AS_PLANS:
                    functions_cases.compare(context, config, base={},
                                            length=hf_random.LENGTH)
            except Exception as error:
                raise type(error)(f"{error}\nconfig {i}: {config}") from error
        return f"{CONFIGS} configurations, within {worst:.1e}"
    return case


def compare(context, config, torch, transformers, saved=False):
    """`saved`: of the file that transformers' save_pretrained writes."""
    folder = context.path("model")
    if saved:
        transformers.AutoConfig.for_model(**config).save_pretrained(folder)
    else:
        jobs.write_spelled_config(folder, config)
    code, got, inits, text = hf_names.dumped(context.binary("hf-dump"), folder)
    check(code == 0, f"exit code {code}: {text}")
    expected = hf_names.described(transformers, torch, folder)
    for mine, theirs in zip(got, expected):
        check(mine == theirs, f"{mine}, transformers has {theirs}")
    check(len(got) == len(expected), f"{len(got)} lines, not {len(expected)}")
    problem = hf_names.check_initial_values(transformers, torch, folder, inits)
    check(not problem, problem)
    return hf_numerics_cases.difference(context, folder, config,
                                        length=hf_random.LENGTH)


CASES = [(name.replace("_", "-"), family(name))
         for name in hf_random.FAMILIES]
