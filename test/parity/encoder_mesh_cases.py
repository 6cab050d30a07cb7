"""accel-run trains encoders and encoder-decoders on ranks that share layers,
sequences or the model: losses, norms and weights are those of one process, which
training_cases compares with PyTorch."""
import harness
import jobs
from harness import check
from training_cases import measured

# Two ranks divide these heads.
HEADS = {"bert": {"num_attention_heads": 4},
         "vit": {"num_attention_heads": 4},
         "t5": {"num_heads": 4, "d_kv": 8},
         "whisper": {"encoder_attention_heads": 4,
                     "decoder_attention_heads": 4}}

DEEP = {"num_layers": 4, "num_decoder_layers": 4}  # a layer for each chunk


def as_alone(name, ranks=2, pipeline=None, config=None, **mesh):
    def compare(context):
        job = jobs.make_array_job(
            context.path(), name, ranks=ranks, steps=12, accumulation=2,
            max_grad_norm=1.0,
            model_config={**jobs.ENCODERS[name], **HEADS[name],
                          **(config or {})})
        readers = ranks
        for size in mesh.values():
            readers //= size
        logs, weights = [], []
        for kind, own, count in (
                ("split", {**job, "mesh": mesh,
                           **({"pipeline": pipeline} if pipeline else {})},
                 ranks),
                ("alone", {**job, "gradient_accumulation_steps": 2 * readers,
                           "accelerate": jobs.accelerate_config(
                               "single", 1, "")}, 1)):
            logs.append(measured(context, own, kind, count))
            weights.append(harness.load_weights(
                harness.find_weights(context.path("out"))))
        check(logs[1][-1]["loss"] < 0.99 * logs[1][0]["loss"],
              "one process did not learn")
        loss = harness.compare_logs(*logs, "loss", 1e-5)
        norm = harness.compare_logs(*logs, "grad_norm", 1e-4)
        worst = harness.compare_weights(*weights, 1e-4)
        return f"loss {loss:.1e}, norm {norm:.1e}, weights {worst:.1e}"
    return compare


CASES = [
    ("t5-tp2", as_alone("t5", tp=2)),
    ("t5-pp2-tp2", as_alone("t5", ranks=4, pp=2, tp=2)),
    # Two chunks of one stage have the shared embedding, and the other stage too.
    ("t5-pp2-interleaved", as_alone("t5", pp=2, pipeline={"chunks": 2},
                                    config=DEEP)),
    ("t5-pp2-zb-v", as_alone("t5", pp=2, pipeline={"schedule": "zb-v"},
                             config=DEEP)),
    ("t5-tp2-dp2", as_alone("t5", ranks=4, tp=2)),
    ("bert-tp2", as_alone("bert", tp=2)),
    ("vit-pp2", as_alone("vit", pp=2)),
    ("whisper-cp2", as_alone("whisper", cp=2)),
    ("whisper-sp2", as_alone("whisper", sp=2)),
]
