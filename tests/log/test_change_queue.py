"""A change that cannot be stored or acted upon: its caller is told, and the next change has its turn."""

import asyncio
from typing import Any

import pytest

from bullpen.domain.errors import StorageFull
from bullpen.domain.events import Draft
from bullpen.domain.snapshot import Snapshot
from bullpen.log import change_queue
from bullpen.log.log import SessionLog
from bullpen.store.append import Append
from bullpen.store.events import EventStore
from bullpen.store.outbox import Numbers
from support.sample_events import SESSION_START, error_draft, error_texts


class Broken(Exception):
    """An error that no part of the log expects."""


@pytest.fixture
async def log(store: EventStore) -> SessionLog:
    return await SessionLog.create(store, "s", [Draft(SESSION_START)])


@pytest.fixture
async def reported() -> list[dict[str, Any]]:
    """What the event loop's exception handler is told."""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    return contexts


async def test_a_stored_change_succeeds_although_its_observer_raises(
    log: SessionLog, store: EventStore, reported: list[dict[str, Any]]
) -> None:
    def break_down(_: Snapshot) -> None:
        raise Broken

    log.on_commit = break_down
    both = [asyncio.ensure_future(log.append([error_draft(text)])) for text in ("a", "b")]
    async with asyncio.timeout(30):
        committed = await asyncio.gather(*both)
    assert [each.snapshot.last_seq for each in committed] == [2, 3]
    assert error_texts([event for event, _ in await store.events("s")]) == ["a", "b"]
    told = {each["message"] for each in reported}
    assert told == {"a stored change could not be acted upon"}, "the exception escaped from a callback"


async def test_a_change_that_the_store_does_not_take_fails_and_the_next_one_is_stored(
    log: SessionLog, store: EventStore, monkeypatch: pytest.MonkeyPatch, reported: list[dict[str, Any]]
) -> None:
    commit = store.commit

    def refuse_first(append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        monkeypatch.setattr(store, "commit", commit)
        raise Broken

    monkeypatch.setattr(store, "commit", refuse_first)
    both = [asyncio.ensure_future(log.append([error_draft(text)])) for text in ("a", "b")]
    async with asyncio.timeout(30):
        first, second = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(first, Broken)
    assert not isinstance(second, BaseException)
    assert error_texts([event for event, _ in await store.events("s")]) == ["b"]
    assert reported == []


async def test_a_change_that_fails_when_it_is_tried_again_does_not_hold_up_the_next(
    log: SessionLog, store: EventStore, monkeypatch: pytest.MonkeyPatch, reported: list[dict[str, Any]]
) -> None:
    commit = store.commit

    def refuse_again(append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        monkeypatch.setattr(store, "commit", commit)
        raise Broken

    def refuse_for_now(append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        monkeypatch.setattr(store, "commit", refuse_again)
        full: asyncio.Future[Numbers] = asyncio.get_running_loop().create_future()
        full.set_exception(StorageFull("full"))
        return full

    monkeypatch.setattr(change_queue, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(store, "commit", refuse_for_now)
    both = [asyncio.ensure_future(log.append([error_draft(text)], patient=True)) for text in ("a", "b")]
    async with asyncio.timeout(30):
        first, second = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(first, Broken)
    assert not isinstance(second, BaseException)
    assert error_texts([event for event, _ in await store.events("s")]) == ["b"]
    assert reported == []


async def test_a_follower_whose_take_raises_gets_the_exception_and_the_others_get_the_event(
    log: SessionLog,
) -> None:
    def break_down(_: object) -> bool:
        raise Broken

    broken, sound = log.follow(1), log.follow(1)
    broken.enable_pacing(break_down)
    waiting = [asyncio.ensure_future(anext(each)) for each in (broken, sound)]
    while not log.paced_growth._listeners:
        await asyncio.sleep(0)
    await log.append([error_draft("a")])
    async with asyncio.timeout(30):
        first, second = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, Broken)
    assert not isinstance(second, BaseException) and second.last == 2
