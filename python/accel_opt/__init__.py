"""Plans sharded training before it runs: what each rank will hold and take.

    plan = accel_opt.plan("fsdp.yaml", "./llama-8b", target="h100-sxm-80gb")
    plan.fits, plan.memory.device_bytes, plan.time.step_s

    for finding in accel_opt.lint("fsdp.yaml"):
        print(finding)

    Trainer(..., callbacks=[accel_opt.PlanCallback()])

Everything is done by the program accel-opt, which is started for each call:
this package has no extension module and needs neither torch nor transformers.
"""
from accel_opt.plans import (AccelOptError, Decision, Diagnostic, Exposed,
                             Memory, Mesh, Plan, Time, Unit, lint,
                             plan)
from accel_opt.program import AccelOptNotFound, find_program

__version__ = "0.1.0"
__all__ = ["AccelOptError", "AccelOptNotFound", "Decision", "Diagnostic",
           "DoesNotFit", "Exposed", "Memory", "Mesh", "Plan", "PlanCallback",
           "Time", "Unit", "find_program", "lint", "plan"]


def __getattr__(name):
    # transformers is imported by whoever has a Trainer, not by whoever plans.
    if name in ("PlanCallback", "DoesNotFit"):
        from accel_opt import callback
        return getattr(callback, name)
    raise AttributeError(f"module 'accel_opt' has no attribute '{name}'")
