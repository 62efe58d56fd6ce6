"""What waits for a person: questions that are open, and what happened while nobody looked."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from .snapshot import Snapshot, Worker
from .states import Activity, SessionStatus, WorkerState

# What an agent cannot go on without comes first, then what went wrong, then what is done.
ORDER = ("permission", "question", "asking", "failed", "finished")
NEEDS_INPUT = frozenset({"permission", "question", "asking"})


class InboxItem(Struct, frozen=True, kw_only=True):
    """One thing that waits. `seq` is there for what happened: having seen the log so far takes it away."""

    id: str
    kind: str
    session_id: str
    session_title: str
    worker_id: str
    role: str
    since: int
    text: str
    repo_id: str | None = None
    agent_id: str | None = None
    seq: int | None = None
    tool_call: dict[str, Any] | None = None
    options: list[Any] = []
    form: Any = None
    url: str | None = None

    @property
    def needs_input(self) -> bool:
        return self.kind in NEEDS_INPUT


def waiting(snapshot: Snapshot) -> list[InboxItem]:
    """What the agents of a session ask and nobody has answered."""
    if snapshot.status is not SessionStatus.ACTIVE:
        return []
    permissions = [
        _item(
            snapshot,
            each.worker,
            id=each.permission.id,
            kind="permission",
            since=each.since,
            text=_what(each.permission.tool_call),
            tool_call=each.permission.tool_call,
            options=each.permission.options,
        )
        for each in snapshot.permissions
    ]
    questions = [
        _item(
            snapshot,
            each.worker,
            id=each.question.id,
            kind="question",
            since=each.since,
            text=each.question.message,
            form=each.question.schema,
            url=each.question.url,
        )
        for each in snapshot.questions
    ]
    return [*permissions, *questions, *_asking(snapshot)]


def in_order(items: Iterable[InboxItem]) -> list[InboxItem]:
    """By urgency, then the oldest first."""
    return sorted(items, key=lambda each: (ORDER.index(each.kind), each.since, each.id))


def signature(snapshot: Snapshot) -> tuple[Any, ...]:
    """What of a session the inbox depends on: while this stays the same, so does the inbox."""
    asked = tuple(
        (id, tuple(each.permissions), tuple(each.questions), each.turn and each.turn.prompt_id)
        for id, each in snapshot.conversations.items()
    )
    workers = tuple((each.id, each.state, each.activity, each.run) for each in snapshot.workers.values())
    return snapshot.status, snapshot.title, workers, asked


def _asking(snapshot: Snapshot) -> list[InboxItem]:
    """Agents in terminals that wait there: what they ask is on their screen."""
    return [
        _item(
            snapshot,
            worker,
            id=f"{worker.id}.asking.{worker.activity_since}",
            kind="asking",
            since=worker.activity_since,
            text=worker.activity_why,
        )
        for worker in snapshot.workers.values()
        if worker.is_typed_to and worker.state is WorkerState.ACTIVE and worker.activity is Activity.ASKING
    ]


def _item(snapshot: Snapshot, worker: Worker, **what: Any) -> InboxItem:
    return InboxItem(
        session_id=snapshot.id,
        session_title=snapshot.title,
        repo_id=snapshot.repo_id,
        worker_id=worker.id,
        role=worker.role,
        agent_id=worker.agent_id,
        **what,
    )


def _what(call: dict[str, Any]) -> str:
    """A line about a tool call; what it exactly is stands in the call itself."""
    return str(call.get("title") or call.get("kind") or "something")
