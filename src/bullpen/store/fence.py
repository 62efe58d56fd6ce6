"""The fence: a row of the database that only its newest server can move, so that no older one can write.

Each transaction of a server first moves the row on from the place where this server left it. A server that
another one has replaced, or whose database has lost commits, does not find the row there and writes nothing.
The row also shows whether a commit whose answer was lost took place, and carries the server's heartbeat.

An advisory lock would not do: PostgreSQL releases it silently when the connection breaks.
"""

import os
import re
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, Row, inspect, text
from sqlalchemy.exc import DBAPIError

from ..domain.errors import Conflict
from .engine import DatabaseFiles, misses_table

KEEPS = "This server stopped and wrote nothing more; its terminals and agents keep running."
FORWARD = (
    "Put the newer database back and start the server again, or start it with --take-over to go on without "
    "what is missing."
)


class FenceLost(Conflict):
    """This server must not write to its database any more."""


class DatabaseInUse(FenceLost):
    """A server with another data directory uses the database."""


class DatabaseTakenOver(FenceLost):
    """A server with another data directory has taken over the database."""


class DatabaseWentBack(FenceLost):
    """The database has lost commits. `newest` is the last commit that this server knows."""

    def __init__(self, message: str, newest: "FencePosition") -> None:
        super().__init__(message)
        self.newest = newest


class FencePosition(Struct, frozen=True, order=True):
    """A position of the fence: the number of server starts (epoch) and of commits."""

    epoch: int = 0  # incremented at each start of a server
    commits: int = 0


class FenceOwner(Struct, frozen=True):
    """The server that claims the database, identified by its data directory."""

    id: str = "unnamed"
    home: str = "unnamed"  # host and path, for messages
    take_over: bool = True  # claim the database even if another server uses it or commits are missing
    newest: FencePosition = FencePosition()  # the last commit known to servers of this data directory


class Lease(Struct, frozen=True):
    """How often an idle server writes a heartbeat, and after how long without one it counts as dead."""

    heartbeat: float = 5.0  # seconds
    expires: float = 15.0  # seconds, by the database's clock


UNNAMED = FenceOwner()
LEASE = Lease()

_NOW = {
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}
_CLAIM = """
INSERT INTO server (id, epoch, commits, owner, home, storage, heartbeat)
VALUES (1, 1, 0, :owner, :home, :storage, {now})
ON CONFLICT (id) DO UPDATE SET
    epoch = server.epoch + 1, owner = excluded.owner, home = excluded.home,
    storage = excluded.storage, heartbeat = excluded.heartbeat
WHERE :take_over
    OR server.owner = excluded.owner
    OR server.storage <> excluded.storage
    OR abs(excluded.heartbeat - server.heartbeat) > :expires
RETURNING epoch, commits
"""
_ADVANCE = """
UPDATE server SET commits = commits + :step, heartbeat = {now}
WHERE id = 1 AND epoch = :epoch AND commits = :commits AND owner = :owner
"""
_LOOK = "SELECT epoch, commits, owner, home, storage, {now} - heartbeat AS age FROM server"
_RELEASE = "UPDATE server SET heartbeat = 0 WHERE epoch = :epoch AND commits = :commits AND owner = :owner"
# The next two are for PostgreSQL only.
_UNLOCKED = text("SELECT epoch, commits, owner FROM server FOR UPDATE SKIP LOCKED")
_STORAGE = text(
    "SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database "
    "WHERE datname = current_database()"
)
_STATEMENTS = {
    dialect: {
        name: text(sql.format(now=now))
        for name, sql in (("claim", _CLAIM), ("look", _LOOK), ("release", _RELEASE))
    }
    for dialect, now in _NOW.items()
}
# Every transaction runs this one, so it goes to the driver as it is: SQLAlchemy's work would cost more than
# the statement.
_DRIVER_ADVANCE = {
    "postgresql": re.sub(r":(\w+)", r"%(\1)s", _ADVANCE.format(now=_NOW["postgresql"])),
    "sqlite": _ADVANCE.format(now=_NOW["sqlite"]),
}


class Fence:
    """Moves the fence row of the database for one server; used by one thread only."""

    def __init__(self, owner: FenceOwner, lease: Lease, file: Path | None) -> None:
        self.owner = owner
        self.lease = lease
        self._position: FencePosition | None = None  # None until the database is claimed
        self._next = FencePosition()
        self._files = DatabaseFiles(file) if file else None

    def advance(self, connection: Connection, step: int) -> None:
        """Move the fence row in the running transaction, or raise FenceLost.

        The first call claims the row.
        """
        try:
            place = self._position or self._claim(connection)
            values = {"owner": self.owner.id, "step": step, **_as_values(place)}
            moved = connection.exec_driver_sql(_DRIVER_ADVANCE[connection.dialect.name], values).rowcount
        except DBAPIError as error:
            if not misses_table(error):
                raise
            raise self._database_went_back("its table server is missing") from error
        if moved != 1:
            raise self._explain_loss(connection, place)
        self._next = FencePosition(place.epoch, place.commits + step)

    def confirm(self) -> None:
        """Note that the transaction was committed; raise DatabaseWentBack if its file was replaced."""
        self._position = self._next
        if self._files is None or self._files.in_place():
            return
        raise self._database_went_back(f"its file {self._files.path} was replaced or removed")

    def last_commit_succeeded(self, connection: Connection) -> bool | None:
        """Return whether the last commit took place; None while its transaction is still running.

        Raise FenceLost if another server has moved the fence.
        """
        unlocked = connection.execute(_UNLOCKED).first()
        if unlocked is None and _execute(connection, "look"):
            return None
        mine = unlocked is not None and unlocked.owner == self.owner.id
        found = FencePosition(unlocked.epoch, unlocked.commits) if unlocked and mine else None
        if found == self._next:
            return True
        if self._position is None or found == self._position:
            return False
        raise self._explain_loss(connection, self._position)

    def release(self, connection: Connection) -> None:
        """Mark this server as stopped, so that one with another data directory can start at once."""
        if self._position is not None:
            statement = _STATEMENTS[connection.dialect.name]["release"]
            connection.execute(statement, {"owner": self.owner.id, **_as_values(self._position)})

    def _claim(self, connection: Connection) -> FencePosition:
        """Claim the fence row for this server and return its position.

        Raise FenceLost if another server uses the database, or the database has lost commits.
        """
        owner, expires = self.owner, round(self.lease.expires * 1000)
        claimed = _execute(
            connection,
            "claim",
            owner=owner.id,
            home=owner.home,
            storage=_storage(connection),
            take_over=owner.take_over,
            expires=expires,
        )
        if claimed is None:
            refuse_if_in_use(connection, owner, self.lease)
            raise DatabaseInUse("another server was just starting on this database; start this one again")
        if FencePosition(claimed.epoch - 1, claimed.commits) < owner.newest and not owner.take_over:
            raise self._database_went_back("commits are missing", owner.newest)
        return FencePosition(claimed.epoch, claimed.commits)

    def _explain_loss(self, connection: Connection, place: FencePosition) -> FenceLost:
        """Return why the fence row is not where this server left it."""
        found = _execute(connection, "look")
        if found is None:
            return self._database_went_back("the row of its server is missing")
        if found.epoch > place.epoch or (found.epoch == place.epoch and found.commits > place.commits):
            return DatabaseTakenOver(
                f"another server (data directory {found.home}) has taken over the database. {KEEPS} "
                "To go on here, stop the other server and start this one again."
            )
        return self._database_went_back(f"of {place.commits} commits {found.commits} are left")

    def _database_went_back(self, what: str, newest: FencePosition | None = None) -> DatabaseWentBack:
        """Return the error that commits are missing. `what` says how that showed."""
        return DatabaseWentBack(
            "the database has gone back in time, as when a standby is promoted or a backup is put back: "
            f"{what}. {KEEPS} {FORWARD}",
            newest or self._position or FencePosition(),
        )


def refuse_if_in_use(connection: Connection, owner: FenceOwner, lease: Lease) -> None:
    """Raise DatabaseInUse while a server with another data directory uses the database."""
    if owner.take_over or not inspect(connection).has_table("server"):
        return
    found = _execute(connection, "look")
    if found is None or found.owner == owner.id or abs(found.age) > lease.expires * 1000:
        return  # a heartbeat far in the future was written before the clock was set back
    if found.storage != _storage(connection):
        return
    raise DatabaseInUse(
        f"another server uses this database: its data directory is {found.home}, and it was alive "
        f"{max(found.age, 0) / 1000:.0f} s ago. Stop it and start this one again, or start this one with "
        "--take-over, which makes the other one stop."
    )


def _storage(connection: Connection) -> str:
    """Return an identifier of this database. A copy (a backup, a restored dump) has another one."""
    if connection.dialect.name == "postgresql":
        return str(connection.execute(_STORAGE).scalar_one())
    status = os.stat(connection.engine.url.database or "")
    return f"{status.st_dev}/{status.st_ino}"


def _execute(connection: Connection, name: str, **values: object) -> "Row[tuple[object, ...]] | None":
    """Execute one of the fence's statements and return its first row."""
    return connection.execute(_STATEMENTS[connection.dialect.name][name], values).first()


def _as_values(place: FencePosition) -> dict[str, int]:
    """Return a position of the fence as parameters of a statement."""
    return {"epoch": place.epoch, "commits": place.commits}
