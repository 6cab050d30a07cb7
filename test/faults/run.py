"""Faults at the file operations of accel-run: a rank is killed before one, or
one fails with EIO, ENOSPC or half of a write.

  python test/faults/run.py                one of each kind
  python test/faults/run.py --all          every operation of every rank
  python test/faults/run.py -k rename      operations with a text in them

After each, a run without faults continues with `--resume auto`, from a
checkpoint no older than the newest one that was complete, and ends with the
losses, bit by bit, and the model of a run that nothing has disturbed. What
others have put into the folder is still there.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RANKS, STEPS, EVERY = 2, 6, 2
# What each operation is tried with.
MODES = {"open": ("kill", "EIO"), "write": ("kill", "EIO", "ENOSPC", "ENOSPC+",
                                            "short"),
         "reserve": ("kill", "ENOSPC"), "sync": ("kill", "EIO"),
         "rename": ("kill", "EIO"), "exchange": ("kill", "EIO"),
         "mkdir": ("kill", "ENOSPC"), "remove": ("kill", "EIO")}
# name -> options of the run that is disturbed; what was there before it.
SCENES = {"fresh": ([], None),
          # Goes back to step 2 and writes steps 4 and 6 once more.
          "again": (["--resume", "out/step-00000002"], "whole"),
          # The same where what was there before cannot be renamed (EXDEV), as
          # folders of a lower layer of an overlay file system.
          "lower": (["--resume", "out/step-00000002"], "whole"),
          # Checkpoints are written while training goes on.
          "behind": (["--resume", "out/step-00000002"], "whole"),
          # Others have added files to what is written once more.
          "added": (["--resume", "out/step-00000002"], "whole"),
          "added-lower": (["--resume", "out/step-00000002"], "whole")}
# Files of others below `out`, which no run removes.
MINE = ("step-00000004/mine", "step-00000006/merged/mine", "model/gguf/mine",
        "step-00000004.old/mine", "step-00000002.accel-run-removed/mine")


class Jobs:
    def __init__(self, build, work):
        self.bin = os.path.join(build, "bin")
        self.work = work
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        subprocess.run([sys.executable, os.path.join(
            ROOT, "test", "Run", "Inputs", "tokens.py"),
            os.path.join(work, "tokens.bin")], check=True)
        self.plan = self.make_plan("plan.json", "full")
        self.behind = self.make_plan("behind.json", "background")

    def make_plan(self, name, kind):
        plan = subprocess.run(
            [os.path.join(self.bin, "runtime-plan-dump"), f"shard={RANKS}",
             f"steps={STEPS}", f"every={EVERY}", "keep=3", "dir=out", kind,
             "clip=0.5"],
            stdout=subprocess.PIPE, check=True).stdout
        path = os.path.join(self.work, name)
        with open(path, "wb") as f:
            f.write(plan)
        return path

    def run(self, folder, *options, **faults):
        """(exit code, what it says) of a run in `folder`."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if faults:
            environment["LD_PRELOAD"] = os.path.join(self.bin, "file-faults.so")
            environment["FAULTS_DIR"] = os.path.join(folder, "out")
        for name, value in faults.items():
            environment["FAULTS_" + name.upper()] = str(value)
        behind = "behind" in os.path.basename(folder)
        try:
            done = subprocess.run(
                [os.path.join(self.bin, "accel-run"),
                 self.behind if behind else self.plan, "--nproc",
                 str(RANKS), "--out", os.path.join(folder, "out"), "--log",
                 os.path.join(folder, "log"),
                 *(os.path.join(folder, o) if o.startswith("out/") else o
                   for o in options)],
                env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=180, text=True)
        except subprocess.TimeoutExpired:
            return 124, "still running after 180 s"
        return done.returncode, done.stdout

    def losses(self, folder):
        with open(os.path.join(folder, "log"), encoding="utf-8") as f:
            return [(r["step"], r["loss"], r["grad_norm"])
                    for r in map(json.loads, f)]

    def model(self, folder):
        with open(os.path.join(folder, "out", "model", "model.safetensors"),
                  "rb") as f:
            return f.read()

    def prepare(self, folder, scene):
        os.makedirs(folder)
        before = SCENES[scene][1]
        if before:
            shutil.copytree(os.path.join(self.work, before, "out"),
                            os.path.join(folder, "out"))
        if scene.startswith("added"):
            for name in MINE:
                path = os.path.join(folder, "out", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(name)
        if before:
            time.sleep(0.02)  # the clock of file systems is coarse
        return {"lower": time.time()} if scene.endswith("lower") else {}

    def mine(self, folder):
        """The texts of the files of others, wherever they are now."""
        found = set()
        for at, _, names in os.walk(os.path.join(folder, "out")):
            if "mine" in names:
                with open(os.path.join(at, "mine"), encoding="utf-8") as f:
                    found.add(f.read())
        return found


def operations(jobs, scene):
    """[(rank, number, operation, path in the folder)] of an undisturbed run."""
    folder = os.path.join(jobs.work, "list-" + scene)
    layers = jobs.prepare(folder, scene)
    code, text = jobs.run(folder, *SCENES[scene][0],
                          log=os.path.join(folder, "ops"), **layers)
    if code:
        sys.exit(f"the undisturbed run of '{scene}' fails:\n{text}")
    found = []
    for rank in range(RANKS):
        with open(os.path.join(folder, f"ops.{rank}"), encoding="utf-8") as f:
            for line in f:
                number, name, path = line.rstrip("\n").split(" ", 2)
                found.append((rank, int(number), name,
                              os.path.relpath(path, os.path.join(folder,
                                                                 "out"))))
    return found


def kind(name, path):
    """Operations of one kind do the same to the same file, of any step."""
    return name, re.sub(r"\d+", "N", os.path.basename(path))


def cases(jobs, everything):
    """[(scene, rank, number, operation, path, mode, least step)]: the newest
    checkpoint that is complete at that moment. Of each kind the last one, which
    has checkpoints before it, is killed, and each operation fails once in each
    way, unless it is everything that is tried."""
    result, tried = [], set()
    for scene in SCENES:
        listed = operations(jobs, scene)
        for rank, number, name, path in reversed(listed):
            least = 0 if SCENES[scene][1] is None else 2
            for other, at, done, target in listed:
                match = re.fullmatch(r"step-0*(\d+)", target)
                if rank == 0 and other == 0 and at < number and match and \
                        done in ("rename", "exchange"):
                    least = max(least, int(match.group(1)))
            # Another rank writes after rank 0 has finished the step before.
            writes = re.match(r"step-0*(\d+)\.partial|model\.partial", path)
            if rank != 0 and writes:
                least = max(least, int(writes.group(1)) - EVERY
                            if writes.group(1) else STEPS)
            # The threads of 'behind' do what the others do, elsewhere; of
            # 'added' it is what moves folders that counts.
            own = scene if scene == "behind" else ""
            if scene.startswith("added"):
                if name not in ("rename", "exchange", "remove", "mkdir") and \
                        not everything:
                    continue
                own = scene
            for mode in MODES[name]:
                what = (own, kind(name, path) if mode == "kill" else name, mode)
                if everything or what not in tried:
                    result.append((scene, rank, number, name, path, mode,
                                   least))
                tried.add(what)
    return result


def examine(jobs, case):
    """What is wrong, or ""."""
    scene, rank, number, name, path, mode, least = case
    folder = os.path.join(jobs.work, f"{scene}-{rank}-{number}-{mode}")
    layers = jobs.prepare(folder, scene)
    code, text = jobs.run(folder, *SCENES[scene][0], mode=mode, rank=rank,
                          at=number, **layers)
    if code in (124, -11, 139, 134) or (mode == "kill" and code == 0):
        return f"exit code {code} with the fault:\n{text}"
    if mode != "kill" and code and text.count("error:") != 1:
        return f"{text.count('error:')} error lines, not 1:\n{text}"
    code, text = jobs.run(folder, "--resume", "auto")
    if code:
        return f"exit code {code} after the fault:\n{text}"
    match = re.search(r"continues from .*step-0*(\d+)", text)
    begun = int(match.group(1)) if match else 0
    if begun < least:
        return f"continues from step {begun}, and step {least} was complete"
    whole = os.path.join(jobs.work, "whole")
    # The log has the steps of the run that was disturbed from its start on.
    got, want = jobs.losses(folder), dict(
        (r[0], r) for r in jobs.losses(whole))
    if not got or got[-1][0] != STEPS:
        if begun != STEPS:
            return f"the log ends with {got[-1:]}"
    for line in got:
        if line != want[line[0]]:
            return f"step {line}, undisturbed {want[line[0]]}"
    if jobs.model(folder) != jobs.model(whole):
        return "the model differs"
    left = [n for n in os.listdir(os.path.join(folder, "out"))
            if n.endswith((".accel-run-replaced", ".accel-run-removed")) or
            ".kept" in n and not scene.startswith("added")]
    if left:
        return f"left behind: {left}"
    if scene.startswith("added") and (lost := set(MINE) - jobs.mine(folder)):
        return f"files of others are lost: {lost}"
    shutil.rmtree(folder)
    return ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--report", help="write [{name, ok, detail}] as JSON")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-k", metavar="TEXT", default="")
    parser.add_argument("-j", type=int, default=2, metavar="N")
    args = parser.parse_args()
    build = os.path.abspath(args.build_dir)
    jobs = Jobs(build, os.path.join(build, "faults"))
    whole = os.path.join(jobs.work, "whole")
    os.makedirs(whole)
    code, text = jobs.run(whole)
    if code:
        sys.exit(text)
    start, results = time.time(), []
    chosen = [c for c in cases(jobs, args.all)
              if args.k in " ".join(map(str, c))]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for case, wrong in zip(chosen,
                               pool.map(lambda c: examine(jobs, c), chosen)):
            scene, rank, number, name, path, mode, _ = case
            title = f"{scene}: rank {rank}, {number} {name} {path}, {mode}"
            results.append({"name": title, "ok": not wrong, "detail": wrong})
            if wrong:
                print(f"FAIL {title}\n{wrong}", flush=True)
    failed = sum(not r["ok"] for r in results)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(results, f)
    print(f"{len(results) - failed} passed, {failed} failed, "
          f"{time.time() - start:.0f} s", flush=True)
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
