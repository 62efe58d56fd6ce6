"""How a route answers: JSON that is encoded once, and the same again for a request that comes twice."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from starlette.responses import Response

from ...domain.errors import Conflict, Invalid
from ...domain.snapshot import Snapshot
from ...log.log import Answer
from ...store.append import AlreadyAnswered, StoredAnswer
from ...wire.json import encode
from ..context import context_of
from ..scopes import principal_of

LONGEST_KEY = 200


def json_answer(value: Any, status: int = 200) -> Response:
    return json_bytes(encode(value), status)


def json_bytes(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


class Once:
    """A request that may carry an `Idempotency-Key`: it takes effect once and is always answered the same."""

    def __init__(self, key: str | None, body_hash: str) -> None:
        self._key = key
        self._body_hash = body_hash

    def answer(self, status: int, render: Callable[[Snapshot], Any]) -> Answer | None:
        """What is stored with the effect, so that the request can be answered again."""
        if self._key is None:
            return None
        return Answer(self._key, self._body_hash, lambda snapshot: (status, encode(render(snapshot))))

    def again(self, stored: StoredAnswer) -> Response:
        if stored.body_hash != self._body_hash:
            raise Conflict("this Idempotency-Key was used for another request")
        return json_bytes(stored.body, stored.status)


async def once(
    request: Request, idempotency_key: Annotated[str | None, Header(max_length=LONGEST_KEY)] = None
) -> Once:
    """The dependency of every POST. Raises AlreadyAnswered when the key is known."""
    if idempotency_key is None:
        return Once(None, "")
    if not idempotency_key.isprintable() or not idempotency_key:
        raise Invalid("an Idempotency-Key is 1 to 200 printable characters")
    scope = f"{principal_of(request).id} {request.method} {request.url.path} {idempotency_key}"
    key = hashlib.sha256(scope.encode()).hexdigest()
    this = Once(key, hashlib.sha256(await request.body()).hexdigest())
    request.state.once = this
    if stored := await context_of(request).sessions.store.answer(key):
        raise AlreadyAnswered(stored)
    return this


async def repeat(request: Request, error: Exception) -> Response:
    """The handler of AlreadyAnswered: the first answer again, or a Conflict for another body."""
    assert isinstance(error, AlreadyAnswered)
    this: Once = request.state.once
    return this.again(error.answer)


OnceDep = Annotated[Once, Depends(once)]
