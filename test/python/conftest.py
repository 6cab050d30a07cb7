"""The package of python/ with the accel-opt of --build-dir."""
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))


def pytest_addoption(parser):
    parser.addoption("--build-dir", default=os.path.join(ROOT, "build"))
    parser.addoption("--update-goldens", action="store_true",
                     help="write the pictures that test_reports.py compares with")


@pytest.fixture(scope="session", autouse=True)
def program(request):
    path = os.path.join(os.path.abspath(request.config.getoption("--build-dir")),
                        "bin", "accel-opt")
    os.environ["ACCEL_OPT"] = path
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return path
