"""Holds a wheel of tools/package against its tag, and runs it in a bare virtual
environment: no torch, no MLIR, no accel-opt on PATH.

  check_wheel.py dist/accel_opt-*.whl
"""
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0",
          "libdl.so.2", "librt.so.1", "libz.so.1", "libgcc_s.so.1"}


def needed(path):
    out = subprocess.run(["readelf", "-dV", path], check=True,
                         capture_output=True, text=True).stdout
    versions = [tuple(map(int, v.split(".")))
                for v in re.findall(r"GLIBC_(\d+\.\d+)", out)]
    return re.findall(r"NEEDED.*\[(.*)\]", out), max(versions, default=(0, 0))


def main():
    wheel, = sys.argv[1:]
    tag = re.search(r"-py3-none-.*manylinux_(\d+)_(\d+)_x86_64", wheel)
    assert tag, f"the tag of {wheel} is none of manylinux"
    assert os.path.getsize(wheel) < 30 << 20, "over 30 MB"
    allowed = tuple(map(int, tag.groups()))
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as z:
            z.extractall(folder)
        names = {os.path.basename(os.path.join(d, f)): os.path.join(d, f)
                 for d, _, files in os.walk(folder) for f in files}
        for name, path in names.items():
            with open(path, "rb") as f:
                if f.read(4) != b"\x7fELF":
                    continue
            libraries, glibc = needed(path)
            assert glibc <= allowed, f"{name} needs GLIBC {glibc}"
            for library in libraries:
                assert library in SYSTEM or library in names, \
                    f"{name} needs {library}, which is not in the wheel"
        for path in ("CMakeLists.txt", "docs/diagnostics.md",
                     "runtime/plan/data/operators.txt",
                     "tools/accel-run/main.cpp"):
            assert os.path.exists(os.path.join(
                folder, "accel_opt", "run-sources", path)), \
                f"accel-run's {path} is not in the wheel"
        venv.create(os.path.join(folder, "bare"), with_pip=True)
        scripts = os.path.join(folder, "bare", "bin")
        subprocess.run([os.path.join(scripts, "pip"), "install", "-q",
                        "--no-index", wheel], check=True)
        env = {"PATH": scripts + ":/usr/bin:/bin", "HOME": folder}
        config = os.path.join(folder, "a.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("distributed_type: MULTI_GPU\nnum_processes: 2\n")
        for command in (["accel-opt", "lint", config],
                        ["python", "-m", "accel_opt", "--version"],
                        ["python", "-c", "import accel_opt; assert "
                         f"accel_opt.lint({config!r}) == []"]):
            subprocess.run(command, check=True, env=env, cwd=folder)
    print(f"{os.path.basename(wheel)}: as tagged, and runs")


if __name__ == "__main__":
    main()
