"""The orders of `accel-opt pipeline` against torch.distributed.pipelining's own."""
import json

import harness
from harness import check

SIZES = [(1, 1), (2, 2), (2, 5), (3, 3), (3, 7), (4, 4), (4, 8), (4, 12), (6, 18)]


def ours(context, schedule, ranks, micro_batches, chunks):
    answer = json.loads(harness.run(
        [context.binary("accel-opt"), "pipeline", "--schedule", schedule,
         "--ranks", str(ranks), "--micro-batches", str(micro_batches),
         "--chunks", str(chunks), "--format", "json"]))
    return [[(a["stage"], a["pass"], a["micro_batch"]) for a in rank["actions"]]
            for rank in answer["per_rank"]]


def torchs(kind, ranks, micro_batches, chunks):
    """What torch's schedule class computes for each rank, without stages of
    modules: the orders come from these numbers alone."""
    schedule = object.__new__(kind)
    schedule.pp_group_size = ranks
    schedule.n_local_stages = chunks
    schedule.num_stages = ranks * chunks
    schedule._n_microbatches = micro_batches
    schedule.number_of_rounds = max(1, micro_batches // ranks)
    schedule.microbatches_per_round = micro_batches // schedule.number_of_rounds
    return [[(a.stage_index, a.computation_type.value, a.microbatch_index)
             for a in schedule._calculate_single_rank_operations(rank)
             if a is not None and a.computation_type.value in "FBIW"]
            for rank in range(ranks)]


def against(context, schedule, kind, chunks, fits):
    compared = 0
    for ranks, micro_batches in SIZES:
        if not fits(ranks, micro_batches):
            continue
        mine = ours(context, schedule, ranks, micro_batches, chunks)
        want = torchs(kind, ranks, micro_batches, chunks)
        check(mine == want, f"{schedule}, {ranks} ranks, {micro_batches} micro-"
              f"batches, {chunks} chunks:\n{mine}\n{want}")
        compared += sum(map(len, want))
    check(compared > 100, compared)
    return f"{compared} actions are torch's"


def rounds(ranks, micro_batches):
    return micro_batches % max(1, micro_batches // ranks) == 0


def interleaved(context):
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B
    return "; ".join(against(context, "interleaved-1f1b", ScheduleInterleaved1F1B,
                             chunks, rounds) for chunks in (2, 3))


def zero_bubble(context):
    from torch.distributed.pipelining.schedules import \
        ScheduleInterleavedZeroBubble
    return "; ".join(against(context, "zb-h1", ScheduleInterleavedZeroBubble,
                             chunks, rounds) for chunks in (1, 2))


def zero_bubble_v(context):
    from torch.distributed.pipelining.schedules import ScheduleZBVZeroBubble
    return against(context, "zb-v", ScheduleZBVZeroBubble, 2,
                   lambda ranks, micro_batches: True)


CASES = [("pipeline-interleaved", interleaved), ("pipeline-zero-bubble", zero_bubble),
         ("pipeline-zero-bubble-v", zero_bubble_v)]
