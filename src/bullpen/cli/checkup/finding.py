"""Define the result of a check."""

from enum import StrEnum
from typing import NamedTuple


class CheckStatus(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    WARN = "warn"  # works, but something should be done
    FAIL = "fail"


class Finding(NamedTuple):
    """What a check found, and what the user can do about it (`advice`, empty if nothing)."""

    name: str
    verdict: CheckStatus
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(name, CheckStatus.OK, found)


def warn(name: str, found: str, advice: str) -> Finding:
    """Return a finding that does not prevent work."""
    return Finding(name, CheckStatus.WARN, found, advice)


def fail(name: str, found: str, advice: str) -> Finding:
    """Return a finding that must be fixed."""
    return Finding(name, CheckStatus.FAIL, found, advice)
