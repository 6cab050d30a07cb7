"""Whether every command and option has its place in completions and pages.

  check-pages.py FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

folder = sys.argv[1]


def table(*words):
    return json.loads(subprocess.run(["accel-opt", *words, "--help=json"],
                                     check=True, capture_output=True).stdout)


def read(*parts):
    with open(os.path.join(folder, *parts), encoding="utf-8") as f:
        return f.read()


bash = read("bash-completion", "completions", "accel-opt")
zsh = read("zsh", "vendor-completions", "_accel-opt")
fish = read("fish", "vendor_completions.d", "accel-opt.fish")
options = 0
for command in table()["commands"]:
    name = command["name"]
    page = read("man", "man1", f"accel-opt-{name}.1")
    for option in table(name)["options"]:
        options += 1
        bare = option["name"].lstrip("-")
        assert option["name"] in bash and option["name"] in zsh, option
        assert f" {bare} " in fish or f" {bare}\n" in fish, option
        assert option["name"].replace("-", "\\-") in page, option
for shell, name in (("bash", "bash-completion/completions/accel-opt"),
                    ("zsh", "zsh/vendor-completions/_accel-opt"),
                    ("fish", "fish/vendor_completions.d/accel-opt.fish")):
    if shutil.which(shell):
        subprocess.run([shell, "-n", os.path.join(folder, name)], check=True)
if shutil.which("groff"):
    for page in sorted(os.listdir(os.path.join(folder, "man", "man1"))):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-z",
             os.path.join(folder, "man", "man1", page)],
            capture_output=True, text=True)
        assert not done.stderr, f"{page}: {done.stderr}"
print("in place" if options > 80 else f"only {options} options")
