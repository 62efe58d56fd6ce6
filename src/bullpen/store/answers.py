"""Stored answers of requests with an idempotency key, kept for a day: a repeated request has no effect."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from sqlalchemy import Connection, delete, select

from .. import clock
from .append import AlreadyAnswered, Append, StoredAnswer
from .statements import insert_rows
from .tables import answers

RETENTION_MS = 24 * 60 * 60 * 1000

T = TypeVar("T")


class PendingAnswer(Struct, Generic[T], frozen=True):
    """The answer of a request before its effect is stored; both are stored in one transaction.

    `render` makes status and body from the result: a snapshot, or what a database write returns.
    """

    key: str
    body_hash: str
    render: Callable[[T], tuple[int, bytes]]


def with_answer(
    work: Callable[[Connection], T], answer: PendingAnswer[T] | None
) -> Callable[[Connection], T]:
    """Return the database work with the answer of its request stored in the same transaction.

    The work raises AlreadyAnswered if the idempotency key has been used.
    """
    if answer is None:
        return work

    def write(connection: Connection) -> T:
        for earlier in read_answers(connection, [answer.key]):
            raise AlreadyAnswered(earlier)
        result = work(connection)
        _store(connection, [StoredAnswer(answer.key, answer.body_hash, *answer.render(result))])
        return result

    return write


class AnswerGroup:
    """The answers of requests in a group of appends: each idempotency key is answered once."""

    def __init__(self, connection: Connection, appends: Sequence[Append]) -> None:
        keys = [append.answer.key for append in appends if append.answer]
        self._known = {answer.key: answer for answer in read_answers(connection, keys)} if keys else {}
        self._new: list[StoredAnswer] = []

    def refusal(self, append: Append) -> AlreadyAnswered | None:
        """Return the error for an append whose idempotency key has been used, else None."""
        earlier = self._known.get(append.answer.key) if append.answer else None
        return AlreadyAnswered(earlier) if earlier else None

    def accept(self, append: Append) -> None:
        """Add the answer of an append, to be stored with the group."""
        if append.answer:
            self._known[append.answer.key] = append.answer
            self._new.append(append.answer)

    def write(self, connection: Connection) -> None:
        """Store the added answers."""
        if self._new:
            _store(connection, self._new)


def read_answers(connection: Connection, keys: Sequence[str]) -> list[StoredAnswer]:
    """Return the stored answers with these idempotency keys that have not expired."""
    found = connection.execute(
        select(answers).where(answers.c.key.in_(keys), answers.c.created_at > clock.now_ms() - RETENTION_MS)
    )
    return [StoredAnswer(row.key, row.body_hash, row.status, row.body) for row in found]


def _store(connection: Connection, new: Sequence[StoredAnswer]) -> None:
    """Store answers, and delete those of all requests that have expired."""
    now = clock.now_ms()
    connection.execute(delete(answers).where(answers.c.created_at <= now - RETENTION_MS))
    rows = [
        {
            "key": answer.key,
            "body_hash": answer.body_hash,
            "status": answer.status,
            "body": answer.body,
            "created_at": now,
        }
        for answer in new
    ]
    insert_rows(connection, answers, rows)
