"""Convert error answers and close codes of the server to exceptions."""

from collections.abc import Mapping
from typing import Any

from ..domain.errors import (
    BullpenError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RemoteFault,
    StorageFull,
    TooMany,
    Unauthorized,
    Unavailable,
)

_BY_CODE: dict[str, type[BullpenError]] = {
    kind.code: kind
    for kind in (
        Conflict,
        Forbidden,
        Invalid,
        NotFound,
        RemoteFault,
        StorageFull,
        TooMany,
        Unauthorized,
        Unavailable,
    )
}
_BY_STATUS: dict[int, type[BullpenError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooMany,
    502: RemoteFault,
    503: Unavailable,
    507: StorageFull,
}
_BY_CLOSE_CODE: dict[int, tuple[type[BullpenError], str]] = {
    1008: (Invalid, "the server cannot do that here"),
    4401: (Unauthorized, "the server does not take this token any more"),
    4403: (Forbidden, "this token may not do that"),
    4404: (NotFound, "the session or worker is gone"),
    4409: (Conflict, "another connection took this one's place"),
}


class ServerNotRunning(BullpenError):
    """No server answers at the expected address."""

    code = "server_not_running"


class ConnectionLost(BullpenError):
    """The connection was lost during a request, and the server did not come back in time."""

    code = "connection_lost"


def error_of_answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> BullpenError:
    """Return the exception for an error answer. A code unknown to this client is kept as its `code`."""
    fields = body if isinstance(body, dict) else {}
    code = str(fields.get("error") or "")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, BullpenError)
    error = kind(str(fields.get("message") or f"the server answered with status {status}"))
    if code:
        error.code = code
    error.details = fields.get("details")
    error.retry_after = _seconds((headers or {}).get("retry-after"), error.retry_after)
    return error


def error_of_close_code(code: int | None, reason: str = "") -> BullpenError | None:
    """Return the exception for a WebSocket close code, or None if the client should connect again."""
    if code not in _BY_CLOSE_CODE:
        return None
    kind, sentence = _BY_CLOSE_CODE[code]
    return kind(reason or sentence)


def _seconds(text: str | None, default: int | None) -> int | None:
    """Return the number of seconds in a header, or the default."""
    return int(text) if text and text.isdecimal() else default
