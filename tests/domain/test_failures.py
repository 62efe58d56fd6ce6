"""The sentences for exceptions that are not errors in the program."""

import errno

import pytest

from bullpen.domain.errors import Conflict, Unavailable
from bullpen.domain.failures import describe_failure, explain

REFUSED = Conflict("no")
FULL = OSError(errno.EMFILE, "too many")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FULL, "the server has too many open files"),
        (OSError(errno.EIO, "x"), "a disk or another device failed with an input/output error"),
        (MemoryError(), "the machine is out of memory"),
        (
            RuntimeError("can't start new thread"),
            "the machine has no resources left for another process or thread",
        ),
        (ExceptionGroup("x", [FULL, MemoryError()]), "the server has too many open files"),
    ],
)
def test_a_failure_of_the_machine_has_its_own_sentence(error: Exception, sentence: str) -> None:
    explained = explain(error)
    assert type(explained) is Unavailable
    assert str(explained) == describe_failure(error) == sentence


def test_a_refusal_keeps_its_own_sentence() -> None:
    assert explain(REFUSED) is REFUSED
    assert explain(ExceptionGroup("x", [ExceptionGroup("y", [REFUSED])])) is REFUSED
    assert describe_failure(REFUSED) == "no"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, "x"),
        RuntimeError("x"),
        KeyError("x"),
        ExceptionGroup("x", [FULL, KeyError("x")]),
    ],
)
def test_an_error_in_the_program_is_reported_as_internal(error: Exception) -> None:
    assert explain(error) is None
    assert describe_failure(error) == "internal error"
