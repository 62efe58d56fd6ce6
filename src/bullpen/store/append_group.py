"""Write many appends in one transaction, with one `executemany` for each table."""

from collections.abc import Sequence
from itertools import chain

from sqlalchemy import Connection

from .answers import AnswerGroup
from .append import Append
from .outbox import DeliveredLines, Numbers, OutboxLines, remove_delivered
from .projections import event_rows, project_messages, project_sessions, project_workers
from .saved_snapshots import row_if_due
from .statements import insert_values, update_rows, upsert_rows
from .tables import consumed, events, messages, sessions, snapshots, workers
from .unseen_results import write_unseen
from .usage import write_usage


class AppendGroup:
    """The kind of database job that writes appends.

    The result of a job is the numbers of its outbox lines.
    """

    together = True

    def write(
        self, connection: Connection, items: Sequence[Append | DeliveredLines], /
    ) -> list[Numbers | Exception]:
        """Write appends and delete delivered outbox lines; return a result or exception for each item."""
        appends = [item for item in items if isinstance(item, Append)]
        answers = AnswerGroup(connection, appends)
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
    """Write events and the projections made from them."""
    for table, rows in ((sessions, project_sessions(appends)), (workers, project_workers(appends))):
        upsert_rows(connection, table, list(rows.complete.values()))
        update_rows(connection, table, list(rows.times_only.values()))
    insert_values(connection, events, list(chain.from_iterable(map(event_rows, appends))))
    conversation = project_messages(appends)
    insert_values(connection, messages, conversation.new)
    update_rows(connection, messages, conversation.changed)
    write_unseen(connection, appends)
    write_usage(connection, appends)
    saved = {row["session_id"]: row for row in map(row_if_due, appends) if row}
    upsert_rows(connection, snapshots, list(saved.values()))


def _write_consumed(connection: Connection, appends: Sequence[Append]) -> None:
    """Write the consumed offsets of appends."""
    marks = [append.consumed for append in appends if append.consumed]
    rows = {
        (mark.worker_id, mark.run): {"worker_id": mark.worker_id, "run": mark.run, "offset": mark.offset}
        for mark in marks
    }
    upsert_rows(connection, consumed, list(rows.values()))
