"""The dashboard brings all sessions and every change, whatever happens to its connection."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import islice

import pytest

from bullpen.client import Client, News, SessionChanged, SessionList, SessionRemoved, SyncClient
from bullpen.domain.errors import Unauthorized
from support.server import Server
from support.tcp_proxy import TcpProxy


async def until(dashboard: AsyncGenerator[News, None], true: Callable[[News], bool]) -> News:
    async for news in dashboard:
        if true(news):
            return news
    raise AssertionError("the dashboard ended")


def titles(news: News) -> list[str]:
    return sorted(each.title for each in news.sessions) if isinstance(news, SessionList) else []


async def test_all_sessions_come_first_then_what_changes(client: Client, server: Server) -> None:
    place = str(server.workspace)
    old = await client.create_session(location_path=place, title="old")
    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        assert titles(await anext(dashboard)) == ["old"]
        new = await client.create_session(location_path=place, title="new")
        assert await until(dashboard, lambda news: isinstance(news, SessionChanged)) == SessionChanged(
            session=await client.session(new.id)
        )
        await client.delete_session(old.id, purge=True)
        removed = await until(dashboard, lambda news: isinstance(news, SessionRemoved))
        assert removed == SessionRemoved(session_id=old.id)


async def test_what_a_worker_does_is_news(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))

    def shows_a_running_worker(news: News) -> bool:
        return isinstance(news, SessionChanged) and [each.state for each in news.session.workers] == [
            "active"
        ]

    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        await anext(dashboard)
        await client.add_worker(session.id)
        await until(dashboard, shows_a_running_worker)


async def test_after_a_restart_all_sessions_come_again(client: Client, server: Server) -> None:
    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        assert titles(await anext(dashboard)) == []
        await server.restart()
        await client.create_session(location_path=str(server.workspace), title="meanwhile")
        await until(dashboard, lambda news: isinstance(news, SessionList))
        changed = await client.create_session(location_path=str(server.workspace), title="afterwards")
        await until(dashboard, lambda news: news == SessionChanged(session=changed))


async def test_cuts_hide_no_session(
    cut_client: Client, client: Client, wire: TcpProxy, server: Server
) -> None:
    """Only the sum counts: what is shown at the end is what there is."""
    shown: dict[str, str] = {}
    wire.should_cut = lambda direction, nth: direction == "down" and nth % 3 == 2
    async with asyncio.timeout(60), aclosing(cut_client.dashboard()) as dashboard:
        await anext(dashboard)
        for number in range(20):
            made = await client.create_session(location_path=str(server.workspace), title=f"{number}")
            while made.id not in shown:
                match await anext(dashboard):
                    case SessionList(sessions=sessions):
                        shown = {each.id: each.title for each in sessions}
                    case SessionChanged(session=session):
                        shown[session.id] = session.title
    assert wire.cuts > 2
    assert shown == {each.id: each.title for each in await client.sessions()}


async def test_more_sessions_than_a_message_holds_are_all_there(client: Client, server: Server) -> None:
    made = {(await client.create_session(location_path=str(server.workspace))).id for _ in range(203)}
    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        first = await anext(dashboard)
    assert isinstance(first, SessionList)
    assert {each.id for each in first.sessions} == made


async def test_a_stranger_is_shown_nothing(server: Server) -> None:
    async with Client(server.url, "wrong") as stranger:
        with pytest.raises(Unauthorized):
            await anext(stranger.dashboard())


async def test_the_sync_face_has_it_too(server: Server) -> None:
    def look() -> None:
        with SyncClient(server.url, server.token) as client:
            made = client.create_session(location_path=str(server.workspace), title="seen")
            (news,) = islice(client.dashboard(), 1)
            assert news == SessionList(sessions=[client.session(made.id)])

    async with asyncio.timeout(60):
        await asyncio.to_thread(look)
