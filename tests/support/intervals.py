"""Shorten the waits of a server that a test starts, or of the test process; see bullpen/intervals.py."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

VARIABLE = "BULLPEN_TEST_INTERVALS"


def in_environment(**seconds: float) -> dict[str, str]:
    """Return the variable for the environment of a server."""
    return {VARIABLE: json.dumps(seconds)}


def marked(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the variable with the waits that the mark `intervals` of a test or a module sets."""
    mark = request.node.get_closest_marker("intervals")
    return in_environment(**mark.kwargs) if mark else {}


def exported(**seconds: float) -> str:
    """Return an assignment of the variable for a shell, to be typed before a command."""
    return f"{VARIABLE}={shlex.quote(json.dumps(seconds))}"


@contextmanager
def shortened(**seconds: float) -> Iterator[None]:
    """Shorten waits in this process and in processes that it starts inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, json.dumps(seconds))
        yield
