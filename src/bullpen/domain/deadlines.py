"""Deadlines: when an unanswered permission is refused, and when an agent that ignores a cancel is ended."""

from collections.abc import Iterator

from msgspec import Struct

from .snapshot import Snapshot
from .states import WorkerState


class TimeoutSettings(Struct, frozen=True, kw_only=True):
    """The timeouts in seconds; 0 means no timeout."""

    permission: float = 0
    cancel: float = 0


class PermissionDeadline(Struct, frozen=True):
    """The time at which a permission is refused if no user has answered it."""

    permission_id: str
    due: int  # milliseconds since the epoch; the time also passes while no server runs


class CancelDeadline(Struct, frozen=True):
    """An agent is ended if it has not stopped the cancelled turn after this many seconds."""

    worker_id: str
    prompt_id: str
    seconds: float  # from now on: after a restart, output from the downtime is read first


Deadline = PermissionDeadline | CancelDeadline


def deadlines(snapshot: Snapshot, timeouts: TimeoutSettings) -> Iterator[Deadline]:
    """Yield the deadlines that apply to a session in its present state."""
    for worker_id, conversation in snapshot.conversations.items():
        worker = snapshot.worker(worker_id)
        # A user watches a terminal agent and decides.
        if worker.state is not WorkerState.ACTIVE or worker.is_typed_to:
            continue
        turn = conversation.turn
        if timeouts.cancel and turn is not None and turn.cancelling:
            yield CancelDeadline(worker_id, turn.prompt_id, timeouts.cancel)
        if timeouts.permission:
            for id, permission in conversation.permissions.items():
                yield PermissionDeadline(id, permission.since + round(timeouts.permission * 1000))
