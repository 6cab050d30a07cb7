"""Step time and memory of a setting by a published profile and its model.

The figures (Inputs/galvatron_llama2_7b.json) were measured by Galvatron's
authors on 8 GPUs; the formulas are those of its cost model at that commit
(galvatron/core/cost_model/components/{layer,embedding_lmhead}_cost.py, for
data parallelism without pipelines): forward times by a line in the batch, the
backward twice that, a gradient all-reduce (or what ZeRO makes of it) hidden
behind the backward that slows both by one coefficient, ZeRO-3's second
all-gather in the open. Its search leaves a fifth of the memory to the
allocator's cache.
"""
import json
import os
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE_SHARE, CONTEXT_MB = 0.2, 1024


@dataclass
class Layers:
    """Layers of one way: zero3 or else zero2, what they keep as a share of
    what autograd saves, what they compute again as a share of the forward."""
    count: int
    zero3: bool = True
    kept: float = 1.0
    again: float = 0.0


def line(per_sequence):
    """Least squares of batch * ms(batch): (slope, intercept)."""
    xs = range(1, len(per_sequence) + 1)
    ys = [x * y for x, y in zip(xs, per_sequence)]
    n, sx, sy = len(ys), sum(xs), sum(ys)
    sxx, sxy = sum(x * x for x in xs), sum(x * y for x, y in zip(xs, ys))
    slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    return slope, (sy - slope * sx) / n


class Profile:
    def __init__(self):
        with open(os.path.join(HERE, "Inputs", "galvatron_llama2_7b.json"),
                  encoding="utf-8") as f:
            self.p = json.load(f)
        self.checkpointed = (self.p["layer_activation_mb"]["checkpoint"]
                             / self.p["layer_activation_mb"]["none"])

    def forward_ms(self, which, batch):
        slope, intercept = line(self.p[which + "_ms_per_sequence"])
        return slope * batch + intercept

    def compute_ms(self, layers, batch):
        """Forward and backward of a micro-batch, nothing recomputed."""
        return 3 * (layers * self.forward_ms("layer", batch)
                    + self.forward_ms("other", batch))

    def layer_ms(self, way, batch, ranks, reduced):
        overlap = self.p["overlap"]
        forward = self.forward_ms("layer", batch)
        backward = (2 + way.again) * forward
        # An all-reduce of 16-bit gradients; MB over GB/s are ms.
        message = (ranks - 1) / ranks * self.p["layer_parameter_mb"]
        each = 1 / self.p["all_reduce_gb_s"]["8"]
        hidden = message * each * overlap if reduced else 0
        if hidden > backward * overlap:
            backward += (message - backward / each) * each \
                + backward * (overlap - 1)
        else:
            backward += hidden - hidden / overlap
        gather = message / 2 * each if way.zero3 else 0
        return forward + backward + gather

    def other_ms(self, batch, ranks, split, reduced):
        """Embedding and head, ZeRO-3, over `split` ranks of the vocabulary;
        what those exchange is not charged."""
        overlap = self.p["overlap"]
        shards = ranks // split
        bandwidth = self.p["all_reduce_gb_s"]["8" if split == 1
                                              else "4_apart"]
        message = self.p["other_states_mb"][str(split)] / 4 / 2
        unit = message * (shards - 1) / shards / bandwidth
        forward = self.forward_ms("other", batch)

        def both(communication, compute):
            compute *= overlap
            return communication + max(0, compute - communication) / overlap

        return both(unit / 2, forward) + both(unit * (1 if reduced else 0.5),
                                              2 * forward)

    def step_seconds(self, ways, batch, micro_batches=1, ranks=8, split=1):
        def once(reduced):
            return sum(w.count * self.layer_ms(w, batch, ranks, reduced)
                       for w in ways)

        compute = once(False) + self.other_ms(batch * split, ranks, split,
                                              False)
        return (compute * micro_batches + max(0, once(True) - compute)) / 1e3

    def memory_mb(self, ways, batch, micro_batches=1, ranks=8, split=1):
        def ratio(zero3, shards):
            part = 1 / shards + 0.003
            if zero3:
                return part * (1.25 if micro_batches > 1 else 1)
            return (7 / 8 * part + 1 / 8) * (1.25 if micro_batches > 1 else 1)

        total = CONTEXT_MB
        for way in ways:
            total += way.count * (
                4 * self.p["layer_parameter_mb"] * ratio(way.zero3, ranks)
                + self.p["layer_activation_mb"]["none"] * way.kept * batch)
        total += self.p["other_states_mb"][str(split)] \
            * ratio(True, ranks // split)
        total += self.p["other_activation_mb"][str(split)] * batch * split
        return total
