"""frozen_meeting.py PLAN OUT: rank 0 of two is stopped (SIGSTOP) while it waits
for rank 1 at the meeting. A first rank 1 gets SIGTERM once it has said that
rank 0 does not answer; with a second one, and rank 0 going on, the job trains."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

plan, out = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
began = time.time()


def start(rank):
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                   "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen(["accel-run", plan, "--out", out],
                            env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def listens():
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                for line in list(lines)[1:]:
                    local, _, state = line.split()[1:4]
                    if state == "0A" and int(local.split(":")[1], 16) == port:
                        return True
        except FileNotFoundError:
            pass
    return False


ranks = [start(0)]
# What hangs is ended, and shows as a code of -9.
end = threading.Timer(100, lambda: [rank.kill() for rank in ranks])
end.daemon = True
end.start()
while not listens() and ranks[0].poll() is None:
    time.sleep(0.02)
ranks[0].send_signal(signal.SIGSTOP)
ranks.append(start(1))
stopped = time.time()
print(ranks[1].stdout.readline(), end="")
seconds = time.time() - stopped
print("named within 30 s" if seconds < 30 else f"named after {seconds:.0f} s",
      flush=True)
ranks[1].send_signal(signal.SIGTERM)
print(ranks[1].communicate()[0], end="")
print(f"rank 1 ends with {ranks[1].returncode}", flush=True)
ranks[1] = start(1)
time.sleep(3)
ranks[0].send_signal(signal.SIGCONT)
for number, rank in enumerate(ranks):
    print(rank.communicate()[0], end="")
    print(f"then rank {number} ends with {rank.returncode}", flush=True)
