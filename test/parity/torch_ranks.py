"""How a process that is one rank of torch.distributed begins and ends."""
import os
import sys


def leave():
    """Ends the process together with the other ranks'. Threads of Gloo and of
    the checkpoint may still run then, and on a busy machine their destructors
    abort an interpreter that ends by itself ("terminate called without an
    active exception"): the process leaves without them."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def without_shared_memory():
    """Lets DeepSpeed exchange by Gloo alone: it compiles collectives of its own
    for ranks of one machine where they are used first, which takes a minute."""
    import importlib

    # As an attribute, deepspeed.comm.torch is torch itself.
    module = importlib.import_module("deepspeed.comm.torch")
    assert module.build_shm_op
    module.build_shm_op = lambda: None
