"""What a session needs from the user, why and since when."""

import pytest

from bullpen.domain.attention import Attention, Need, attention_of
from bullpen.domain.conversation import Permission, Question
from bullpen.domain.events import (
    Draft,
    Fact,
    SessionEnd,
    WorkerActivity,
    WorkerCommand,
    WorkerExited,
    WorkerFailed,
    WorkerReady,
)
from bullpen.domain.inbox import InboxItem
from domain.folding import about, after, running, session, spawning

AGENT = running("a", "coder")  # events 2 and 3
WORKS = about("a", WorkerActivity(activity="active", why="a prompt was sent"))
RESTS = about("a", WorkerActivity(activity="idle", why="the turn is over"))
ASKS = about("a", WorkerActivity(activity="asking", why="it rang the bell"))
FAILS = about("a", WorkerFailed(error="it ended with exit code 3"))
PERMISSION = Permission(id="p", tool_call={"title": "Edit a.py"}, options=[], status="pending")
QUESTION = Question(id="q", message="Which port?", status="pending", schema={})


def unseen(kind: str, worker_id: str = "a", text: str = "end_turn") -> InboxItem:
    return InboxItem(
        id="s.9",
        kind=kind,
        session_id="s",
        session_title="x",
        worker_id=worker_id,
        role="coder",
        since=9000,
        text=text,
        seq=9,
    )


FINISHED = unseen("finished")
TURN_FAILED = unseen("failed", text="the turn failed: overloaded")


@pytest.mark.parametrize(
    ("drafts", "results", "attention"),
    [
        ([], [], Attention(Need.IDLE, "nothing runs", 1000)),
        (running("t", "terminal", "terminal"), [], Attention(Need.IDLE, "started", 3000)),
        (AGENT, [], Attention(Need.IDLE, "started", 3000)),
        ([Draft(spawning(), "a", "coder")], [], Attention(Need.WORKING, "just started", 2000)),
        ([*AGENT, *WORKS], [], Attention(Need.WORKING, "a prompt was sent", 4000)),
        ([*AGENT, *RESTS], [], Attention(Need.IDLE, "the turn is over", 4000)),
        ([*AGENT, *RESTS], [FINISHED], Attention(Need.DONE, "the turn is over", 4000)),
        ([*AGENT, *RESTS], [unseen("finished", "b")], Attention(Need.IDLE, "the turn is over", 4000)),
        ([*AGENT, *RESTS], [TURN_FAILED], Attention(Need.ERROR, "Agent: the turn failed: overloaded", 9000)),
        ([*AGENT, *ASKS], [FINISHED], Attention(Need.ASKING, "it rang the bell", 4000)),
        (
            [*AGENT, *about("a", PERMISSION, QUESTION), *ASKS],
            [],
            Attention(Need.ASKING, "Edit a.py · Which port?", 4000),
        ),
        ([*AGENT, *FAILS], [], Attention(Need.ERROR, "Agent ended with exit code 3", 4000)),
        ([*AGENT, *ASKS, *about("a", WorkerExited())], [], Attention(Need.IDLE, "nothing runs", 5000)),
    ],
)
def test_the_most_urgent_need_is_that_of_the_session(
    drafts: list[Draft | Fact], results: list[InboxItem], attention: Attention
) -> None:
    assert attention_of(session(*drafts), results) == attention


def test_a_session_is_working_while_one_agent_works_also_if_another_is_done() -> None:
    both = session(*AGENT, *RESTS, *running("b", "tester"), *about("b", *(draft.fact for draft in WORKS)))
    assert attention_of(both, [FINISHED]).need is Need.WORKING


def test_an_idle_session_with_a_program_in_the_foreground_is_working() -> None:
    idle = session(*AGENT, *RESTS)
    assert attention_of(idle, [], ["make"]) == Attention(Need.WORKING, "runs make", attention_of(idle).since)
    assert attention_of(idle, [FINISHED], ["make"]).need is Need.DONE
    assert attention_of(session(*AGENT, *ASKS), [], ["make"]).need is Need.ASKING


def test_an_agent_handles_failures_of_its_own_commands() -> None:
    command = [*running("t", "rg", "terminal"), *about("t", WorkerCommand(argv=("rg",), owner="a"))]
    failed = session(*AGENT, *WORKS, *command, *about("t", WorkerFailed(error="it crashed")))
    assert attention_of(failed).need is Need.WORKING


@pytest.mark.parametrize("status", ["completed", "cancelled", "error"])
def test_an_ended_session_needs_the_user_only_while_its_failure_was_not_seen(status: str) -> None:
    ended = after(session(*AGENT), SessionEnd(status=status, reason="user_request"))
    assert attention_of(ended, [FINISHED]) == Attention(Need.IDLE, "ended by a person", 4000)
    assert attention_of(ended, [TURN_FAILED]).need is Need.ERROR


def test_the_session_of_an_agent_that_starts_again_is_working() -> None:
    again = session(*AGENT, *FAILS, Draft(spawning(run=2), "a", "coder"))
    assert attention_of(again).need is Need.WORKING
    assert attention_of(after(again, *about("a", WorkerReady(pid=8)))).need is Need.IDLE
