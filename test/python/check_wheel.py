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

# What accel-opt is linked of, or has in it: by the archive or package that the
# list of THIRD-PARTY-LICENSES names, and words of its own license.
LICENSES = {
    "llvm-22-dev": "LLVM Exceptions to the Apache 2.0 License",
    "libmlir-22-dev": "LLVM Exceptions to the Apache 2.0 License",
    "libCbc.a": "Eclipse Public License", "libCgl.a": "Eclipse Public License",
    "libClp.a": "Eclipse Public License",
    "libCoinUtils.a": "Eclipse Public License",
    "libOsi.a": "Eclipse Public License", "libblas.a": "University of Tennessee",
    "liblapack.a": "University of Tennessee",
    "libbz2.a": "Julian R Seward", "libjemalloc_pic.a": "Jason Evans",
    "libminizip.a": "Gilles Vollant", "libz.a": "Jean-loup Gailly",
    "libpcre2-8.a": "University of Cambridge", "libyaml.a": "Kirill Simonov",
    "libgfortran.a": "Runtime Library Exception",
    "libquadmath.a": "Lesser General Public",
    "libstdc++.a": "Runtime Library Exception",
    "libgcc.a": "Runtime Library Exception",
    "libc.a": "Lesser General Public",
    "liblemon-dev": "Boost Software License",
    "nlohmann-json3-dev": "Niels Lohmann",
    "libjs-chart.js": "Chart.js Contributors",
}


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


def check_licenses(wheel):
    """Each library that is in the program is named, with its license."""
    with zipfile.ZipFile(wheel) as z:
        texts = {os.path.basename(n): z.read(n).decode() for n in z.namelist()
                 if ".dist-info/licenses/" in n}
    assert sorted(texts) == ["LICENSE", "THIRD-PARTY-LICENSES"], sorted(texts)
    listed, *blocks = re.split(r"\n={79}\n", texts["THIRD-PARTY-LICENSES"])
    owner = {}  # of an archive or package, the package
    for line in re.findall(r"^- (.*)$", listed, re.M):
        package, *files = re.findall(r"[\w.+-]+", line)
        owner.update(dict.fromkeys([package, *files], package))
    text_of = {package: text for names, text in zip(blocks[::2], blocks[1::2])
               for package in names.split(", ")}
    for name, license_words in LICENSES.items():
        assert name in owner, f"{name} is in accel-opt, and not in the licenses"
        assert license_words in text_of[owner[name]], \
            f"the license of {name} has no {license_words!r}"
    # Nothing that the build links is left out.
    ninja = os.path.join(ROOT, "build", "build.ninja")
    if os.path.exists(ninja):
        with open(ninja, encoding="utf-8") as f:
            statement = re.search(r"^build bin/accel-opt: [^\n]*(\n  .*)*",
                                  f.read(), re.M)[0]
        archives = {os.path.basename(a) for a in
                    re.findall(r"/usr/lib/[^ ]*\.a\b", statement)
                    if not re.search("LLVM|MLIR", a)}
        unused = {a for a in archives if a not in owner}
        # The linker takes nothing of it.
        assert unused <= {"libzstd.a"}, unused
    return len(LICENSES)


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
    licenses = check_licenses(wheel)
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
    print(f"{os.path.basename(wheel)}: as tagged, {licenses} licenses, installs, "
          f"{how}")


if __name__ == "__main__":
    main()
