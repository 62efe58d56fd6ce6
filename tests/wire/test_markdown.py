"""A session as Markdown, as a person reads it."""

from typing import Any

from bullpen.domain.conversation import Plan
from bullpen.domain.events import Event
from bullpen.wire.markdown import MarkdownWriter


def test_a_plan_is_written_once_and_then_only_the_steps_that_changed() -> None:
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
