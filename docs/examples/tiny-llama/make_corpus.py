#!/usr/bin/env python3
"""Makes byte-token files of the English text that any Debian machine has.

  make_corpus.py OUT_FOLDER [--megabytes N]

Licences, Perl's and Python's own libraries and their manuals: at least perl-base
and base-files are on every Debian. Each distinct text is taken once, in a fixed
order, until there is enough; the last twentieth is kept for validation. Writes
train.bin and val.bin, one uint16 per byte.
"""
import argparse
import glob
import hashlib
import os
import random
import sys
import sysconfig

# From prose to code; earlier ones are taken first.
SOURCES = [
    "/usr/share/common-licenses/*",
    "/usr/share/perl/5*/**/*.pod",
    "/usr/share/perl/5*/**/*.pm",
    "/usr/share/perl5/**/*.pm",
    "/usr/lib/*/perl-base/**/*.p[lm]",
    os.path.join(sysconfig.get_paths()["stdlib"], "*.py"),
    "/usr/share/doc/*/README*",
    "/usr/share/doc/*/copyright",
]


def texts(limit):
    """(text, source) of distinct files, until `limit` bytes."""
    seen, total = set(), 0
    for pattern in SOURCES:
        for path in sorted(glob.glob(pattern, recursive=True)):
            if total >= limit:
                return
            try:
                with open(path, "rb") as f:
                    data = f.read(1 << 20)
                data.decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue  # a folder, a compressed file
            digest = hashlib.sha256(data).digest()
            if len(data) < 1024 or digest in seen:
                continue
            seen.add(digest)
            total += len(data)
            yield data


def write_tokens(path, data):
    tokens = bytearray(2 * len(data))
    tokens[0::2] = data  # little-endian uint16
    with open(path + ".part", "wb") as f:
        f.write(tokens)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--megabytes", type=float, default=4.0)
    args = parser.parse_args()
    parts = list(texts(int(args.megabytes * 1e6)))
    # Prose and code mixed, the same way every time.
    random.Random(0).shuffle(parts)
    data = b"\n".join(parts)
    if len(data) < 300_000:
        sys.exit(f"make_corpus: error: only {len(data)} bytes of text found in "
                 + ", ".join(SOURCES))
    os.makedirs(args.folder, exist_ok=True)
    cut = len(data) - len(data) // 20
    write_tokens(os.path.join(args.folder, "train.bin"), data[:cut])
    write_tokens(os.path.join(args.folder, "val.bin"), data[cut:])
    print(f"{args.folder}: {len(parts)} files, {cut / 1e6:.2f} M tokens to "
          f"train on, {(len(data) - cut) / 1e6:.2f} M to validate on")


if __name__ == "__main__":
    main()
