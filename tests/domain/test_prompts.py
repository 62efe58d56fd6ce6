"""The agent that a prompt is for, the content forwarded with it, and when a queued message may be sent."""

from collections.abc import Callable
from typing import Any

import pytest

from bullpen.domain import prompts
from bullpen.domain.conversation import AgentSession, ForwardedFrom, TurnStart
from bullpen.domain.errors import Conflict, Invalid, NotFound
from bullpen.domain.events import (
    Draft,
    Fact,
    SessionEnd,
    WorkerActivity,
    WorkerExited,
    WorkerFailed,
    WorkerTerminated,
)
from bullpen.domain.prompts import ForwardSource, Prompt, PromptRoute
from bullpen.domain.queue import QueueAdded, QueueConfigured, QueueFailed, QueuePaused
from domain.folding import about, running, session

HAS_SESSION = AgentSession(acp_session_id="s", how="new")
FIRST = [*running("a", "auth"), *about("a", HAS_SESSION)]
SECOND = [*running("b", "docs"), *about("b", HAS_SESSION)]
SHELL = running("t", "shell", "terminal")
BOTH = session(*SHELL, *FIRST, *SECOND)
TERMINAL_AGENT = [*running("p", "pty", agent_kind="pty")]
NOW = 10**6


def order(**more: Any) -> Prompt:
    return Prompt(**({"text": "hello", "prompt_id": "id"} | more))


def message(id: str, **more: Any) -> QueueAdded:
    return QueueAdded(id=id, message="hello", **more)


def delay(seconds: float) -> Fact:
    return QueueConfigured(enabled=True, delay_seconds=seconds, max_size=10, auto_generate_titles=True)


def test_a_prompt_is_for_the_named_agent_or_else_for_the_first_one() -> None:
    for wanted, expected in (
        ((None, None), "a"),
        (("b", None), "b"),
        ((None, "docs"), "b"),
        (("a", "docs"), "a"),
    ):
        worker = prompts.find_addressee(BOTH, *wanted)
        assert worker is not None
        assert worker.id == expected
    assert prompts.find_addressee(session(*SHELL), None, None) is None
    gone = session(*FIRST, *SECOND, *about("a", WorkerTerminated(reason="x")))
    first = prompts.find_addressee(gone, None, None)
    assert first is not None
    assert first.id == "b"


def test_forwarded_content_follows_the_text_of_the_user() -> None:
    origin = prompts.resolve_source(BOTH, ForwardSource(role="docs", what="diff"))
    assert origin == ForwardedFrom(worker_id="b", role="docs", what="diff")
    heading = "What has changed in the workspace of docs:"
    forwarded = prompts.with_forwarded_text(order(text="look", sender="me", busy="reject"), origin, "+1")
    assert forwarded == order(text=f"look\n\n{heading}\n\n+1", sender="me", busy="reject", origin=origin)
    assert prompts.with_forwarded_text(order(text=" "), origin, "+1").text == f"{heading}\n\n+1"
    answer = prompts.resolve_source(BOTH, ForwardSource(worker_id="a"))
    assert answer == ForwardedFrom(worker_id="a", role="auth", what="answer")
    assert (
        prompts.with_forwarded_text(order(text=""), answer, "yes").text == "The last answer of auth:\n\nyes"
    )


BUSY = session(*FIRST, *about("a", TURN := TurnStart(prompt_id="t")))
ENDED = session(*FIRST, *about("a", WorkerExited(exit_code=0)))


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (
            lambda: prompts.route_prompt(session(SessionEnd(status="error", reason="x")), order(), NOW),
            Conflict,
            "the session is error and takes no more orders",
        ),
        (
            lambda: prompts.route_prompt(BOTH, order(busy="wait"), NOW),
            Invalid,
            "busy is one of queue, reject, interrupt, not wait",
        ),
        (
            lambda: prompts.route_prompt(BUSY, order(busy="reject"), NOW),
            Conflict,
            "the agent in role auth is busy",
        ),
        (
            lambda: prompts.route_prompt(ENDED, order(), NOW),
            Conflict,
            "the agent in role auth is exited; restart it first",
        ),
        (lambda: prompts.route_prompt(BOTH, order(worker_id="x"), NOW), NotFound, "no worker x in session s"),
        (lambda: prompts.route_prompt(BOTH, order(role="x"), NOW), NotFound, "no worker has the role x"),
        (
            lambda: prompts.route_prompt(BOTH, order(role="shell"), NOW),
            Conflict,
            "the worker in role shell is a terminal, not an agent",
        ),
        (
            lambda: prompts.resolve_source(BOTH, ForwardSource(role="docs", what="mood")),
            Invalid,
            "what is passed on is one of answer, diff, not mood",
        ),
        (lambda: prompts.resolve_source(BOTH, ForwardSource()), Invalid, "from names a workerId or a role"),
        (lambda: prompts.resolve_source(BOTH, ForwardSource(role="x")), NotFound, "no worker has the role x"),
        (
            lambda: prompts.with_forwarded_text(
                order(), ForwardedFrom(worker_id="a", role="auth", what="answer"), " \n"
            ),
            Conflict,
            "the agent in role auth has not answered anything yet",
        ),
        (
            lambda: prompts.with_forwarded_text(
                order(), ForwardedFrom(worker_id="a", role="auth", what="diff"), ""
            ),
            Conflict,
            "nothing has changed in the workspace of auth",
        ),
    ],
)
def test_an_invalid_prompt_is_refused_with_a_sentence(
    act: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        act()
    assert str(refused.value) == sentence


def idle(activity: str = "idle") -> list[Draft]:
    return about("p", WorkerActivity(activity=activity, why="x"))


@pytest.mark.parametrize(
    ("drafts", "free"),
    [
        (FIRST, True),
        (running("a", "auth"), False),
        ([*FIRST, *about("a", TURN)], False),
        ([*FIRST, *about("a", WorkerFailed(error="x"))], False),
        (TERMINAL_AGENT, False),
        ([*TERMINAL_AGENT, *idle()], True),
        ([*TERMINAL_AGENT, *idle("active")], False),
        ([*TERMINAL_AGENT, *idle(), *about("p", TURN)], False),
        (SHELL, False),
    ],
)
def test_an_agent_accepts_a_prompt_only_between_its_turns(drafts: list[Draft], free: bool) -> None:
    snapshot = session(*drafts)
    (worker,) = snapshot.workers.values()
    assert prompts.accepts_prompt(snapshot, worker) is free


def sent(*queue: Fact, workers: list[Draft] | None = None, now: int = NOW) -> list[tuple[str, str]]:
    snapshot = session(*(FIRST + SECOND if workers is None else workers), *queue)
    return [(item.id, worker.id) for item, worker in prompts.sendable_items(snapshot, now)]


def test_each_idle_agent_gets_its_first_message() -> None:
    waiting = (message("1"), message("2"), message("3", worker_id="b"), message("4", worker_id="b"))
    assert sent(*waiting) == [("1", "a"), ("3", "b")]
    assert sent(*waiting, workers=[*FIRST, *about("a", TURN), *SECOND]) == [("3", "b")]
    assert sent(*waiting, workers=SECOND) == [("1", "b")]
    assert sent(message("1", worker_id="gone"), message("2")) == [("2", "a")]
    assert sent(message("1"), QueueFailed(id="1", error="x"), message("2")) == [("2", "a")]
    assert sent(message("1", worker_id="x"), workers=[]) == []


def test_scheduled_and_paused_messages_are_not_sent_and_urgent_ones_are() -> None:
    later = message("1", scheduled_time=NOW + 1)
    assert sent(later, message("2")) == [("2", "a")]
    assert sent(later, message("2"), now=NOW + 1) == [("1", "a")]
    assert sent(QueuePaused(why="x"), message("1")) == []
    assert sent(QueuePaused(why="x"), message("1"), message("2", urgent=True)) == [("2", "a")]
    assert sent(message("1", urgent=True, scheduled_time=NOW + 1)) == [("1", "a")]


def test_a_message_is_due_after_the_delay_and_not_before_its_time() -> None:
    def due(queue: tuple[Fact, ...], now: int) -> int | None:
        snapshot = session(*TERMINAL_AGENT, *idle(), *queue)
        return prompts.due_time(snapshot, snapshot.queue.items[0], snapshot.worker("p"), now)

    idle_since = 4000  # the time of event 4
    assert due((message("1"),), idle_since) == 0
    assert due((message("1", scheduled_time=9),), idle_since) == 9
    assert due((delay(2.5), message("1")), idle_since) == idle_since + 2500
    assert due((delay(2.5), message("1", scheduled_time=idle_since + 9000)), idle_since) == idle_since + 9000
    assert due((delay(2.5), message("1", scheduled_time=idle_since + 1)), idle_since) == idle_since + 2500
    assert due((delay(2.5), message("1")), idle_since - 2500) == idle_since + 2500
    assert due((delay(2.5), message("1")), idle_since - 2501) == 0  # the clock was set back
    assert due((delay(2.5), QueuePaused(why="x"), message("1")), idle_since) is None
    assert due((delay(2.5), QueuePaused(why="x"), message("1", urgent=True)), idle_since) == 0


def next_due(*queue: Fact, workers: list[Draft] = FIRST, now: int = NOW) -> int | None:
    return prompts.next_due_time(session(*workers, *queue), now)


def test_the_next_due_time_counts_only_scheduled_messages_of_idle_agents() -> None:
    soon, late = message("1", scheduled_time=NOW + 5), message("2", scheduled_time=NOW + 9)
    assert next_due(late, soon) == NOW + 5
    assert next_due(soon, late, now=NOW + 5) == NOW + 9
    assert next_due(message("0"), late) == NOW + 9
    assert next_due(soon, QueuePaused(why="x")) is None
    assert next_due(soon, QueueFailed(id="1", error="x"), late) == NOW + 9
    assert next_due(soon, workers=[*FIRST, *about("a", TURN)]) is None
    assert next_due(message("1", worker_id="gone", scheduled_time=NOW + 5), late) == NOW + 9
    assert next_due(message("1")) is None
    assert next_due(soon, workers=[]) is None


@pytest.mark.parametrize(
    ("queue", "now", "expected"),
    [
        ((message("1", worker_id="b"),), NOW, PromptRoute.SEND),
        ((message("1", worker_id="a"),), NOW, PromptRoute.QUEUE),
        ((message("1"), QueueFailed(id="1", error="x")), NOW, PromptRoute.SEND),
        ((message("1", scheduled_time=NOW + 1),), NOW, PromptRoute.SEND),
        ((message("1", scheduled_time=NOW + 1, urgent=True),), NOW, PromptRoute.QUEUE),
        ((message("1", scheduled_time=NOW),), NOW, PromptRoute.QUEUE),
        ((message("1"), QueuePaused(why="x")), NOW, PromptRoute.SEND),
        ((), NOW, PromptRoute.SEND),
    ],
)
def test_a_prompt_waits_behind_messages_for_the_same_agent(
    queue: tuple[Fact, ...], now: int, expected: PromptRoute
) -> None:
    assert prompts.route_prompt(session(*FIRST, *SECOND, *queue), order(), now) is expected
