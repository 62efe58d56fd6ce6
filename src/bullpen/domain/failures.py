"""Recognize and describe failures of the machine: no file descriptor, memory or thread, or a disk error."""

import errno

from .errors import BullpenError, Unavailable

_REASONS = {
    errno.EMFILE: "the server has too many open files",
    errno.ENFILE: "the machine has too many open files",
    errno.ENOMEM: "the machine is out of memory",
    errno.ENOBUFS: "the machine is out of memory",
    errno.EAGAIN: "the machine has no resources left for another process or thread",
    errno.EIO: "a disk or another device failed with an input/output error",
}
FAILURES = frozenset(_REASONS) - {errno.EAGAIN}  # EAGAIN has other meanings, too
_NO_THREAD = "can't start new thread"  # the text is all that Python's RuntimeError has


def explain(error: BaseException) -> BullpenError | None:
    """Return the error to report to a user, or None if the exception is a bug.

    An exception group is explained only if each exception in it is, so that no bug is hidden by a failure.
    """
    match error:
        case BullpenError():
            return error
        case BaseExceptionGroup():
            explained = [explain(each) for each in error.exceptions]
            return explained[0] if all(explained) else None
        case OSError() if error.errno in _REASONS:
            return Unavailable(_REASONS[error.errno])
        case MemoryError():
            return Unavailable(_REASONS[errno.ENOMEM])
        case RuntimeError() if str(error) == _NO_THREAD:
            return Unavailable(_REASONS[errno.EAGAIN])
    return None


def describe_failure(error: BaseException) -> str:
    """Return the cause of an exception as one sentence for a user; a bug gives "internal error"."""
    explained = explain(error)
    return "internal error" if explained is None else str(explained)
