"""What a rank holds of a model that transformers shards itself."""
import json

import harness
import jobs
import tracked_step
from executor_cases import near
from harness import check


def own_shards_case(ranks, policy, tp=1):
    """A step of a model that transformers shards itself, under autocast;
    `policy`: beside fsdp_mixed_precision."""
    def compare(context):
        model, batch, length = "even" if tp > 1 else "wide", 2, 64
        folder = context.path("model")
        jobs.write_config(folder, jobs.PEAKED[model])
        want, dtypes = harness.in_python(
            tracked_step.own_shards,
            [({}, (folder, batch, length, ranks, policy, tp))],
            context.path("torch.out"), timeout=400)[0]
        gathered = "torch.bfloat16" if policy else "torch.float32"
        check(dtypes == ["gradient torch.float32", gathered],
              f"torch has {dtypes}")
        recipe = jobs.write_job(context.path(), {
            "model_name_or_path": folder, "max_length": length, "bf16": True,
            "per_device_train_batch_size": batch, "save_strategy": "no",
            "gradient_checkpointing": False, "router_aux_loss_coef": 0.0,
            "model_init_kwargs": {
                "distributed_config": {"fsdp_size": ranks // tp, "tp_size": tp,
                                       "fsdp_mixed_precision": policy}}},
            "own.yaml")
        memory = json.loads(harness.run(
            [context.binary("accel-opt"), "plan", recipe, "--num-processes",
             str(ranks), "--target", "cpu", "--format", "json"]))["memory"]
        got = {"prediction": {"peak": memory["peak_bytes"],
                              "where": memory["peak_where"]}}
        # Of fp32 parameters under autocast, a layer's backward is counted one
        # 16-bit hidden state too high.
        hidden = batch * length * jobs.PEAKED[model]["hidden_size"] * 2
        return near(got, want["Total"], model, batch, length,
                    0 if policy else hidden)
    return compare


def experts_case(ranks, ep, model, tp=1):
    """The same of a mixture whose ranks share experts, in fp32: autocast has
    no grouped matmuls on CPUs; with `tp` of them that split its other layers."""
    def compare(context):
        batch, length = 2, 64
        folder = context.path("model")
        jobs.write_config(folder, jobs.PEAKED[model])
        want, stored = harness.in_python(
            tracked_step.own_experts, [({}, (folder, batch, length, ranks, ep, tp))],
            context.path("torch.out"), timeout=400)[0]
        recipe = jobs.write_job(context.path(), {
            "model_name_or_path": folder, "max_length": length, "bf16": False,
            "per_device_train_batch_size": batch, "save_strategy": "no",
            "gradient_checkpointing": False, "router_aux_loss_coef": 0.0,
            "model_init_kwargs": {
                "distributed_config": {"fsdp_size": ranks // tp, "tp_size": tp,
                                       "ep_size": ep}}},
            "own.yaml")
        memory = json.loads(harness.run(
            [context.binary("accel-opt"), "plan", recipe, "--num-processes",
             str(ranks), "--target", "cpu", "--format", "json"]))["memory"]
        held = memory["breakdown"]["parameters"]
        check(held == stored, f"predicted {held} bytes of parameters, torch "
              f"has {stored}")
        got = {"prediction": {"peak": memory["peak_bytes"],
                              "where": memory["peak_where"]}}
        return near(got, want["Total"], model, batch, length)
    return compare


CASES = [
    ("experts-whole", experts_case(4, 4, "halves-mixtral")),
    ("experts-sharded", experts_case(4, 2, "even-mixtral")),
    ("experts-some-layers", experts_case(4, 2, "even-qwen3-moe")),
    ("experts-in-tp", experts_case(4, 2, "even-qwen3-moe", tp=2)),
    ("experts-beyond-tp", experts_case(8, 4, "even-qwen3-moe", tp=2)),
    # One head of keys a rank, repeated for a mask.
    ("experts-masked-tp", experts_case(4, 2, "even-mixtral", tp=2)),
    ("experts-whole-tp", experts_case(4, 4, "even-qwen3-moe", tp=2)),
    ("without-policy", own_shards_case(4, False)),
    ("policy", own_shards_case(4, True)),
    ("tensor-parallel", own_shards_case(8, True, tp=2)),
]
