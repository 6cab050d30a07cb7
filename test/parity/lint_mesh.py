"""What Accelerator() makes of parallelism_config under FSDP, on CPU ranks.

  torchrun --nproc-per-node 2 lint_mesh.py RESULTS CONFIG.yaml...

Each rank says that it has a GPU (nothing is sent to it), so that FSDP is on.
RESULTS gets one line for each file: its error, or "ok".
"""
import os
import sys
import warnings

from accelerate_units import launch_environment


def judge(path):
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType
    for key in [k for k in os.environ
                if k.startswith(("FSDP_", "ACCELERATE_", "PARALLELISM_"))]:
        del os.environ[key]
    try:
        os.environ.update({
            k: v for k, v in launch_environment(path).items()
            if k.startswith(("FSDP_", "ACCELERATE_", "PARALLELISM_"))})
        # Loading needs a device.
        os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
        PartialState(cpu=True)
        PartialState._shared_state["distributed_type"] = \
            DistributedType.MULTI_GPU
        AcceleratorState._reset_state()
        accelerator = Accelerator()
        assert accelerator.is_fsdp2, accelerator.distributed_type
        return "ok"
    except Exception as e:
        return f"{type(e).__name__}: {e}".splitlines()[0][:100]


def main():
    warnings.simplefilter("ignore")
    for path in sys.argv[2:]:
        line = judge(path)
        if os.environ["RANK"] == "0":
            with open(sys.argv[1], "a", encoding="utf-8") as f:
                f.write(line + "\n")


if __name__ == "__main__":
    main()
