"""Collect uncaught errors of every page, so that a test with such an error fails."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import BrowserContext, ConsoleMessage, WebError

_errors: list[str] = []


def watch_errors(profile: BrowserContext) -> None:
    """Record uncaught exceptions and unhandled rejections of all pages of this profile."""
    profile.on("weberror", _record_error)
    profile.on("console", _record_message)


@contextmanager
def no_uncaught_errors() -> Iterator[None]:
    """Raise AssertionError at the end of the block if a watched page had an uncaught error in it."""
    take_errors()
    yield
    errors = take_errors()
    assert not errors, "uncaught errors in the page:\n" + "\n".join(errors)


def take_errors() -> list[str]:
    """Return the errors recorded since the last call."""
    taken = list(_errors)
    _errors.clear()
    return taken


def _record_error(thrown: WebError) -> None:
    """Record the error, unless a part of the page could not be loaded: tests kill servers at any moment."""
    text = thrown.error.stack or str(thrown.error)
    if "Unable to preload CSS" not in text:
        _errors.append(text)


def _record_message(message: ConsoleMessage) -> None:
    """Record uncaught exceptions that web workers and libraries report only on the console."""
    if message.type == "error" and message.text.startswith("Uncaught"):
        _errors.append(message.text)
