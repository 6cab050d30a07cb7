"""PlanCallback and accel_opt.launch with the installed transformers and
accelerate: two ranks on CPU."""
import csv
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "train.py")


def ranks(count, *words, module="torch.distributed.run"):
    launcher = ["-m", module, "--nproc-per-node", str(count),
                "--master-port", "0", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", "localhost:0"] if count > 1 else []
    return subprocess.run([sys.executable, *launcher, TRAIN, *map(str, words)],
                          capture_output=True, text=True, timeout=120)


def told(done, word):
    lines = [line[len(word) + 1:] for line in done.stdout.splitlines()
             if line.startswith(word + " ")]
    assert lines, done.stdout + done.stderr
    return [json.loads(line) for line in lines]


def test_trainer_on_two_ranks(tmp_path, program):
    done = ranks(2, "trainer", tmp_path, "gpu=NVIDIA H100 80GB HBM3")
    assert done.returncode == 0, done.stderr
    assert {tuple(p[::2]) for p in told(done, "PLAN")} == {(None, "ddp")}
    # Trackers that come before it in the list get the figures: after step 1
    # and at the end.
    first, last = max(told(done, "LOGS"), key=len)
    for logs in (first, last):
        assert logs["accel_opt/allocated_gib/predicted"] > 0
        assert logs["accel_opt/step_s/measured"] > 0
        assert logs["accel_opt/step_s/predicted"] > 0
    assert "train_runtime" in last
    # The row, and what validate makes of it.
    table = tmp_path / "accel_opt" / "runs.csv"
    with open(table, newline="", encoding="utf-8") as f:
        row, = csv.DictReader(f)
    assert (row["gpus"], row["micro_batch"], row["global_batch"], row["seq"],
            row["sharding"], row["precision"]) == (
                "2", "2", "8", "32", "DDP", "fp32")
    done = subprocess.run(
        [program, "validate", table, "--models", table.parent / "models",
         "--format", "json"], capture_output=True, text=True)
    read, = json.loads(done.stdout)["rows"]
    assert read["skipped"] is None and read["executor"] == "ddp", read
    assert read["measured"]["tokens_per_s_per_device"] > 0


def test_what_does_not_fit_is_stopped_on_every_rank(tmp_path):
    done = ranks(2, "trainer", tmp_path, "memory_budget=1MiB")
    assert done.returncode != 0
    assert "DoesNotFit: this job will not fit" in done.stderr
    assert "train_runtime" not in done.stdout
    assert not (tmp_path / "accel_opt").exists()


def test_adapter_and_warning(tmp_path):
    done = ranks(1, "trainer", tmp_path, "memory_budget=1MiB",
                 "on_misfit=warn", "lora=1")
    assert done.returncode == 0, done.stderr
    assert "this job will not fit" in done.stderr
    with open(tmp_path / "accel_opt" / "runs.csv", newline="",
              encoding="utf-8") as f:
        assert "LoRA r=4" in next(csv.DictReader(f))["framework"]


def test_loop(tmp_path):
    done = ranks(1, "loop", tmp_path)
    assert done.returncode == 0, done.stderr
    logs, = told(done, "LOGS")
    assert len(logs) == 2 and logs[1]["accel_opt/step_s/measured"] > 0
    assert (tmp_path / "accel_opt" / "runs.csv").exists()
    assert "on_misfit='stop': expected 'error' or 'warn'" in done.stdout


# --- python -m accel_opt.launch ---------------------------------------------


def launch(*words):
    return subprocess.run([sys.executable, "-m", "accel_opt.launch",
                           *map(str, words)], capture_output=True, text=True,
                          timeout=120)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\n"
        "num_processes: 1\nuse_cpu: true\nmixed_precision: 'no'\n")
    (tmp_path / "script.py").write_text("print('STARTED')\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "torch_dtype": "float32"}))
    return tmp_path


def test_launch_plans_and_starts(files):
    done = launch("--model", files / "model", "--target", "cpu", "--",
                  "--config_file", files / "config.yaml", files / "script.py")
    assert done.returncode == 0, done.stderr
    assert "per rank" in done.stderr and "STARTED" in done.stdout


def test_launch_starts_nothing_that_cannot_run(files):
    words = ["--", "--config_file", files / "config.yaml", files / "script.py"]
    done = launch("--model", files / "model", "--memory-budget", "1MiB", *words)
    assert done.returncode == 2 and "STARTED" not in done.stdout
    assert "does not fit, and was not started" in done.stderr
    (files / "config.yaml").write_text("distributed_type: FSPD\n")
    done = launch("--model", files / "model", *words)
    assert done.returncode == 1 and "is wrong, and nothing was started" in \
        done.stderr
    done = launch("--on-misfit", "stop", *words)
    assert done.returncode == 64 and "expected error or warn" in done.stderr
    assert launch("--model", "x", "--").returncode == 64
