"""How much a request may bring: counted while it comes, so that nobody fills the memory."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

MOST = 1 << 20  # bytes
TOO_LARGE = f"a body may have {MOST} bytes, not more"


def announced(headers: Headers) -> int:
    """The length a request says it has; 0 when it does not say."""
    text = headers.get("content-length", "")
    return int(text) if text.isdecimal() else 0


def limited(receive: Receive) -> Receive:
    """The same request; reading more than it may bring ends in 413."""
    size = 0

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receiving
