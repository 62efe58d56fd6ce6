"""`bullpen wait`: until there is nothing left to wait for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import typer

from ..client import Client, Session, Worker
from ..domain.errors import BullpenError
from .find import find
from .output import print_json
from .text import life
from .verb import AsJson, Target, new_app, with_client

app = new_app()

DONE, FAILED, NEEDS_A_PERSON = 0, 1, 3
# What leaves an agent in its turn, and may come a thousand times a second.
TALK = frozenset({"agent_message", "agent_thought", "tool_call", "tool_call_update", "plan", "usage"})
OUTCOMES = {DONE: "done", FAILED: "failed", NEEDS_A_PERSON: "needs a person"}


class WaitTimedOut(BullpenError):
    code = "timeout"


@app.command()
def wait(
    target: Target,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Give up after that.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Wait until a session or worker is done: terminals until they end, agents until they are idle.

    Exits with 0 when all is well, 1 when something failed or took too long, 3 when a person is asked.

    \b
    Examples:
      bullpen wait my-session --timeout 600 && bullpen logs my-session
      bullpen wait my-session --json | jq -r .outcome
    """
    session, workers, code = with_client(lambda client: _wait(client, target, timeout))
    if json:
        how = {"sessionId": session.id, "status": session.status, "outcome": OUTCOMES[code]}
        print_json(how | {"workers": workers})
    else:
        lines = [f"{worker.role}: {life(worker)}" for worker in workers]
        print("\n".join(lines) or f"{session.title}: {session.status}")
    return code


async def _wait(client: Client, target: str, timeout: float | None) -> tuple[Session, list[Worker], int]:
    found = await find(client, target)
    try:
        async with asyncio.timeout(timeout), aclosing(looks(client, found.session.id, found.worker)) as seen:
            session, code = await anext(seen)
            while code is None:
                session, code = await anext(seen)
    except TimeoutError:
        raise WaitTimedOut(f"{found.name} was not done after {timeout:g} seconds") from None
    return session, _meant(session, found.worker), code


async def looks(
    client: Client, session_id: str, meant: Worker | None
) -> AsyncGenerator[tuple[Session, int | None], None]:
    """A session whenever something has happened to it, until there is nothing left to wait for."""
    session, outcome = await _look(client, session_id, meant)
    yield session, outcome
    async with aclosing(client.follow(session.id, session.last_seq)) as events:
        while outcome is None:
            while (await anext(events)).type in TALK:
                pass
            session, outcome = await _look(client, session_id, meant)
            yield session, outcome


async def _look(client: Client, session_id: str, meant: Worker | None) -> tuple[Session, int | None]:
    """A session and its exit code once there is nothing left to wait for, else None.

    The queue first: what has left it by then, the session shows.
    """
    queue = await client.queue(session_id)
    session = await client.session(session_id)
    outcome = judge(session, meant)
    if outcome == DONE and session.active and any(each.is_due for each in queue.messages):
        return session, NEEDS_A_PERSON if queue.paused else None
    if outcome == DONE and any(worker.turn_failure for worker in _meant(session, meant)):
        return session, FAILED
    return session, outcome


def judge(session: Session, meant: Worker | None) -> int | None:
    """The exit code once there is nothing left to wait for, else None."""
    workers = _meant(session, meant)
    if session.status == "error" or any(_has_failed(worker) for worker in workers):
        return FAILED
    if any(worker.alive and worker.activity == "asking" for worker in workers):
        return NEEDS_A_PERSON
    return DONE if not session.active or all(_is_done(worker) for worker in workers) else None


def _meant(session: Session, worker: Worker | None) -> list[Worker]:
    """What a command of an agent comes to is the agent's business, unless somebody asks for just that."""
    if worker is None:
        own = [each for each in session.workers if each.owner is None]
        return [each for each in own if each.type in ("terminal", "agent")]
    return [each for each in session.workers if each.id == worker.id]


def _has_failed(worker: Worker) -> bool:
    return worker.state == "failed" or (
        worker.state == "exited" and (worker.exit_code != 0 or worker.signal is not None)
    )


def _is_done(worker: Worker) -> bool:
    return not worker.alive or (worker.type == "agent" and worker.activity == "idle")
