"""Ports for servers that are started, killed and started again on the same one."""

import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MANY = 20_000


def free_port() -> int:
    """One that stays free: the system gives it to no client, and we to no other test."""
    return next(port for port in _ours() if _is_free(port))


@cache
def _ours() -> Iterator[int]:
    """Ports below those that are given to whoever asks for any, in a share of this process of tests."""
    first_given = int(RANGE.read_text().split()[0])
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    step = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = range(max(1024, first_given - MANY) + number, first_given, step)
    return iter(random.sample(share, len(share)))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
