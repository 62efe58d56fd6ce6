"""The Markdown text of a session."""

from typing import Any

import pytest

from bullpen.domain.conversation import (
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
from bullpen.domain.events import (
    Error,
    Event,
    Fact,
    SessionEnd,
    SessionStart,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
    WorkerSpawning,
)
from bullpen.wire.markdown import MarkdownWriter


def written(*facts: Fact | tuple[str, Fact], role: str | None = "auth") -> str:
    """Return the text of a session; events are of worker w unless another worker is named."""
    markdown = MarkdownWriter()
    pairs = [fact if isinstance(fact, tuple) else ("w", fact) for fact in facts]
    return "".join(markdown.feed(Event(1, 1_234, fact, worker, role)) for worker, fact in pairs)


def said(text: str, partial: bool = True) -> AgentMessage:
    return AgentMessage(text=text, partial=partial)


def thought(text: str, partial: bool = True) -> AgentThought:
    return AgentThought(text=text, partial=partial)


def call(**more: Any) -> ToolCall:
    return ToolCall(call={"toolCallId": "t", **more})


def permission(**more: Any) -> Permission:
    return Permission(**({"id": "p", "tool_call": {"title": "rm\n-rf"}, "options": [], "status": "x"} | more))


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (
            SessionStart(session_type="quick", location_path="/srv", title="A\n title"),
            "\n# A title\n\n1970-01-01T00:00:01.234Z in `/srv`\n",
        ),
        (UserPrompt(text="do\nit", prompt_id="p"), "\n## user asks\n\ndo\nit\n"),
        (UserPrompt(text="x", prompt_id="p", sender="a\nb"), "\n## a b asks\n\nx\n"),
        (permission(status="pending"), ""),
        (permission(status="cancelled"), "\n> permission for **rm -rf**: cancelled\n"),
        (permission(status="selected", option_id="yes"), "\n> permission for **rm -rf**: yes\n"),
        (permission(tool_call={}), "\n> permission for **a tool**: x\n"),
        (Question(id="q", message="Who\n?", status="pending"), ""),
        (Question(id="q", message="Who\n?", status="declined"), "\n> question: Who ?: declined\n"),
        (TurnEnd(stop_reason="end_turn"), ""),
        (TurnEnd(stop_reason="refusal"), "\n> the turn ended: it refused to continue\n"),
        (TurnEnd(stop_reason="error", error="no model"), "\n> the turn ended: no model\n"),
        (Error(message="a\nb", detail="c"), "\n> **error**: a b\n"),
        (
            WorkerSpawning(worker_type="agent", name="A\nB", run=1, workspace="/"),
            "\n> agent A B starts\n",
        ),
        (WorkerReady(), ""),
        (WorkerExited(exit_code=3), "\n> auth exited: 3\n"),
        (WorkerExited(exit_code=3, signal="SIGTERM"), "\n> auth exited: SIGTERM\n"),
        (WorkerFailed(error="a\nb"), "\n> **auth failed**: a b\n"),
        (
            SessionEnd(status="completed", reason="idle_timeout"),
            "\n> completed (it was idle for too long), 1970-01-01T00:00:01.234Z\n",
        ),
        (call(title="a\nls"), "\n- **a ls**\n"),
        (call(title="ls", status="pending"), ""),
        (call(status="failed"), "\n- **a tool** failed\n"),
        (Plan(entries=["x\ny", {"status": "completed"}, 5]), "\n- [ ] x y\n- [x] \n- [ ] 5\n"),
    ],
)
def test_each_event_gives_a_paragraph_or_nothing(fact: Fact, text: str) -> None:
    assert written(fact) == text


def test_pieces_of_a_message_are_joined_under_one_heading() -> None:
    assert written(said("a"), said("b"), said("c", False)) == "\n## auth says\n\nabc\n"
    assert written(thought("a"), thought("", False)) == "\n## auth thinks\n\na\n"
    assert written(said("a", False), role=None) == "\n## agent says\n\na\n"
    assert written(said("a", False), said("b", False)) == "\n## auth says\n\na\n\n## auth says\n\nb\n"
    assert written(said("", False)) == "\n"
    assert written(thought("a"), said("b")) == "\n## auth thinks\n\na\n## auth says\n\nb"
    assert written(said("a"), ("v", said("b"))) == "\n## auth says\n\na\n## auth says\n\nb"


def test_a_message_that_is_interrupted_gets_a_new_heading() -> None:
    error = Error(message="x")
    begun = "\n## auth says\n\n"
    assert written(said("a"), error, said("b")) == f"{begun}a\n\n> **error**: x\n{begun}b"
    assert written(said("a"), WorkerReady(), said("b")) == f"{begun}ab"
    assert written(said("a", False), error) == f"{begun}a\n\n> **error**: x\n"


def test_a_tool_call_keeps_its_title_until_it_ends() -> None:
    def update(**more: Any) -> ToolCallUpdate:
        return ToolCallUpdate(call={"toolCallId": "t", **more})

    ended = update(status="completed")
    assert written(call(title="ls", status="pending"), ended) == "\n- **ls** completed\n"
    renamed = update(title="ls -l", status="in_progress")
    assert written(call(title="ls", status="pending"), renamed, ended) == "\n- **ls -l** completed\n"
    other = ToolCallUpdate(call={"toolCallId": "u", "status": "cancelled"})
    assert written(call(title="ls", status="pending"), other) == "\n- **a tool** cancelled\n"


def test_a_diff_has_longer_fences_than_any_in_its_text() -> None:
    def diff(**more: Any) -> list[Any]:
        return [{"type": "text", "text": "x"}, 5, {"type": "diff", "path": "a.py", **more}]

    ended = call(title="edit", status="completed", content=diff(oldText="a\nb", newText="c"))
    expected = "- **edit** completed\n\n```diff\n--- a.py\n-a\n-b\n+c\n```"
    assert written(ended) == f"\n{expected}\n"
    pending = call(status="pending", content=diff(newText="````\n`` x"))
    assert written(pending) == "\n\n`````diff\n--- a.py\n+````\n+`` x\n`````\n"
    old = call(status="pending", content=[{"type": "diff", "oldText": "```"}])
    assert written(old) == "\n\n````diff\n--- \n-```\n````\n"


def test_a_plan_is_written_once_and_then_only_its_completed_steps() -> None:
    def plan(*statuses: str, third: str = "test") -> Event:
        steps: list[Any] = [
            {"content": content, "status": status}
            for content, status in zip(("read", "write", third), statuses, strict=True)
        ]
        return Event(1, 0, Plan(entries=steps), "w", "agent")

    markdown = MarkdownWriter()
    assert markdown.feed(plan("pending", "pending", "pending")) == "\n- [ ] read\n- [ ] write\n- [ ] test\n"
    assert markdown.feed(plan("in_progress", "pending", "pending")) == ""
    assert markdown.feed(plan("completed", "in_progress", "pending")) == "\n- [x] read\n"
    another = markdown.feed(plan("completed", "completed", "pending", third="ship"))
    assert another == "\n- [x] read\n- [x] write\n- [ ] ship\n"


def test_each_agent_has_its_own_plan() -> None:
    first, second = Plan(entries=["a"]), Plan(entries=["b"])
    assert written(first, ("v", second), first, ("v", second)) == "\n- [ ] a\n\n- [ ] b\n"
