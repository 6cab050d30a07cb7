"""tokens.py OUT [COUNT [VALUE]]: uint16 tokens of a vocabulary of 29; the last
one is VALUE if given."""
import array
import sys

count = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
tokens = array.array("H", [(i * i * 7 + i * 3 + 1) % 29 for i in range(count)])
if len(sys.argv) > 3:
    tokens[-1] = int(sys.argv[3])
with open(sys.argv[1], "wb") as f:
    tokens.tofile(f)
