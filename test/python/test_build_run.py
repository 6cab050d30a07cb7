"""accel_opt build-run: what it is built from, and what it says when something
is missing. tools/quickstart and the unit tests build accel-run itself."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from accel_opt import build_run
from conftest import ROOT


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """The files that tools/package puts into the wheel, and no others."""
    folder = tmp_path_factory.mktemp("run-sources")
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--",
                            *build_run.SOURCES], capture_output=True, text=True,
                           check=True).stdout.split("\0")
    for name in filter(None, files):
        os.makedirs(folder / os.path.dirname(name), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), folder / name)
    return folder


def test_sources_include_only_themselves(staged):
    included = set()
    for folder, _, names in os.walk(staged):
        for name in names:
            if name.endswith((".cpp", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    text = f.read()
                for header in re.findall(r'^#include "([^"]+)"', text, re.M):
                    included.add(header)
                    beside = os.path.join(folder, header)
                    generated = header.endswith(".inc")
                    assert generated or os.path.exists(staged / header) or \
                        os.path.exists(beside), f"{name} includes {header}"
    assert len(included) > 50


def test_sources_configure_against_this_torch(staged, tmp_path):
    cmake, generator, compiler = build_run.programs()
    done = subprocess.run(
        [cmake, "-S", staged, "-B", tmp_path, "-G", generator,
         "-DCMAKE_BUILD_TYPE=Release", "-DACCEL_COMPILER=OFF",
         "-DACCEL_TESTS=OFF", f"-DCMAKE_CXX_COMPILER={compiler}",
         f"-DACCEL_TORCH_DIR={build_run.torch_folder()}"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"torch in {build_run.torch_folder()}" in done.stdout
    # Precompiled headers are named by CMake alone.
    for path in tmp_path.glob("CMakeFiles/AccelPch_*.dir/cmake_pch.hxx"):
        for header in re.findall(r"#include <((?:frontends|runtime)/[^>]+)>",
                                 path.read_text()):
            assert (staged / header).exists(), f"{path} includes {header}"
    targets = subprocess.run([cmake, "--build", tmp_path, "--target", "help"],
                             capture_output=True, text=True, check=True).stdout
    assert re.search(r"^(\.\.\. )?accel-run\b", targets, re.M)


def said(arguments=(), **environment):
    """What build-run says in one line where it cannot build."""
    done = subprocess.run([sys.executable, "-m", "accel_opt", "build-run",
                           *arguments], env=dict(os.environ, **environment),
                          capture_output=True, text=True)
    assert done.returncode == 1
    line, = done.stderr.splitlines()
    return line


def programs_in(folder, **scripts):
    for name, text in scripts.items():
        path = folder / name
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)
    return str(folder)


def test_missing_programs_are_named(tmp_path):
    nothing = programs_in(tmp_path)
    assert "there is no cmake; pip install cmake" in said(PATH=nothing)
    assert "neither ninja nor make" in said(
        PATH=programs_in(tmp_path, cmake="exit 1"))
    path = programs_in(tmp_path, ninja="exit 1")
    unset = {"CXX": ""}
    assert "there is no C++ compiler" in said(PATH=path, **unset)
    assert "CXX names 'nocc'" in said(PATH=path, CXX="nocc")


def test_missing_headers_are_named(tmp_path):
    path = programs_in(tmp_path, cmake="exit 1", ninja="exit 1",
                       cc1="read line; case $line in *gloo*) exit 1;; esac")
    line = said(PATH=path, CXX="cc1")
    assert "finds no <gloo/context.h>; Debian: apt-get install libgloo-dev" in line
    path = programs_in(tmp_path, cc1="exit 1")
    assert "nlohmann-json3-dev" in said(PATH=path, CXX="cc1")


def test_a_failed_build_shows_its_first_error(tmp_path):
    build = tmp_path / "build"
    path = programs_in(tmp_path, ninja="exit 1", cc1="exit 0",
                       cmake="echo fine; echo 'CMake Error at x'; exit 1")
    line = said(["--build-dir", str(build)], PATH=path, CXX="cc1")
    assert "failed: CMake Error at x" in line
    assert (build / "configure.log").read_text().startswith("fine")


def test_progress_is_a_line_at_each_tenth(tmp_path, capsys):
    lines = [f"[{i}/60] Building x{i}" for i in range(1, 61)]
    script = "print(" + repr("\n".join(lines)) + ")"
    build_run.step("compiling", [sys.executable, "-c", script],
                   tmp_path / "log")
    assert capsys.readouterr().out.splitlines() == ["accel_opt: compiling"] + [
        f"  [{6 * i}/60]" for i in range(1, 11)]
    assert (tmp_path / "log").read_text().splitlines() == lines
    build_run.step("compiling", [sys.executable, "-c",
                                 "print('[ 50%] Building'); print('[100%] x')"],
                   tmp_path / "log")
    assert capsys.readouterr().out.splitlines()[1:] == ["  [ 50%]", "  [100%]"]


def test_no_torch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(build_run.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(build_run.CannotBuild, match="has no torch; pip install"):
        build_run.torch_folder()


def test_jobs_are_counted_from_one():
    done = subprocess.run([sys.executable, "-m", "accel_opt", "build-run",
                           "--jobs", "0"], capture_output=True, text=True)
    assert done.returncode == 2 and "expected 1 or more" in done.stderr
