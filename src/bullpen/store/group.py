"""Many appends as one transaction: an `executemany` for each table, each projection written once."""

from collections.abc import Sequence
from itertools import chain

from sqlalchemy import Connection

from .answers import Answers
from .append import Append
from .outbox import Delivered, Lines, Numbers, remove_delivered
from .projections import event_row, message_rows, session_row, worker_rows
from .saved import snapshot_row
from .statements import add, put
from .tables import consumed, events, messages, sessions, snapshots, workers


class Group:
    """The kind of job an append is; its result is the numbers of its outbox lines."""

    together = True

    def write(
        self, connection: Connection, items: Sequence[Append | Delivered], /
    ) -> list[Numbers | Exception]:
        appends = [item for item in items if isinstance(item, Append)]
        answers = Answers(connection, appends)
        lines = Lines(connection, appends)
        accepted: list[Append] = []
        results: list[Numbers | Exception] = []
        for item in items:
            result: Numbers | Exception = ()
            if isinstance(item, Append):
                result = answers.refusal(item) or lines.number(item)
                if not isinstance(result, Exception):
                    answers.accept(item)
                    accepted.append(item)
            results.append(result)
        _write_events(connection, accepted)
        lines.write(connection)
        answers.write(connection)
        remove_delivered(connection, (item for item in items if isinstance(item, Delivered)))
        return results


def _write_events(connection: Connection, appends: Sequence[Append]) -> None:
    changed = [append for append in appends if append.entries]
    last = {append.snapshot.id: append.snapshot for append in changed}
    put(connection, sessions, [session_row(snapshot) for snapshot in last.values()])
    last_rows = {row["id"]: row for row in chain.from_iterable(map(worker_rows, changed))}
    put(connection, workers, list(last_rows.values()))
    add(
        connection,
        events,
        [event_row(append.snapshot.id, entry) for append in changed for entry in append.entries],
    )
    add(
        connection,
        messages,
        [row for append in changed for row in message_rows(append.snapshot.id, append.entries)],
    )
    saved = {row["session_id"]: row for row in map(snapshot_row, changed) if row}
    put(connection, snapshots, list(saved.values()))
    _write_consumed(connection, appends)


def _write_consumed(connection: Connection, appends: Sequence[Append]) -> None:
    marks = [append.consumed for append in appends if append.consumed]
    rows = {
        (mark.worker_id, mark.run): {"worker_id": mark.worker_id, "run": mark.run, "offset": mark.offset}
        for mark in marks
    }
    put(connection, consumed, list(rows.values()))
