"""Runs the cases of this folder under pytest.

A case is a function in a `*_cases.py` file, listed in its CASES:
[(name, function(Context) -> text or None)]. Each becomes an item FAMILY.NAME;
the text is what it measured and stands behind its outcome. Scratch files stay
under BUILD/parity/FAMILY.NAME.

  .venv/bin/pytest test/parity -v                          all cases
  .venv/bin/pytest test/parity -v -n 2                     two at a time
  .venv/bin/pytest test/parity -v -k "fsdp-2 or names"     by parts of names
  .venv/bin/pytest test/parity --build-dir build --durations 20 --junitxml a.xml
"""
import os
import re
import shutil

# Set before torch is imported: one thread a process, as the ranks compute, so
# that cases side by side do not take each other's cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import harness  # noqa: E402
import pytest  # noqa: E402

SUFFIX = "_cases.py"


def pytest_addoption(parser):
    parser.addoption("--build-dir", default=os.path.join(harness.ROOT, "build"),
                     help="where accel-opt and accel-run are built")
    parser.addoption("--all", action="store_true",
                     help="also cases that repeat what others hold, for a "
                     "further model")


def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(SUFFIX):
        return CaseFile.from_parent(parent, path=file_path)
    return None


class CaseFile(pytest.Module):
    def collect(self):
        family = self.path.name[:-len(SUFFIX)]
        # A module's REPEATED holds for one more model what its other cases
        # hold: left out of the hour that a change has, unless asked for.
        option = self.config.getoption
        repeated = set() if option("--all") or option("keyword") else getattr(
            self.obj, "REPEATED", set())
        assert repeated <= {name for name, _ in self.obj.CASES}
        for name, function in self.obj.CASES:
            if name in repeated:
                continue
            yield Case.from_parent(self, name=f"{family}.{name}",
                                   callobj=recorded(function))


def recorded(function):
    def call(context, record_property):
        harness.nearest = (0.0, "")
        try:
            record_property("detail", function(context) or "")
        finally:
            record_property("nearest", harness.nearest)
    return call


class Case(pytest.Function):
    def reportinfo(self):
        # The space keeps pytest from reading the name as MODULE.FUNCTION.
        return self.path, None, self.name + " "

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, harness.Failure):
            return str(excinfo.value)  # its text says all
        return super().repr_failure(excinfo)


@pytest.fixture(scope="session")
def build_dir(pytestconfig):
    return os.path.abspath(pytestconfig.getoption("--build-dir"))


@pytest.fixture
def context(request, build_dir):
    work = os.path.join(build_dir, "parity",
                        re.sub(r"[^\w.-]+", "-", request.node.name))
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    return harness.Context(build_dir, work)


def pytest_report_teststatus(report):
    """Seconds, the first line of what a case measured, and what of it came
    within half of its tolerance: another CPU rounds otherwise."""
    if report.when != "call" or report.outcome == "skipped":
        return None
    properties = dict(report.user_properties)
    detail = properties.get("detail", "").strip()
    share, name = properties.get("nearest", (0.0, ""))
    if share > 0.5:
        detail = f"({name} at {share:.2f} of its tolerance) {detail}"
    word = "FAIL" if report.failed else "ok"
    text = f"{word} {report.duration:6.1f} s  {detail.splitlines()[0] if detail else ''}"
    return report.outcome, "F" if report.failed else ".", text.rstrip()
