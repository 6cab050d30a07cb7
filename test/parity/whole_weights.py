"""What a rank holds once Accelerate has prepared an adapter's model for FSDP2.

bitsandbytes has no layers without a GPU: its weights are stand-ins of its class name, dtype and
shape, which is what fsdp2_prepare_model looks at.
"""
import os
import types

from accelerate_units import launch_environment

RANKS = 2


def rounded(size):
    return -(-size // 512) * 512


def pack(model):
    """Each linear layer but the head gets a weight of half a byte an element; bytes of their scales
    (nested) and tables, which FSDP2 does not know of."""
    import torch

    class Params4bit(torch.nn.Parameter):
        pass

    scales = 0
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and "lora_" not in name and "lm_head" not in name:
            numel = module.weight.numel()
            module.weight = Params4bit(torch.zeros(numel // 2, 1, dtype=torch.uint8), requires_grad=False)
            blocks = numel // 64
            scales += sum(map(rounded, (blocks, -(-blocks // 256) * 4, 4, 64)))
    return scales


def held(path, folder, adapter, packed):
    """(bytes of rank 0's parameters and of two states of each that is trained, names of what is whole)."""
    os.environ.update(RANK="0", WORLD_SIZE=str(RANKS), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    import peft
    import torch
    import torch.distributed as dist
    import transformers
    from accelerate import FullyShardedDataParallelPlugin
    from accelerate.state import PartialState
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model
    from torch.distributed.tensor import DTensor
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.set_num_threads(1)
    environment = launch_environment(path)
    os.environ.update({k: v for k, v in environment.items() if k.startswith(("FSDP_", "ACCELERATE_"))})
    os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model = peft.get_peft_model(model, peft.LoraConfig(**adapter))
    total = pack(model) if packed else 0
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    PartialState(cpu=True)
    plugin = FullyShardedDataParallelPlugin()
    plugin.set_auto_wrap_policy(model)
    model = fsdp2_prepare_model(types.SimpleNamespace(
        state=types.SimpleNamespace(fsdp_plugin=plugin), mixed_precision="bf16", torch_device_mesh=None,
        is_main_process=True, device=torch.device("cpu")), model)
    whole = []
    for name, parameter in model.named_parameters():
        sharded = isinstance(parameter, DTensor)
        if not sharded:
            whole.append(name)
        local = parameter.to_local() if sharded else parameter
        total += rounded(local.nbytes) * (3 if parameter.requires_grad else 1)
    return total, whole
