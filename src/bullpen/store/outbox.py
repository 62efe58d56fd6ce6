"""Lines on their way to a child, numbered in the transaction that stores them: a rollback leaves no gap."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from sqlalchemy import Connection, delete, select

from .append import Append
from .projections import Row
from .statements import add, put
from .tables import outbox, outbox_heads

Numbers = tuple[int, ...]


class DeliveredLines(Struct, frozen=True):
    """The keeper has the lines up to `n`: they need not be kept."""

    worker_id: str
    run: int
    n: int


class OutboxLines:
    """The lines of a group of appends."""

    def __init__(self, connection: Connection, appends: Sequence[Append]) -> None:
        wanted = {line.worker_id for append in appends for line in append.outbox}
        self._heads = _read_heads(connection, wanted) if wanted else {}
        self._moved: dict[tuple[str, int], int] = {}
        self._rows: list[Row] = []

    def number(self, append: Append) -> Numbers | Exception:
        """Numbers the lines of an append; one that cannot be made takes its append with it, and no number."""
        heads = dict(self._moved)
        rows: list[Row] = []
        for line in append.outbox:
            run = (line.worker_id, line.run)
            n = heads.get(run, self._heads.get(run, 0)) + 1
            try:
                data = line.make(n)
            except Exception as error:  # noqa: BLE001 (handed to whoever awaits the append)
                return error
            heads[run] = n
            rows.append({"worker_id": line.worker_id, "run": line.run, "n": n, "bytes": data})
        self._moved = heads
        self._rows += rows
        return tuple(row["n"] for row in rows)

    def write(self, connection: Connection) -> None:
        add(connection, outbox, self._rows)
        put(
            connection,
            outbox_heads,
            [{"worker_id": worker, "run": run, "n": n} for (worker, run), n in self._moved.items()],
        )


def remove_delivered(connection: Connection, items: Iterable[DeliveredLines]) -> None:
    for item in items:
        connection.execute(
            delete(outbox).where(
                outbox.c.worker_id == item.worker_id, outbox.c.run == item.run, outbox.c.n <= item.n
            )
        )


def read_lines(connection: Connection, worker_id: str, run: int) -> list[tuple[int, bytes]]:
    found = connection.execute(
        select(outbox.c.n, outbox.c.bytes)
        .where(outbox.c.worker_id == worker_id, outbox.c.run == run)
        .order_by(outbox.c.n)
    )
    return [(row.n, row.bytes) for row in found]


def _read_heads(connection: Connection, workers: set[str]) -> dict[tuple[str, int], int]:
    found = connection.execute(select(outbox_heads).where(outbox_heads.c.worker_id.in_(workers)))
    return {(row.worker_id, row.run): row.n for row in found}
