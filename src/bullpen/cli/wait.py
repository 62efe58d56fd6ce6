"""`bullpen wait`: wait until a session or a worker is done, has failed or needs a person."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import click

from ..client import Client, Session, Worker
from ..domain.errors import BullpenError
from .find import find
from .output import print_json
from .text import worker_state
from .values import Number
from .verb import json_option, target_argument, with_client

DONE, FAILED, NEEDS_A_PERSON = 0, 1, 3
# Events that never end a turn, and of which there may be a thousand in a second.
PROGRESS_EVENTS = frozenset(
    {"agent_message", "agent_thought", "tool_call", "tool_call_update", "plan", "usage"}
)
OUTCOMES = {DONE: "done", FAILED: "failed", NEEDS_A_PERSON: "needs a person"}


class WaitTimedOut(BullpenError):
    """The session or worker was not done within --timeout."""

    code = "timeout"


@click.command()
@target_argument
@click.option("--timeout", type=Number(float, minimum=0), metavar="SECONDS", help="Give up after this time.")
@json_option
def wait(target: str, timeout: float | None, json: bool) -> int:
    """Wait until a session or worker is done: terminals until they end, agents until they are idle.

    Exits with 0 when it is done, 1 when it failed or took too long, 3 when it needs a person.

    \b
    Examples:
      bullpen wait my-session --timeout 600 && bullpen logs my-session
      bullpen wait my-session --json | jq -r .outcome
    """
    session, workers, code = with_client(lambda client: _wait(client, target, timeout))
    if json:
        result = {"sessionId": session.id, "status": session.status, "outcome": OUTCOMES[code]}
        print_json(result | {"workers": workers})
    else:
        lines = [f"{worker.role}: {worker_state(worker)}" for worker in workers]
        print("\n".join(lines) or f"{session.title}: {session.status}")
    return code


async def _wait(client: Client, target: str, timeout: float | None) -> tuple[Session, list[Worker], int]:
    """Wait for the named session or worker; return the session, the workers that count, and the exit code.

    Raise WaitTimedOut if it is not done in time.
    """
    found = await find(client, target)
    try:
        async with (
            asyncio.timeout(timeout),
            aclosing(watch(client, found.session.id, found.worker)) as updates,
        ):
            session, code = await anext(updates)
            while code is None:
                session, code = await anext(updates)
    except TimeoutError:
        raise WaitTimedOut(f"{found.name} was not done after {timeout:g} seconds") from None
    return session, _selected_workers(session, found.worker), code


async def watch(
    client: Client, session_id: str, worker: Worker | None
) -> AsyncGenerator[tuple[Session, int | None], None]:
    """Yield a session and its outcome after every change, until there is an outcome (an exit code).

    With a worker, only that worker counts.
    """
    session, outcome = await _fetch_outcome(client, session_id, worker)
    yield session, outcome
    async with aclosing(client.follow(session.id, session.last_seq)) as events:
        while outcome is None:
            while (await anext(events)).type in PROGRESS_EVENTS:
                pass
            session, outcome = await _fetch_outcome(client, session_id, worker)
            yield session, outcome


async def _fetch_outcome(
    client: Client, session_id: str, worker: Worker | None
) -> tuple[Session, int | None]:
    """Return a session and its exit code, which is None while there is something to wait for.

    Read the queue before the session, so that a message sent in between is seen as a turn of the session.
    """
    queue = await client.queue(session_id)
    session = await client.session(session_id)
    outcome = exit_code_of(session, worker)
    if outcome == DONE and session.active and any(each.is_due for each in queue.messages):
        return session, NEEDS_A_PERSON if queue.paused else None
    if outcome == DONE and any(each.turn_failure for each in _selected_workers(session, worker)):
        return session, FAILED
    return session, outcome


def exit_code_of(session: Session, worker: Worker | None) -> int | None:
    """Return the exit code of a session or a worker; None while there is something to wait for."""
    workers = _selected_workers(session, worker)
    if session.status == "error" or any(_has_failed(each) for each in workers):
        return FAILED
    if any(each.alive and each.activity == "asking" for each in workers):
        return NEEDS_A_PERSON
    return DONE if not session.active or all(_is_done(each) for each in workers) else None


def _selected_workers(session: Session, worker: Worker | None) -> list[Worker]:
    """Return the worker, or the terminals and agents of the session except the terminals that agents run."""
    if worker is None:
        own = [each for each in session.workers if each.owner is None]
        return [each for each in own if each.type in ("terminal", "agent")]
    return [each for each in session.workers if each.id == worker.id]


def _has_failed(worker: Worker) -> bool:
    """Return whether a worker failed or ended with an error."""
    return worker.state == "failed" or (
        worker.state == "exited" and (worker.exit_code != 0 or worker.signal is not None)
    )


def _is_done(worker: Worker) -> bool:
    """Return whether a worker has ended, or is an idle agent."""
    return not worker.alive or (worker.type == "agent" and worker.activity == "idle")
