"""How much a request may bring: counted while it comes, so that nobody fills the memory."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from ..workers.images import MAX_IMAGE_BYTES

MOST = 1 << 20  # bytes
MOST_OF_RECORDINGS = 2 << 30  # goes to a file, not to memory
MOST_DIGITS = 20  # of a length; no 64-bit number has more
MOST_OF_IMAGES = MAX_IMAGE_BYTES + 1  # one more than an image may have, so that its own refusal says why


def most(path: str) -> int:
    """The bytes a body sent to this path may have."""
    if path.startswith("/api/recordings/") and path != "/api/recordings/rebuild":
        return MOST_OF_RECORDINGS
    return MOST_OF_IMAGES if path.startswith("/api/sessions/") and path.endswith("/images") else MOST


def too_large(path: str) -> str:
    return f"a body may have {most(path)} bytes, not more"


def announced(headers: Headers) -> int:
    """Return the length a request announces; 0 if it announces none. The parser has checked the number."""
    text = headers.get("content-length", "")
    return int(text[:MOST_DIGITS]) if text.isdecimal() else 0


def limited(receive: Receive, path: str) -> Receive:
    """The same request; reading more than it may bring ends in 413."""
    size, limit = 0, most(path)

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, too_large(path))
        return message

    return receiving
