"""Many appends as one transaction: an `executemany` for each table, each projection written once."""

from collections.abc import Sequence
from itertools import chain

from sqlalchemy import Connection

from .answers import StoredAnswers
from .append import Append
from .outbox import DeliveredLines, Numbers, OutboxLines, remove_delivered
from .projections import event_rows, message_rows, project_sessions, project_workers
from .saved import due_row
from .statements import add_values, put, touch
from .tables import consumed, events, messages, sessions, snapshots, workers
from .unseen import write_unseen
from .usage import write_usage


class AppendGroup:
    """The kind of job an append is; its result is the numbers of its outbox lines."""

    together = True

    def write(
        self, connection: Connection, items: Sequence[Append | DeliveredLines], /
    ) -> list[Numbers | Exception]:
        appends = [item for item in items if isinstance(item, Append)]
        answers = StoredAnswers(connection, appends)
        lines = OutboxLines(connection, appends)
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
        _write_events(connection, [append for append in accepted if append.entries])
        _write_consumed(connection, accepted)
        lines.write(connection)
        answers.write(connection)
        remove_delivered(connection, (item for item in items if isinstance(item, DeliveredLines)))
        return results


def _write_events(connection: Connection, appends: Sequence[Append]) -> None:
    for table, rows in ((sessions, project_sessions(appends)), (workers, project_workers(appends))):
        put(connection, table, list(rows.whole.values()))
        touch(connection, table, list(rows.moved.values()))
    add_values(connection, events, list(chain.from_iterable(map(event_rows, appends))))
    add_values(connection, messages, list(chain.from_iterable(map(message_rows, appends))))
    write_unseen(connection, appends)
    write_usage(connection, appends)
    saved = {row["session_id"]: row for row in map(due_row, appends) if row}
    put(connection, snapshots, list(saved.values()))


def _write_consumed(connection: Connection, appends: Sequence[Append]) -> None:
    marks = [append.consumed for append in appends if append.consumed]
    rows = {
        (mark.worker_id, mark.run): {"worker_id": mark.worker_id, "run": mark.run, "offset": mark.offset}
        for mark in marks
    }
    put(connection, consumed, list(rows.values()))
