"""How often a code may be tried wrongly from one place: twice a minute, twelve times an hour."""

import ipaddress
import math
from collections import deque

from .. import clock
from ..domain.errors import TooMany

LIMITS = ((60.0, 2), (3600.0, 12))
LONGEST = LIMITS[-1][0]
PLACES = 1000  # remembered at most


class LoginAttempts:
    """Wrong codes by where they came from, so that a stranger does not keep the owner out."""

    def __init__(self) -> None:
        self._failures: dict[str, deque[float]] = {}

    def check(self, peer: str) -> None:
        """Raises TooMany while a limit is reached."""
        now = clock.monotonic()
        failures = self._failures.get(_place(peer), deque())
        for seconds, most in LIMITS:
            recent = [at for at in failures if now - at < seconds]
            if len(recent) >= most:
                raise _too_many(recent[-most] + seconds - now)

    def failed(self, peer: str) -> None:
        now = clock.monotonic()
        failures = self._failures.pop(_place(peer), deque())
        while failures and now - failures[0] > LONGEST:
            failures.popleft()
        failures.append(now)
        self._failures[_place(peer)] = failures  # at the end: who failed longest ago is forgotten first
        if len(self._failures) > PLACES:
            del self._failures[next(iter(self._failures))]


def _place(peer: str) -> str:
    """An address; of IPv6 the network, since one machine has as many addresses as it likes."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _too_many(seconds: float) -> TooMany:
    error = TooMany(f"too many wrong codes; wait {_readable(seconds)}, then run `bullpen url` for a new one")
    error.retry_after = max(1, math.ceil(seconds))
    return error


def _readable(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes > 1 else "a minute"
