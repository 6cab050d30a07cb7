"""What Trainer's evaluation holds of logits: those of a forward and its loss, and
those that compute_metrics gets, batch by batch joined to the ones before."""
import json

import executor_cases
import harness
import jobs
from harness import check

BATCH, TOKENS, SAMPLES, WORDS = 2, 64, 20, 4096


def measure(folder, dtype, arguments, metrics):
    """Bytes at the peak of the tensors that an evaluation makes, of those
    that are at least as large as a batch's logits in 16 bits."""
    import weakref

    import numpy
    import torch
    import transformers
    from torch.utils._python_dispatch import TorchDispatchMode

    least = BATCH * TOKENS * WORDS * 2

    class Live(TorchDispatchMode):
        now = peak = 0
        known = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self.note(tensor.untyped_storage())
            return result

        def note(self, storage):
            address = storage._cdata
            if address in self.known or storage.nbytes() < least:
                return
            self.known.add(address)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.freed, address, storage.nbytes())

        def freed(self, address, size):
            self.known.discard(address)
            self.now -= size

    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=getattr(torch, dtype))
    ids = numpy.random.default_rng(0).integers(0, WORDS, (SAMPLES, TOKENS))
    data = [{"input_ids": torch.tensor(row), "labels": torch.tensor(row)}
            for row in ids]
    trainer = transformers.Trainer(
        model, transformers.TrainingArguments(
            folder + "/out", per_device_eval_batch_size=BATCH, use_cpu=True,
            report_to=[], disable_tqdm=True, **arguments),
        eval_dataset=data,
        compute_metrics=(lambda found: {}) if metrics else None)
    # Parameters are not made by it.
    Live.known = {p.untyped_storage()._cdata for p in model.parameters()}
    with Live() as live:
        trainer.evaluate()
    return live.peak


def measure_each(cases):
    return [measure(*case) for case in cases]


def predicted(context, folder, arguments, metrics):
    yaml = jobs.write_job(context.path(), executor_cases.SINGLE,
                          "accelerate.yaml")
    script = context.path("arguments.json")
    with open(script, "w", encoding="utf-8") as file:
        json.dump({"eval_strategy": "steps", 
                   "per_device_eval_batch_size": BATCH, **arguments}, file)
    report = json.loads(harness.run(
        [context.binary("accel-opt"), "plan", yaml, "--trainer", script,
         "--model", folder, "--seq-len", str(TOKENS), "--format", "json",
         *(["--eval-samples", str(SAMPLES)] if metrics else [])]))
    phases = {p["phase"]: p["device_bytes"] for p in report["phases"]}
    return phases["eval"] - phases["save"]


# On a CPU what goes to the host stays where it is, and in 16 bits a copy in fp32
# is made beside it.
SETTINGS = {
    "loss": ({}, False),
    "each": ({"batch_eval_metrics": True}, True),
    "all": ({}, True),
    "lists": ({"eval_do_concat_batches": False}, True),
}


def case(dtype, names=tuple(SETTINGS)):
    def compare(context):
        folder = context.path("model")
        jobs.write_config(folder, dict(jobs.MODELS["gqa"], vocab_size=WORDS,
                                       dtype=dtype))
        # batch_eval_metrics hands compute_result to compute_metrics.
        calls = [(folder, dtype, SETTINGS[name][0],
                  SETTINGS[name][1] and name != "each") for name in names]
        found = harness.in_python(measure_each, [({}, (calls,))],
                                  context.path("torch.out"), timeout=240)[0]
        problems = []
        for name, want in zip(names, found, strict=True):
            got = predicted(context, folder, *SETTINGS[name])
            if got != want:
                problems.append(f"{name}: {got} bytes, Trainer holds {want}")
        check(not problems, "\n".join(problems))
        return f"{len(names)} exact"
    return compare


CASES = [("logits", case("float32")),
         ("logits-bf16", case("bfloat16", ("loss", "each")))]
