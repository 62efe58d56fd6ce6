"""How a route answers: JSON that is encoded once, and the same again for a request that comes twice."""

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from starlette.responses import Response

from ...domain.errors import BullpenError, Conflict, Invalid
from ...domain.snapshot import Snapshot
from ...log.log import RequestAnswer
from ...store.answers import KeptAnswer
from ...store.append import AlreadyAnswered, StoredAnswer
from ...wire.json import decode, encode
from ..context import context_of

LONGEST_KEY = 200
NOBODY = "nobody"  # whose keys are those of a login

T = TypeVar("T")
Complete = Callable[[Request, int, dict[str, Any]], Response]


def json_answer(value: Any, status: int = 200) -> Response:
    return json_bytes(encode(value), status)


def json_bytes(body: bytes, status: int = 200) -> Response:
    if not body:
        return Response(status_code=status)
    return Response(body, status, media_type="application/json")


class IdempotentRequest:
    """A request that may carry an `Idempotency-Key`: it takes effect once and is always answered the same."""

    def __init__(self, key: str | None, body_hash: str) -> None:
        self._key = key
        self._body_hash = body_hash

    @property
    def id(self) -> str | None:
        """What all tries of this request have in common."""
        return self._key

    def answer(self, status: int, render: Callable[[Snapshot], Any]) -> RequestAnswer | None:
        """What is stored with the events of the request, so that it can be answered again."""
        if self._key is None:
            return None
        return RequestAnswer(self._key, self._body_hash, lambda snapshot: (status, encode(render(snapshot))))

    def empty(self, status: int = 204) -> RequestAnswer | None:
        """The same for an answer without a body."""
        if self._key is None:
            return None
        return RequestAnswer(self._key, self._body_hash, lambda _: (status, b""))

    def kept(self, status: int, render: Callable[[T], Any]) -> KeptAnswer[T] | None:
        """What is stored with the records the request changes."""
        if self._key is None:
            return None
        return KeptAnswer(self._key, self._body_hash, lambda result: (status, encode(render(result))))

    def kept_empty(self, status: int = 204) -> KeptAnswer[None] | None:
        """What is kept of a request that changes nothing stored."""
        if self._key is None:
            return None
        return KeptAnswer(self._key, self._body_hash, lambda _: (status, b""))

    def check(self, stored: StoredAnswer) -> None:
        if stored.body_hash != self._body_hash:
            raise Conflict("this Idempotency-Key was used for another request")


async def once(
    request: Request, idempotency_key: Annotated[str | None, Header(max_length=LONGEST_KEY)] = None
) -> AsyncIterator[IdempotentRequest]:
    """The dependency of every POST. Raises AlreadyAnswered when the key is known."""
    if idempotency_key is None:
        yield IdempotentRequest(None, "")
        return
    if not idempotency_key.isprintable() or not idempotency_key:
        raise Invalid("an Idempotency-Key is 1 to 200 printable characters")
    principal = request.scope.get("principal")
    owner = principal.id if principal else NOBODY
    scope = f"{owner} {request.method} {request.url.path} {idempotency_key}"
    key = hashlib.sha256(scope.encode()).hexdigest()
    this = IdempotentRequest(key, hashlib.sha256(await request.body()).hexdigest())
    request.state.once = this
    store = context_of(request).sessions.store
    if stored := await store.answer(key):
        raise AlreadyAnswered(stored)
    try:
        yield this
    except AlreadyAnswered:
        raise
    except BullpenError:
        # What stood in the way may be the effect of the same request, which came twice at once.
        if stored := await store.answer(key):
            raise AlreadyAnswered(stored) from None
        raise


OnceDep = Annotated[IdempotentRequest, Depends(once)]


def without_seed(told: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The seed of an answer's secrets, and what else it says."""
    return told["seed"], {name: value for name, value in told.items() if name != "seed"}


class completed_by:
    """A route's dependency: its answers are stored without secrets, and `complete` adds them each time."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def __call__(self, request: Request) -> None:
        request.state.complete = self._complete


async def repeat(request: Request, error: Exception) -> Response:
    """The handler of AlreadyAnswered: the first answer again, or a Conflict for another body."""
    assert isinstance(error, AlreadyAnswered)
    stored = error.answer
    request.state.once.check(stored)
    complete: Complete | None = getattr(request.state, "complete", None)
    if complete is None:
        return json_bytes(stored.body, stored.status)
    return complete(request, stored.status, decode(stored.body))
