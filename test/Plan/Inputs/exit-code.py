"""exit-code.py CODE COMMAND...: runs the command; succeeds if it exits with
CODE."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit(f"exit code {code}, expected {sys.argv[1]}")
