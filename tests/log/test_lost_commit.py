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
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.databases import Cluster
from support.stories import START, said, spawning, texts


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[tuple[CuttingProxy, str]]:
    """Start a proxy. Yield it and the URL of a new database behind it."""
    with tempfile.TemporaryDirectory() as name, cutting_proxy(Path(name), cluster.home) as proxy:
        yield proxy, cluster.new_database().replace(str(cluster.home), name)


async def new_log(database: Database) -> SessionLog:
    return await SessionLog.create(EventStore(database), "s", [Draft(START), Draft(spawning(), "w", "shell")])


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_patient_append_is_stored_once(proxy: tuple[CuttingProxy, str], cut: str) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        line = OutboxLine("w", 1, lambda n: b"%d" % n)
        for n in range(5):
            cutter.cut = cut
            committed = await log.append([said(str(n), "w")], outbox=[line], patient=True)
            assert committed.outbox == (n + 1,)
        assert cutter.cuts == 5
        events = [event for event, _ in await EventStore(database).events("s")]
        assert texts(events) == ["0", "1", "2", "3", "4"]
        assert len(await EventStore(database).undelivered_lines("w", 1)) == 5


async def test_a_command_that_was_committed_is_acknowledged(proxy: tuple[CuttingProxy, str]) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "after"
        committed = await log.append([said("committed")])
        assert committed.snapshot.last_seq == 3


async def test_other_commands_are_refused_while_the_outcome_of_a_commit_is_unknown(
    proxy: tuple[CuttingProxy, str],
) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        other = await SessionLog.create(EventStore(database), "t", [Draft(START)])
        cutter.cut, cutter.refusing = "after", True
        unresolved = asyncio.ensure_future(log.append([said("committed")]))
        async with asyncio.timeout(60):
            while database.refusal is None:
                await asyncio.sleep(0.01)
            for each in (log, other):
                with pytest.raises(Unavailable, match="cannot be reached"):
                    await each.append([said("refused")])
            assert not unresolved.done()
            cutter.refusing = False
            await unresolved
        assert texts([event for event, _ in await EventStore(database).events("s")]) == ["committed"]


async def test_a_command_that_was_not_committed_is_refused_and_not_stored(
    proxy: tuple[CuttingProxy, str],
) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "before"
        with pytest.raises(Unavailable):
            await log.append([said("lost")])
        await log.append([said("next")], patient=True)
        assert texts([event for event, _ in await EventStore(database).events("s")]) == ["next"]
