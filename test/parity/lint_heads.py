"""Which numbers of heads transformers can split in two, on CPUs.

  torchrun --nproc-per-node 2 lint_heads.py RESULTS FOLDER...

RESULTS gets one line for each folder: its error, or "ok".
"""
import sys
import warnings


def main():
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed as dist
    import transformers
    transformers.logging.set_verbosity_error()
    dist.init_process_group("gloo")
    tokens = torch.arange(8)[None]
    for folder in sys.argv[2:]:
        try:
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, tp_plan="auto", device_map=None)
            model(input_ids=tokens, labels=tokens).loss.backward()
            line = "ok"
        except Exception as e:
            line = f"{type(e).__name__}: {e}".splitlines()[0][:100]
        if dist.get_rank() == 0:
            with open(sys.argv[1], "a", encoding="utf-8") as f:
                f.write(line + "\n")


if __name__ == "__main__":
    main()
