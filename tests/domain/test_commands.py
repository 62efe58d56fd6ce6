"""The facts that each order produces, and the sentence of each refusal."""

from collections.abc import Callable
from typing import Any

import pytest

from bullpen.domain import commands
from bullpen.domain.commands import AddWorker
from bullpen.domain.conversation import (
    ConversationReset,
    Permission,
    Question,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    TurnStart,
)
from bullpen.domain.errors import Conflict, Invalid, NotFound
from bullpen.domain.events import (
    Draft,
    SessionChanged,
    SessionEnd,
    SessionReopened,
    WorkerCommand,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
    WorkerTerminated,
)
from bullpen.domain.states import SessionStatus
from domain.folding import about, after, running, session, spawning

AGENT = running("a", "auth", agent_id="claude", agent_kind="acp", cols=100, rows=40)
OPEN = about(
    "a",
    TurnStart(prompt_id="t"),
    ToolCall(call={"toolCallId": "tool", "title": "ls"}),
    Permission(id="p", tool_call={"toolCallId": "tool"}, options=[], status="pending"),
    Question(id="q", message="Who?", status="pending"),
)
OWNED = [*running("t", "command", "terminal"), *about("t", WorkerCommand(argv=("ls",), owner="a"))]
BUSY = session(*AGENT, *OPEN, *OWNED, *running("other", "shell", "terminal"))
ENDED = session(*AGENT, *about("a", WorkerExited(exit_code=0)))
COMPLETED = session(SessionEnd(status="completed", reason="user_request"))


def order(**more: Any) -> AddWorker:
    return AddWorker(**({"worker_id": "w", "type": "agent", "workspace": "/srv"} | more))


def closed(by: str) -> list[Draft]:
    """Return the facts that close everything the agent of BUSY has open."""
    meta = {"bullpen": {"by": by}}
    facts = [
        Permission(id="p", tool_call={"toolCallId": "tool"}, options=[], status="cancelled", by=by),
        Question(id="q", message="Who?", status="cancelled", by=by),
        ToolCallUpdate(call={"toolCallId": "tool", "status": "cancelled", "_meta": meta}),
        TurnEnd(stop_reason="cancelled"),
    ]
    return [*(Draft(fact, "a", "auth") for fact in facts), Draft(WorkerTerminated(reason=by), "t", "command")]


def test_a_worker_is_created_as_it_was_ordered() -> None:
    wanted = order(
        type="markdown", name=" Plan ", role=" docs ", agent_id="claude", agent_kind="pty", file_path="a.md"
    )
    fact = WorkerSpawning(
        worker_type="markdown",
        name="Plan",
        run=1,
        workspace="/srv",
        agent_id="claude",
        agent_kind="pty",
        file_path="a.md",
        cols=80,
        rows=24,
    )
    assert commands.add_worker(session(), wanted) == Draft(fact, "w", "docs")
    sized = commands.add_worker(session(), order(cols=1000, rows=1)).fact
    assert isinstance(sized, WorkerSpawning)
    assert (sized.cols, sized.rows) == (1000, 1)


def test_a_worker_without_a_name_is_named_after_its_type_and_gets_the_first_free_role() -> None:
    for taken, role in (
        ((), "terminal"),
        (("terminal",), "terminal-2"),
        (("terminal", "terminal-2"), "terminal-3"),
    ):
        held = [draft for each in taken for draft in running(each, each, "terminal")]
        draft = commands.add_worker(session(*held), order(type="terminal"))
        assert (draft.role, draft.fact.to_data()["name"]) == (role, "Terminal")


def test_a_worker_that_ended_is_restarted_in_its_role_with_the_ordered_size() -> None:
    draft = commands.add_worker(ENDED, order(role="auth", cols=90, rows=30))
    assert draft == Draft(spawning(run=2, agent_id="claude", agent_kind="acp", cols=90, rows=30), "a", "auth")


def test_a_restart_keeps_every_field_that_the_order_does_not_change() -> None:
    again = spawning(run=2, agent_id="claude", agent_kind="acp", cols=100, rows=40)
    assert commands.restart_worker(ENDED, "a") == Draft(again, "a", "auth")
    automatic = commands.restart_worker(ENDED, "a", automatic=True).fact
    assert isinstance(automatic, WorkerSpawning)
    assert automatic.automatic
    document = session(
        *running("d", "docs", "markdown", name="Docs", file_path="a.md", workspace="/srv/b"),
        *about("d", WorkerFailed(error="x")),
    )
    expected = spawning("markdown", name="Docs", run=2, file_path="a.md", workspace="/srv/b")
    assert commands.restart_worker(document, "d") == Draft(expected, "d", "docs")


def test_a_terminated_worker_is_restarted_unless_another_worker_has_its_role() -> None:
    gone = after(BUSY, *commands.end_worker(BUSY, "a", "user_request"))
    again = spawning(run=2, agent_id="claude", agent_kind="acp", cols=100, rows=40)
    assert commands.restart_worker(gone, "a") == Draft(again, "a", "auth")
    taken = after(gone, Draft(spawning(), "b", "auth"))
    with pytest.raises(Conflict, match="another worker has taken the role auth"):
        commands.restart_worker(taken, "a")


def test_only_an_ended_session_is_reopened() -> None:
    assert commands.reopen_session(BUSY) == []
    reopened = commands.reopen_session(COMPLETED)
    assert reopened == [Draft(SessionReopened())]
    assert commands.reopen_session(after(COMPLETED, *reopened)) == []


def test_an_agent_restarted_with_a_new_conversation_forgets_the_old_one() -> None:
    again = commands.restart_worker(ENDED, "a")
    assert commands.restart_with_new_conversation(ENDED, "a") == [
        again,
        Draft(ConversationReset(), "a", "auth"),
    ]


def test_another_worker_in_a_role_has_the_name_of_the_one_before() -> None:
    wanted = order(role="auth", agent_id="codex")
    gone, fresh = commands.start_in_role(ENDED, wanted)
    assert gone == Draft(WorkerTerminated(reason="replaced"), "a", "auth")
    assert fresh == Draft(spawning(agent_id="codex"), "w", "auth")
    failed = commands.start_in_role(ENDED, wanted, "no such place")[-1]
    assert failed == Draft(WorkerFailed(error="no such place"), "w", "auth")


def test_ending_a_run_for_a_restart_first_closes_what_the_agent_has_open() -> None:
    assert commands.end_run_for_restart(BUSY, "a") == [
        *closed("restarted"),
        Draft(WorkerExited(), "a", "auth"),
    ]
    assert commands.end_run_for_restart(ENDED, "a") == []
    starting = session(Draft(spawning(), "a", "auth"))
    failure = WorkerFailed(error="it was restarted before it was ready")
    assert commands.end_run_for_restart(starting, "a") == [Draft(failure, "a", "auth")]


def test_ending_a_worker_closes_what_it_has_open_and_ends_it_once() -> None:
    drafts = commands.end_worker(BUSY, "a", "user_request")
    gone = Draft(WorkerTerminated(reason="user_request"), "a", "auth")
    assert drafts == [*closed("user_request"), gone]
    assert commands.end_worker(after(BUSY, *drafts), "a", "user_request") == []
    assert commands.end_worker(ENDED, "a", "x") == [Draft(WorkerTerminated(reason="x"), "a", "auth")]


def test_a_session_ends_after_all_of_its_workers_each_once() -> None:
    drafts = commands.end_session(BUSY, SessionStatus.COMPLETED, "user_request", "why")
    gone = [
        Draft(WorkerTerminated(reason="user_request"), *worker)
        for worker in (("a", "auth"), ("other", "shell"))
    ]
    end = SessionEnd(status="completed", reason="user_request", detail="why")
    assert drafts == [*closed("user_request"), *gone, Draft(end)]
    assert commands.end_session(after(BUSY, *drafts), SessionStatus.COMPLETED, "again") == []
    assert commands.end_session(ENDED, SessionStatus.ERROR, "x") == [
        Draft(SessionEnd(status="error", reason="x"))
    ]


def test_a_worker_ends_once_even_if_its_owner_is_listed_after_it() -> None:
    owner_last = session(*OWNED, *AGENT)
    ended = [each.worker_id for each in commands.end_session(owner_last, SessionStatus.COMPLETED, "x")]
    assert ended == ["t", "a", None]


def test_a_session_changes_only_in_fields_with_a_new_value() -> None:
    change = commands.change_session
    assert change(session(), " new ", None) == [Draft(SessionChanged(title="new"))]
    assert change(session(), None, "terminate") == [Draft(SessionChanged(on_last_disconnect="terminate"))]
    assert change(session(), "x", "terminate") == [
        Draft(SessionChanged(title="x", on_last_disconnect="terminate"))
    ]
    assert change(session(), "x", "keep") == change(session(), None, None) == []


def test_the_longest_text_and_the_smallest_and_largest_terminal_are_allowed() -> None:
    assert commands.check_text("title", " " + "x" * 5 + " ", 5) == "xxxxx"
    for cols, rows in ((1, 1), (1000, 1000)):
        commands.check_size(cols, rows)


SIZES = "a terminal has 1 to 1000 columns and rows"
KINDS = "a worker's type is one of agent, terminal, diff, markdown, web, not toaster"


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (
            lambda: commands.add_worker(COMPLETED, order()),
            Conflict,
            "the session is completed and takes no more orders",
        ),
        (lambda: commands.add_worker(session(), order(type="toaster")), Invalid, KINDS),
        (
            lambda: commands.add_worker(session(), order(type="markdown")),
            Invalid,
            "a document needs the path of its file (filePath)",
        ),
        (lambda: commands.add_worker(session(), order(cols=0)), Invalid, SIZES),
        (lambda: commands.add_worker(session(), order(cols=1001)), Invalid, SIZES),
        (lambda: commands.add_worker(session(), order(rows=0)), Invalid, SIZES),
        (lambda: commands.add_worker(session(), order(rows=1001)), Invalid, SIZES),
        (lambda: commands.add_worker(session(), order(name=" ")), Invalid, "a name must not be empty"),
        (
            lambda: commands.add_worker(session(), order(name="x" * 65)),
            Invalid,
            "a name has at most 64 characters",
        ),
        (
            lambda: commands.add_worker(session(), order(role="a\nb")),
            Invalid,
            "a role must be one line of printable characters",
        ),
        (
            lambda: commands.add_worker(session(), order(role="x" * 65)),
            Invalid,
            "a role has at most 64 characters",
        ),
        (
            lambda: commands.add_worker(BUSY, order(role="shell")),
            Conflict,
            "the role shell belongs to a worker of type terminal",
        ),
        (
            lambda: commands.add_worker(BUSY, order(role="auth")),
            Conflict,
            "the worker in role auth is active; only one that ended can be restarted",
        ),
        (
            lambda: commands.start_in_role(COMPLETED, order(role="x")),
            Conflict,
            "the session is completed and takes no more orders",
        ),
        (lambda: commands.start_in_role(session(), order()), Invalid, "a role must not be empty"),
        (
            lambda: commands.start_in_role(session(), order(role="x" * 65)),
            Invalid,
            "a role has at most 64 characters",
        ),
        (
            lambda: commands.start_in_role(ENDED, order(role="auth", type="diff")),
            Conflict,
            "the role auth belongs to a worker of type agent",
        ),
        (
            lambda: commands.restart_worker(COMPLETED, "a"),
            Conflict,
            "the session is completed and takes no more orders",
        ),
        (lambda: commands.restart_worker(ENDED, "x"), NotFound, "no worker x in session s"),
        (
            lambda: commands.end_run_for_restart(COMPLETED, "a"),
            Conflict,
            "the session is completed and takes no more orders",
        ),
        (lambda: commands.end_run_for_restart(ENDED, "x"), NotFound, "no worker x in session s"),
        (lambda: commands.end_worker(ENDED, "x", "y"), NotFound, "no worker x in session s"),
        (
            lambda: commands.end_session(COMPLETED, SessionStatus.ERROR, "x"),
            Conflict,
            "the session is completed and takes no more orders",
        ),
        (lambda: commands.change_session(session(), "", None), Invalid, "a title must not be empty"),
        (
            lambda: commands.change_session(session(), "x" * 201, None),
            Invalid,
            "a title has at most 200 characters",
        ),
        (
            lambda: commands.change_session(session(), None, "explode"),
            Invalid,
            "onLastDisconnect is one of keep, terminate, not explode",
        ),
    ],
)
def test_an_invalid_order_is_refused_with_a_sentence(
    act: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        act()
    assert str(refused.value) == sentence


def test_a_terminal_gets_the_command_of_its_order_and_a_role_after_its_program() -> None:
    ordered = order(type="terminal", command=("/usr/bin/make", "test"))
    spawned, command = commands.start_worker(session(), ordered)
    assert (spawned.role, spawned.fact.to_data()["name"]) == ("make", "make test")
    assert command == Draft(WorkerCommand(argv=("/usr/bin/make", "test")), "w", "make")


def test_a_role_keeps_its_command_until_another_is_ordered() -> None:
    ran = [*running("t", "make", "terminal"), *about("t", WorkerCommand(argv=("make",)), WorkerExited())]
    for command in ((), ("make",)):
        (again,) = commands.start_worker(
            session(*ran), order(type="terminal", role="make", command=command, workspace="/srv")
        )
        assert (again.worker_id, again.fact.to_data()["run"]) == ("t", 2)
    replaced = commands.start_worker(
        session(*ran), order(type="terminal", role="make", command=("make", "all"), workspace="/srv")
    )
    assert [type(each.fact) for each in replaced] == [WorkerTerminated, WorkerSpawning, WorkerCommand]


@pytest.mark.parametrize(
    ("type", "command"), [("diff", ("make",)), ("terminal", ("", "x")), ("terminal", ("make", "a\0b"))]
)
def test_an_impossible_command_is_refused(type: str, command: tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        commands.start_worker(session(), order(type=type, command=command))
