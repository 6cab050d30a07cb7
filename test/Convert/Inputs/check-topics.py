"""Every topic of a difference is explained in docs/guide.md, and no other.
check-topics.py ROOT"""
import os
import re
import sys

root = sys.argv[1]


def read(*path):
    with open(os.path.join(root, *path), encoding="utf-8") as f:
        return f.read()


table = read("frontends", "Convert", "Differences.cpp")
table = table[table.index("constexpr Topic topics"):]
ids = re.findall(r'^    \{"([a-z-]+)", "([a-z]+)",', table, flags=re.M)
rows = re.findall(r"^\| `([a-z][a-z-]*)` \| ([a-z]+) \|", read("docs", "guide.md"),
                  flags=re.M)
for row in sorted(set(ids) ^ set(rows)):
    print("in one place only:", *row)
print(len(ids), "topics")
