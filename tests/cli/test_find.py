"""Find the session or worker that a user names by title, id or role."""

import pytest

from bullpen.cli.find import SessionMatch, match_name, terminal_of
from bullpen.cli.status import return_command
from bullpen.client import Session, Worker
from bullpen.domain.errors import BullpenError, Conflict, NotFound


def worker(session: str, identifier: str, role: str, state: str = "active", type: str = "terminal") -> Worker:
    return Worker(id=identifier, session_id=session, type=type, name=role, role=role, state=state)


def session(identifier: str, title: str, *workers: Worker, status: str = "active") -> Session:
    return Session(id=identifier, type="quick", title=title, status=status, workers=list(workers))


SESSIONS = [
    session("aaaa1111", "site", worker("aaaa1111", "ffff0001", "terminal")),
    session(
        "aaaa2222", "api", worker("aaaa2222", "ffff0002", "terminal"), worker("aaaa2222", "eeee0003", "build")
    ),
    session("bbbb3333", "old", status="completed"),
    session("bbbb4444", "old"),
    session("cccc5555", "old", status="cancelled"),
    session("dddd6666", "aaaa1111x"),
]


def name_of(found: SessionMatch) -> tuple[str, str | None]:
    return found.session.id, found.worker.id if found.worker else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aaaa1111", ("aaaa1111", None)),
        ("aaaa2", ("aaaa2222", None)),
        ("site", ("aaaa1111", None)),
        ("SIT", ("aaaa1111", None)),
        ("ffff0001", ("aaaa1111", "ffff0001")),
        ("eeee", ("aaaa2222", "eeee0003")),
        ("api/build", ("aaaa2222", "eeee0003")),
        ("aaaa2/build", ("aaaa2222", "eeee0003")),
        ("old", ("bbbb4444", None)),
        ("cccc", ("cccc5555", None)),
    ],
)
def test_a_session_or_worker_is_found_by_title_id_prefix_or_role(
    text: str, expected: tuple[str, str | None]
) -> None:
    assert name_of(match_name(SESSIONS, text)) == expected


@pytest.mark.parametrize("text", ["nothing", "api/missing", "zzzz", "/", ""])
def test_an_unknown_name_is_refused_with_advice(text: str) -> None:
    with pytest.raises(BullpenError) as refused:
        match_name([] if text == "" else SESSIONS, text)
    assert isinstance(refused.value, NotFound)
    assert "bullpen ls" in str(refused.value)


def test_an_ambiguous_prefix_is_refused_with_the_candidates() -> None:
    with pytest.raises(Conflict, match=r"site .*api"):
        match_name(SESSIONS, "aaaa")


def test_the_name_of_a_session_means_its_only_living_terminal() -> None:
    ended = worker("x", "1", "first", state="exited")
    alive = worker("x", "2", "second")
    assert terminal_of(SessionMatch(session("x", "t", ended, alive))) == alive
    assert terminal_of(SessionMatch(session("x", "t", ended))) == ended


def test_a_session_with_several_terminals_is_refused_with_their_names() -> None:
    two = session("x", "t", worker("x", "1", "first"), worker("x", "2", "second"))
    with pytest.raises(Conflict, match="t/first, t/second"):
        terminal_of(SessionMatch(two))


def test_without_a_terminal_the_error_says_how_to_add_one() -> None:
    with pytest.raises(Conflict, match="bullpen worker add"):
        terminal_of(SessionMatch(session("x", "t", worker("x", "1", "diff", type="diff"))))


def test_for_an_agent_without_a_terminal_the_error_names_the_chat_command() -> None:
    agent = worker("aaaa7777", "eeee0008", "claude", type="agent")
    talk = session("aaaa7777", "talk", agent)
    for found, id in ((SessionMatch(talk), "aaaa7777"), (SessionMatch(talk, agent), "eeee0008")):
        with pytest.raises(Conflict, match=f"bullpen chat {id}"):
            terminal_of(found)
    assert return_command(talk) == "bullpen chat aaaa7777"
    assert return_command(SESSIONS[0]) == "bullpen attach aaaa1111"
