"""Holds a wheel of tools/package against its tag, and runs it in a bare virtual
environment: no torch, no MLIR, no accel-opt on PATH. The program alone also
runs in a folder that is all the files there are.

  check_wheel.py dist/accel_opt-*.whl [AUDITWHEEL]

AUDITWHEEL is that program; build/package/tools/bin/auditwheel if left out.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAX_BYTES = 30 * 10**6
TAG = "manylinux_2_28_x86_64"


def said(*command, **keywords):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          **keywords).stdout


def version(tag):
    match = re.fullmatch(r"manylinux_(\d+)_(\d+)_x86_64", tag)
    assert match, f"{tag} is no tag of manylinux"
    return tuple(map(int, match.groups()))


def check_tag(wheel, auditwheel):
    """The file's name, the metadata and auditwheel agree."""
    name = os.path.basename(wheel)
    assert re.fullmatch(rf"accel_opt-[\d.]+-py3-none-{TAG}\.whl", name), name
    with zipfile.ZipFile(wheel) as z:
        metadata, = (n for n in z.namelist() if n.endswith(".dist-info/WHEEL"))
        text = z.read(metadata).decode()
    assert re.findall(r"^Tag: (.*)$", text, re.M) == [f"py3-none-{TAG}"], text
    shown = json.loads(said(auditwheel, "show", "--json", wheel))
    assert version(shown["overall_tag"]) <= version(TAG), shown
    assert not shown["versioned_symbols"] and not shown["external_libs"], shown
    assert not shown["unsupported_isa"], shown


def check_program(path):
    """It asks for no library, no loader and no version of a symbol."""
    assert os.path.getsize(path) < MAX_BYTES, "over 30 MB"
    assert ".debug_info" not in said("readelf", "-SW", path), "not stripped"
    dynamic = said("readelf", "-dW", path)
    assert "NEEDED" not in dynamic, dynamic
    assert "PIE" in dynamic, "its addresses are not random"
    assert "INTERP" not in said("readelf", "-lW", path)
    versions = said("readelf", "-VW", path)
    assert "No version information found" in versions, versions
    symbols = [line for line in said("readelf", "--dyn-syms", "-W", path)
               .splitlines() if re.match(r"\s+[1-9]\d*:", line)]
    assert not symbols, symbols


def check_alone(program, folder):
    """It plans where there is no other file, if this user may change its root."""
    shutil.copy(program, os.path.join(folder, "accel-opt"))
    example = os.path.join(ROOT, "docs", "examples", "llama-8b")
    for name in ("fsdp.yaml", "config.json"):
        shutil.copy(os.path.join(example, name), folder)
    enter = ["unshare", "-r", "chroot", folder]
    if subprocess.run([*enter, "/accel-opt", "--version"],
                      capture_output=True).returncode == 125:
        return "unshare -r chroot is not allowed here"
    text = said("env", "-i", shutil.which("unshare"), "-r",
                shutil.which("chroot"), folder, "/accel-opt", "plan",
                "/fsdp.yaml", "--model", "/", "--target", "h100-sxm-80gb")
    assert "FITS" in text, text
    return "runs with no other file"


def check_installed(wheel, folder):
    venv.create(os.path.join(folder, "bare"), with_pip=True)
    scripts = os.path.join(folder, "bare", "bin")
    pip = os.path.join(scripts, "pip")
    said(pip, "install", "-q", "--no-index", wheel)
    env = {"PATH": scripts + ":/usr/bin:/bin", "HOME": folder}
    config = os.path.join(folder, "a.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("distributed_type: MULTI_GPU\nnum_processes: 2\n")
    for command in (["accel-opt", "lint", config],
                    ["python", "-m", "accel_opt", "--version"],
                    ["python", "-c", "import accel_opt; assert "
                     f"accel_opt.lint({config!r}) == []"]):
        subprocess.run(command, check=True, env=env, cwd=folder)
    # What is missing is said in one sentence with the fix.
    done = subprocess.run(["python", "-m", "accel_opt", "build-run"], env=env,
                          cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and \
        "has no torch; pip install torch" in done.stderr, done.stderr
    # pip refuses it on another platform.
    other = os.path.join(folder, os.path.basename(wheel).replace(
        "x86_64", "aarch64"))
    shutil.copy(wheel, other)
    done = subprocess.run([pip, "install", "--no-index", "--force-reinstall",
                           other], env=env, capture_output=True, text=True)
    assert done.returncode and "is not a supported wheel on this platform" \
        in done.stderr, done.stderr


def main():
    wheel, *rest = sys.argv[1:]
    auditwheel = rest[0] if rest else os.path.join(
        ROOT, "build", "package", "tools", "bin", "auditwheel")
    check_tag(wheel, auditwheel)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as z:
            z.extractall(os.path.join(folder, "wheel"))
        package = os.path.join(folder, "wheel", "accel_opt")
        program = os.path.join(package, "bin", "accel-opt")
        check_program(program)
        os.chmod(program, 0o755)
        for path in ("CMakeLists.txt", "docs/diagnostics.md",
                     "runtime/plan/data/operators.txt",
                     "tools/accel-run/main.cpp"):
            assert os.path.exists(os.path.join(package, "run-sources", path)), \
                f"accel-run's {path} is not in the wheel"
        alone = os.path.join(folder, "alone")
        os.mkdir(alone)
        how = check_alone(program, alone)
        check_installed(wheel, folder)
    print(f"{os.path.basename(wheel)}: as tagged, installs, {how}")


if __name__ == "__main__":
    main()
