"""Stored records: repositories, settings and agents, and queries over sessions and workers."""

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, select, update

from .. import clock
from ..domain.errors import Conflict, NotFound
from ..domain.queue import QueueOverrides
from ..domain.records import Repository, RepositorySettings
from ..domain.states import SessionStatus
from .answers import PendingAnswer, with_answer
from .database import Database
from .listing import SessionFilters, SessionPage, read_page
from .statements import insert_rows, upsert_rows
from .tables import IMPORTED, agents, purges, repositories, sessions, settings, workers

_REPOSITORY_PREFIX = "repository:"


class RecordStore:
    """Reads and writes records, and queries the projections of sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def repositories(self) -> list[Repository]:
        """Return the registered repositories, by name."""
        query = select(repositories).where(repositories.c.removed_at.is_(None)).order_by(repositories.c.name)
        return await self._database.read(lambda c: [_repository(row) for row in c.execute(query)])

    async def repository(self, repo_id: str, removed: bool = False) -> Repository | None:
        """Return the repository with this id; None if it is not registered.

        `removed`: also return one that is no longer registered.
        """
        query = select(repositories).where(repositories.c.id == repo_id)
        if not removed:
            query = query.where(repositories.c.removed_at.is_(None))
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return _repository(row) if row else None

    async def add_repository(
        self, repository: Repository, answer: PendingAnswer[Repository] | None = None
    ) -> Repository:
        """Register a repository, or raise Conflict if its path is registered.

        One that was removed gets its old id, and so its sessions, back.
        """
        return await self._database.write(with_answer(lambda c: _add_repository(c, repository), answer))

    async def edit_repository(
        self, repo_id: str, name: str | None = None, queue: QueueOverrides | None = None
    ) -> Repository:
        """Change the given fields and return the repository, or raise NotFound."""
        changes: dict[str, Any] = {"updated_at": clock.now_ms()}
        if name is not None:
            changes["name"] = name
        if queue is not None:
            changes["queue"] = msgspec.json.encode(queue).decode()

        def edit(connection: Connection) -> None:
            query = update(repositories).where(
                repositories.c.id == repo_id, repositories.c.removed_at.is_(None)
            )
            if not connection.execute(query.values(**changes)).rowcount:
                raise NotFound(f"no repository {repo_id}")

        await self._database.write(edit)
        edited = await self.repository(repo_id)
        if edited is None:
            raise NotFound(f"no repository {repo_id}")
        return edited

    async def remove_repository(self, repo_id: str) -> None:
        """Remove a repository. Its row stays while sessions refer to it."""
        await self._database.write(lambda c: _remove_repository(c, repo_id))

    async def repository_settings(self) -> dict[str, RepositorySettings]:
        """Return the users' settings for repositories, by repository id."""
        query = select(settings).where(settings.c.key.startswith(_REPOSITORY_PREFIX))
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {
            row.key.removeprefix(_REPOSITORY_PREFIX): msgspec.json.decode(row.value, type=RepositorySettings)
            for row in rows
        }

    async def set_repository_settings(self, repo_id: str, value: RepositorySettings) -> None:
        """Replace the settings for a repository."""
        await self.set_setting(_REPOSITORY_PREFIX + repo_id, value)

    async def setting(self, key: str) -> Any:
        """Return the value of a setting, or None if it was never set."""
        query = select(settings.c.value).where(settings.c.key == key)
        text = await self._database.read(lambda c: c.execute(query).scalar())
        return None if text is None else msgspec.json.decode(text)

    async def set_setting(self, key: str, value: Any, answer: PendingAnswer[None] | None = None) -> None:
        """Store the value of a setting as JSON, with the answer of the request if given."""
        row = {"key": key, "value": msgspec.json.encode(value).decode()}
        await self._database.write(with_answer(lambda c: upsert_rows(c, settings, [row]), answer))

    async def agents(self) -> dict[str, Any]:
        """Return the agent definitions that users added, by id."""
        query = select(agents).order_by(agents.c.id)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.id: msgspec.json.decode(row.definition) for row in rows}

    async def put_agent(
        self, agent_id: str, definition: Any, answer: PendingAnswer[None] | None = None
    ) -> None:
        """Store an agent definition that a user added."""
        text = msgspec.json.encode(definition).decode()
        row = {"id": agent_id, "definition": text, "updated_at": clock.now_ms()}
        await self._database.write(with_answer(lambda c: upsert_rows(c, agents, [row]), answer))

    async def remove_agent(self, agent_id: str) -> None:
        """Delete an agent definition, or raise NotFound."""
        query = delete(agents).where(agents.c.id == agent_id)
        if not await self._database.write(lambda c: c.execute(query).rowcount):
            raise NotFound(f"no agent {agent_id}")

    async def list_sessions(
        self,
        *,
        repo_id: str | None = None,
        statuses: Collection[str] | None = None,
        type: str | None = None,
        q: str | None = None,
        started_by: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> SessionPage:
        """Return one page of the session list, newest first."""
        filters = SessionFilters(
            repo_id=repo_id,
            statuses=None if statuses is None else tuple(statuses),
            type=type,
            q=q,
            started_by=started_by,
        )
        return await self._database.read(lambda c: read_page(c, filters, limit, offset))

    async def live_sessions(self) -> list[str]:
        """Return the ids of sessions with a living worker, unsorted (sorting would read all sessions)."""
        query = select(sessions.c.id).where(sessions.c.live.is_(True), sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def active_locations(self) -> list[str]:
        """Return the directories of sessions that have not ended."""
        query = select(sessions.c.location_path).where(sessions.c.status == SessionStatus.ACTIVE).distinct()
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def imported_sessions(self) -> set[str]:
        """Return the ids of sessions that were imported from a recording."""
        query = select(settings.c.key).where(settings.c.key.startswith(IMPORTED))
        return await self._database.read(
            lambda c: {key.removeprefix(IMPORTED) for key in c.execute(query).scalars()}
        )

    async def sessions_ending_with_last_viewer(self) -> list[str]:
        """Return the ids of active sessions that end when their last viewer leaves."""
        ending = (sessions.c.status == SessionStatus.ACTIVE, sessions.c.on_last_disconnect == "terminate")
        query = select(sessions.c.id).where(*ending, sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def last_seqs(self) -> dict[str, int]:
        """Return the number of the last event of each session."""
        query = select(sessions.c.id, sessions.c.last_seq).where(sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: {row.id: row.last_seq for row in c.execute(query)})

    async def count_sessions(self) -> dict[str, int]:
        """Return the number of sessions by status."""
        query = select(sessions.c.status, func.count()).group_by(sessions.c.status)
        return await self._database.read(lambda c: {row[0]: row[1] for row in c.execute(query)})

    async def count_workers(self) -> dict[str, int]:
        """Return the number of workers by state."""
        query = select(workers.c.state, func.count()).group_by(workers.c.state)
        return await self._database.read(lambda c: {row[0]: row[1] for row in c.execute(query)})

    async def store_answer(self, answer: PendingAnswer[None]) -> None:
        """Store the answer of a request whose effect is not in the database."""
        await self._database.write(with_answer(lambda _: None, answer))

    async def known_workers(self, worker_ids: Collection[str]) -> set[str]:
        """Return which of these workers exist here, including those of an unfinished purge."""
        query = select(workers.c.id).where(workers.c.id.in_(worker_ids))
        return await self._database.read(lambda c: set(c.execute(query).scalars()))

    async def sessions_of_workers(self, worker_ids: Collection[str]) -> dict[str, str]:
        """Return the session id of each known worker; none for a session that is being purged."""
        of_workers = select(workers.c.id, workers.c.session_id).where(workers.c.id.in_(worker_ids))
        query = of_workers.where(workers.c.session_id.notin_(select(purges)))
        return await self._database.read(lambda c: {row.id: row.session_id for row in c.execute(query)})


def _repository(row: Row[Any]) -> Repository:
    """Return the repository in a row of `repositories`."""
    return Repository(
        id=row.id,
        path=row.path,
        name=row.name,
        created_at=row.created_at,
        updated_at=row.updated_at,
        queue=msgspec.json.decode(row.queue, type=QueueOverrides) if row.queue else QueueOverrides(),
    )


def _add_repository(connection: Connection, new: Repository) -> Repository:
    """Insert a repository, or register a removed one again; raise Conflict if it is registered."""
    known = connection.execute(select(repositories).where(repositories.c.path == new.path)).one_or_none()
    if known is None:
        row = msgspec.structs.asdict(new) | {"queue": msgspec.json.encode(new.queue).decode()}
        insert_rows(connection, repositories, [row])
        return new
    if known.removed_at is None:
        raise Conflict(f"the repository {new.path} is registered already, as {known.name}")
    connection.execute(
        update(repositories)
        .where(repositories.c.id == known.id)
        .values(name=new.name, updated_at=new.updated_at, removed_at=None)
    )
    before = _repository(known)
    return msgspec.structs.replace(new, id=before.id, created_at=before.created_at, queue=before.queue)


def _remove_repository(connection: Connection, repo_id: str) -> None:
    """Mark a repository as removed, or raise NotFound; delete its row if no session refers to it."""
    found = repositories.c.id == repo_id
    if not connection.execute(
        update(repositories)
        .where(found, repositories.c.removed_at.is_(None))
        .values(removed_at=clock.now_ms())
    ).rowcount:
        raise NotFound(f"no repository {repo_id}")
    used = select(sessions.c.id).where(sessions.c.repo_id == repo_id).exists()
    connection.execute(delete(repositories).where(found, ~used))
