"""Each optimizer that accel-run executes against the update as published."""
import shutil

import harness
import jobs
import published_optimizers
from harness import check
from training_cases import train_both

STEPS = 20


def name_of(optimizer, settings):
    rest = [f"{key}-{value}" for key, value in settings.items()
            if key not in ("lr", "betas")]
    return "-".join([optimizer, *rest]).lower()


def trains(optimizer, settings, ranks):
    def case(context):
        return train_both(
            context, "gqa", ranks=ranks, kind="single" if ranks == 1 else "fsdp",
            steps=STEPS, loss=1e-6, weights=1e-6, learned=1.0,
            optimizer={"name": optimizer, **settings})
    return case


def resumes(optimizer, settings):
    """A run that stops after half of its steps and resumes has the same bits;
    three ranks go on with what two have written."""
    def case(context):
        jobs.make_job(context.path(), jobs.MODELS["gqa"], ranks=2, steps=STEPS,
                      checkpoint_every=STEPS // 2,
                      optimizer={"name": optimizer, **settings})
        plan_path, out = context.path("plan.json"), context.path("out")
        harness.plan(context, context.path("job.yaml"), plan_path)
        whole = harness.execute(context, plan_path, 2,
                                context.path("whole.jsonl"))
        weights = harness.load_weights(harness.find_weights(out))
        shutil.rmtree(out)
        log = context.path("resumed.jsonl")
        harness.execute(context, plan_path, 2, log, "--steps",
                        str(STEPS // 2))
        resumed = harness.execute(context, plan_path, 2, log, "--resume",
                                  "auto")
        check([r["step"] for r in resumed] == list(range(STEPS)),
              f"the resumed log has steps {[r['step'] for r in resumed]}")
        for a, b in zip(resumed, whole):
            check(a["loss"] == b["loss"],
                  f"step {a['step']}: loss {a['loss']!r}, without the break "
                  f"{b['loss']!r}")
        harness.compare_weights(harness.load_weights(harness.find_weights(out)),
                                weights, 0.0)
        return "bit-equal"
    return case


CASES = []
for _name, (_, _, _tried) in published_optimizers.OPTIMIZERS.items():
    for _settings in _tried:
        for _ranks in (1, 2):
            CASES.append((f"{name_of(_name, _settings)}-{_ranks}-ranks",
                          trains(_name, _settings, _ranks)))
    CASES.append((f"{_name}-resumes", resumes(_name, _tried[0])))
