"""Trains the job of a job.yaml with Accelerate's FSDP2 on CPU ranks, from its
model or from a save_state folder, and saves one.

  torchrun --nproc-per-node N accelerate_resume.py JOB.yaml LOG FIRST LAST
           [--load FOLDER] [--save FOLDER --at STEP] [--full]
           [--as fsdp2|fsdp1|ddp] [--schedule]

Steps FIRST + 1 to LAST, on the samples that accel-run takes there; rank 0 logs
a JSON line a step. `--full`: FULL_STATE_DICT. With `--schedule` rates are those
of a scheduler of transformers that Accelerate has prepared, loads and saves; so
are DDP's and FSDP1's, where the job's is constant.
"""
import argparse
import json
import os

import fsdp2
import torch_ranks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("log")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--load")
    parser.add_argument("--save")
    parser.add_argument("--at", type=int)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--as", dest="kind", default="fsdp2")
    parser.add_argument("--schedule", action="store_true")
    args = parser.parse_args()

    import torch
    import transformers
    import yaml
    from accelerate import (Accelerator, DistributedType,
                            FullyShardedDataParallelPlugin, PartialState)

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with open(args.job, encoding="utf-8") as f:
        job = yaml.safe_load(f)
    folder = os.path.dirname(os.path.abspath(args.job))
    plugin = None if args.kind == "ddp" else FullyShardedDataParallelPlugin(
        fsdp_version=int(args.kind[-1]), auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=job["accelerate"]["fsdp_config"]
        ["fsdp_transformer_layer_cls_to_wrap"].split(","),
        state_dict_type="FULL_STATE_DICT" if args.full else "SHARDED_STATE_DICT",
        cpu_ram_efficient_loading=False)
    accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
    if plugin:
        # Accelerate takes FSDP on accelerators only: all else of it works on
        # CPUs, whose index FSDP1 compares with none.
        for state in (accelerator.state, PartialState()):
            state._shared_state["distributed_type"] = DistributedType.FSDP
        accelerator.state.fsdp_plugin = plugin
        import torch.distributed.fsdp._init_utils as fsdp1
        fsdp1._get_device_from_device_id = lambda *_, **__: None
    model = fsdp2.load_model(transformers, os.path.join(folder, job["model"]),
                             False, dtype=torch.float32)
    model.config.use_cache = False
    model.train()
    if args.kind == "fsdp1":
        # It makes flat parameters, from which an optimizer is made.
        model = accelerator.prepare(model)
        optimizer = accelerator.prepare(fsdp2.make_optimizer(model, job))
    else:
        optimizer = fsdp2.make_optimizer(model, job)
        if args.load and args.kind == "ddp":
            # It numbers parameters in the order of the plan's groups: what no
            # regex of the job names comes first.
            optimizer.param_groups.insert(0, optimizer.param_groups.pop())
        model, optimizer = accelerator.prepare(model, optimizer)
    schedule = None
    if args.schedule or args.kind != "fsdp2":
        # Accelerate steps it once for each process.
        plan = job["schedule"]
        schedule = accelerator.prepare(transformers.get_scheduler(
            plan.get("decay", "constant"), optimizer.optimizer, num_warmup_steps=0,
            num_training_steps=plan["steps"] * accelerator.num_processes))
    if args.load:
        groups = [(g["weight_decay"], len(g["params"])) for g in optimizer.param_groups]
        accelerator.load_state(args.load)
        again = [(g["weight_decay"], len(g["params"])) for g in optimizer.param_groups]
        assert again == groups, (again, groups)
    data = fsdp2.Tokens(os.path.join(folder, job["data"]["tokens"]), job["data"])
    world = accelerator.num_processes
    log = open(args.log, "a", encoding="utf-8") if accelerator.is_main_process else None
    for step in range(args.first, args.last):
        ids, labels = data.micro_batch(step * world + accelerator.process_index)
        loss = fsdp2.causal_loss(model(input_ids=ids, use_cache=False), labels, 0.0)
        accelerator.backward(loss)
        if not schedule:
            for group in optimizer.param_groups:
                group["lr"] = fsdp2.learning_rate(job, step)
        optimizer.step()
        if schedule:
            schedule.step()
        optimizer.zero_grad(set_to_none=True)
        total = accelerator.reduce(loss.detach(), reduction="mean")
        if log:
            log.write(json.dumps({"step": step + 1, "loss": total.item()}) + "\n")
        if step + 1 == args.at:
            accelerator.save_state(args.save)
    if log:
        log.close()
    torch_ranks.leave()


if __name__ == "__main__":
    main()
