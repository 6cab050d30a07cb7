"""Where accel-opt is, and how it is started."""
import errno
import os
import platform
import shutil
import subprocess


class AccelOptNotFound(RuntimeError):
    """There is no accel-opt to start, or none that this machine can start."""


def find_program():
    """The path of accel-opt: $ACCEL_OPT, the one in this package, or PATH's."""
    asked = os.environ.get("ACCEL_OPT")
    if asked:
        if os.access(asked, os.X_OK) and not os.path.isdir(asked):
            return asked
        raise AccelOptNotFound(
            f"ACCEL_OPT names '{asked}', which is no program; unset it or name "
            "the accel-opt that you built")
    own = os.path.join(os.path.dirname(__file__), "bin", "accel-opt")
    if os.access(own, os.X_OK):
        return own
    found = shutil.which("accel-opt")
    if found:
        return found
    raise AccelOptNotFound(
        "there is no accel-opt: install the wheel for this platform, or set "
        "ACCEL_OPT to the one in build/bin")


def cannot_start(program, error):
    """What an OSError of starting the program means, and what to do."""
    if error.errno == errno.ENOEXEC:
        return AccelOptNotFound(
            f"'{program}' is not for this machine ({platform.system()} "
            f"{platform.machine()}): the wheel is for Linux x86_64; build "
            "accel-opt from its sources here and name it in ACCEL_OPT")
    return AccelOptNotFound(
        f"'{program}' cannot be started: {error.strerror}; install the wheel "
        "where programs may run, or name another accel-opt in ACCEL_OPT")


def run(arguments):
    """(exit code, standard output, standard error) of accel-opt."""
    environment = dict(os.environ, NO_COLOR="1")
    program = find_program()
    try:
        done = subprocess.run([program, *arguments], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise cannot_start(program, error) from error
    return done.returncode, done.stdout, done.stderr


def options(given):
    """Keywords as options: seq_len=4096 is --seq-len 4096, True a flag, a list
    an option for each of its items, None nothing."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={one}" if name in JOINED
                             else option)
                if name not in JOINED:
                    words.append(str(one))
    return words


# Options whose value stands behind "=".
JOINED = {"tune", "gradient_checkpointing"}
