"""The dashboard reports all sessions and every change, also after its connection was cut."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import islice

import pytest

from bullpen.client import Client, News, SessionChanged, SessionList, SessionRemoved, SyncClient
from bullpen.domain.errors import Unauthorized
from support.server import Server
from support.tcp_proxy import TcpProxy


async def until(dashboard: AsyncGenerator[News, None], condition: Callable[[News], bool]) -> News:
    async for news in dashboard:
        if condition(news):
            return news
    raise AssertionError("the dashboard ended")


def titles(news: News) -> list[str]:
    return sorted(each.title for each in news.sessions) if isinstance(news, SessionList) else []


async def test_all_sessions_are_reported_first_and_then_every_change(client: Client, server: Server) -> None:
    directory = str(server.workspace)
    old = await client.create_session(location_path=directory, title="old")
    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        assert titles(await anext(dashboard)) == ["old"]
        new = await client.create_session(location_path=directory, title="new")
        assert await until(dashboard, lambda news: isinstance(news, SessionChanged)) == SessionChanged(
            session=await client.session(new.id)
        )
        await client.delete_session(old.id, purge=True)
        removed = await until(dashboard, lambda news: isinstance(news, SessionRemoved))
        assert removed == SessionRemoved(session_id=old.id)


async def test_a_change_of_a_worker_is_reported(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))

    def shows_a_running_worker(news: News) -> bool:
        return isinstance(news, SessionChanged) and [each.state for each in news.session.workers] == [
            "active"
        ]

    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        await anext(dashboard)
        await client.add_worker(session.id)
        await until(dashboard, shows_a_running_worker)


async def test_after_a_restart_all_sessions_are_reported_again(client: Client, server: Server) -> None:
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
    """The sequence may differ, but in the end the list equals the sessions of the server."""
    shown: dict[str, str] = {}
    wire.should_cut = lambda direction, nth: direction == "down" and nth % 3 == 2
    async with asyncio.timeout(60), aclosing(cut_client.dashboard()) as dashboard:
        await anext(dashboard)
        for number in range(20):
            created = await client.create_session(location_path=str(server.workspace), title=f"{number}")
            while created.id not in shown:
                match await anext(dashboard):
                    case SessionList(sessions=sessions):
                        shown = {each.id: each.title for each in sessions}
                    case SessionChanged(session=session):
                        shown[session.id] = session.title
    assert wire.cuts > 2
    assert shown == {each.id: each.title for each in await client.sessions()}


async def test_more_sessions_than_one_message_contains_are_all_reported(
    client: Client, server: Server
) -> None:
    created = {(await client.create_session(location_path=str(server.workspace))).id for _ in range(203)}
    async with asyncio.timeout(60), aclosing(client.dashboard()) as dashboard:
        first = await anext(dashboard)
    assert isinstance(first, SessionList)
    assert {each.id for each in first.sessions} == created


async def test_a_client_with_an_unknown_token_is_refused(server: Server) -> None:
    async with Client(server.url, "wrong") as client:
        with pytest.raises(Unauthorized):
            await anext(client.dashboard())


async def test_the_synchronous_client_has_a_dashboard(server: Server) -> None:
    def read_dashboard() -> None:
        with SyncClient(server.url, server.token) as client:
            created = client.create_session(location_path=str(server.workspace), title="seen")
            (news,) = islice(client.dashboard(), 1)
            assert news == SessionList(sessions=[client.session(created.id)])

    async with asyncio.timeout(60):
        await asyncio.to_thread(read_dashboard)
