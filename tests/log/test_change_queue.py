"""A change that cannot be stored or published: its caller gets the error, and the next change starts."""

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


class UnexpectedError(Exception):
    """An error that no part of the log expects."""


@pytest.fixture
async def log(store: EventStore) -> SessionLog:
    return await SessionLog.create(store, "s", [Draft(SESSION_START)])


@pytest.fixture
async def reported() -> list[dict[str, Any]]:
    """Return the contexts that the exception handler of the event loop receives."""
    contexts: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
    return contexts


async def test_a_stored_change_succeeds_although_its_observer_raises_an_exception(
    log: SessionLog, store: EventStore, reported: list[dict[str, Any]]
) -> None:
    def fail(_: Snapshot) -> None:
        raise UnexpectedError

    log.on_commit = fail
    both = [asyncio.ensure_future(log.append([error_draft(text)])) for text in ("a", "b")]
    async with asyncio.timeout(30):
        committed = await asyncio.gather(*both)
    assert [each.snapshot.last_seq for each in committed] == [2, 3]
    assert error_texts([event for event, _ in await store.events("s")]) == ["a", "b"]
    messages = {each["message"] for each in reported}
    assert messages == {"a stored change could not be acted upon"}, "the exception escaped from a callback"


async def test_a_change_that_the_store_refuses_fails_and_the_next_one_is_stored(
    log: SessionLog, store: EventStore, monkeypatch: pytest.MonkeyPatch, reported: list[dict[str, Any]]
) -> None:
    commit = store.commit

    def refuse_first(append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        monkeypatch.setattr(store, "commit", commit)
        raise UnexpectedError

    monkeypatch.setattr(store, "commit", refuse_first)
    both = [asyncio.ensure_future(log.append([error_draft(text)])) for text in ("a", "b")]
    async with asyncio.timeout(30):
        first, second = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(first, UnexpectedError)
    assert not isinstance(second, BaseException)
    assert error_texts([event for event, _ in await store.events("s")]) == ["b"]
    assert reported == []


async def test_a_change_whose_retry_fails_does_not_block_the_next(
    log: SessionLog, store: EventStore, monkeypatch: pytest.MonkeyPatch, reported: list[dict[str, Any]]
) -> None:
    commit = store.commit

    def refuse_again(append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        monkeypatch.setattr(store, "commit", commit)
        raise UnexpectedError

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
    assert isinstance(first, UnexpectedError)
    assert not isinstance(second, BaseException)
    assert error_texts([event for event, _ in await store.events("s")]) == ["b"]
    assert reported == []


async def test_a_follower_whose_callback_raises_gets_the_exception_and_others_get_the_event(
    log: SessionLog,
) -> None:
    def fail(_: object) -> bool:
        raise UnexpectedError

    failing, working = log.follow(1), log.follow(1)
    failing.enable_pacing(fail)
    waiting = [asyncio.ensure_future(anext(each)) for each in (failing, working)]
    while not log.paced_growth._listeners:
        await asyncio.sleep(0)
    await log.append([error_draft("a")])
    async with asyncio.timeout(30):
        first, second = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, UnexpectedError)
    assert not isinstance(second, BaseException) and second.last == 2
