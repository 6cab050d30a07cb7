"""Processes of torch over the stand-ins, forked from one that has imported all.

transformers' Trainer takes seven seconds to import, of which jobs as small as the suite's take three
to train: one process for each environment imports it and forks for each job. Nothing of CUDA is
touched before the fork.

  prefork.py SOCKET     the process that forks, until its standard input ends

`Prefork.call` asks it; so does a rank that `accelerate launch` has started (`run_as_rank`), with that
rank's environment.
"""
import importlib
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
# Where a rank of a launcher finds the process.
SOCKET = "DRY_PREFORK"
READY = "ready"
# Seconds of a job.
LIMIT = 300


def import_all():
    """torchao asks for a GPU's capability when transformers imports it, and a process that has asked
    cannot use CUDA in its forks."""
    import torch
    is_available, torch.cuda.is_available = torch.cuda.is_available, lambda: False
    import accelerate  # noqa: F401
    import peft  # noqa: F401
    import transformers.trainer  # noqa: F401
    torch.cuda.is_available = is_available
    assert not torch.cuda.is_initialized()


def become(request):
    """In the fork, which ends when it takes too long: calls `train` of a module with what is asked. Returns the exit code."""
    signal.alarm(LIMIT)
    os.environ.clear()
    os.environ.update(request["environment"])
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        importlib.import_module(request["module"]).train(*request["arguments"])
        return 0
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def serve(path):
    import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with multiprocessing.connection.Listener(path, "AF_UNIX") as listener:
        print(READY, flush=True)
        # What is asked for, and the end of the process that asks.
        waiting = [listener._listener._socket, sys.stdin]  # pylint: disable=protected-access
        while sys.stdin not in (ready := multiprocessing.connection.wait(waiting)):
            assert ready
            connection = listener.accept()
            request = connection.recv()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                code = become(request)
                connection.send(code)
                os._exit(code)
            connection.close()


def ask(path, module, arguments, environment, output):
    """The exit code; none where the fork died."""
    with multiprocessing.connection.Client(path, "AF_UNIX") as connection:
        connection.send({"module": module, "arguments": arguments,
                         "environment": dict(environment), "output": output})
        try:
            return connection.recv()
        except EOFError:
            return None


def run_as_rank(module, arguments):
    """In a process that a launcher has started: what it would do is done by a fork of the process
    whose socket the environment names."""
    with tempfile.NamedTemporaryFile("r", errors="replace") as output:
        code = ask(os.environ[SOCKET], module, arguments, os.environ, output.name)
        sys.stdout.write(output.read())
    sys.exit(70 if code is None else code)


def process_environment(environment):
    return {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **environment}


class Prefork:
    """The processes that fork, by their environments; started when first asked."""

    def __init__(self):
        # Paths of sockets are short.
        self.folder = tempfile.TemporaryDirectory(prefix="accel-dry-")
        self.lock = threading.Lock()
        self.started = {}

    def socket(self, environment):
        """Starts the process for that environment, unless it is there."""
        key = tuple(sorted(environment.items()))
        with self.lock:
            if key not in self.started:
                path = os.path.join(self.folder.name, f"prefork-{len(self.started)}")
                process = subprocess.Popen(
                    [sys.executable, os.path.abspath(__file__), path], env=process_environment(environment),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                if process.stdout.readline().strip() != READY:
                    raise AssertionError(f"prefork.py ended with exit code {process.wait()}")
                self.started[key] = path, process
            return self.started[key][0]

    def call(self, module, arguments, environment, output):
        """Calls train(*arguments) of a module of this folder in a process with that environment."""
        code = ask(self.socket(environment), module, arguments, process_environment(environment), output)
        if code != 0:
            with open(output, encoding="utf-8", errors="replace") as f:
                raise AssertionError(f"{module} {arguments}: exit code {code}\n{f.read()[-3000:]}")


if __name__ == "__main__":
    serve(sys.argv[1])
