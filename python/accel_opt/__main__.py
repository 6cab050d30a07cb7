"""python -m accel_opt ARGUMENTS: the program accel-opt itself; build-run is
done here, for it needs the Python whose torch accel-run links."""
import os
import sys

from accel_opt.program import AccelOptNotFound, cannot_start, find_program


def main():
    if sys.argv[1:2] == ["build-run"]:
        from accel_opt import build_run
        return build_run.main(sys.argv[2:])
    try:
        program = find_program()
        try:
            os.execv(program, ["accel-opt", *sys.argv[1:]])
        except OSError as error:
            raise cannot_start(program, error) from error
    except AccelOptNotFound as error:
        sys.exit(f"accel_opt: error: {error}")


if __name__ == "__main__":
    main()
