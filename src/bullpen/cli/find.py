"""Which session or worker a person means: an id, its beginning, a title, or session/role."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TypeVar

from ..client import Client, Repository, Session, Token, Worker
from ..domain.errors import Conflict, NotFound
from ..git.discovery import find_place
from .text import short

Thing = TypeVar("Thing")

_SHOWN = 5


class SessionMatch(NamedTuple):
    """A session, and the worker in it when one was meant."""

    session: Session
    worker: Worker | None = None

    @property
    def name(self) -> str:
        return f"{self.session.title}/{self.worker.role}" if self.worker else self.session.title

    @property
    def agent(self) -> Worker | None:
        """Who is told: the one that was named, or the first agent that was not ended."""
        agents = (
            each for each in self.session.workers if each.type == "agent" and each.state != "terminated"
        )
        return self.worker or next(agents, None)


async def find(client: Client, text: str) -> SessionMatch:
    """The one session or worker somebody means."""
    return pick(await client.sessions(), text)


async def find_session(client: Client, text: str) -> Session:
    found = await find(client, text)
    if found.worker is not None:
        raise NotFound(
            f"{text} is a worker; its session is {found.session.title} ({short(found.session.id)})"
        )
    return found.session


async def find_agent(client: Client, session_id: str) -> Worker | None:
    """Who is told what is said to a session."""
    return SessionMatch(await client.session(session_id)).agent


async def find_repository(client: Client, text: str) -> Repository:
    repositories = await client.repositories()
    ways = (
        [each for each in repositories if text in (each.id, each.path)],
        [each for each in repositories if each.name == text],
        [each for each in repositories if each.id.startswith(text)],
    )
    return _only(
        ways,
        lambda each: f"{each.name} ({short(each.id)})",
        text,
        f"there is no repository called {text}; see: bullpen repo ls",
    )


async def find_repository_at(client: Client, directory: Path) -> Repository:
    """The registered repository a directory lies in, or in a worktree of which."""
    around = [each for each in await client.repositories() if _holds(each, directory)]
    if not around:
        add = f"bullpen repo add {quote(str(directory))}"
        raise NotFound(f"no repository is registered for {directory}; add it with: {add}")
    return max(around, key=lambda each: len(each.path))


def _holds(repository: Repository, directory: Path) -> bool:
    real = Path(os.path.realpath(directory))
    places = (Path(repository.path), Path(f"{repository.path}.worktrees"))
    if any(real.is_relative_to(place) for place in places):
        return True
    linked = find_place(real)  # git lets a worktree lie anywhere
    return linked is not None and linked.common_dir.parent == places[0]


async def find_token(client: Client, text: str) -> Token:
    tokens = await client.tokens()
    ways = (
        [each for each in tokens if each.id == text],
        [each for each in tokens if each.name == text],
        [each for each in tokens if each.id.startswith(text)],
    )
    return _only(
        ways,
        lambda each: f"{each.name} ({short(each.id)})",
        text,
        f"there is no token or device called {text}; see: bullpen token list",
    )


def pick(sessions: Sequence[Session], text: str) -> SessionMatch:
    """Decides among sessions, the surest way to name one first."""
    everything = [SessionMatch(session) for session in sessions]
    everything += [SessionMatch(session, worker) for session in sessions for worker in session.workers]
    ways = (
        [each for each in everything if _id(each) == text],
        _living_first([each for each in everything if each.worker is None and each.session.title == text]),
        [each for each in everything if len(text) > 1 and _id(each).startswith(text)],
        _by_role(sessions, text),
        _living_first([each for each in everything if each.worker is None and _begins(each, text)]),
    )
    return _only(
        ways,
        lambda each: f"{each.name} ({short(_id(each))})",
        text,
        f"there is no session or worker called {text}; see: bullpen ls -a",
    )


def terminal_of(found: SessionMatch) -> Worker:
    """The worker whose terminal is meant, when only a session was named."""
    if found.worker is not None:
        if not found.worker.has_terminal:
            raise Conflict(f"{found.name} has no terminal; {_instead(found)}")
        return found.worker
    title = found.session.title
    terminals = [worker for worker in found.session.workers if worker.has_terminal]
    choice = [worker for worker in terminals if worker.alive] or terminals[-1:]
    if not choice:
        raise Conflict(f"{title} has no terminal; {_instead(found)}")
    if len(choice) > 1:
        names = ", ".join(f"{title}/{worker.role}" for worker in choice)
        raise Conflict(f"{title} has several terminals; name one: {names}")
    return choice[0]


def _instead(found: SessionMatch) -> str:
    """What one does where there is no terminal: an agent is talked to."""
    workers = [found.worker] if found.worker else found.session.workers
    if any(worker.type == "agent" and worker.alive for worker in workers):
        return f"talk to its agent with: bullpen chat {short(_id(found))}"
    return f"add one with: bullpen worker add {short(found.session.id)}"


def _id(found: SessionMatch) -> str:
    return found.worker.id if found.worker else found.session.id


def _begins(found: SessionMatch, text: str) -> bool:
    return found.session.title.casefold().startswith(text.casefold())


def _by_role(sessions: Sequence[Session], text: str) -> list[SessionMatch]:
    name, slash, role = text.rpartition("/")
    if not slash:
        return []
    try:
        session = pick(sessions, name).session
    except (NotFound, Conflict):
        return []
    workers = [worker for worker in session.workers if worker.role == role]
    return _living_first([SessionMatch(session, worker) for worker in workers])


def _living_first(found: list[SessionMatch]) -> list[SessionMatch]:
    """A name may be used again after its first owner ended: then the living one is meant."""
    living = [each for each in found if (each.worker.alive if each.worker else each.session.active)]
    return living or found


def _only(ways: Iterable[list[Thing]], name: Callable[[Thing], str], text: str, absent: str) -> Thing:
    """The single match of the first way that has any."""
    for matches in ways:
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(name(each) for each in matches[:_SHOWN])
            more = f" and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
            raise Conflict(f"{text} could be {names}{more}; give more of the id")
    raise NotFound(absent)
