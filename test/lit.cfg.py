# lit configuration: one test per .mlir, .yaml or .test file that has RUN lines,
# run with the binaries of the build folder and LLVM's FileCheck and not.
import os
import shutil

import lit.formats

config.name = "accel-opt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".yaml", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.accel_build, "test", "lit")
# Inputs are kept in Inputs/; the others are tests of another kind.
config.excludes = ["Inputs", "CMakeLists.txt", "unit", "parity", "python", "bench", "dry",
                   "faults", "fuzz"]

config.substitutions.append(("%root", config.accel_root))
config.substitutions.append(("%bin", os.path.join(config.accel_build, "bin")))
config.substitutions.append(("%python", config.accel_python))
config.substitutions.append(("%build", config.accel_build))
config.substitutions.append(("%inputs", os.path.join(config.test_source_root, "Inputs")))

path = [os.path.join(config.accel_build, "bin"), config.llvm_tools,
        config.environment.get("PATH", os.environ.get("PATH", ""))]
config.environment["PATH"] = os.pathsep.join(path)
# What a person's shell sets must not change what a test sees.
config.environment["NO_COLOR"] = "1"
config.environment["OMP_NUM_THREADS"] = "1"
for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
    config.environment.pop(name, None)

if os.access(os.path.join(config.accel_build, "bin", "accel-run"), os.X_OK):
    config.available_features.add("accel-run")
if config.accel_python:
    config.available_features.add("python")
if config.accel_static == "ON":
    config.available_features.add("static")
if os.path.exists(config.accel_charts):
    config.available_features.add("charts")
if shutil.which("node"):
    config.available_features.add("node")
# Opens the page of --report where there is one (Debian: chromium).
if chromium := shutil.which("chromium"):
    config.environment["ACCEL_CHROMIUM"] = chromium
