"""A process that has loaded the server and forks one whenever it is told to (see forks.py).

What is forked is a process of its own that runs `bullpen` with its own arguments, environment, directory
and streams. Only the second of imports is not done again. It is a program, not imported by anyone.
"""

import atexit
import gc
import json
import os
import signal
import socket
import sys
import time
from importlib import import_module
from typing import Any

LARGEST = 1 << 20
# What `bullpen serve` imports until it is ready. What it imports later is still imported later.
IMPORTS = ("bullpen.cli.app", "bullpen.cli.serve", "bullpen.main", "sqlalchemy.dialects.sqlite", "uvloop")


def orders_of_a_fork(tests: socket.socket) -> dict[str, Any]:
    """Forks and reaps until the tests are over; returns in a fork only, with what it has to run."""
    while True:
        message, streams, _, _ = socket.recv_fds(tests, LARGEST, 3)
        if not message:
            sys.exit()
        order: dict[str, Any] = json.loads(message)
        if "reap" in order:
            tests.send(json.dumps(_exit_code_of(order["reap"])).encode())
            continue
        pid = os.fork()
        if not pid:
            tests.detach()  # closed with all that is not its own
            _take_over(streams)
            return order
        for stream in streams:
            os.close(stream)
        tests.send(json.dumps(pid).encode())


def _exit_code_of(pid: int) -> int | None:
    """Nothing while it runs, or while strace has not let go of what has died."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _take_over(streams: list[int]) -> None:
    """The streams it was given, and no other descriptor."""
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def become(order: dict[str, Any]) -> None:
    """All that a process is given when it is started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order["directory"])
    sys.path[0] = order["directory"]
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["bullpen", *order["arguments"]]


class Exit:
    """Ends a fork without the teardown of all modules, which writes to each page and so copies it first.

    Everything else that is to be done at an exit is done before: what is registered first runs last.
    """

    def __init__(self) -> None:
        self._code: object = None
        atexit.register(self._leave)

    def run(self) -> None:
        try:
            import_module("bullpen.cli").main()
        except SystemExit as end:
            self._code = end.code
            raise

    def _leave(self) -> None:
        if isinstance(self._code, int):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._code)


if __name__ == "__main__":
    ending = Exit()
    gc.disable()  # as `bullpen serve` does while it loads
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end what they started
    for name in IMPORTS:
        import_module(name)
    import_module("bullpen.workers.screens").use_emulator_once()
    gc.freeze()
    become(orders_of_a_fork(socket.socket(fileno=int(sys.argv[1]))))
    ending.run()
