"""full.py BYTES COMMAND...: runs a command for which the disk is full at BYTES of
each file."""
import os
import resource
import sys

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execvp(sys.argv[2], sys.argv[2:])
