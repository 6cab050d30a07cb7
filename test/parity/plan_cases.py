"""plan.json as an artifact: its schema, its bytes, what the runtime refuses."""
import copy
import json
import os

import harness
import jobs
from harness import check

SCHEMA = os.path.join(harness.ROOT, "runtime", "plan", "plan.schema.json")


def make(context, model="gqa", **options):
    jobs.make_job(context.path(), jobs.MODELS[model], **options)
    return harness.plan(context, context.path("job.yaml"),
                        context.path("plan.json"))


def validator():
    import jsonschema

    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def valid(model="gqa", **options):
    def case(context):
        plan = make(context, model, **options)
        errors = sorted(validator().iter_errors(plan), key=lambda e: e.path)
        check(not errors, "\n".join(f"{'/'.join(map(str, e.path))}: "
                                    f"{e.message[:200]}" for e in errors[:5]))
        size = os.path.getsize(context.path("plan.json"))
        return f"{size / 1024:.0f} KiB"
    return case


def schema_can_fail(context):
    """The schema names what it wants: damaged plans do not pass."""
    plan = make(context)
    schema = validator()
    check(schema.is_valid(plan), "the plan itself is not valid")

    def damage(text, change):
        broken = copy.deepcopy(plan)
        change(broken)
        check(not schema.is_valid(broken), f"the schema accepts a plan {text}")

    for key in ("format", "hash", "parameters", "units", "functions",
                "programs", "predicted"):
        damage(f"without '{key}'", lambda p, key=key: p.pop(key))
    damage("with a text as shape",
           lambda p: p["parameters"][0].update(shape="257x64"))
    damage("with a parameter without a name",
           lambda p: p["parameters"][0].pop("fqn"))
    damage("with an unknown dtype",
           lambda p: p["parameters"][0].update(dtype="f33"))
    damage("with units that are an object", lambda p: p.update(units={}))


def same_bytes(context):
    """The same input gives the same bytes, in any folder order and time."""
    make(context, ranks=3, accumulation=2, max_grad_norm=1.0)
    with open(context.path("plan.json"), "rb") as f:
        first = f.read()
    harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
    with open(context.path("plan.json"), "rb") as f:
        check(f.read() == first, "two runs wrote different bytes")


def edited_plan(context):
    """A plan that was changed by hand is refused before anything runs."""
    plan = make(context)
    plan["units"][0]["padded"] += 64
    with open(context.path("edited.json"), "w", encoding="utf-8") as f:
        json.dump(plan, f)
    output = harness.run([context.binary("accel-run"),
                          context.path("edited.json"), "--nproc", "2"],
                         expect=1, timeout=60)
    check("hash" in output, f"the message does not name the hash:\n{output}")
    check(not os.path.exists(context.path("out")), "it wrote a checkpoint")


def predicted_to_the_byte(model="gqa", **options):
    """Own buffers and operator workspaces: the counting allocator agrees."""
    def case(context):
        plan = make(context, model, steps=4, **options)
        ranks = options.get("ranks", 2)
        harness.execute(context, context.path("plan.json"), ranks,
                        context.path("run.jsonl"), "--summary",
                        context.path("summary.json"))
        return harness.compare_memory(plan, context.path("summary.json"))
    return case


CASES = [
    ("schema-fsdp", valid(max_grad_norm=1.0)),
    ("schema-accumulation", valid(accumulation=4, ranks=3)),
    ("schema-checkpointing", valid("tied", activation_checkpointing="full")),
    ("schema-hsdp", valid(ranks=4, replicate=2)),
    ("schema-ddp", valid(kind="ddp")),
    ("schema-single", valid(kind="single", ranks=1)),
    ("schema-bf16", valid("qwen3", precision={"param": "bf16",
                                              "reduce": "fp32",
                                              "output": "bf16"})),
    ("schema-rejects", schema_can_fail),
    ("same-bytes", same_bytes),
    ("edited-plan", edited_plan),
    ("peak-2-ranks", predicted_to_the_byte()),
    ("peak-3-ranks-accumulation",
     predicted_to_the_byte(ranks=3, accumulation=3, max_grad_norm=1.0)),
    ("peak-full-checkpointing",
     predicted_to_the_byte(activation_checkpointing="full")),
    ("peak-bf16", predicted_to_the_byte(
        "wide", sequence_length=256, precision={
            "param": "bf16", "reduce": "fp32", "output": "bf16"})),
    ("peak-larger", predicted_to_the_byte(sequence_length=200, micro_batch=4)),
]
