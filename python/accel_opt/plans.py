"""`accel-opt plan` and `accel-opt lint` as functions, their JSON as dataclasses."""
import contextlib
import dataclasses
import json
import math
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import Any, Optional

from accel_opt import program


@dataclass(frozen=True)
class Diagnostic:
    """A finding, as docs/diagnostics.md describes them."""
    severity: str
    code: str
    file: str
    line: int
    column: int
    key: Optional[str]
    message: str
    hint: Optional[str]
    fix: Optional[list] = field(default=None, repr=False)

    def __str__(self):
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.severity}: {self.message}{hint} [{self.code}]"


class AccelOptError(RuntimeError):
    """The job is wrong, or is not supported; `diagnostics` say why."""

    def __init__(self, message, diagnostics=(), exit_code=1):
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Memory:
    """Bytes of one rank; `breakdown` is by purpose and sums to peak_bytes.

    `confidence`: how sure the verdict is, from 0 to 1. `device_bytes_90`: the
    range that 90 % of runs stay in; both None where that is not known."""
    peak_bytes: int
    reserved_bytes: int
    device_bytes: int
    persistent_bytes: int
    host_bytes: int
    disk_bytes: int
    breakdown: dict
    budget_bytes: Optional[int]
    fits: Optional[bool]
    confidence: Optional[float]
    device_bytes_90: Optional[list]
    peak_where: str


@dataclass(frozen=True)
class Exposed:
    cause: str
    seconds: float


@dataclass(frozen=True)
class Time:
    """Seconds of an optimizer step, and the range of 90 % of runs."""
    step_s: float
    step_s_90: Optional[list]
    compute_s: float
    recompute_s: float
    optimizer_s: float
    exposed_comm_s: float
    tokens_per_s: float
    tokens_per_s_per_device: float
    mfu: Optional[float]
    exposed: list


@dataclass(frozen=True)
class Mesh:
    """The ranks: `axes` are {name, size}, outermost first; `splits` are the
    parameters of which the ranks of an axis hold a part each;
    `expert_ranks` share a layer's experts, those of tp among them where
    transformers' ep_size counts them."""
    axes: list
    ranks_per_node: Optional[int]
    expert_ranks: int
    splits: list = field(repr=False)


@dataclass(frozen=True)
class Pipeline:
    """Stages and their schedule: `holds` is what each stage computes of the
    model, `per_rank` what each rank computes when, and its memory."""
    schedule: str
    ranks: int
    stages: int
    chunks: int
    micro_batches: int
    makespan_s: float
    bubble_share: float
    frames: list
    holds: list
    per_rank: list = field(repr=False)


@dataclass(frozen=True)
class Unit:
    name: str
    numel: int
    storage: str
    gather: str
    reduce: str
    shard_bytes: int
    gathered_bytes: int
    parameters: list = field(repr=False)


@dataclass(frozen=True)
class Decision:
    what: str
    where: str
    choice: str
    why: str
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    alternatives: list


def _made(cls, values):
    names = {f.name for f in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in values.items() if k in names})


@dataclass(frozen=True)
class Plan:
    """What `accel-opt plan` says of a job; `raw` is all of its JSON."""
    memory: Memory
    time: Optional[Time]
    mesh: Optional[Mesh]
    pipeline: Optional[Pipeline]
    units: list
    decisions: list
    recommendations: list
    diagnostics: list
    executor: str
    raw: dict = field(repr=False)

    @property
    def fits(self):
        """Whether it fits; None where neither a target nor a budget is given."""
        return self.memory.fits

    @property
    def best(self):
        """The setting that tune found, or None."""
        return (self.raw.get("tune") or {}).get("best")

    def why(self, what="", where=""):
        """Decisions of a kind, of a unit, or of both."""
        return [d for d in self.decisions
                if (not what or d.what == what) and
                (not where or d.where == where)]

    def verdict(self):
        """One sentence."""
        memory = self.memory
        text = f"{size(memory.device_bytes)} per rank"
        if memory.budget_bytes:
            over = memory.device_bytes - memory.budget_bytes
            text += f" of {size(memory.budget_bytes)}"
            text += (f", {size(over)} too much" if over > 0 else
                     ", fits" if memory.fits else ", does not fit")
            if memory.confidence is not None:
                text += f" ({min(memory.confidence, 0.99):.0%} sure)"
        if self.time:
            text += f"; {seconds(self.time.step_s)} a step"
        return f"{text}; peak in {memory.peak_where}"

    def __str__(self):
        return self.verdict()

    def _repr_html_(self):
        from accel_opt.html import plan_html
        return plan_html(self)

    @classmethod
    def from_json(cls, raw):
        return cls(
            memory=_made(Memory, raw["memory"]),
            time=raw["time"] and _made(Time, {
                **raw["time"],
                "exposed": [_made(Exposed, e) for e in raw["time"]["exposed"]]}),
            mesh=raw["mesh"] and _made(Mesh, raw["mesh"]),
            pipeline=raw["pipeline"] and _made(Pipeline, raw["pipeline"]),
            units=[_made(Unit, u) for u in raw["units"]],
            decisions=[_made(Decision, d) for d in raw["decisions"]],
            recommendations=raw["recommendations"],
            diagnostics=[_made(Diagnostic, d) for d in raw["diagnostics"]],
            executor=raw["executor"], raw=raw)


def digits(value):
    """Three significant ones, as accel-opt prints numbers: 48.0, 1002."""
    places = 2 - math.floor(math.log10(abs(value))) if value else 2
    return f"{value:.{max(0, places)}f}"


def size(count):
    for name, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20),
                        ("KiB", 2**10)):
        if abs(count) >= scale:
            return f"{digits(count / scale)} {name}"
    return f"{count} B"


def seconds(value):
    return f"{digits(value)} s" if value >= 1 else f"{digits(value * 1e3)} ms"


class Inputs:
    """Objects that are given instead of files, written to a folder that lives as
    long as this does."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.folder = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def path(self, name):
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="accel-opt-")
            self.stack.callback(shutil.rmtree, self.folder, True)
        return os.path.join(self.folder, name)

    def config(self, value, name="config.yaml"):
        """A path as it is; a mapping as YAML, of which JSON is a part."""
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        if not isinstance(value, dict):
            raise TypeError(f"expected a path or a mapping for {name}, got "
                            f"{type(value).__name__}")
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1, default=str)
        return path

    def model(self, value):
        """A path as it is; of a model or its configuration, the config.json."""
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        config = getattr(value, "config", value)
        if not hasattr(config, "save_pretrained"):
            raise TypeError("expected a path, a transformers model or its "
                            f"configuration, got {type(value).__name__}")
        name = os.path.basename(str(getattr(config, "_name_or_path", "") or
                                    getattr(config, "model_type", "model")))
        folder = self.path(os.path.join("model", name or "model"))
        config.save_pretrained(folder)
        return folder

    def trainer(self, value):
        """TrainingArguments as a file of what differs from its defaults."""
        if isinstance(value, (str, os.PathLike, dict)):
            return self.config(value, "training_arguments.json")
        return self.config(given_arguments(value), "training_arguments.json")


def given_arguments(arguments):
    """What of TrainingArguments, or a subclass of TRL, is not the default."""
    values = arguments.to_dict()
    result = {}
    for f in dataclasses.fields(arguments):
        default = f.default
        if f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        value = values.get(f.name)
        if f.init and value is not None and value != default and \
                not f.name.endswith("_token"):
            result[f.name] = value
    return result


def plan(config=None, model=None, *, trainer=None, command=(),
         **given: Any) -> Plan:
    """Plans a job.

    `config` is an accelerate YAML, a job.yaml or a mapping; `model` a folder, a
    .pt2, a transformers model or its configuration; `trainer` a file, a mapping
    or TrainingArguments; `command` the words that start the job. Other keywords
    are options of `accel-opt plan`: target="h100-sxm-80gb", seq_len=4096,
    micro_batch=2, tune="all".

    A plan that does not fit is returned, and its `fits` is False. What is wrong
    raises AccelOptError.
    """
    with Inputs() as inputs:
        words = ["plan", "--format", "json"]
        if config is not None:
            words.append(inputs.config(config))
        if model is not None:
            words += ["--model", inputs.model(model)]
        if trainer is not None:
            words += ["--trainer", inputs.trainer(trainer)]
        words += program.options(given)
        if command:
            words += ["--", *command]
        raw, code = answer(words)
    if raw.get("memory") is None:
        raise failed(raw, code)
    return Plan.from_json(raw)


def lint(config, **given: Any) -> list:
    """Findings of a configuration, a path or a mapping. Keywords are options of
    `accel-opt lint`: model="./llama-8b", accelerate_version="1.10"."""
    with Inputs() as inputs:
        if "model" in given:
            given["model"] = inputs.model(given["model"])
        raw, _ = answer(["lint", "--format", "json", inputs.config(config),
                         *program.options(given)])
    return [_made(Diagnostic, d) for d in raw["diagnostics"]]


def answer(words):
    """The JSON that accel-opt prints, and its exit code."""
    code, out, err = program.run(words)
    try:
        return json.loads(out), code
    except ValueError:
        lines = err.strip().splitlines() or [f"accel-opt ended with {code}"]
        raise AccelOptError(lines[0], exit_code=code) from None


def failed(raw, code):
    found = [_made(Diagnostic, d) for d in raw.get("diagnostics", [])]
    errors = [d for d in found if d.severity == "error"]
    text = str(errors[0]) if errors else f"accel-opt ended with {code}"
    if len(errors) > 1:
        text += f" (and {len(errors) - 1} more)"
    return AccelOptError(text, found, code)
