"""Draws docs/images anew, from what the programs print and train now.

  .venv/bin/python test/python/draw_pictures.py [--build-dir DIR] [NAME...]

Run by hand where a page of --report has changed: the pictures are of the
commands that the documentation shows beside them, and of a run of tiny-llama on
this machine.
"""
import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile

from PIL import Image

from browser import Browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "docs", "examples")
IMAGES = os.path.join(ROOT, "docs", "images")
WIDTH = 1000  # pixels
LLAMA = ["--model", "llama-8b", "--target", "h100-sxm-80gb"]
TUTORIAL = ["--micro-batch", "4", "--seq-len", "8192"]
# Name: (heading of the first section that is left out, command).
PAGES = {
    "report": ("Mesh", ["plan", "llama-8b/fsdp.yaml", *LLAMA]),
    "misfit": ("Streams", ["plan", "llama-8b/fsdp.yaml", *LLAMA, *TUTORIAL]),
    "fits": ("Mesh", ["plan", "better.yaml", *LLAMA, *TUTORIAL, "--loss-chunks", "auto"]),
    "run": ("Memory by instruction, program eval",
            ["explain", "plan.json", "--log", "log.jsonl"]),
    "pipeline": (None, ["pipeline", "--schedule", "zb-v", "--ranks", "4", "--micro-batches", "8"]),
}


def train(run):
    """plan.json and log.jsonl of 40 steps of tiny-llama."""
    example = os.path.join(EXAMPLES, "tiny-llama")
    subprocess.run([sys.executable, os.path.join(example, "make_corpus.py"), "tiny-llama/data"],
                   cwd=run.folder, check=True, stdout=subprocess.DEVNULL)
    path = os.path.join(run.folder, "tiny-llama", "job.yaml")
    with open(path, encoding="utf-8") as f:
        job = f.read().replace("init: pretrained", "init: {seed: 0}").replace("steps: 100", "steps: 40")
    with open(path, "w", encoding="utf-8") as f:
        f.write(job)
    run("accel-opt", "plan", "tiny-llama/job.yaml", "--emit", "plan", "-o", "plan.json")
    run("accel-run", "plan.json", "--nproc", "2", "--log", "log.jsonl")


class Runner:
    def __init__(self, build, folder):
        self.bin, self.folder = os.path.join(os.path.abspath(build), "bin"), folder

    def __call__(self, program, *words):
        done = subprocess.run([os.path.join(self.bin, program), *words], cwd=self.folder,
                              capture_output=True, text=True)
        if done.returncode not in (0, 2):
            sys.exit(done.stdout + done.stderr)


def draw(browser, page_path, before, to):
    with browser.page(page_path, WIDTH) as page:
        height = page.run("document.documentElement.scrollHeight" if before is None else
                          "[...document.querySelectorAll('h2')].find(h => h.textContent === "
                          f"{before!r}).getBoundingClientRect().top + scrollY - 12")
        picture = Image.open(io.BytesIO(page.picture(WIDTH, int(height))))
    picture.convert("RGB").save(to, optimize=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", nargs="*", help=" ".join(PAGES))
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    names = args.name or list(PAGES)
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        run = Runner(args.build_dir, folder)
        for example in ("llama-8b", "tiny-llama"):
            shutil.copytree(os.path.join(EXAMPLES, example), os.path.join(folder, example))
        if "run" in names:
            train(run)
        if "fits" in names:
            run("accel-opt", "plan", "llama-8b/fsdp.yaml", *LLAMA, *TUTORIAL, "--loss-chunks",
                "auto", "--tune=all", "--emit", "accelerate", "-o", "better.yaml")
        for name in names:
            before, command = PAGES[name]
            run("accel-opt", *command, "--report", "page.html")
            to = os.path.join(IMAGES, name + ".png")
            draw(browser, os.path.join(folder, "page.html"), before, to)
            print(f"{os.path.relpath(to, ROOT)}: {os.path.getsize(to):,} bytes")


if __name__ == "__main__":
    main()
