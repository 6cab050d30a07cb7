"""The running job beside its plan, for transformers' Trainer and loops of one's
own over Accelerate."""
import os
import statistics
import sys
import time
import warnings

try:
    from transformers import TrainerCallback
    from transformers.trainer_callback import CallbackHandler
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise ImportError("PlanCallback needs transformers, and this Python has "
                      "none: pip install transformers") from None

from accel_opt import job, rows
from accel_opt.plans import (AccelOptError, Inputs, given_arguments, plan,
                             size)
from accel_opt.program import AccelOptNotFound

GIB = 1 << 30


class DoesNotFit(RuntimeError):
    """The job will not fit its device; `plan` says by how much and where."""

    def __init__(self, message, made):
        super().__init__(message)
        self.plan = made


class PlanCallback(TrainerCallback):
    """Plans the very job that is about to train, and stops it where it will not
    fit. After the first step and at the end it logs predicted beside measured
    memory and step time to wherever the Trainer logs, and it adds the pair to
    OUTPUT_DIR/accel_opt/runs.csv.

        Trainer(..., callbacks=[PlanCallback(seq_len=4096)])

    on_misfit: "error" raises DoesNotFit, "warn" warns. rows: another file for
    the pairs. Other keywords are options of `accel-opt plan`, such as target,
    memory_budget or attn; what they leave out is what TrainingArguments, the
    model, its adapter and Accelerate's state say.

    In a loop of one's own: begin(accelerator, model, micro_batch=..., ...)
    before the first step, step() after each, end() at the end.
    """

    def __init__(self, on_misfit="error", seq_len=None, rows=None, **options):
        if on_misfit not in ("error", "warn"):
            raise ValueError(f"on_misfit='{on_misfit}': expected 'error' or "
                             "'warn'")
        self.on_misfit = on_misfit
        self.seq_len = seq_len
        self.rows = rows
        self.options = options
        self.plan = None
        self.refused = None  # why there is no plan
        self.durations = []
        self.pending = None
        self.row = {}

    # --- transformers' Trainer ----------------------------------------------

    def on_init_end(self, args, state, control, model=None, **kwargs):
        self._plan_trainer(args, model)

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        if self.plan is None and self.refused is None:  # added after the start
            self._plan_trainer(args, model)
        self._go_first()
        self._start(args.device)

    def on_step_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self._took(args.device)
        if len(self.durations) == 1 and self.plan:
            self.pending = self.figures(args.device)
            control.should_log = True
        return control

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs is None or self.plan is None:
            return
        figures, self.pending = self.pending, None
        if "train_runtime" in logs and self.durations:  # the last of a run
            figures = self.figures(args.device)
        if figures:
            logs.update(figures)
            if state.log_history and "step" in state.log_history[-1]:
                state.log_history[-1].update(figures)

    def on_train_end(self, args, state, control, **kwargs):
        if self.plan and self.durations and state.is_world_process_zero:
            self._write_row(self.rows or os.path.join(
                args.output_dir, "accel_opt", "runs.csv"), args.device)

    def _go_first(self):
        """Trackers are callbacks too, and get the logs in the order of the list:
        whoever adds to them has to come before."""
        frame = sys._getframe(1)
        while frame:
            handler = frame.f_locals.get("self")
            if isinstance(handler, CallbackHandler):
                if self in handler.callbacks:
                    handler.callbacks.remove(self)
                    handler.callbacks.insert(0, self)
                return
            frame = frame.f_back

    def _plan_trainer(self, args, model):
        from accelerate.state import AcceleratorState
        given = given_arguments(args)
        # The state says what Trainer made of them.
        for name in ("fsdp", "fsdp_config", "deepspeed", "accelerator_config",
                     "local_rank"):
            given.pop(name, None)
        self.row = {
            "framework": "transformers Trainer",
            "micro_batch": args.per_device_train_batch_size,
            "accumulation": args.gradient_accumulation_steps,
            "ac": "full" if args.gradient_checkpointing else "none",
            "compile": "Y" if args.torch_compile else "N"}
        self._plan(AcceleratorState(), model, args.device, given, self.seq_len or
                   job.sequence_length(args, getattr(model, "config", None)))

    # --- a loop over Accelerate ---------------------------------------------

    def begin(self, accelerator, model, micro_batch, accumulation=None,
              seq_len=None, optim="adamw_torch", output_dir="."):
        """Plans the job of an Accelerator; before `prepare` or after."""
        self.accelerator = accelerator
        self.output_dir = output_dir
        accumulation = accumulation or accelerator.gradient_accumulation_steps
        model = accelerator.unwrap_model(model)
        self.row = {"framework": "accelerate", "micro_batch": micro_batch,
                    "accumulation": accumulation, "ac": "none", "compile": "N"}
        self.options = {"micro_batch": micro_batch, "optim": optim,
                        "grad_accum": accumulation, **self.options}
        self._plan(accelerator.state, model, accelerator.device, None,
                   seq_len or self.seq_len or
                   job.sequence_length(None, getattr(model, "config", None)))
        self._start(accelerator.device)

    def step(self):
        """After each optimizer step."""
        self._took(self.accelerator.device)
        if len(self.durations) == 1 and self.plan:
            self.accelerator.log(self.figures(self.accelerator.device))

    def end(self):
        if self.plan and self.durations:
            self.accelerator.log(self.figures(self.accelerator.device))
            if self.accelerator.is_main_process:
                self._write_row(self.rows or os.path.join(
                    self.output_dir, "accel_opt", "runs.csv"),
                    self.accelerator.device)

    # --- the plan -----------------------------------------------------------

    def _plan(self, state, model, device, arguments, seq_len):
        with Inputs() as inputs:
            config = job.accelerate_config(state, inputs)
            options = {**job.model_options(model, inputs), "seq_len": seq_len}
            if not {"target", "memory_budget"} & set(self.options):
                options.update(job.machine(device))
            options.update(self.options)
            try:
                self.plan = plan(config, model, trainer=arguments, **options)
            except (AccelOptError, AccelOptNotFound) as error:
                self.refused = str(error)
                warnings.warn(f"accel_opt: this job is not planned: {error}")
                return
            self._describe(config, model, device, seq_len, state.num_processes)
        if self.plan.fits is False:
            self._misfit()

    def _describe(self, config, model, device, seq_len, ranks):
        name = str(getattr(model.config, "_name_or_path", "") or
                   model.config.model_type)
        framework = self.row["framework"]
        adapters = getattr(model, "peft_config", None) or {}
        for adapter in adapters.values():
            if hasattr(adapter, "r"):
                framework += f" LoRA r={adapter.r}"
        precision = config.get("mixed_precision", "bf16")
        fsdp = config.get("fsdp_config", {})
        accumulation = self.row.pop("accumulation")
        self.model_config = model.config
        self.row.update({
            "model": os.path.basename(name.rstrip("/")), "gpus": ranks,
            "gpu": job.device_name(device), "framework": framework,
            "seq": seq_len, "sharding": rows.sharding_of(config),
            "global_batch": self.row["micro_batch"] * accumulation * ranks,
            "precision": "fp32" if precision == "no" else precision,
            "source": rows.releases()})
        if fsdp.get("fsdp_activation_checkpointing"):
            self.row["ac"] = "full"

    def _misfit(self):
        text = f"this job will not fit: {self.plan.verdict()}"
        # Results are not given up where something else is enough.
        helps = sorted((r for r in self.plan.recommendations if r["fits"]),
                       key=lambda r: r.get("caution") is not None)
        if helps:
            first = helps[0]
            how = "; ".join(f"{y['key']}: {y['value']}"
                            for y in first["yaml"] or []) or \
                first["otherwise"] or first["change"]
            text += (f". It would with {how} "
                     f"({size(first['device_bytes'])})")
            if first.get("caution"):
                text += f": {first['caution']}"
        if self.on_misfit == "error":
            raise DoesNotFit(text + "; on_misfit='warn' trains all the same",
                             self.plan)
        warnings.warn("accel_opt: " + text)

    # --- what is measured ---------------------------------------------------

    def _start(self, device):
        import torch
        self.durations = []
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        self.began = time.perf_counter()

    def _took(self, device):
        import torch
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        now = time.perf_counter()
        self.durations.append(now - self.began)
        self.began = now

    def _measured(self, device):
        """(allocated, reserved, seconds of a step); bytes only where torch
        counts them. The first step also loads kernels."""
        import torch
        took = statistics.median(self.durations[1:] or self.durations)
        if device.type != "cuda":
            return None, None, took
        return (torch.cuda.max_memory_allocated(device),
                torch.cuda.max_memory_reserved(device), took)

    def figures(self, device):
        """Predicted beside measured, by the names under which they are logged."""
        allocated, reserved, took = self._measured(device)
        memory, predicted = self.plan.memory, self.plan.time
        found = {
            "accel_opt/allocated_gib/predicted": memory.peak_bytes / GIB,
            "accel_opt/reserved_gib/predicted": memory.reserved_bytes / GIB,
            "accel_opt/step_s/measured": took}
        if predicted:
            found["accel_opt/step_s/predicted"] = predicted.step_s
        if allocated is not None:
            found["accel_opt/allocated_gib/measured"] = allocated / GIB
            found["accel_opt/reserved_gib/measured"] = reserved / GIB
        return found

    def _write_row(self, path, device):
        allocated, _, took = self._measured(device)
        row = dict(self.row)
        tokens = row["global_batch"] * row["seq"] / row["gpus"]
        row.update({"tokens_per_s_per_gpu": f"{tokens / took:.4g}",
                    "step_ms": f"{took * 1e3:.4g}",
                    "peak_mem_gib":
                        f"{allocated / GIB:.4g}" if allocated else ""})
        rows.append(path, row)
        # The shape, for `validate --models`.
        self.model_config.save_pretrained(os.path.join(
            os.path.dirname(path) or ".", "models", row["model"]))
