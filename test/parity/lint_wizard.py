"""Files of accelerate's own questionnaire, answered by a program."""
import unittest.mock as mock

# Answers to questions for text, by a part of the question.
TEXTS = {
    "different machines": "1", "GPU(s) should be used": "8",
    "processes should be used": "8", "What GPU(s)": "all",
    "IP address": "10.0.0.1", "port you will use": "29500",
    "layer class names (case-sensitive) to wrap": "LlamaDecoderLayer",
    "MoE layer class names": "MixtralSparseMoeBlock",
    "json DeepSpeed config file": "none",
    "hostfile": "/job/hostfile",
    "FSDP's minimum number": "", "Nvme Path": "/nvme",
}


def answer(rng, machine, wanted, plain):
    """The questionnaire's file as a dict. `machine` is the index of the machine
    type, `wanted` the parts of yes/no questions that get a yes; other answers
    are the defaults if `plain`, else drawn from `rng`."""
    from accelerate.commands.config import cluster

    def options(text, choices=(), convert=None, default=0):
        index = default if plain else rng.randrange(len(choices))
        if "type of machine" in text:
            index = machine
        elif "mixed precision" in text or "fp8" in text.lower():
            index = min(index, 2)  # fp8 asks for packages that are not here
        elif "dynamo backend" in text:
            index = 2
        return convert(index) if convert else index

    def field(text, convert=None, default=None, error_message=None):
        if convert is cluster._convert_yes_no_to_bool:
            if any(part in text for part in wanted):
                return True
            if plain or "wish to use mpirun" in text or "launch mpirun" in text:
                return default
            return rng.random() < 0.3
        for part, reply in TEXTS.items():
            if part in text:
                if not reply:
                    return default
                return convert(reply) if convert else reply
        return default if default is not None else \
            (convert("1") if convert else "1")

    with mock.patch.object(cluster, "_ask_options", options), \
            mock.patch.object(cluster, "_ask_field", field), \
            mock.patch.object(cluster, "is_deepspeed_available",
                              lambda: True):
        return cluster.get_cluster_input()
