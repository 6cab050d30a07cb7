"""python -m accel_opt ARGUMENTS: the program accel-opt itself."""
import os
import sys

from accel_opt.program import AccelOptNotFound, find_program


def main():
    try:
        program = find_program()
    except AccelOptNotFound as error:
        sys.exit(f"accel_opt: error: {error}")
    os.execv(program, ["accel-opt", *sys.argv[1:]])


if __name__ == "__main__":
    main()
