"""The loss scale of fp16 is torch's: a step is left out at the scale at which
autocast's own backward of a rank overflows, however many ranks there are."""
import harness
import jobs
from harness import check

SAMPLE, SAMPLES = 32, 2  # tokens, and samples of a rank's micro-batch


def overflows(context, rank, scale, parts):
    """Whether a gradient of what the rank's backward gives is not finite."""
    import numpy
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        context.path("model"), dtype=torch.float32)
    tokens = torch.tensor(numpy.fromfile(
        context.path("train.bin"), "uint16").astype("int64"))
    for part in range(parts):
        first = (part * 2 + rank) * SAMPLES
        rows = torch.stack([tokens[(first + i) * SAMPLE:(first + i + 1) * SAMPLE + 1]
                            for i in range(SAMPLES)])
        with torch.autocast("cpu", torch.float16):
            logits = model(input_ids=rows[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), rows[:, 1:].flatten())
        (loss / parts * scale).backward()
    return not all(p.grad is None or bool(torch.isfinite(p.grad).all())
                   for p in model.parameters())


def first_scale(context, parts):
    """The least power of two at which torch leaves the step out."""
    for power in range(12, 28):
        if any(overflows(context, rank, 2.0 ** power, parts) for rank in range(2)):
            return power
    raise harness.Failure("no scale overflows")


def case(parts):
    def run(context):
        job = jobs.make_job(
            context.path(), jobs.MODELS["gqa"], kind="ddp", ranks=2, steps=1,
            accumulation=parts, max_grad_norm=1.0, sequence_length=SAMPLE,
            micro_batch=SAMPLES)
        job["accelerate"]["mixed_precision"] = "fp16"
        power = first_scale(context, parts)
        for exponent, skips in ((power - 1, False), (power, True)):
            job["grad_scaler"] = {"init_scale": 2.0 ** exponent}
            jobs.write_job(context.path(), job)
            harness.plan(context, context.path("job.yaml"),
                         context.path("plan.json"))
            line = harness.execute(context, context.path("plan.json"), 2,
                                   context.path("log.jsonl"))[0]
            check(line.get("skipped", False) == skips,
                  f"scale 2^{exponent}: {line}; torch overflows from 2^{power} on")
        return f"left out from 2^{power} on"
    return run


CASES = [("ddp", case(1)), ("ddp-accumulation", case(2))]
