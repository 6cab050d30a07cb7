"""What plans of one file are under releases of accelerate and torch."""
import json
import subprocess
import sys

TOOL, MODELS, FOLDER, ADAPTER = sys.argv[1:]
PARAMETERS = 8030261248  # Llama-3.1-8B


def plan(name, accelerate, torch="2.15", model="llama-3.1-8b", *options):
    done = subprocess.run(
        [TOOL, "plan", f"{FOLDER}/{name}.yaml", "--model", f"{MODELS}/{model}",
         "--target", "h100-sxm-80gb", "--format", "json",
         "--accelerate-version", accelerate, "--torch-version", torch,
         *(options or ("--seq-len", "2048"))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    result["code"] = done.returncode
    return result


def bytes_each(result):
    """Between steps, of a parameter, over 8 ranks."""
    return round(result["memory"]["persistent_bytes"] * 8 / PARAMETERS, 2)


def units():
    for release, count in (("1.15", 34), ("1.14", 34), ("1.13", 33),
                           ("1.12", 33), ("1.6", 33)):
        result = plan("plain", release)
        assert len(result["units"]) == count, (release, len(result["units"]))
    assert plan("plain", "1.14")["memory"] == plan("plain", "1.15")["memory"]
    print("the embedding and the tail are units since 1.14")


def upcasts():
    for release, want in (("1.15", 12), ("1.14", 12), ("1.13", 6),
                          ("1.12", 12), ("1.6", 12)):
        each = bytes_each(plan("plain", release))
        assert each == want, (release, each)
    print("1.13 keeps parameters in bf16")
    frozen = {release: plan("plain", release, "2.15", "llama-3.1-8b",
                            "--adapter", ADAPTER)
              for release in ("1.12", "1.13", "1.15")}
    each = {release: bytes_each(r) for release, r in frozen.items()}
    assert 4 < each["1.12"] < 4.2, each
    assert 1.99 < each["1.13"] < 2.1 and 2 < each["1.15"] < 2.2, each
    print("before 1.13 frozen parameters become fp32 as well")


def roots():
    kept = plan("plain", "1.12", "2.7")["memory"]["breakdown"]["gathered"]
    freed = plan("plain", "1.12", "2.8")["memory"]["breakdown"]["gathered"]
    # At the peak, in the head's backward, it is there anyway; if it was freed,
    # so is what it was gathered into again.
    assert freed == 2 * kept, (kept, freed)
    for torch in ("2.7", "2.8"):
        assert (plan("plain", "1.15", torch)["memory"]["peak_bytes"] ==
                plan("plain", "1.15")["memory"]["peak_bytes"]), torch
    print("until torch 2.7 a root stays gathered whatever the file says")


def checkpoints():
    long = ("2.15", "llama-3.1-8b", "--seq-len", "16384")
    saved = {}
    for release in ("1.7", "1.8", "1.14", "1.15"):
        result = plan("checkpointed", release, *long)
        saved[release] = result["memory"]["breakdown"]["activations"]
        note = [d for d in result["diagnostics"]
                if d["code"] == "checkpointing-granularity"]
        assert bool(note) == (release in ("1.8", "1.14")), release
    # Four tensors of each of 32 layers where there was one, beside the last
    # layer's output.
    layer = 16384 * 4096 * 2
    for old, new in (("1.15", "1.14"), ("1.7", "1.8")):
        assert saved[new] - saved[old] == 3 * 32 * layer, saved
    print("1.8 to 1.14 checkpoint the children of a layer")


def executors():
    def of(release):
        result = plan("plain", release)
        return result["code"], result["executor"]
    assert of("1.6") == (0, "fsdp2"), of("1.6")
    assert of("1.5") == (0, "fsdp1"), of("1.5")
    assert of("1.0") == (0, "fsdp1"), of("1.0")
    print("before 1.6 every job is FSDP1")


def ties():
    def code(*of):
        return plan("plain", *of, "llama-3.2-1b")["code"]
    assert code("1.15", "2.15") == 0
    assert code("1.14", "2.12") == 0
    assert code("1.14", "2.13") == 1
    assert code("1.13", "2.13") == 0
    print("1.14 puts tied embeddings into two groups, which torch 2.13 refuses")


for step in (units, upcasts, roots, checkpoints, executors, ties):
    step()
