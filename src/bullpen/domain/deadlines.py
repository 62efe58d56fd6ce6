"""What in a session does not wait for ever: a permission nobody answers, a turn that is not cancelled."""

from collections.abc import Iterator

from msgspec import Struct

from .snapshot import Snapshot
from .states import WorkerState


class TimeoutSettings(Struct, frozen=True, kw_only=True):
    """How long is waited, in seconds; 0: for ever."""

    permission: float = 0
    cancel: float = 0


class PermissionDeadline(Struct, frozen=True):
    """A permission is refused when nobody has answered it by then."""

    permission_id: str
    due: int  # by the clock: it counts while no server runs


class CancelDeadline(Struct, frozen=True):
    """An agent is ended when it has not stopped by then."""

    worker_id: str
    prompt_id: str
    seconds: float  # from when we see it: what it says while no server runs is heard first


Deadline = PermissionDeadline | CancelDeadline


def deadlines(snapshot: Snapshot, patience: TimeoutSettings) -> Iterator[Deadline]:
    """All there are now."""
    for worker_id, conversation in snapshot.conversations.items():
        worker = snapshot.worker(worker_id)
        if (
            worker.state is not WorkerState.ACTIVE or worker.is_typed_to
        ):  # in a terminal a person sees and decides
            continue
        turn = conversation.turn
        if patience.cancel and turn is not None and turn.cancelling:
            yield CancelDeadline(worker_id, turn.prompt_id, patience.cancel)
        if patience.permission:
            for id, permission in conversation.permissions.items():
                yield PermissionDeadline(id, permission.since + round(patience.permission * 1000))
