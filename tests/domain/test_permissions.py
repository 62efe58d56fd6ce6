"""Open permissions and questions: the first answer counts, and a second one is a conflict."""

import msgspec
import pytest

from bullpen.domain.conversation import AgentMessage, AgentSession, Permission, Question, RequestReceived
from bullpen.domain.errors import Conflict, Invalid, NotFound
from bullpen.domain.events import Event, Fact, SessionStart, WorkerFailed, WorkerReady, WorkerSpawning
from bullpen.domain.permissions import answer_permission, answer_question
from bullpen.domain.snapshot import Snapshot, fold

OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]


def asked(id: str) -> Permission:
    return Permission(id=id, tool_call={"toolCallId": "t"}, options=OPTIONS, status="pending")


def session(*facts: Fact) -> Snapshot:
    snapshot = Snapshot(id="s")
    start = SessionStart(session_type="quick", location_path="/", title="x", founder="w")
    spawning = WorkerSpawning(worker_type="agent", name="Agent", run=1, workspace="/")
    for fact in (start, spawning, WorkerReady(pid=1), AgentSession(acp_session_id="a", how="new"), *facts):
        seq = snapshot.last_seq + 1
        snapshot = fold(snapshot, Event(seq, max(seq, 2), fact, *(("w", "agent") if seq > 1 else ())))
    return snapshot


def test_open_permissions_are_listed_oldest_first() -> None:
    snapshot = session(asked("b"), asked("a"))
    assert [each.permission.id for each in snapshot.permissions] == ["b", "a"]
    assert snapshot.permissions[0].worker.id == "w"


def test_an_answer_records_its_option_and_its_user() -> None:
    worker_id, fact = answer_permission(session(asked("a")), "a", "y", "ada")
    assert (worker_id, fact.status, fact.option_id, fact.by) == ("w", "selected", "y", "ada")
    assert fact.options == OPTIONS


def test_the_second_answer_is_a_conflict() -> None:
    _, fact = answer_permission(session(asked("a")), "a", "y", "ada")
    after = session(asked("a"), fact)
    assert after.permissions == []
    with pytest.raises(Conflict, match="answered before"):
        answer_permission(after, "a", "y", "bob")


def test_an_unknown_option_or_permission_is_refused() -> None:
    with pytest.raises(Invalid, match="the options are y"):
        answer_permission(session(asked("a")), "a", "maybe", "ada")
    with pytest.raises(NotFound):
        answer_permission(session(), "a", "y", "ada")


def test_a_form_is_accepted_with_its_content_declined_or_cancelled() -> None:
    form = Question(id="q", message="who?", status="pending")
    for action, status, answer in (
        ("accept", "accepted", {"name": "Ada"}),
        ("decline", "declined", None),
        ("cancel", "cancelled", None),
    ):
        _, fact = answer_question(session(form), "q", action, {"name": "Ada"}, "ada")
        assert (fact.status, fact.answer) == (status, answer)
    with pytest.raises(Invalid):
        answer_question(session(form), "q", "maybe", None, "ada")


def test_an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays_open() -> None:
    schema = {"properties": {"port": {"type": "integer", "minimum": 1}}, "required": ["port"]}
    asked = session(Question(id="q", message="port?", status="pending", schema=schema))
    for content, sentence in (
        ({"port": 0}, "port must be a whole number, 1 or more, not 0"),
        (None, "port must be filled in: a whole number, 1 or more"),
    ):
        with pytest.raises(Invalid, match=f"^{sentence}$"):
            answer_question(asked, "q", "accept", content, "ada")
    assert answer_question(asked, "q", "decline", {"port": 0}, "ada")[1].answer is None
    assert answer_question(asked, "q", "accept", {"port": 80}, "ada")[1].answer == {"port": 80}


def test_an_answer_in_an_old_log_is_read_although_it_does_not_fit_the_form() -> None:
    schema = {"properties": {"port": {"type": "integer"}}, "required": ["port"]}
    asked = Question(id="q", message="port?", status="pending", schema=schema)
    answered = msgspec.structs.replace(asked, status="accepted", answer={"hat": "on"}, by="ada")
    assert session(asked, answered).questions == []


def test_the_founder_of_a_session_is_known_until_it_has_answered() -> None:
    assert session().founder == "w"
    assert session(AgentMessage(text="x", partial=True)).founder is None
    assert session(WorkerFailed(error="x")).founder == "w"
    start = SessionStart(session_type="quick", location_path="/", title="x")
    spawning = WorkerSpawning(worker_type="agent", name="Agent", run=1, workspace="/")
    later = fold(fold(Snapshot(id="s"), Event(1, 10, start)), Event(2, 10, spawning, "w", "agent"))
    assert later.founder is None


def test_a_snapshot_in_the_middle_of_a_conversation_can_be_saved_and_read_back() -> None:
    received = RequestReceived(id="a", rpc_id=0, method="session/request_permission")
    snapshot = session(received, asked("a"))
    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot) == snapshot
