"""Limit wrong login codes per IP address (IPv6: per /64 network): two in a minute, twelve in an hour."""

import ipaddress
import math
from collections import deque

from .. import clock
from ..domain.errors import TooMany

LIMITS = ((60.0, 2), (3600.0, 12))
LONGEST_SECONDS = LIMITS[-1][0]
MAX_PEERS = 1000  # addresses that are remembered


class LoginAttempts:
    """Counts wrong login codes by network address, so that other clients cannot lock the owner out."""

    def __init__(self) -> None:
        self._failures: dict[str, deque[float]] = {}

    def check(self, peer: str) -> None:
        """Raise TooMany while a limit is reached for the address."""
        now = clock.monotonic()
        failures = self._failures.get(_network_of(peer), deque())
        for seconds, limit in LIMITS:
            recent = [at for at in failures if now - at < seconds]
            if len(recent) >= limit:
                raise _refusal(recent[-limit] + seconds - now)

    def failed(self, peer: str) -> None:
        """Count a wrong code from this address, and forget those too old to matter."""
        now = clock.monotonic()
        failures = self._failures.pop(_network_of(peer), deque())
        while failures and now - failures[0] > LONGEST_SECONDS:
            failures.popleft()
        failures.append(now)
        self._failures[_network_of(peer)] = failures  # at the end: the oldest failure is removed first
        if len(self._failures) > MAX_PEERS:
            del self._failures[next(iter(self._failures))]


def _network_of(peer: str) -> str:
    """Return the address, or the /64 network of an IPv6 address, because a machine has many of these."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _refusal(seconds: float) -> TooMany:
    """Return the error that tells how long to wait."""
    error = TooMany(
        f"too many wrong codes; wait {_in_minutes(seconds)}, then run `bullpen url` for a new one"
    )
    error.retry_after = max(1, math.ceil(seconds))
    return error


def _in_minutes(seconds: float) -> str:
    """Return a waiting time as text, in minutes."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes > 1 else "a minute"
