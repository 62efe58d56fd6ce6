"""Offer the user to remove the reason of a refusal, and send the request again.

The page does the same: ui/src/state/remedies.ts.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple, TypeVar

from ..client import Client, Session
from ..domain.errors import BullpenError, Forbidden, TooMany
from .confirm import confirm
from .text import age, home_relative, printable, short

Result = TypeVar("Result")


class IdleSession(NamedTuple):
    """A session whose agents are idle, and since when all of them are."""

    session: Session
    since: datetime


async def with_remedies(client: Client, request: Callable[[], Awaitable[Result]]) -> Result:
    """Send a request. After each refusal with a remedy that the user agrees to, send it again."""
    while True:
        try:
            return await request()
        except Forbidden as refused:
            await _allow_root(client, refused)
        except TooMany as refused:
            await _end_idle_session(client, refused)


async def _allow_root(client: Client, refused: Forbidden) -> None:
    """Allow sessions in the directory that the refusal names, or raise the refusal."""
    root = _detail(refused, "allowRoot")
    if root is None or not confirm(f"Allow sessions in {printable(home_relative(root))}?", default=True):
        raise refused  # its message advises the user
    await client.add_root(root)


async def _end_idle_session(client: Client, refused: TooMany) -> None:
    """End the session that has been idle longest, or raise the refusal with the command that ends it."""
    is_of_agents = _detail(refused, "setting") == "max_sessions"
    idle = idle_longest(await client.sessions(status=["active"])) if is_of_agents else None
    if idle is None:
        raise refused
    title = printable(idle.session.title)
    question = f"{refused}.\nEnd {title}, which has been idle for {age(idle.since)}?"
    if not confirm(question, default=False):
        command = f"bullpen stop {short(idle.session.id)}"
        raise TooMany(f"{refused}; {title} has been idle longest, end it with: {command}")
    await client.complete_session(idle.session.id)


def idle_longest(sessions: list[Session]) -> IdleSession | None:
    """Return the session whose agents are idle for the longest time; None if each has one that is not."""
    idle = []
    for session in sessions:
        agents = [each for each in session.workers if each.type == "agent" and each.alive]
        since = [each.activity_since for each in agents if each.activity == "idle" and each.activity_since]
        if agents and len(since) == len(agents):
            idle.append(IdleSession(session, max(since)))
    return min(idle, key=lambda each: each.since, default=None)


def _detail(refused: BullpenError, name: str) -> str | None:
    """Return a text in the details of a refusal, or None."""
    value = refused.details.get(name) if isinstance(refused.details, dict) else None
    return value if isinstance(value, str) else None
