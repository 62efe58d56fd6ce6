"""Shorter waits for a server that a test starts, or for the test itself; see bullpen/intervals.py."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

VARIABLE = "BULLPEN_TEST_INTERVALS"


def in_environment(**seconds: float) -> dict[str, str]:
    """Return the variable for the environment of a server."""
    return {VARIABLE: json.dumps(seconds)}


@contextmanager
def shortened(**seconds: float) -> Iterator[None]:
    """Shorten waits in this process, and in those that it starts meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, json.dumps(seconds))
        yield
