"""Errors of the server become the same exceptions in the client."""

import pytest

from bullpen.client.errors import error_of_answer, error_of_close_code
from bullpen.domain.errors import (
    BullpenError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
    Unauthorized,
)


@pytest.mark.parametrize("kind", [Conflict, Forbidden, Invalid, NotFound, TooMany, Unauthorized])
def test_a_code_becomes_its_exception(kind: type[BullpenError]) -> None:
    error = error_of_answer(500, {"error": kind.code, "message": "because"})
    assert type(error) is kind
    assert str(error) == "because"


def test_an_unknown_code_keeps_its_name_and_gets_the_class_of_its_status() -> None:
    error = error_of_answer(409, {"error": "queue_full", "message": "no room"})
    assert isinstance(error, Conflict)
    assert error.code == "queue_full"


@pytest.mark.parametrize("body", [None, [], "text", {"unexpected": 1}])
def test_an_error_response_without_a_message_is_still_an_error(body: object) -> None:
    assert "502" in str(error_of_answer(502, body))


def test_the_time_to_wait_is_kept() -> None:
    error = error_of_answer(429, {"error": "too_many", "message": "later"}, {"retry-after": "7"})
    assert isinstance(error, TooMany)
    assert error.retry_after == 7


def test_a_close_code_is_an_error_or_allows_a_retry() -> None:
    assert isinstance(error_of_close_code(4401), Unauthorized)
    assert isinstance(error_of_close_code(4404, "no session x"), NotFound)
    assert error_of_close_code(4408) is None
    assert error_of_close_code(1006) is None
    assert error_of_close_code(None) is None
