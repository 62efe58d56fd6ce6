"""Export a session as Markdown: prompts, answers, tool calls and plans for a person to read."""

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
    SandboxRefusal,
    SessionEnd,
    SessionReopened,
    SessionStart,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
)
from ..domain.reasons import end_reason_text, refusal_text, stop_reason_text
from ..domain.tool_calls import FINISHED
from .browser import iso_time

_OPEN_STEP, _DONE_STEP = "- [ ] ", "- [x] "


class MarkdownWriter:
    """Turns events, in order, into Markdown. Pieces of a message are joined."""

    def __init__(self) -> None:
        self._open: tuple[str | None, str] | None = None  # worker id and kind of the unfinished message
        self._titles: dict[str, str] = {}
        self._plans: dict[str | None, list[str]] = {}  # by worker, as last written

    def feed(self, event: Event) -> str:
        """Return the Markdown for one event; empty for most events."""
        match event.fact:
            case AgentMessage() as fact:
                return self._message_piece(event, "says", fact.text, fact.partial)
            case AgentThought() as fact:
                return self._message_piece(event, "thinks", fact.text, fact.partial)
            case ToolCall() | ToolCallUpdate() as fact:
                return self._own_paragraph(self._tool_call(fact.call))
            case Plan() as fact:
                return self._own_paragraph(
                    self._plan(event.worker_id, [_plan_step(entry) for entry in fact.entries])
                )
        return self._own_paragraph(_event_paragraph(event))

    def _message_piece(self, event: Event, verb: str, text: str, partial: bool) -> str:
        """Return a piece of a message, with a heading if the message begins."""
        head = "" if self._open == (event.worker_id, verb) else f"\n## {event.role or 'agent'} {verb}\n\n"
        self._open = (event.worker_id, verb) if partial else None
        return (head if text or self._open else "") + text + ("" if partial else "\n")

    def _own_paragraph(self, text: str) -> str:
        """Return the text as its own paragraph. A message that it interrupts gets a new heading."""
        if not text:
            return ""
        before, self._open = "\n" if self._open else "", None
        return f"{before}\n{text}\n"

    def _plan(self, worker_id: str | None, steps: list[str]) -> str:
        """Return the whole plan if its steps are new, else only the steps that changed."""
        before = self._plans.get(worker_id, [])
        self._plans[worker_id] = steps
        if [each[len(_OPEN_STEP) :] for each in before] != [each[len(_OPEN_STEP) :] for each in steps]:
            return "\n".join(steps)
        return "\n".join(new for old, new in zip(before, steps, strict=True) if new != old)

    def _tool_call(self, call: dict[str, Any]) -> str:
        """Return the lines about a tool call: its title when it has finished, and its diffs."""
        id = str(call.get("toolCallId", ""))
        title = self._titles[id] = str(call.get("title") or self._titles.get(id) or "a tool")
        status = str(call.get("status") or "")
        parts = [f"- **{_one_line(title)}** {status}".rstrip()] if status in FINISHED or status == "" else []
        parts += [_diff(each) for each in call.get("content") or () if isinstance(each, dict)]
        return "\n".join(part for part in parts if part)


def _event_paragraph(event: Event) -> str:  # noqa: PLR0911 (a table)
    """Return the Markdown paragraph for an event that stands alone; empty if it is not exported."""
    match event.fact:
        case SessionStart() as fact:
            return f"# {_one_line(fact.title)}\n\n{iso_time(event.timestamp)} in `{fact.location_path}`"
        case UserPrompt() as fact:
            return f"## {_one_line(fact.sender or 'user')} asks\n\n{fact.text}"
        case Permission() as fact if fact.status != "pending":
            what = _one_line(str(fact.tool_call.get("title") or "a tool"))
            return f"> permission for **{what}**: {fact.option_id or fact.status}"
        case Question() as fact if fact.status != "pending":
            return f"> question: {_one_line(fact.message)}: {fact.status}"
        case TurnEnd() as fact if fact.stop_reason != "end_turn":
            return f"> the turn ended: {fact.error or stop_reason_text(fact.stop_reason)}"
        case Error() as fact:
            return f"> **error**: {_one_line(fact.message)}"
        case SandboxRefusal() as fact:
            return f"> the sandbox: {_one_line(refusal_text(fact.kind, fact.target, fact.program))}"
        case WorkerSpawning() as fact:
            return f"> {fact.worker_type} {_one_line(fact.name)} starts"
        case WorkerExited() as fact:
            return f"> {event.role} exited: {fact.signal or fact.exit_code}"
        case WorkerFailed() as fact:
            return f"> **{event.role} failed**: {_one_line(fact.error)}"
        case SessionEnd() as fact:
            return f"> {fact.status} ({_one_line(end_reason_text(fact.reason))}), {iso_time(event.timestamp)}"
        case SessionReopened():
            return f"> continued, {iso_time(event.timestamp)}"
    return ""


def _plan_step(entry: Any) -> str:
    """Return a step of a plan as a checkbox."""
    done = isinstance(entry, dict) and entry.get("status") == "completed"
    text = entry.get("content", "") if isinstance(entry, dict) else entry
    return f"{_DONE_STEP if done else _OPEN_STEP}{_one_line(str(text))}"


def _diff(content: dict[str, Any]) -> str:
    """Return a diff of a tool call as a fenced block; empty for other content."""
    if content.get("type") != "diff":
        return ""
    old, new = str(content.get("oldText") or ""), str(content.get("newText") or "")
    lines = [f"--- {_one_line(str(content.get('path', '')))}"]
    lines += [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
    fence = "`" * max(3, _longest_fence(old + new) + 1)
    return "\n".join([f"\n{fence}diff", *lines, fence])


def _longest_fence(text: str) -> int:
    """Return the length of the longest word of backticks only: a shorter fence could end there."""
    return max((len(run) for run in text.replace("\n", " ").split() if set(run) == {"`"}), default=0)


def _one_line(text: str) -> str:
    """Return a text with all its white space, also line ends, as single spaces."""
    return " ".join(text.split())
