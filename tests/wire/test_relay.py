"""The messages of the relay: its requests are read, and each event of an agent gives its notice."""

from typing import Any

import pytest

from bullpen.domain.commands import REPLACED
from bullpen.domain.conversation import AgentMessage, AgentThought
from bullpen.domain.errors import Conflict, Invalid
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
    WorkerTerminated,
)
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.wire import relay

START = SessionStart(session_type="quick", location_path="/srv", title="x")


def spawning(kind: str) -> WorkerSpawning:
    return WorkerSpawning(worker_type=kind, name="x", run=1, workspace="/srv/auth")


SESSION = fold_all(
    Snapshot(id="s"),
    [
        Event(1, 0, START),
        Event(2, 1, spawning("agent"), "a", "auth"),
        Event(3, 1, spawning("terminal"), "t", "shell"),
    ],
)
ABOUT = {"sessionId": "s", "role": "auth"}
TIME = "1970-01-01T00:00:00.005Z"

NOTICES: list[tuple[Fact, dict[str, Any] | None]] = [
    (WorkerReady(pid=7), {"type": "agent:ready", **ABOUT, "workspace": "/srv/auth"}),
    (
        AgentMessage(text="hi", partial=True),
        {"type": "agent:response", **ABOUT, "content": "hi", "partial": True, "timestamp": TIME},
    ),
    (
        AgentMessage(text="", partial=False),
        {"type": "agent:response", **ABOUT, "content": "", "partial": False, "timestamp": TIME},
    ),
    (AgentThought(text="hm", partial=True), None),
    (
        WorkerFailed(error="broken"),
        {"type": "error", **ABOUT, "error": "remote_fault", "message": "broken"},
    ),
    (WorkerExited(exit_code=0), {"type": "agent:terminated", **ABOUT, "reason": "exited: 0"}),
    (
        WorkerTerminated(reason="user_request"),
        {"type": "agent:terminated", **ABOUT, "reason": "user requested"},
    ),
    (WorkerTerminated(reason=REPLACED), None),
    (Error(message="oh"), None),
]


@pytest.mark.parametrize(("fact", "notice"), NOTICES, ids=lambda each: getattr(each, "type", None))
def test_each_event_of_an_agent_gives_its_notice(fact: Fact, notice: dict[str, Any] | None) -> None:
    assert relay.notice_of(Event(4, 5, fact, "a", "auth"), SESSION) == notice


def test_events_of_other_workers_give_no_notice() -> None:
    for fact, _ in NOTICES:
        assert relay.notice_of(Event(4, 5, fact, "t", "shell"), SESSION) is None


def test_the_start_and_the_end_of_a_session_give_notices() -> None:
    created = relay.notice_of(Event(1, 5, START), SESSION)
    assert created == {"type": "session:created", "sessionId": "s", "timestamp": TIME}
    end = SessionEnd(status="completed", reason="idle_timeout")
    assert relay.notice_of(Event(9, 5, end), SESSION, 2) == {
        "type": "session:terminated",
        "sessionId": "s",
        "reason": "idle_timeout",
        "agentsTerminated": 2,
    }


@pytest.mark.parametrize(
    "message",
    [
        {"type": "agent:dance"},
        {"type": "agent:list"},
        {"type": "agent:spawn", "sessionId": "s", "role": "x"},
        {"type": "agent:spawn", "sessionId": "s", "role": "x", "workspace": 1},
        {"type": "agent:message", "sessionId": "s", "role": "x", "content": None},
    ],
)
def test_an_invalid_request_is_refused_with_its_type(message: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=message["type"]):
        relay.read_request(message)


def test_unknown_fields_are_ignored() -> None:
    message = {"type": "agent:terminate", "sessionId": "s", "role": "x", "id": 1, "colour": "red"}
    assert relay.read_request(message) == relay.TerminateAgent(session_id="s", role="x")


def test_an_error_notice_names_its_request_session_and_role() -> None:
    notice = relay.error_notice(
        {"type": "agent:spawn", "id": 7, "sessionId": "s", "role": "x"}, Conflict("no")
    )
    assert notice == {
        "type": "error",
        "id": 7,
        "sessionId": "s",
        "role": "x",
        "error": "conflict",
        "message": "no",
    }
