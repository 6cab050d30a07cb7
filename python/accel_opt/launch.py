"""Plans and lints a job, then starts it with accelerate launch.

  python -m accel_opt.launch [options of accel-opt plan] -- \\
      --config_file fsdp.yaml train.py --bf16
  python -m accel_opt.launch --config_file fsdp.yaml train.py --bf16

What follows -- is what follows `accelerate launch`; without -- that is
everything. A job that does not fit, or that launch would refuse, is not
started; --on-misfit warn starts it all the same.
"""
import os
import shutil
import sys

from accel_opt import program


def split(words):
    """(our options, those of accelerate launch, what a misfit does)."""
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        sys.exit(0)
    own, launch = [], words
    if "--" in words:
        at = words.index("--")
        own, launch = words[:at], words[at + 1:]
    misfit = "error"
    for i, word in enumerate(own):
        if word.split("=")[0] == "--on-misfit":
            misfit = word.split("=", 1)[1] if "=" in word else \
                "".join(own[i + 1:i + 2])
            del own[i:i + (1 if "=" in word else 2)]
            break
    if misfit not in ("error", "warn"):
        fail(64, f"--on-misfit {misfit}: expected error or warn")
    if not launch:
        fail(64, "expected what follows `accelerate launch`, such as "
             "--config_file fsdp.yaml train.py")
    return own, launch, misfit


def fail(code, text):
    print(f"accel_opt.launch: error: {text}", file=sys.stderr)
    sys.exit(code)


def config_file(launch):
    for i, word in enumerate(launch):
        if word.startswith("--config_file="):
            return word.split("=", 1)[1]
        if word == "--config_file":
            return "".join(launch[i + 1:i + 2])
        if not word.startswith("-") and word.endswith(".py"):
            break
    return ""


def main():
    own, launch, misfit = split(sys.argv[1:])
    try:
        config = config_file(launch)
        if config:
            code, out, err = program.run(["lint", config])
            print(out + err, end="", file=sys.stderr)
            if code not in (0, 4):
                fail(code, f"'{config}' is wrong, and nothing was started")
        code, out, err = program.run(
            ["plan", *own, "--", "accelerate", "launch", *launch])
    except program.AccelOptNotFound as error:
        fail(1, error)
    print(out + err, end="", file=sys.stderr, flush=True)
    if code == 64:
        sys.exit(code)
    if code == 4:
        print("accel_opt.launch: warning: this job is not modelled; it is "
              "started as it is", file=sys.stderr)
    elif code and (misfit == "error" or code != 2):
        fail(code, "the job does not fit, and was not started; --on-misfit "
             "warn starts it" if code == 2 else
             "the job is wrong, and was not started")
    accelerate = shutil.which("accelerate", path=os.pathsep.join(
        [os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if not accelerate:
        fail(1, "there is no accelerate on PATH; pip install accelerate")
    sys.stderr.flush()
    os.execv(accelerate, ["accelerate", "launch", *launch])


if __name__ == "__main__":
    main()
