"""python -m accel_opt build-run: compiles accel-run against the installed torch.

accel-run links LibTorch, whose C++ interface differs between releases, so the
wheel holds its sources (accel_opt/run-sources) and each machine compiles them
against the torch that it trains with.
"""
import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

# What accel-run is built from, of the repository; tools/package puts it into
# the wheel.
SOURCES = ["CMakeLists.txt", "LICENSE", "docs/diagnostics.md",
           "frontends/Diagnostics", "runtime", "tools/accel-run", "tools/cmake",
           "tools/options"]
COMPILERS = ["clang++-22", "clang++", "g++", "c++"]


class CannotBuild(RuntimeError):
    """What is missing to build accel-run, and where it comes from."""


def sources():
    """The folder with accel-run's CMakeLists.txt: the wheel's or a clone's."""
    here = os.path.dirname(os.path.abspath(__file__))
    for root in (os.path.join(here, "run-sources"),
                 os.path.dirname(os.path.dirname(here))):
        if all(os.path.exists(os.path.join(root, path)) for path in SOURCES):
            return root
    raise CannotBuild("the sources of accel-run are not in this installation; "
                      "install the wheel that tools/package builds")


def torch_folder():
    """The folder of the torch that this Python would import."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise CannotBuild(f"{sys.executable} has no torch; pip install torch")
    folder = spec.submodule_search_locations[0]
    if not os.path.exists(os.path.join(folder, "lib", "libtorch_cpu.so")):
        raise CannotBuild(f"the torch in {folder} has no lib/libtorch_cpu.so; "
                          "install the Linux wheel from PyPI or pytorch.org")
    return folder


def programs():
    """(cmake, generator, compiler); each is named if it is missing."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise CannotBuild("there is no cmake; pip install cmake")
    if shutil.which("ninja"):
        generator = "Ninja"
    elif shutil.which("make"):
        generator = "Unix Makefiles"
    else:
        raise CannotBuild("there is neither ninja nor make; pip install ninja")
    wanted = os.environ.get("CXX")
    found = shutil.which(wanted) if wanted else next(
        filter(None, map(shutil.which, COMPILERS)), None)
    if found is None and wanted:
        raise CannotBuild(f"CXX names '{wanted}', which is no program; unset it "
                          "or name a C++20 compiler")
    if found is None:
        raise CannotBuild("there is no C++ compiler; install clang 16 or GCC 12 "
                          "or newer (Debian: apt-get install g++), or name one "
                          "in CXX")
    return cmake, generator, found


def has_header(compiler, header):
    done = subprocess.run([compiler, "-E", "-x", "c++", "-", "-o", os.devnull],
                          input=f"#include <{header}>\n", text=True,
                          capture_output=True)
    return done.returncode == 0


def check_headers(compiler):
    for header, package in (("nlohmann/json.hpp", "nlohmann-json3-dev"),
                            ("gloo/context.h", "libgloo-dev")):
        if not has_header(compiler, header):
            raise CannotBuild(f"{compiler} finds no <{header}>; Debian: apt-get "
                              f"install {package}")


# How far ninja ("[12/60]") or make ("[ 20%]") is.
PROGRESS = re.compile(r"\[ *(\d+)(?:/(\d+)|%)\]")


def step(what, command, log):
    """Runs a command whose output goes to a log; a line at each tenth of the way
    and its first error are shown."""
    print(f"accel_opt: {what}", flush=True)
    tenths = 0
    with open(log, "w", buffering=1, encoding="utf-8") as out, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, errors="replace") as running:
        for line in running.stdout:
            out.write(line)
            at = PROGRESS.match(line)
            now = 10 * int(at[1]) // int(at[2] or 100) if at else 0
            if now > tenths:
                tenths = now
                print(f"  {at[0]}", flush=True)
    if running.returncode == 0:
        return
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    first = next((line for line in lines if "error" in line.lower()),
                 lines[-1] if lines else "no output")
    raise CannotBuild(f"{what} failed: {first.strip()} (all of it: {log})")


def build(folder, into, jobs):
    """Builds in `folder` and copies the program to `into`; returns its path."""
    root, torch = sources(), torch_folder()
    cmake, generator, compiler = programs()
    check_headers(compiler)
    os.makedirs(folder, exist_ok=True)
    step(f"configuring for the torch in {torch}",
         [cmake, "-S", root, "-B", folder, "-G", generator,
          "-DCMAKE_BUILD_TYPE=Release", "-DACCEL_COMPILER=OFF",
          "-DACCEL_TESTS=OFF", f"-DACCEL_TORCH_DIR={torch}",
          f"-DCMAKE_CXX_COMPILER={compiler}"],
         os.path.join(folder, "configure.log"))
    step(f"compiling with {os.path.basename(compiler)}, {jobs} at a time",
         [cmake, "--build", folder, "--target", "accel-run", "--parallel",
          str(jobs)], os.path.join(folder, "build.log"))
    os.makedirs(into, exist_ok=True)
    for name in ("accel-run", "accel-run-cuda.so"):
        built = os.path.join(folder, "bin", name)
        if os.path.exists(built):
            shutil.copy2(built, os.path.join(into, name))
    return os.path.join(into, "accel-run")


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="accel_opt build-run",
        description="Compiles accel-run against the installed torch.")
    parser.add_argument("--into", default=sysconfig.get_path("scripts"),
                        metavar="DIR", help="where accel-run is put (default: "
                        "beside this Python, %(default)s)")
    parser.add_argument("--build-dir", metavar="DIR",
                        help="a folder to build in, kept for the next time "
                        "(default: a temporary one)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1,
                        metavar="N", help="compilers at a time (default: "
                        "%(default)s; each takes up to 2 GiB)")
    args = parser.parse_args(arguments)
    if args.jobs < 1:
        parser.error(f"--jobs {args.jobs}: expected 1 or more")
    folder = args.build_dir or tempfile.mkdtemp(prefix="accel-run-")
    try:
        program = build(os.path.abspath(folder), os.path.abspath(args.into),
                        args.jobs)
    except CannotBuild as error:
        # A failed build is left where its message says that the log is.
        if not args.build_dir and not os.listdir(folder):
            os.rmdir(folder)
        sys.exit(f"accel_opt: error: {error}")
    if not args.build_dir:
        shutil.rmtree(folder)
    print(f"accel_opt: {program}")
