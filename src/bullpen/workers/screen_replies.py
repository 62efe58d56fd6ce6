"""Collect the replies of a screen that its program was not given yet, so that each is typed exactly once.

Each number is handed out once and in order, since the keeper refuses gaps. Replies that are too late or too
many are handed out without bytes.
"""

from typing import NamedTuple

MAX_BYTES = 64 << 10  # of replies that wait; the bytes of more are dropped


class QueryReply(NamedTuple):
    """A reply to a query of a program, numbered over the whole run."""

    n: int
    data: bytes


class QueryReplies:
    """The replies of one screen that wait to be typed."""

    def __init__(self, answered: int) -> None:
        """`answered`: the last number that was handed out."""
        self._answered = answered
        self._waiting: dict[int, tuple[int, bytes]] = {}
        self._size = 0

    def add(self, offset: int, replies: list[QueryReply]) -> None:
        """Add replies to queries in the output that was fed from `offset` on."""
        for n, data in replies:
            if n > self._answered and self._size + len(data) <= MAX_BYTES:
                self._waiting[n] = (offset, data)
                self._size += len(data)

    def take(self, last: int, answer_from: int) -> list[QueryReply]:
        """Return all replies up to the number `last`; those to queries before `answer_from` have no bytes."""
        taken = []
        for n in range(self._answered + 1, last + 1):
            offset, data = self._waiting.get(n, (0, b""))
            taken.append(QueryReply(n, data if offset >= answer_from else b""))
        self._answered, self._size = max(self._answered, last), 0
        self._waiting.clear()
        return taken
