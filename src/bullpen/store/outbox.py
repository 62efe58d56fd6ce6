"""Lines to child processes, numbered in the transaction that stores them: a rollback leaves no gap."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from sqlalchemy import Connection, delete, select

from .append import Append
from .projections import Row
from .statements import insert_rows, upsert_rows
from .tables import outbox, outbox_heads

Numbers = tuple[int, ...]


class DeliveredLines(Struct, frozen=True):
    """A database job: the keeper has the outbox lines up to `n`, so they can be deleted."""

    worker_id: str
    run: int
    n: int


class OutboxLines:
    """The outbox lines in a group of appends."""

    def __init__(self, connection: Connection, appends: Sequence[Append]) -> None:
        worker_ids = {line.worker_id for append in appends for line in append.outbox}
        self._heads = _read_heads(connection, worker_ids) if worker_ids else {}
        self._moved: dict[tuple[str, int], int] = {}
        self._rows: list[Row] = []

    def number(self, append: Append) -> Numbers | Exception:
        """Number the outbox lines of an append and return the numbers.

        If a line cannot be made, return its exception and number none.
        """
        heads = dict(self._moved)
        rows: list[Row] = []
        for line in append.outbox:
            run = (line.worker_id, line.run)
            n = heads.get(run, self._heads.get(run, 0)) + 1
            try:
                data = line.make(n)
            except Exception as error:  # noqa: BLE001 (handed to the caller of the append)
                return error
            heads[run] = n
            rows.append({"worker_id": line.worker_id, "run": line.run, "n": n, "bytes": data})
        self._moved = heads
        self._rows += rows
        return tuple(row["n"] for row in rows)

    def write(self, connection: Connection) -> None:
        """Store the outbox lines and the last number of each run."""
        insert_rows(connection, outbox, self._rows)
        upsert_rows(
            connection,
            outbox_heads,
            [{"worker_id": worker, "run": run, "n": n} for (worker, run), n in self._moved.items()],
        )


def remove_delivered(connection: Connection, items: Iterable[DeliveredLines]) -> None:
    """Delete delivered outbox lines."""
    for item in items:
        connection.execute(
            delete(outbox).where(
                outbox.c.worker_id == item.worker_id, outbox.c.run == item.run, outbox.c.n <= item.n
            )
        )


def read_lines(connection: Connection, worker_id: str, run: int) -> list[tuple[int, bytes]]:
    """Return the stored outbox lines of a run as (number, bytes), in order."""
    found = connection.execute(
        select(outbox.c.n, outbox.c.bytes)
        .where(outbox.c.worker_id == worker_id, outbox.c.run == run)
        .order_by(outbox.c.n)
    )
    return [(row.n, row.bytes) for row in found]


def _read_heads(connection: Connection, workers: set[str]) -> dict[tuple[str, int], int]:
    """Return the last outbox number of each run of some workers."""
    found = connection.execute(select(outbox_heads).where(outbox_heads.c.worker_id.in_(workers)))
    return {(row.worker_id, row.run): row.n for row in found}
