"""A commit whose response is lost with the connection is never stored twice."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.domain.errors import Unavailable
from bullpen.domain.events import Draft
from bullpen.log.log import OutboxLine, SessionLog
from bullpen.store.database import Database
from bullpen.store.events import EventStore
from support.commit_cutting_proxy import CommitCuttingProxy, commit_cutting_proxy
from support.databases import Cluster
from support.sample_events import SESSION_START, error_draft, error_texts, worker_spawning


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[tuple[CommitCuttingProxy, str]]:
    """Start a proxy. Yield it and the URL of a new database behind it."""
    with tempfile.TemporaryDirectory() as name, commit_cutting_proxy(Path(name), cluster.home) as proxy:
        yield proxy, cluster.new_database().replace(str(cluster.home), name)


async def new_log(database: Database) -> SessionLog:
    return await SessionLog.create(
        EventStore(database), "s", [Draft(SESSION_START), Draft(worker_spawning(), "w", "shell")]
    )


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_patient_append_is_stored_once(proxy: tuple[CommitCuttingProxy, str], cut: str) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        line = OutboxLine("w", 1, lambda n: b"%d" % n)
        for n in range(5):
            cutter.cut = cut
            committed = await log.append([error_draft(str(n), "w")], outbox=[line], patient=True)
            assert committed.outbox == (n + 1,)
        assert cutter.cuts == 5
        events = [event for event, _ in await EventStore(database).events("s")]
        assert error_texts(events) == ["0", "1", "2", "3", "4"]
        assert len(await EventStore(database).undelivered_lines("w", 1)) == 5


async def test_a_command_that_was_committed_is_acknowledged(proxy: tuple[CommitCuttingProxy, str]) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "after"
        committed = await log.append([error_draft("committed")])
        assert committed.snapshot.last_seq == 3


async def test_other_commands_are_refused_while_the_outcome_of_a_commit_is_unknown(
    proxy: tuple[CommitCuttingProxy, str],
) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        other = await SessionLog.create(EventStore(database), "t", [Draft(SESSION_START)])
        cutter.cut, cutter.refusing = "after", True
        unresolved = asyncio.ensure_future(log.append([error_draft("committed")]))
        async with asyncio.timeout(60):
            while database.refusal is None:
                await asyncio.sleep(0.01)
            for each in (log, other):
                with pytest.raises(Unavailable, match="cannot be reached"):
                    await each.append([error_draft("refused")])
            assert not unresolved.done()
            cutter.refusing = False
            await unresolved
        assert error_texts([event for event, _ in await EventStore(database).events("s")]) == ["committed"]


async def test_a_command_that_was_not_committed_is_refused_and_not_stored(
    proxy: tuple[CommitCuttingProxy, str],
) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "before"
        with pytest.raises(Unavailable):
            await log.append([error_draft("lost")])
        await log.append([error_draft("next")], patient=True)
        assert error_texts([event for event, _ in await EventStore(database).events("s")]) == ["next"]
