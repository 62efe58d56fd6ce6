"""Rows that change: what a person set up, and the lists made from projections."""

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, select, update

from .. import clock
from ..domain.errors import Conflict, NotFound
from ..domain.queue import QueueOverrides
from ..domain.records import Repository, RepositorySettings
from ..domain.states import SessionStatus
from .answers import KeptAnswer, answered
from .database import Database
from .listing import SessionFilters, SessionPage, read_page
from .statements import add, put
from .tables import IMPORTED, agents, purges, repositories, sessions, settings, workers

_OF_REPOSITORY = "repository:"


class RecordStore:
    """Repositories, settings and agents by id; sessions by what is asked of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def repositories(self) -> list[Repository]:
        query = select(repositories).where(repositories.c.removed_at.is_(None)).order_by(repositories.c.name)
        return await self._database.read(lambda c: [_repository(row) for row in c.execute(query)])

    async def repository(self, repo_id: str, removed: bool = False) -> Repository | None:
        """A registered repository; one that was removed only for the history of its sessions."""
        query = select(repositories).where(repositories.c.id == repo_id)
        if not removed:
            query = query.where(repositories.c.removed_at.is_(None))
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return _repository(row) if row else None

    async def add_repository(
        self, repository: Repository, answer: KeptAnswer[Repository] | None = None
    ) -> Repository:
        """Registers a path. One that was removed comes back with its old id, and so with its sessions."""
        return await self._database.write(answered(lambda c: _add_repository(c, repository), answer))

    async def edit_repository(
        self, repo_id: str, name: str | None = None, queue: QueueOverrides | None = None
    ) -> Repository:
        """Changes what is given and leaves the rest."""
        given: dict[str, Any] = {"updated_at": clock.now_ms()}
        if name is not None:
            given["name"] = name
        if queue is not None:
            given["queue"] = msgspec.json.encode(queue).decode()

        def edit(connection: Connection) -> None:
            query = update(repositories).where(
                repositories.c.id == repo_id, repositories.c.removed_at.is_(None)
            )
            if not connection.execute(query.values(**given)).rowcount:
                raise NotFound(f"no repository {repo_id}")

        await self._database.write(edit)
        edited = await self.repository(repo_id)
        if edited is None:
            raise NotFound(f"no repository {repo_id}")
        return edited

    async def remove_repository(self, repo_id: str) -> None:
        """Forgets a repository; its sessions keep knowing where they ran."""
        await self._database.write(lambda c: _remove_repository(c, repo_id))

    async def repository_settings(self) -> dict[str, RepositorySettings]:
        """What people decided about repositories, by id."""
        query = select(settings).where(settings.c.key.startswith(_OF_REPOSITORY))
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {
            row.key.removeprefix(_OF_REPOSITORY): msgspec.json.decode(row.value, type=RepositorySettings)
            for row in rows
        }

    async def set_repository_settings(self, repo_id: str, value: RepositorySettings) -> None:
        await self.set_setting(_OF_REPOSITORY + repo_id, value)

    async def setting(self, key: str) -> Any:
        """The value of a setting; None when it was never set."""
        query = select(settings.c.value).where(settings.c.key == key)
        text = await self._database.read(lambda c: c.execute(query).scalar())
        return None if text is None else msgspec.json.decode(text)

    async def set_setting(self, key: str, value: Any, answer: KeptAnswer[None] | None = None) -> None:
        row = {"key": key, "value": msgspec.json.encode(value).decode()}
        await self._database.write(answered(lambda c: put(c, settings, [row]), answer))

    async def agents(self) -> dict[str, Any]:
        """The definitions people added, by id."""
        query = select(agents).order_by(agents.c.id)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.id: msgspec.json.decode(row.definition) for row in rows}

    async def put_agent(self, agent_id: str, definition: Any, answer: KeptAnswer[None] | None = None) -> None:
        text = msgspec.json.encode(definition).decode()
        row = {"id": agent_id, "definition": text, "updated_at": clock.now_ms()}
        await self._database.write(answered(lambda c: put(c, agents, [row]), answer))

    async def remove_agent(self, agent_id: str) -> None:
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
        """One page, newest first."""
        filters = SessionFilters(
            repo_id=repo_id,
            statuses=None if statuses is None else tuple(statuses),
            type=type,
            q=q,
            started_by=started_by,
        )
        return await self._database.read(lambda c: read_page(c, filters, limit, offset))

    async def live_sessions(self) -> list[str]:
        """The sessions with a living worker. Unsorted: to sort, SQLite would walk all that ever were."""
        query = select(sessions.c.id).where(sessions.c.live.is_(True), sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def active_locations(self) -> list[str]:
        """The directories of sessions that have not ended."""
        query = select(sessions.c.location_path).where(sessions.c.status == SessionStatus.ACTIVE).distinct()
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def imported_sessions(self) -> set[str]:
        """The sessions whose recording came from elsewhere."""
        query = select(settings.c.key).where(settings.c.key.startswith(IMPORTED))
        return await self._database.read(
            lambda c: {key.removeprefix(IMPORTED) for key in c.execute(query).scalars()}
        )

    async def passing_sessions(self) -> list[str]:
        """The sessions that shall end when nobody looks at them."""
        wanted = (sessions.c.status == SessionStatus.ACTIVE, sessions.c.on_last_disconnect == "terminate")
        query = select(sessions.c.id).where(*wanted, sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: list(c.execute(query).scalars()))

    async def heads(self) -> dict[str, int]:
        """The number of the last event of every session there is."""
        query = select(sessions.c.id, sessions.c.last_seq).where(sessions.c.id.notin_(select(purges)))
        return await self._database.read(lambda c: {row.id: row.last_seq for row in c.execute(query)})

    async def count_sessions(self) -> dict[str, int]:
        """How many sessions there are, by status."""
        query = select(sessions.c.status, func.count()).group_by(sessions.c.status)
        return await self._database.read(lambda c: {row[0]: row[1] for row in c.execute(query)})

    async def count_workers(self) -> dict[str, int]:
        """How many workers there are, by state."""
        query = select(workers.c.state, func.count()).group_by(workers.c.state)
        return await self._database.read(lambda c: {row[0]: row[1] for row in c.execute(query)})

    async def answer_only(self, answer: KeptAnswer[None]) -> None:
        """Keeps the answer of a request whose effect is not in the database."""
        await self._database.write(answered(lambda _: None, answer))

    async def known_workers(self, worker_ids: Collection[str]) -> set[str]:
        """Those that are, or were until a purge that is not finished, of a session here."""
        query = select(workers.c.id).where(workers.c.id.in_(worker_ids))
        return await self._database.read(lambda c: set(c.execute(query).scalars()))

    async def sessions_of_workers(self, worker_ids: Collection[str]) -> dict[str, str]:
        """The session of each worker we know of, unless it is being purged."""
        of_workers = select(workers.c.id, workers.c.session_id).where(workers.c.id.in_(worker_ids))
        query = of_workers.where(workers.c.session_id.notin_(select(purges)))
        return await self._database.read(lambda c: {row.id: row.session_id for row in c.execute(query)})


def _repository(row: Row[Any]) -> Repository:
    return Repository(
        id=row.id,
        path=row.path,
        name=row.name,
        created_at=row.created_at,
        updated_at=row.updated_at,
        queue=msgspec.json.decode(row.queue, type=QueueOverrides) if row.queue else QueueOverrides(),
    )


def _add_repository(connection: Connection, new: Repository) -> Repository:
    known = connection.execute(select(repositories).where(repositories.c.path == new.path)).one_or_none()
    if known is None:
        row = msgspec.structs.asdict(new) | {"queue": msgspec.json.encode(new.queue).decode()}
        add(connection, repositories, [row])
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
    found = repositories.c.id == repo_id
    if not connection.execute(
        update(repositories)
        .where(found, repositories.c.removed_at.is_(None))
        .values(removed_at=clock.now_ms())
    ).rowcount:
        raise NotFound(f"no repository {repo_id}")
    used = select(sessions.c.id).where(sessions.c.repo_id == repo_id).exists()
    connection.execute(delete(repositories).where(found, ~used))
