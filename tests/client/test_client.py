"""Everything the client can ask and tell a real server."""

import subprocess
from pathlib import Path

import pytest

from bullpen.client import Client, ServerDiscovery, ServerNotRunning
from bullpen.domain.errors import Conflict, Forbidden, NotFound, Unauthorized
from support.scripted_http_server import scripted_http
from support.server import Server


async def test_a_session_from_its_making_to_its_purge(client: Client, workspace: Path) -> None:
    made = await client.create_session(location_path=str(workspace), title="tour")
    assert (made.title, made.type, made.status, made.location_path) == (
        "tour",
        "quick",
        "active",
        str(workspace),
    )
    renamed = await client.change_session(made.id, title="grand tour")
    assert renamed.title == "grand tour"
    assert [session.id for session in await client.sessions(status=("active",))] == [made.id]
    await client.complete_session(made.id)
    ended = await client.session(made.id)
    assert (ended.status, ended.end_reason) == ("completed", "user_request")
    assert await client.sessions(status=("active",)) == []
    await client.delete_session(made.id, purge=True)
    with pytest.raises(NotFound):
        await client.session(made.id)


async def test_a_worker_from_its_start_to_its_end(client: Client, server: Server) -> None:
    session = await client.create_session(location_path=str(server.workspace))
    worker = await client.add_worker(session.id, name="Build", cols=100, rows=30)
    assert (worker.role, worker.session_id, worker.alive) == ("build", session.id, True)
    await server.worker_in(session.id, worker.id, "active")
    assert (await client.worker(session.id, worker.id)).pid is not None
    with pytest.raises(Conflict):
        await client.restart_worker(session.id, worker.id)
    await client.end_worker(session.id, worker.id)
    assert [each.state for each in await client.workers(session.id)] == ["terminated"]


async def test_all_sessions_are_listed_over_any_number_of_pages(client: Client, workspace: Path) -> None:
    made = [(await client.create_session(location_path=str(workspace))).id for _ in range(103)]
    assert sorted(session.id for session in await client.sessions()) == sorted(made)


async def test_repositories_are_registered_and_forgotten(client: Client, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace / "site"], check=True)
    made = await client.add_repository(str(workspace / "site"))
    assert (made.name, made.path) == ("site", str(workspace / "site"))
    assert await client.repositories() == [made]
    await client.delete_repository(made.id)
    assert await client.repositories() == []


async def test_a_key_makes_a_repeated_order_one_order(client: Client, workspace: Path) -> None:
    first = await client.create_session(location_path=str(workspace), title="once", key="my key")
    again = await client.create_session(location_path=str(workspace), title="once", key="my key")
    assert first.id == again.id
    assert len(await client.sessions()) == 1


async def test_refusals_are_exceptions_with_the_servers_sentence(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Forbidden, match="outside"):
        await client.create_session(location_path=str(tmp_path))
    with pytest.raises(NotFound, match="no-such-session"):
        await client.session("no-such-session")


async def test_an_unknown_token_is_refused(server: Server) -> None:
    async with Client(server.url, "wrong") as stranger:
        with pytest.raises(Unauthorized):
            await stranger.sessions()
        with pytest.raises(Unauthorized):
            await anext(stranger.follow("any"))


async def test_health_is_no_word_for_a_refusal(server: Server) -> None:
    async with Client(server.url, "wrong") as stranger:
        with pytest.raises(Unauthorized):
            await stranger.health()


async def test_a_server_that_is_starting_says_so() -> None:
    starting = b'{"status":"starting","version":"9"}'
    head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\n\r\n" % len(starting)
    async with scripted_http(head + starting) as (other, _), Client(other.url, "any") as client:
        assert (await client.health()).status == "starting"


async def test_nobody_at_home_is_said_at_once(server: Server) -> None:
    await server.kill()
    async with Client(server.url, server.token) as client:
        with pytest.raises(ServerNotRunning, match="running"):
            await client.sessions()
        with pytest.raises(ServerNotRunning):
            await anext(client.follow("any"))
        with pytest.raises(ServerNotRunning):
            async with client.terminal("any", "any") as terminal:
                await anext(aiter(terminal))


async def test_the_server_is_found_by_what_it_leaves_in_its_home(server: Server) -> None:
    async with Client(discovery=ServerDiscovery(server.home, {"BULLPEN_TOKEN": server.token})) as client:
        assert (await client.health()).status == "ok"


async def test_a_login_code_comes_with_its_url(client: Client, server: Server) -> None:
    code = await client.login_code()
    assert code.url.startswith(server.url)
    assert code.code in code.url
