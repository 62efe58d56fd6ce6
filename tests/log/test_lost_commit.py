"""A commit whose answer is lost with the connection: stored once, whether it got through or not."""

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
    """A proxy, and the URL of a new database behind it."""
    with tempfile.TemporaryDirectory() as name, cutting_proxy(Path(name), cluster.home) as made:
        yield made, cluster.new_database().replace(str(cluster.home), name)


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


async def test_a_command_that_got_through_is_acknowledged(proxy: tuple[CuttingProxy, str]) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "after"
        committed = await log.append([said("got through")])
        assert committed.snapshot.last_seq == 3


async def test_other_commands_are_refused_at_once_while_the_fate_of_a_commit_is_unknown(
    proxy: tuple[CuttingProxy, str],
) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        other = await SessionLog.create(EventStore(database), "t", [Draft(START)])
        cutter.cut, cutter.refusing = "after", True
        doubtful = asyncio.ensure_future(log.append([said("got through")]))
        async with asyncio.timeout(60):
            while database.refusal is None:
                await asyncio.sleep(0.01)
            for each in (log, other):
                with pytest.raises(Unavailable, match="cannot be reached"):
                    await each.append([said("refused")])
            assert not doubtful.done()
            cutter.refusing = False
            await doubtful
        assert texts([event for event, _ in await EventStore(database).events("s")]) == ["got through"]


async def test_a_command_that_did_not_is_refused_and_not_stored(proxy: tuple[CuttingProxy, str]) -> None:
    cutter, url = proxy
    async with Database.open(url) as database:
        log = await new_log(database)
        cutter.cut = "before"
        with pytest.raises(Unavailable):
            await log.append([said("lost")])
        await log.append([said("next")], patient=True)
        assert texts([event for event, _ in await EventStore(database).events("s")]) == ["next"]
