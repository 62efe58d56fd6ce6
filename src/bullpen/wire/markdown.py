"""A session as Markdown: what was asked, said and done, for a person to read."""

from typing import Any

from ..domain.conversation import (
    AgentMessage,
    AgentThought,
    Permission,
    Plan,
    Question,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    UserPrompt,
)
from ..domain.events import (
    Error,
    Event,
    SessionEnd,
    SessionStart,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
)
from ..domain.reasons import end_reason_text, stop_reason_text
from ..domain.tool_calls import FINISHED
from .browser import iso

_OPEN, _DONE = "- [ ] ", "- [x] "


class MarkdownWriter:
    """Fed with events in order; each comes to some text, often to none. Pieces of a message join."""

    def __init__(self) -> None:
        self._open: tuple[str | None, str] | None = None  # whose message, and of which kind, goes on
        self._titles: dict[str, str] = {}
        self._plans: dict[str | None, list[str]] = {}  # by worker, as last written

    def feed(self, event: Event) -> str:
        match event.fact:
            case AgentMessage() as fact:
                return self._piece(event, "says", fact.text, fact.partial)
            case AgentThought() as fact:
                return self._piece(event, "thinks", fact.text, fact.partial)
            case ToolCall() | ToolCallUpdate() as fact:
                return self._apart(self._tool(fact.call))
            case Plan() as fact:
                return self._apart(self._plan(event.worker_id, [_step(entry) for entry in fact.entries]))
        return self._apart(_paragraph(event))

    def _piece(self, event: Event, verb: str, text: str, partial: bool) -> str:
        head = "" if self._open == (event.worker_id, verb) else f"\n## {event.role or 'agent'} {verb}\n\n"
        self._open = (event.worker_id, verb) if partial else None
        return (head if text or self._open else "") + text + ("" if partial else "\n")

    def _apart(self, text: str) -> str:
        """A paragraph of its own; a message it breaks into begins anew behind it."""
        if not text:
            return ""
        before, self._open = "\n" if self._open else "", None
        return f"{before}\n{text}\n"

    def _plan(self, worker_id: str | None, steps: list[str]) -> str:
        """Return the whole plan when its steps are new, and then only the steps that changed."""
        before = self._plans.get(worker_id, [])
        self._plans[worker_id] = steps
        if [each[len(_OPEN) :] for each in before] != [each[len(_OPEN) :] for each in steps]:
            return "\n".join(steps)
        return "\n".join(new for old, new in zip(before, steps, strict=True) if new != old)

    def _tool(self, call: dict[str, Any]) -> str:
        id = str(call.get("toolCallId", ""))
        title = self._titles[id] = str(call.get("title") or self._titles.get(id) or "a tool")
        status = str(call.get("status") or "")
        parts = [f"- **{_line(title)}** {status}".rstrip()] if status in FINISHED or status == "" else []
        parts += [_diff(each) for each in call.get("content") or () if isinstance(each, dict)]
        return "\n".join(part for part in parts if part)


def _paragraph(event: Event) -> str:  # noqa: PLR0911 (a table)
    match event.fact:
        case SessionStart() as fact:
            return f"# {_line(fact.title)}\n\n{iso(event.timestamp)} in `{fact.location_path}`"
        case UserPrompt() as fact:
            return f"## {_line(fact.sender or 'user')} asks\n\n{fact.text}"
        case Permission() as fact if fact.status != "pending":
            what = _line(str(fact.tool_call.get("title") or "a tool"))
            return f"> permission for **{what}**: {fact.option_id or fact.status}"
        case Question() as fact if fact.status != "pending":
            return f"> question: {_line(fact.message)}: {fact.status}"
        case TurnEnd() as fact if fact.stop_reason != "end_turn":
            return f"> the turn ended: {fact.error or stop_reason_text(fact.stop_reason)}"
        case Error() as fact:
            return f"> **error**: {_line(fact.message)}"
        case WorkerSpawning() as fact:
            return f"> {fact.worker_type} {_line(fact.name)} starts"
        case WorkerExited() as fact:
            return f"> {event.role} exited: {fact.signal or fact.exit_code}"
        case WorkerFailed() as fact:
            return f"> **{event.role} failed**: {_line(fact.error)}"
        case SessionEnd() as fact:
            return f"> {fact.status} ({_line(end_reason_text(fact.reason))}), {iso(event.timestamp)}"
    return ""


def _step(entry: Any) -> str:
    done = isinstance(entry, dict) and entry.get("status") == "completed"
    text = entry.get("content", "") if isinstance(entry, dict) else entry
    return f"{_DONE if done else _OPEN}{_line(str(text))}"


def _diff(content: dict[str, Any]) -> str:
    if content.get("type") != "diff":
        return ""
    old, new = str(content.get("oldText") or ""), str(content.get("newText") or "")
    lines = [f"--- {_line(str(content.get('path', '')))}"]
    lines += [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
    fence = "`" * max(3, _longest_fence(old + new) + 1)
    return "\n".join([f"\n{fence}diff", *lines, fence])


def _longest_fence(text: str) -> int:
    return max((len(run) for run in text.replace("\n", " ").split() if set(run) == {"`"}), default=0)


def _line(text: str) -> str:
    return " ".join(text.split())
