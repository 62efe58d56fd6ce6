"""Replies the program has not been given yet, so that none is lost, whoever led the screen past a question.

Every number is handed out once, in order: the keeper refuses a gap. What is too late, or too much, is handed
out without bytes.
"""

from typing import NamedTuple

MAX_BYTES = 64 << 10  # a program that asks for more at once gets no more


class QueryReply(NamedTuple):
    """An answer to what a program asked, numbered over the whole run."""

    n: int
    data: bytes


class QueryReplies:
    def __init__(self, given: int) -> None:
        """`given`: the last number that was handed out."""
        self._given = given
        self._waiting: dict[int, tuple[int, bytes]] = {}
        self._size = 0

    def add(self, offset: int, replies: list[QueryReply]) -> None:
        """`offset`: where the bytes that asked for them began."""
        for n, data in replies:
            if n > self._given and self._size + len(data) <= MAX_BYTES:
                self._waiting[n] = (offset, data)
                self._size += len(data)

    def take(self, last: int, answer_from: int) -> list[QueryReply]:
        """All up to the number `last`; those asked for before `answer_from` come too late."""
        taken = []
        for n in range(self._given + 1, last + 1):
            offset, data = self._waiting.get(n, (0, b""))
            taken.append(QueryReply(n, data if offset >= answer_from else b""))
        self._given, self._size = max(self._given, last), 0
        self._waiting.clear()
        return taken
