"""What a check found, and what a person can do about it."""

from enum import StrEnum
from typing import NamedTuple


class CheckStatus(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, or will when asked to
    FAIL = "fail"


class Finding(NamedTuple):
    """One line of a checkup; `advice` is empty when there is nothing to do."""

    name: str
    verdict: CheckStatus
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, CheckStatus.OK, found)


def warn(name: str, found: str, advice: str) -> Finding:
    return Finding(name, CheckStatus.WARN, found, advice)


def fail(name: str, found: str, advice: str) -> Finding:
    return Finding(name, CheckStatus.FAIL, found, advice)
