"""Peaks of stages under FSDP2, of each rank, against torch's own PipelineStage and
Schedule1F1B on fake ranks."""
import json

import counted_step
import harness
import jobs
from executor_cases import counting_library, fsdp
from harness import check


def staged_case(model, stages, parts, checkpoint=False):
    batch, length, ranks = 2, 64, 4

    def compare(context):
        folder = context.path("model")
        jobs.write_config(folder, jobs.PEAKED[model])
        path = jobs.write_job(context.path(), fsdp(ranks, checkpoint),
                              "accelerate.yaml")
        got = json.loads(harness.run(
            [context.binary("step-model-dump"), path, folder, str(batch),
             str(length), "cpu", "fsdp2", "cpu", "foreach",
             f"stages={stages}:{parts}:2.15"]))["stages"]
        config = jobs.PEAKED[model]
        # Where layers are repeated, what one of them reads may live once more.
        more = 4 * batch * length * config["hidden_size"]
        small = 64 * 16 * config["num_hidden_layers"] + 8 * batch * length * (
            parts + 1)
        library = counting_library(context)
        told = []
        for stage in range(stages):
            want = harness.in_python(
                counted_step.staged,
                [({}, (library, folder, batch, length, ranks, stages, stage,
                       parts, checkpoint, None))],
                context.path(f"torch{stage}.out"), timeout=240)[0]
            check(-more - small <= got[stage] - want <= small,
                  f"stage {stage}: predicted {got[stage]} bytes, torch holds "
                  f"{want}")
            told.append(f"{want} bytes {got[stage] - want:+d}")
        return ", ".join(told)
    return compare


CASES = [
    ("two", staged_case("even", 2, 6)),
    ("four", staged_case("six", 4, 4)),
    ("checkpoint", staged_case("six", 3, 5, checkpoint=True)),
]
