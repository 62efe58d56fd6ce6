"""Limit the size of request bodies, counted while they arrive, so that they cannot fill the memory."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from ..workers.images import MAX_IMAGE_BYTES

MAX_BODY_BYTES = 1 << 20
MAX_RECORDING_BYTES = 2 << 30  # goes to a file, not to memory
MAX_LENGTH_DIGITS = 20  # of a length; no 64-bit number has more
# One byte more than an image may have, so that the image check refuses it with its own message.
MAX_IMAGE_BODY_BYTES = MAX_IMAGE_BYTES + 1


def max_body_bytes(path: str) -> int:
    """Return how many bytes a body sent to this path may have."""
    if path.startswith("/api/recordings/") and path != "/api/recordings/rebuild":
        return MAX_RECORDING_BYTES
    if path.startswith("/api/sessions/") and path.endswith("/images"):
        return MAX_IMAGE_BODY_BYTES
    return MAX_BODY_BYTES


def too_large_message(path: str) -> str:
    """Return the error message for a body that is too large."""
    return f"a body may have {max_body_bytes(path)} bytes, not more"


def announced_length(headers: Headers) -> int:
    """Return the length a request announces; 0 if it announces none. The parser has checked the number."""
    text = headers.get("content-length", "")
    return int(text[:MAX_LENGTH_DIGITS]) if text.isdecimal() else 0


def limit_body(receive: Receive, path: str) -> Receive:
    """Wrap `receive`, so that reading a larger body than the path allows raises 413."""
    size, limit = 0, max_body_bytes(path)

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, too_large_message(path))
        return message

    return receiving
