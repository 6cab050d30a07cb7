"""Runs the parity tests: accel-opt and accel-run against PyTorch. This is pytest
on this folder (conftest.py says how cases are made), with texts to look for in
the names of cases:

  .venv/bin/python test/parity/run.py                  all cases
  .venv/bin/python test/parity/run.py -k fsdp names    cases with a text in them
  .venv/bin/python test/parity/run.py --list

Other options are pytest's: --build-dir build -n 2 --durations 20 --junitxml FILE.
"""
import argparse
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-k", nargs="+", default=[], metavar="TEXT")
    parser.add_argument("--list", action="store_true")
    args, others = parser.parse_known_args()
    command = [HERE, "-c", os.path.join(HERE, "pytest.ini"), *others]
    if args.k:
        # pytest takes an expression of words; some names have spaces.
        command += ["-k", " or ".join(
            "(" + " and ".join(text.replace(",", "").split()) + ")"
            for text in args.k)]
    if args.list:
        command += ["--collect-only", "-qq"]
    return pytest.main(command)


if __name__ == "__main__":
    sys.exit(main())
