"""Answers of routes: JSON encoded once, and idempotent requests, which get the same answer when repeated."""

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from starlette.responses import Response

from ...domain.errors import BullpenError, Conflict, Invalid
from ...store.answers import PendingAnswer
from ...store.append import AlreadyAnswered, StoredAnswer
from ...wire.json import decode, encode
from ..context import context_of

MAX_KEY_LENGTH = 200
ANONYMOUS = "nobody"  # the owner of the keys of login requests; part of stored keys

T = TypeVar("T")
Complete = Callable[[Request, int, dict[str, Any]], Response]


def json_answer(value: Any, status: int = 200) -> Response:
    """Return an answer with this value as JSON."""
    return json_bytes(encode(value), status)


def json_bytes(body: bytes, status: int = 200) -> Response:
    """Return an answer with encoded JSON; without a body if it is empty."""
    if not body:
        return Response(status_code=status)
    return Response(body, status, media_type="application/json")


class IdempotentRequest:
    """A request that may have an `Idempotency-Key`.

    A repeated request with the same key has no further effect, and gets the same answer.
    """

    def __init__(self, key: str | None, body_hash: str) -> None:
        self._key = key
        self._body_hash = body_hash

    @property
    def id(self) -> str | None:
        """Return an id that all tries of this request share; None without a key."""
        return self._key

    def pending_answer(self, status: int, render: Callable[[T], Any]) -> PendingAnswer[T] | None:
        """Return the answer to store with the effect of the request; None without a key.

        `render` makes the JSON body from the result of that effect.
        """
        if self._key is None:
            return None
        return PendingAnswer(self._key, self._body_hash, lambda result: (status, encode(render(result))))

    def empty_answer(self, status: int = 204) -> PendingAnswer[Any] | None:
        """Return an answer without a body to store with the effect of the request; None without a key."""
        if self._key is None:
            return None
        return PendingAnswer(self._key, self._body_hash, lambda _: (status, b""))

    def check(self, stored: StoredAnswer) -> None:
        """Raise Conflict if the key was used for a request with another body."""
        if stored.body_hash != self._body_hash:
            raise Conflict("this Idempotency-Key was used for another request")


async def idempotent_request(
    request: Request, idempotency_key: Annotated[str | None, Header(max_length=MAX_KEY_LENGTH)] = None
) -> AsyncIterator[IdempotentRequest]:
    """Dependency of every POST route: raise AlreadyAnswered if the key is known, Invalid if it is malformed.

    When the route fails, look for an answer once more.
    """
    if idempotency_key is None:
        yield IdempotentRequest(None, "")
        return
    if not idempotency_key.isprintable() or not idempotency_key:
        raise Invalid("an Idempotency-Key is 1 to 200 printable characters")
    principal = request.scope.get("principal")
    owner = principal.id if principal else ANONYMOUS
    scope = f"{owner} {request.method} {request.url.path} {idempotency_key}"
    key = hashlib.sha256(scope.encode()).hexdigest()
    idempotent = IdempotentRequest(key, hashlib.sha256(await request.body()).hexdigest())
    request.state.idempotent = idempotent
    store = context_of(request).sessions.store
    if stored := await store.stored_answer(key):
        raise AlreadyAnswered(stored)
    try:
        yield idempotent
    except AlreadyAnswered:
        raise
    except BullpenError:
        # The cause may be the same request, which arrived twice at the same time and has had its effect.
        if stored := await store.stored_answer(key):
            raise AlreadyAnswered(stored) from None
        raise


IdempotentDep = Annotated[IdempotentRequest, Depends(idempotent_request)]


def split_seed(stored: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the seed of a stored answer, and the answer without it."""
    return stored["seed"], {name: value for name, value in stored.items() if name != "seed"}


class completed_by:
    """Dependency of a route whose answer has secrets: they are not stored; `complete` adds them each time."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    async def __call__(self, request: Request) -> None:
        request.state.complete = self._complete


async def repeat(request: Request, error: Exception) -> Response:
    """Handle AlreadyAnswered: send the stored answer, or a Conflict if the body differs."""
    assert isinstance(error, AlreadyAnswered)
    stored = error.answer
    request.state.idempotent.check(stored)
    complete: Complete | None = getattr(request.state, "complete", None)
    if complete is None:
        return json_bytes(stored.body, stored.status)
    return complete(request, stored.status, decode(stored.body))
