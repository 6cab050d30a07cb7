"""accel_opt.plan and accel_opt.lint, without torch."""
import html.parser
import os
import subprocess
import sys

import pytest

import accel_opt
from accel_opt import plans
from conftest import ROOT

LLAMA = os.path.join(ROOT, "docs", "examples", "llama-8b")
FSDP = {"distributed_type": "FSDP", "num_processes": 8, "mixed_precision": "bf16",
        "fsdp_config": {"fsdp_version": 2,
                        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}}


def test_plan_is_typed():
    plan = accel_opt.plan(os.path.join(LLAMA, "fsdp.yaml"), LLAMA,
                          target="h100-sxm-80gb", seq_len=4096)
    assert plan.fits and plan.executor == "fsdp2"
    memory = plan.memory
    assert sum(memory.breakdown.values()) == memory.peak_bytes
    assert memory.peak_bytes <= memory.reserved_bytes <= memory.device_bytes
    assert plan.time.step_s >= plan.time.compute_s > 0
    assert plan.mesh.axes[-1] == {"name": "dp_shard", "size": 8}
    assert plan.mesh.ranks_per_node == 8 and plan.mesh.splits == []
    assert plan.mesh.expert_ranks == 1
    assert len(plan.units) == 34 and plan.units[1].storage == "f32"
    assert plan.why("reshard")[0].file.endswith("fsdp.yaml")
    assert "fits" in str(plan)
    low, high = plan.memory.device_bytes_90
    assert low < plan.memory.device_bytes < high
    assert 0.5 < plan.memory.confidence < 1 and "% sure" in plan.verdict()
    assert plan.time.step_s_90[0] < plan.time.step_s < plan.time.step_s_90[1]


def test_mappings_and_options():
    plan = accel_opt.plan(FSDP, LLAMA, trainer={
        "output_dir": "x", "per_device_train_batch_size": 8, "bf16": True},
        target="h100-sxm-80gb", seq_len=4096, tune="all")
    assert plan.fits is False and "too much" in plan.verdict()
    assert plan.best["device_bytes"] < plan.memory.budget_bytes
    assert plan.raw["modelled"]["shard_ranks"] == 8


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_notebooks_show_it():
    plan = accel_opt.plan(FSDP, LLAMA, target="h100-sxm-80gb", seq_len=4096,
                          micro_batch=8)
    tags = Tags()
    tags.feed(plan._repr_html_())
    assert not tags.open
    for text in ("Does not fit", "activations", "exposed: gather", "together",
                 "fsdp_activation_checkpointing", "per_device_train_batch_size"):
        assert text in tags.text, text


def test_numbers_are_printed_as_the_program_prints_them():
    assert [plans.size(n) for n in (0, 1023, 48 << 30, 1002 << 20, 100 << 20)] \
        == ["0 B", "1023 B", "48.0 GiB", "1002 MiB", "100 MiB"]
    assert [plans.seconds(s) for s in (0, 0.0045, 0.9996, 4.6)] == \
        ["0.00 ms", "4.50 ms", "1000 ms", "4.60 s"]


def test_lint():
    found = accel_opt.lint({"distributed_type": "NO", "mixed_precision": False,
                            "num_processes": 1})
    assert [d.code for d in found] == ["yaml-boolean"]
    assert found[0].severity == "error" and "mixed_precision" in found[0].key
    assert accel_opt.lint({"distributed_type": "MULTI_GPU",
                           "num_processes": 2}) == []


def test_what_is_wrong_is_one_sentence(monkeypatch, tmp_path):
    with pytest.raises(accel_opt.AccelOptError, match="there is no 'nowhere'") as e:
        accel_opt.plan(FSDP, "nowhere")
    assert e.value.exit_code == 1 and e.value.diagnostics[0].code == "no-model"
    with pytest.raises(accel_opt.AccelOptError, match="unknown option '--seqlen'"):
        accel_opt.plan(FSDP, LLAMA, seqlen=3)
    with pytest.raises(TypeError, match="expected a path or a mapping"):
        accel_opt.plan(3, LLAMA)
    monkeypatch.setenv("ACCEL_OPT", str(tmp_path / "none"))
    with pytest.raises(accel_opt.AccelOptNotFound, match="which is no program"):
        accel_opt.lint(FSDP)
    monkeypatch.delenv("ACCEL_OPT")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(accel_opt.AccelOptNotFound, match="install the wheel"):
        accel_opt.lint(FSDP)


def test_another_machines_program_is_told(monkeypatch, tmp_path):
    other = tmp_path / "accel-opt"
    # An ELF header of a big-endian machine that this kernel does not run.
    other.write_bytes(b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x02\x00\x16"
                      + bytes(44))
    other.chmod(0o755)
    monkeypatch.setenv("ACCEL_OPT", str(other))
    with pytest.raises(accel_opt.AccelOptNotFound,
                       match="not for this machine .* Linux x86_64; build"):
        accel_opt.lint(FSDP)
    done = subprocess.run([sys.executable, "-m", "accel_opt", "--version"],
                          capture_output=True, text=True)
    line, = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith(f"accel_opt: error: '{other}' is not for this machine")


def test_without_torch():
    """Planning imports neither torch nor transformers."""
    subprocess.run([sys.executable, "-c", "import accel_opt, sys; "
                    f"accel_opt.lint({FSDP!r}); "
                    "assert not {'torch', 'transformers'} & set(sys.modules)"],
                   check=True)
    done = subprocess.run([sys.executable, "-c", "import sys; "
                           "sys.modules['transformers'] = None; "
                           "from accel_opt import PlanCallback"],
                          capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: PlanCallback needs transformers, and this Python has "
        "none: pip install transformers")
    done = subprocess.run([sys.executable, "-m", "accel_opt", "--version"],
                          capture_output=True, text=True)
    assert done.stdout == f"accel-opt {accel_opt.__version__}\n", done.stderr
