"""Free ports for servers that are killed and started again on the same port."""

import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
CANDIDATES = 20_000  # ports below the ephemeral range


def free_port() -> int:
    """Return a port that stays free: the kernel gives it to no client, and this module to no other test."""
    return next(port for port in _candidates() if _is_free(port))


@cache
def _candidates() -> Iterator[int]:
    """Return the ports below the ephemeral range that belong to this test process, in random order."""
    first_ephemeral = int(EPHEMERAL_PORTS.read_text().split()[0])
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    step = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = range(max(1024, first_ephemeral - CANDIDATES) + number, first_ephemeral, step)
    return iter(random.sample(share, len(share)))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
