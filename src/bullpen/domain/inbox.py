"""The inbox: what waits for a user, and its order: questions, refusals, failed workers, finished turns."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from .grants import GrantKind
from .reasons import refusal_text
from .snapshot import Snapshot, Worker
from .states import Activity, SessionStatus, WorkerState

# By urgency: what blocks an agent, then what failed, then what is finished.
ORDER = ("permission", "question", "asking", "refused", "failed", "finished")
NEEDS_INPUT = frozenset({"permission", "question", "asking"})


class InboxItem(Struct, frozen=True, kw_only=True):
    """One item of the inbox. With `seq` it reports an event and goes once the user has seen that event.

    `refused` is the kind of grant that would allow what the sandbox refused, and its target.
    """

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
    refused: tuple[GrantKind, str] | None = None

    @property
    def needs_input(self) -> bool:
        """Whether an agent waits for an answer to this item."""
        return self.kind in NEEDS_INPUT


def open_items(snapshot: Snapshot) -> list[InboxItem]:
    """Return the permissions, questions, terminal prompts and refusals of a session that wait for a user."""
    if snapshot.status is not SessionStatus.ACTIVE:
        return []
    permissions = [
        _item(
            snapshot,
            each.worker,
            id=each.permission.id,
            kind="permission",
            since=each.since,
            text=_call_title(each.permission.tool_call),
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
    return [*permissions, *questions, *_terminal_prompts(snapshot), *_refusals(snapshot)]


def sort_by_urgency(items: Iterable[InboxItem]) -> list[InboxItem]:
    """Return the items by kind in the order of ORDER, the oldest first."""
    return sorted(items, key=lambda each: (ORDER.index(each.kind), each.since, each.id))


def inbox_signature(snapshot: Snapshot) -> tuple[Any, ...]:
    """Return the part of a session that its inbox items depend on; compare it to detect a change."""
    asked = tuple(
        (id, tuple(each.permissions), tuple(each.questions), each.turn and each.turn.prompt_id)
        for id, each in snapshot.conversations.items()
    )
    workers = tuple((each.id, each.state, each.activity, each.run) for each in snapshot.workers.values())
    return snapshot.status, snapshot.title, workers, asked, snapshot.refusals


def _terminal_prompts(snapshot: Snapshot) -> list[InboxItem]:
    """Return an item for each agent in a terminal that asks something on its screen."""
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


def _refusals(snapshot: Snapshot) -> list[InboxItem]:
    """Return an item for each refusal of the sandbox that the user has not taken off the inbox."""
    return [
        _item(
            snapshot,
            snapshot.worker(each.worker_id),
            id=f"{snapshot.id}.{each.seq}",
            kind="refused",
            since=each.since,
            text=refusal_text(each.fact.kind, each.fact.target, each.fact.program),
            seq=each.seq,
            refused=(each.fact.kind, each.fact.target),
        )
        for each in snapshot.refusals
        if not each.seen
    ]


def _item(snapshot: Snapshot, worker: Worker, **fields: Any) -> InboxItem:
    """Return an inbox item about a worker, with the data of its session and these other fields."""
    return InboxItem(
        session_id=snapshot.id,
        session_title=snapshot.title,
        repo_id=snapshot.repo_id,
        worker_id=worker.id,
        role=worker.role,
        agent_id=worker.agent_id,
        **fields,
    )


def _call_title(call: dict[str, Any]) -> str:
    """Return one line about a tool call; the details are in the call itself."""
    return str(call.get("title") or call.get("kind") or "something")
