"""Start servers and commands quickly, as forks of a process that has imported all modules.

A test of the start itself runs the command. So does a test that changes variables which the interpreter reads
when it starts.
"""

import atexit
import json
import math
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

# Variables that `bullpen` reads while it runs; any other variable may affect the start of the interpreter.
READ_LATER = re.compile(r"(BULLPEN|AGENT|PYTEST|XDG|DEMO_AGENT)_\w+|HOME|SHELL|PATH|TERM|COLUMNS|LINES|USER")


class Fork:
    """A forked process, with the methods of `subprocess.Popen`."""

    def __init__(self, preloaded: "PreloadedProcess", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._preloaded = preloaded
        self._reaping = threading.Lock()
        self._end = select.poll()
        descriptor = os.pidfd_open(pid)
        self._end.register(descriptor, select.POLLIN)
        weakref.finalize(self, os.close, descriptor)

    def poll(self) -> int | None:
        with self._reaping:
            if self.returncode is None and self._end.poll(0):
                self.returncode = self._preloaded.order({"reap": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = math.inf if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired("bullpen", timeout or 0)
            self._wait_for_end(left)
        return code

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _wait_for_end(self, seconds: float) -> None:
        if self._end.poll(0):
            time.sleep(0.01)  # strace has not released the process yet
        else:
            self._end.poll(min(seconds, 1) * 1000)


class PreloadedProcess:
    """The process that all servers of one test process are forked from."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._lock = threading.Lock()
        self._link, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            program = Path(__file__).with_name("preloaded.py")
            self._process = subprocess.Popen(
                [sys.executable, program, str(its.fileno())],
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self._close)

    def can_run_with(self, environment: Mapping[str, str]) -> bool:
        changed = {name for name, _ in self._environment.items() ^ environment.items()}
        return all(READ_LATER.fullmatch(name) for name in changed)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        descriptors: int | None = None,
    ) -> Fork:
        order = {
            "arguments": arguments,
            "environment": dict(environment),
            "directory": os.getcwd(),
            "descriptors": descriptors,
        }
        return Fork(self, self.order(order, streams))

    def order(self, order: dict[str, Any], streams: Sequence[int] = ()) -> Any:
        with self._lock:
            socket.send_fds(self._link, [json.dumps(order).encode()], streams)
            return json.loads(self._link.recv(64))

    def _close(self) -> None:
        self._link.close()
        self._process.wait()


@cache
def preloaded_process() -> PreloadedProcess:
    return PreloadedProcess()


Process = subprocess.Popen[bytes] | Fork


def start_bullpen(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]],
    prefix: Sequence[str] = (),
    descriptors: int | None = None,
) -> Process:
    """Start `bullpen`: forked, unless a variable or a prefix command requires a new interpreter.

    A fork may have at most `descriptors` open files; without a limit, `bullpen` has that of the tests.
    """
    if not prefix and preloaded_process().can_run_with(environment):
        numbers = [stream.fileno() for stream in streams]
        return preloaded_process().start(arguments, environment, numbers, descriptors)
    assert descriptors is None, "only a fork can be limited"
    command = [*prefix, sys.executable, "-m", "bullpen", *arguments]
    stdin, stdout, stderr = streams
    return subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
