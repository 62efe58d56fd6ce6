"""How long the server and the client wait, where a test cannot wait that long.

The defaults are what Bullpen uses. A test sets some of them in BULLPEN_TEST_INTERVALS, a JSON object, for a
process that it starts or for itself. It is not a setting: a user has no reason to change one.
"""

import json
import os
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The intervals, in seconds."""

    heartbeat: float = 15.0  # a client that receives nothing for longer knows that the connection is dead
    viewer_grace: float = 10.0  # a reload of the page must not end a session
    viewer_grace_after_start: float = 60.0  # nor a restart of the server
    viewer_grace_after_leave: float = 5.0  # but a page that said that it leaves means it
    outage_notice: float = 1.0  # an outage that is shorter is not shown in an attached terminal
    stop: float = 5.0  # a process that was asked to end is killed after this time
    database_heartbeat: float = 5.0  # an idle server learns within this time that its database is away
    lock_wait: float = 5.0  # an SQLite statement waits this long for a lock that another process holds
    screen_check: float = 0.25  # between two readings of the screen of an agent in a terminal
    screen_settle: float = 0.3  # its new activity must hold this long: a screen is drawn in several pieces
    foreground_check: float = 1.0  # between two looks at the programs in the foreground of terminals
    limit_check: float = 0.5  # between two looks at what the sandboxed runs use
    stall: float = 30.0  # a client gives up a request if the server sends no byte for longer
    retry: float = 1.0  # a client's second retry; later ones double it


def intervals() -> Intervals:
    """Return the intervals of this process.

    They are not read at the import: a server of a test is a fork of a process that has imported this module.
    """
    return _read(os.environ.get("BULLPEN_TEST_INTERVALS", "{}"))


@lru_cache(maxsize=1)
def _read(text: str) -> Intervals:
    """Return the intervals in a JSON object; those that it does not name have their defaults."""
    return Intervals(**json.loads(text))
