"""The loss scale of fp16 is that of each rank's own backward, as torch's: a step of
two ranks is left out at the scale at which one of them by itself leaves it out."""
import harness
import jobs
from harness import check

SAMPLE, SAMPLES = 32, 2  # tokens, and samples of a rank's step
SCALES = range(14, 26)   # powers of two


def first_left_out(context, ranks, tokens):
    """The least scale at which a step over these tokens is left out."""
    job = jobs.make_job(
        context.path(), jobs.MODELS["gqa"], kind="ddp" if ranks > 1 else "single",
        ranks=ranks, steps=1, max_grad_norm=1.0, sequence_length=SAMPLE,
        micro_batch=SAMPLES)
    job["accelerate"]["mixed_precision"] = "fp16"
    tokens.tofile(context.path("train.bin"))
    for power in SCALES:
        job["grad_scaler"] = {"init_scale": 2.0 ** power}
        jobs.write_job(context.path(), job)
        harness.plan(context, context.path("job.yaml"), context.path("plan.json"))
        line = harness.execute(context, context.path("plan.json"), ranks,
                               context.path("log.jsonl"))[0]
        if line.get("skipped"):
            return power
    raise harness.Failure("no scale leaves a step out")


def ranks(context):
    import numpy
    jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=1,
                  sequence_length=SAMPLE, micro_batch=SAMPLES)
    tokens = numpy.fromfile(context.path("train.bin"), "uint16")
    alone = [first_left_out(context, 1, tokens[rank * SAMPLES * SAMPLE:])
             for rank in range(2)]
    both = first_left_out(context, 2, tokens)
    check(both == min(alone), f"from 2^{both} on; the ranks alone from {alone}")
    return f"left out from 2^{both} on, the ranks alone from {alone}"


CASES = [("ddp", ranks)]
