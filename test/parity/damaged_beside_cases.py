"""`accel-opt checkpoint merge` and `convert` beside damaged files: only those that
are read must be sound, and which are read does not change."""
import json
import os

import harness
from harness import check
from merge_cases import equal, loaded, merge


def cut(*path, keep=0.5):
    name = os.path.join(*path)
    os.truncate(name, int(os.path.getsize(name) * keep))


def command(context, mode, folder, output, *options, expect=0):
    return json.loads(harness.run(
        [context.binary("accel-opt"), "checkpoint", mode, folder,
         *(["-o", output] if output else []), "--format", "json", *options],
        expect=expect))


def refused(answer, *words):
    first = answer["diagnostics"][0]
    check(first["code"] in ("invalid-checkpoint", "invalid-safetensors")
          and all(w in first["file"] + first["message"] for w in words), first)


def files(context):
    """Files beside the model's own: other weights, an optimizer, the Trainer's
    log."""
    import torch
    from safetensors.torch import save_file
    folder = context.path("model")
    os.makedirs(folder)
    want = {"a": torch.randn(40, 3), "b": torch.randn(5)}
    save_file(want, os.path.join(folder, "model.safetensors"))
    save_file(want, os.path.join(folder, "other.safetensors"))
    torch.save(want, os.path.join(folder, "pytorch_model.bin"))
    torch.save({"state": {n: {"step": torch.tensor(2.0), "exp_avg": t,
                              "exp_avg_sq": t} for n, t in want.items()},
                "param_groups": [{"params": list(want), "amsgrad": False}]},
               os.path.join(folder, "optimizer.pt"))
    with open(os.path.join(folder, "trainer_state.json"), "w") as f:
        json.dump({"global_step": 2}, f)
    sound = merge(context, folder, context.path("sound"))["merged"]
    # Not loaded by transformers: neither merge nor convert reads them.
    for name in ("other.safetensors", "pytorch_model.bin"):
        cut(folder, name)
    answer = merge(context, folder, context.path("others"))["merged"]
    check({**answer, "folder": ""} == {**sound, "folder": ""}, (answer, sound))
    equal(loaded(context.path("others")), want)
    answer = command(context, "convert", folder, context.path("run"), "--to",
                     "accel-run", "--samples", "4")["converted"]
    check(answer["states"] == 4, answer)
    # inspect says what is wrong with each.
    answer = command(context, "inspect", folder, None, expect=1)
    check(sorted(os.path.basename(d["file"]) for d in answer["diagnostics"])
          == ["other.safetensors", "pytorch_model.bin"], answer)
    # The optimizer and the log are convert's alone.
    cut(folder, "optimizer.pt")
    cut(folder, "trainer_state.json")
    answer = merge(context, folder, context.path("alone"))["merged"]
    equal(loaded(context.path("alone")), want)
    check(answer["unread"].get("damaged, and holds none of the weights")
          == ["optimizer.pt"], answer)
    text = harness.run([context.binary("accel-opt"), "checkpoint", "merge", folder,
                        "-o", context.path("text")])
    check("not read: optimizer.pt: damaged" in text, text)
    refused(command(context, "convert", folder, context.path("no"), "--to",
                    "accel-run", "--samples", "4", expect=1), "trainer_state.json")
    os.remove(os.path.join(folder, "trainer_state.json"))
    refused(command(context, "convert", folder, context.path("no"), "--to",
                    "accel-run", "--samples", "4", expect=1), "optimizer.pt", "cut")
    # What is read must be sound.
    cut(folder, "model.safetensors")
    refused(merge(context, folder, context.path("no"), expect=1), "model.safetensors")
    check(not os.path.exists(context.path("no")), "something was written")


def indexed(context):
    """Parts that an index names are read, others beside them are not."""
    import torch
    from safetensors.torch import save_file
    folder = context.path("parts")
    os.makedirs(folder)
    want = {"a": torch.randn(4, 3), "b": torch.randn(5)}
    for name, tensor in want.items():
        save_file({name: tensor}, os.path.join(folder, f"model-{name}.safetensors"))
    save_file(want, os.path.join(folder, "old.safetensors"))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"weight_map": {n: f"model-{n}.safetensors" for n in want}}, f)
    cut(folder, "old.safetensors")
    merge(context, folder, context.path("merged"))
    equal(loaded(context.path("merged")), want)
    cut(folder, "model-b.safetensors")
    answer = merge(context, folder, context.path("no"), expect=1)
    refused(answer, "model-b.safetensors")
    check(len(answer["diagnostics"]) == 1, answer)


def shards(context):
    """Folders of torch.distributed.checkpoint: an optimizer's beside the model's,
    and one file with shards of both, cut behind the weights and inside of them."""
    import pickle

    import torch
    import torch.distributed.checkpoint as dcp
    want = {"a": torch.randn(40, 3), "b": torch.randn(5)}
    state = {n: {"exp_avg": torch.randn(4096, 2)} for n in want}
    folder = context.path("fsdp")
    for name, saved in (("pytorch_model_fsdp_0", {"model": want}),
                        ("optimizer_0", {"optimizer": {"state": state}})):
        dcp.save(saved, checkpoint_id=os.path.join(folder, name), no_dist=True)
    cut(folder, "optimizer_0", "__0_0.distcp")
    refused(command(context, "convert", folder, context.path("no"), "--to", "dcp",
                    expect=1), "is cut")
    merge(context, folder, context.path("cut"))
    equal(loaded(context.path("cut")), want)
    os.remove(os.path.join(folder, "optimizer_0", ".metadata"))
    # Not damage: the save itself did not finish.
    refused(merge(context, folder, context.path("no"), expect=1),
            "the save did not finish")

    both = context.path("both")
    dcp.save({"model": want, "optim": {"state": state}}, checkpoint_id=both,
             no_dist=True)
    with open(os.path.join(both, ".metadata"), "rb") as f:
        places = pickle.load(f).storage_data
    ends = {i.fqn: p.offset + p.length for i, p in places.items()}
    weights = max(end for name, end in ends.items() if name.startswith("model."))
    check(weights < max(ends.values()), "the weights stand last")
    shard = os.path.join(both, "__0_0.distcp")
    os.truncate(shard, weights)
    answer = merge(context, both, context.path("front"))["merged"]
    equal(loaded(context.path("front")), want)
    check(answer["unread"]["damaged behind the weights, which are read"]
          == ["__0_0.distcp"], answer)
    refused(command(context, "convert", both, context.path("no"), "--to", "dcp",
                    expect=1), "is cut")
    os.truncate(shard, weights - 1)
    refused(merge(context, both, context.path("no"), expect=1), "is cut")
    check(not os.path.exists(context.path("no")), "something was written")


CASES = [("damaged-files-beside", files), ("damaged-parts-beside", indexed),
         ("damaged-shards-beside", shards)]
