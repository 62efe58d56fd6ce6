"""Names the failures of the machine: no free file descriptor, no memory, no thread, a broken disk."""

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
FAILURES = frozenset(_REASONS) - {errno.EAGAIN}  # that one has other meanings, too
_NO_THREAD = "can't start new thread"  # the text is all that Python's RuntimeError has


def explain(error: BaseException) -> BullpenError | None:
    """Return what a user is told about an exception, or None if the exception is a mistake in the program.

    An exception group is explained only if each exception in it is: no mistake may hide behind a failure.
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


def reason_of(error: BaseException) -> str:
    """Return why something failed, in one sentence for a user."""
    explained = explain(error)
    return "internal error" if explained is None else str(explained)
