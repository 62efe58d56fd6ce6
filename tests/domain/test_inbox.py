"""The inbox items of one session, and the order of items over all sessions."""

from typing import Any

from bullpen.domain.conversation import Permission, Question, TurnStart
from bullpen.domain.events import Draft, Fact, SessionChanged, SessionEnd, WorkerActivity, WorkerExited
from bullpen.domain.inbox import ORDER, InboxItem, inbox_signature, open_items, sort_by_urgency
from domain.folding import about, after, running, session

AGENTS = [*running("a", "auth", agent_id="claude"), *running("p", "pty", agent_id="aider", agent_kind="pty")]
CALL = {"toolCallId": "t", "title": "rm -rf", "kind": "execute"}
PERMISSION = Permission(id="p1", tool_call=CALL, options=[{"optionId": "y"}], status="pending")
QUESTION = Question(id="q1", message="Who?", status="pending", schema={"type": "object"}, url="https://x")
ASKS = WorkerActivity(activity="asking", why="it rang the bell")
ASKED = session(*AGENTS, *about("a", PERMISSION, QUESTION), *about("p", ASKS))


def item(**more: Any) -> InboxItem:
    fields = {"session_id": "s", "session_title": "x", "repo_id": "repo", "worker_id": "a", "role": "auth"}
    return InboxItem(**(fields | {"agent_id": "claude"} | more))


def test_every_open_question_has_an_item_with_all_that_a_user_needs_to_answer() -> None:
    assert open_items(ASKED) == [
        item(
            id="p1", kind="permission", since=6000, text="rm -rf", tool_call=CALL, options=[{"optionId": "y"}]
        ),
        item(id="q1", kind="question", since=7000, text="Who?", form={"type": "object"}, url="https://x"),
        item(
            id="p.asking.8000",
            kind="asking",
            since=8000,
            text="it rang the bell",
            worker_id="p",
            role="pty",
            agent_id="aider",
        ),
    ]


def test_questions_that_were_answered_or_whose_worker_ended_have_no_item() -> None:
    assert open_items(after(ASKED, SessionEnd(status="completed", reason="x"))) == []
    ended = after(ASKED, *about("a", WorkerExited()), *about("p", WorkerExited()))
    assert open_items(ended) == []
    continuing = after(ASKED, *about("p", WorkerActivity(activity="active", why="x")))
    assert [each.kind for each in open_items(continuing)] == ["permission", "question"]
    acp_agent_asks = session(
        *AGENTS, *about("a", ASKS)
    )  # an ACP agent asks by its protocol, not by its activity
    assert open_items(acp_agent_asks) == []


def test_a_tool_call_without_a_title_is_named_by_its_kind() -> None:
    for call, text in (({"kind": "edit"}, "edit"), ({"title": "", "kind": 5}, "5"), ({}, "something")):
        asks = Permission(id="p1", tool_call=call, options=[], status="pending")
        assert [each.text for each in open_items(session(*AGENTS, *about("a", asks)))] == [text]


def test_questions_come_before_failures_and_older_ones_first() -> None:
    kinds = ["finished", "failed", "asking", "question", "permission"]
    items = [item(id=str(number), kind=kind, since=5, text="") for number, kind in enumerate(kinds)]
    early = item(id="9", kind="failed", since=4, text="")
    twin = item(id="0", kind="failed", since=5, text="")
    ordered = [(each.kind, each.since, each.id) for each in sort_by_urgency([*items, early, twin])]
    assert ordered == [
        ("permission", 5, "4"),
        ("question", 5, "3"),
        ("asking", 5, "2"),
        ("failed", 4, "9"),
        ("failed", 5, "0"),
        ("failed", 5, "1"),
        ("finished", 5, "0"),
    ]


def test_only_questions_need_input() -> None:
    kinds = {kind for kind in ORDER if item(id="1", kind=kind, since=0, text="").needs_input}
    assert kinds == {"permission", "question", "asking"}


def test_the_signature_changes_with_everything_the_inbox_shows() -> None:
    base = session(*AGENTS)
    changes: list[Draft | Fact] = [
        SessionChanged(title="other"),
        SessionEnd(status="completed", reason="x"),
        *about("a", PERMISSION, QUESTION, TurnStart(prompt_id="t"), WorkerExited()),
        *about("p", ASKS),
    ]
    signatures = [inbox_signature(base), *(inbox_signature(after(base, change)) for change in changes)]
    assert len(set(signatures)) == len(signatures)
    turns = [inbox_signature(after(base, *about("a", TurnStart(prompt_id=id)))) for id in "tu"]
    assert turns[0] != turns[1]
    assert inbox_signature(
        after(base, *about("a", WorkerActivity(activity="unknown", why="y")))
    ) == inbox_signature(base)
