"""A program that imports the modules of the server once, and forks a `bullpen` for each request of forks.py.

Each fork has its own arguments, environment, directory and streams. It only skips the imports, which take a
second. No module imports this file.
"""

import asyncio
import atexit
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

MAX_REQUEST_BYTES = 1 << 20
# The modules that `bullpen serve` imports before it is ready; a fork imports all others itself.
IMPORTS = ("bullpen.cli.app", "bullpen.cli.serve", "bullpen.main", "sqlalchemy.dialects.sqlite", "uvloop")


def wait_for_request(tests: socket.socket) -> dict[str, Any]:
    """Fork and reap on request until the tests end. Return only in a fork, with its request."""
    while True:
        message, streams, _, _ = socket.recv_fds(tests, MAX_REQUEST_BYTES, 3)
        if not message:
            sys.exit()
        order: dict[str, Any] = json.loads(message)
        if "reap" in order:
            tests.send(json.dumps(_exit_code_of(order["reap"])).encode())
            continue
        pid = os.fork()
        if not pid:
            tests.detach()  # closed with all other descriptors
            _take_over(streams)
            return order
        for stream in streams:
            os.close(stream)
        tests.send(json.dumps(pid).encode())


def _exit_code_of(pid: int) -> int | None:
    """Return the exit code, or None while the process runs or strace has not released it."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _take_over(streams: list[int]) -> None:
    """Use the given streams as standard streams, and close all other descriptors."""
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def apply_request(order: dict[str, Any]) -> None:
    """Set the directory, environment, arguments and limit of descriptors, as the start of a process does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order["directory"])
    sys.path[0] = order["directory"]
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["bullpen", *order["arguments"]]
    if order["descriptors"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (order["descriptors"], order["descriptors"]))


async def open_database() -> None:
    """Fill the caches that each fork would fill when it opens a database: 10 CPU milliseconds per fork."""
    with TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/database"
        async with import_module("bullpen.store.database").Database.open(url) as database:
            await import_module("bullpen.store.records").RecordStore(database).count_sessions()


class QuickExit:
    """End a fork without the teardown of all modules, which would copy every shared memory page.

    It is registered with atexit first, so that it runs after all other exit handlers.
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
    ending = QuickExit()
    gc.disable()  # as `bullpen serve` does while it starts
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, which end their processes
    for name in IMPORTS:
        import_module(name)
    import_module("bullpen.workers.screens").use_emulator_once()  # 0.3 CPU seconds per fork
    asyncio.run(import_module("bullpen.sandbox.command").MECHANISMS.find())  # four programs per fork
    asyncio.run(open_database())
    gc.freeze()
    apply_request(wait_for_request(socket.socket(fileno=int(sys.argv[1]))))
    ending.run()
