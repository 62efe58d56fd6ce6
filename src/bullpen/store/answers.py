"""Answers kept for a day, so that a request that comes twice takes effect once."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from sqlalchemy import Connection, delete, select

from .. import clock
from .append import AlreadyAnswered, Append, StoredAnswer
from .statements import add
from .tables import answers

KEPT_MS = 24 * 60 * 60 * 1000

T = TypeVar("T")


class KeptAnswer(Struct, Generic[T], frozen=True):
    """What the request behind a write is answered, stored with it; `render` sees what came of the write."""

    key: str
    body_hash: str
    render: Callable[[T], tuple[int, bytes]]


def answered(work: Callable[[Connection], T], answer: KeptAnswer[T] | None) -> Callable[[Connection], T]:
    """The same work with its answer in the same transaction; AlreadyAnswered when the key is taken."""
    if answer is None:
        return work

    def write(connection: Connection) -> T:
        for earlier in read_answers(connection, [answer.key]):
            raise AlreadyAnswered(earlier)
        result = work(connection)
        _keep(connection, [StoredAnswer(answer.key, answer.body_hash, *answer.render(result))])
        return result

    return write


class StoredAnswers:
    """The answers of a group of appends; a key is answered once."""

    def __init__(self, connection: Connection, appends: Sequence[Append]) -> None:
        keys = [append.answer.key for append in appends if append.answer]
        self._given = {answer.key: answer for answer in read_answers(connection, keys)} if keys else {}
        self._new: list[StoredAnswer] = []

    def refusal(self, append: Append) -> AlreadyAnswered | None:
        earlier = self._given.get(append.answer.key) if append.answer else None
        return AlreadyAnswered(earlier) if earlier else None

    def accept(self, append: Append) -> None:
        if append.answer:
            self._given[append.answer.key] = append.answer
            self._new.append(append.answer)

    def write(self, connection: Connection) -> None:
        if self._new:
            _keep(connection, self._new)


def read_answers(connection: Connection, keys: Sequence[str]) -> list[StoredAnswer]:
    found = connection.execute(
        select(answers).where(answers.c.key.in_(keys), answers.c.created_at > clock.now_ms() - KEPT_MS)
    )
    return [StoredAnswer(row.key, row.body_hash, row.status, row.body) for row in found]


def _keep(connection: Connection, new: Sequence[StoredAnswer]) -> None:
    now = clock.now_ms()
    connection.execute(delete(answers).where(answers.c.created_at <= now - KEPT_MS))
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
    add(connection, answers, rows)
