"""Find the session, worker, repository or token that the user names on the command line."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TypeVar

from ..client import Client, Repository, Session, Token, Worker
from ..domain.errors import Conflict, NotFound
from ..git.discovery import find_git_directories
from .text import short

Match = TypeVar("Match")

_MAX_LISTED = 5


class SessionMatch(NamedTuple):
    """A session that the user named, and the worker in it if a worker was named."""

    session: Session
    worker: Worker | None = None

    @property
    def name(self) -> str:
        """The title of the session, with the role of the worker."""
        return f"{self.session.title}/{self.worker.role}" if self.worker else self.session.title

    @property
    def agent(self) -> Worker | None:
        """The worker that was named, or the first agent of the session that is not terminated."""
        agents = (
            each for each in self.session.workers if each.type == "agent" and each.state != "terminated"
        )
        return self.worker or next(agents, None)


async def find(client: Client, text: str) -> SessionMatch:
    """Return the session or worker with a name; raise NotFound or, if several match, Conflict."""
    return match_name(await client.sessions(), text)


async def find_session(client: Client, text: str) -> Session:
    """Return the session with a name; raise NotFound if it names a worker."""
    found = await find(client, text)
    if found.worker is not None:
        raise NotFound(
            f"{text} is a worker; its session is {found.session.title} ({short(found.session.id)})"
        )
    return found.session


async def find_agent(client: Client, session_id: str) -> Worker | None:
    """Return the first agent of a session that is not terminated, or None. It receives the prompts."""
    return SessionMatch(await client.session(session_id)).agent


async def find_repository(client: Client, text: str) -> Repository:
    """Return the repository with an id, a path, a name or the beginning of an id."""
    repositories = await client.repositories()
    candidates = (
        [each for each in repositories if text in (each.id, each.path)],
        [each for each in repositories if each.name == text],
        [each for each in repositories if each.id.startswith(text)],
    )
    return _only(
        candidates,
        lambda each: f"{each.name} ({short(each.id)})",
        text,
        f"there is no repository called {text}; see: bullpen repo ls",
    )


async def find_repository_at(client: Client, directory: Path) -> Repository:
    """Return the repository that has a directory in its main directory or a worktree; or raise NotFound."""
    containing = [each for each in await client.repositories() if _contains(each, directory)]
    if not containing:
        add = f"bullpen repo add {quote(str(directory))}"
        raise NotFound(f"no repository is registered for {directory}; add it with: {add}")
    return max(containing, key=lambda each: len(each.path))


def _contains(repository: Repository, directory: Path) -> bool:
    """Return whether a directory is in a repository or in one of its worktrees."""
    real = Path(os.path.realpath(directory))
    directories = (Path(repository.path), Path(f"{repository.path}.worktrees"))
    if any(real.is_relative_to(each) for each in directories):
        return True
    linked = find_git_directories(real)  # a git worktree may be in any directory
    return linked is not None and linked.common_dir.parent == directories[0]


async def find_token(client: Client, text: str) -> Token:
    """Return the token or device with an id, a name or the beginning of an id."""
    tokens = await client.tokens()
    candidates = (
        [each for each in tokens if each.id == text],
        [each for each in tokens if each.name == text],
        [each for each in tokens if each.id.startswith(text)],
    )
    return _only(
        candidates,
        lambda each: f"{each.name} ({short(each.id)})",
        text,
        f"there is no token or device called {text}; see: bullpen token ls",
    )


def match_name(sessions: Sequence[Session], text: str) -> SessionMatch:
    """Return the session or worker that a text names.

    An exact id counts before a title, the beginning of an id, session/role, and the beginning of a title.
    """
    everything = [SessionMatch(session) for session in sessions]
    everything += [SessionMatch(session, worker) for session in sessions for worker in session.workers]
    candidates = (
        [each for each in everything if _id(each) == text],
        _prefer_alive([each for each in everything if each.worker is None and each.session.title == text]),
        [each for each in everything if len(text) > 1 and _id(each).startswith(text)],
        _by_role(sessions, text),
        _prefer_alive([each for each in everything if each.worker is None and _title_begins(each, text)]),
    )
    return _only(
        candidates,
        lambda each: f"{each.name} ({short(_id(each))})",
        text,
        f"there is no session or worker called {text}; see: bullpen ls -a",
    )


def terminal_of(found: SessionMatch) -> Worker:
    """Return the worker that was named or the only terminal of the session; raise Conflict without one."""
    if found.worker is not None:
        if not found.worker.has_terminal:
            raise Conflict(f"{found.name} has no terminal; {_advice(found)}")
        return found.worker
    title = found.session.title
    terminals = [worker for worker in found.session.workers if worker.has_terminal]
    choice = [worker for worker in terminals if worker.alive] or terminals[-1:]
    if not choice:
        raise Conflict(f"{title} has no terminal; {_advice(found)}")
    if len(choice) > 1:
        names = ", ".join(f"{title}/{worker.role}" for worker in choice)
        raise Conflict(f"{title} has several terminals; name one: {names}")
    return choice[0]


def _advice(found: SessionMatch) -> str:
    """Return what the user can do with a session or worker that has no terminal."""
    workers = [found.worker] if found.worker else found.session.workers
    if any(worker.type == "agent" and worker.alive for worker in workers):
        return f"talk to its agent with: bullpen chat {short(_id(found))}"
    return f"add one with: bullpen worker add {short(found.session.id)}"


def _id(found: SessionMatch) -> str:
    """Return the id of the worker or, without one, of the session."""
    return found.worker.id if found.worker else found.session.id


def _title_begins(found: SessionMatch, text: str) -> bool:
    """Return whether the title of the session begins with a text, ignoring case."""
    return found.session.title.casefold().startswith(text.casefold())


def _by_role(sessions: Sequence[Session], text: str) -> list[SessionMatch]:
    """Return the workers that a text like session/role names."""
    name, slash, role = text.rpartition("/")
    if not slash:
        return []
    try:
        session = match_name(sessions, name).session
    except (NotFound, Conflict):
        return []
    workers = [worker for worker in session.workers if worker.role == role]
    return _prefer_alive([SessionMatch(session, worker) for worker in workers])


def _prefer_alive(found: list[SessionMatch]) -> list[SessionMatch]:
    """Return those that have not ended, if any: a name may be used again after its owner ended."""
    alive = [each for each in found if (each.worker.alive if each.worker else each.session.active)]
    return alive or found


def _only(candidates: Iterable[list[Match]], name: Callable[[Match], str], text: str, absent: str) -> Match:
    """Return the single match of the first list that is not empty.

    Raise Conflict if that list has several, and NotFound with the message `absent` if all are empty.
    """
    for matches in candidates:
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(name(each) for each in matches[:_MAX_LISTED])
            more = f" and {len(matches) - _MAX_LISTED} more" if len(matches) > _MAX_LISTED else ""
            raise Conflict(f"{text} could be {names}{more}; give more of the id")
    raise NotFound(absent)
