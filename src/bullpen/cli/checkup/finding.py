"""What a check found, and what a person can do about it."""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, or will when asked to
    FAIL = "fail"


class Finding(NamedTuple):
    """One line of a checkup; `advice` is empty when there is nothing to do."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, Verdict.OK, found)


def warn(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Verdict.WARN, found, advice)


def fail(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Verdict.FAIL, found, advice)
