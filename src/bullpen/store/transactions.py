"""Transactions on the writing connection, and what became of each even when the connection is lost."""

from collections.abc import Sequence
from threading import Event
from typing import Any, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from .engine import passes, refusal
from .receipts import take_receipt, was_committed

RETRY_SECONDS = 0.5


class Kind(Protocol):
    """What items of one kind come to in the database."""

    together: bool  # whether several share a transaction

    def write(self, connection: Connection, items: Sequence[Any], /) -> Sequence[Any]:
        """One result for each item; a result that is an exception belongs to its item alone."""


class Transactions:
    """Runs one after another; all from one thread."""

    def __init__(self, engine: Engine) -> None:
        self.connection = engine.connect()
        self.committed = 0
        self.refused = 0  # by the disk, a lock, or a server out of reach
        self._given_up = Event()

    def run(self, kind: Kind, items: Sequence[Any], again: bool = True) -> Sequence[Any]:
        """Write the items and commit. Unavailable: nothing was stored, and it may work later."""
        receipt = None
        try:
            with self.connection.begin():
                results = kind.write(self.connection, items)
                receipt = take_receipt(self.connection)
        except DBAPIError as error:
            if not passes(error):
                raise
            if receipt is None and error.connection_invalidated and again:
                # The server was restarted while nothing was written; a new connection may do.
                return self.run(kind, items, again=False)
            if receipt is None or not self._redeem(receipt):
                self.refused += 1
                raise refusal(error, self.connection.engine.url) from error
        self.committed += 1
        return results

    def give_up(self) -> None:
        """No more waiting for a server that does not come back; may be called from any thread."""
        self._given_up.set()

    def _redeem(self, receipt: str) -> bool:
        """Whether a commit whose answer was lost took place; nothing may be written before that is known."""
        while True:
            try:
                with self.connection.begin():
                    outcome = was_committed(self.connection, receipt)
            except DBAPIError as error:
                if not passes(error):
                    raise
                outcome = None
            if outcome is not None:
                return outcome
            if self._given_up.wait(RETRY_SECONDS):
                return False
