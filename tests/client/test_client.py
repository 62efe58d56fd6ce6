"""Requests of the client to a real server."""

import subprocess
from pathlib import Path

import pytest

from bullpen.client import Client, ServerDiscovery, ServerNotRunning
from bullpen.domain.errors import Conflict, Forbidden, NotFound, Unauthorized
from support.scripted_http_server import scripted_http
from support.server import Server


async def test_a_session_is_created_renamed_completed_and_purged(client: Client, workspace: Path) -> None:
    created = await client.create_session(location_path=str(workspace), title="tour")
    assert (created.title, created.type, created.status, created.location_path) == (
        "tour",
        "quick",
        "active",
        str(workspace),
    )
    renamed = await client.change_session(created.id, title="grand tour")
    assert renamed.title == "grand tour"
    assert [session.id for session in await client.sessions(status=("active",))] == [created.id]
    await client.complete_session(created.id)
    ended = await client.session(created.id)
    assert (ended.status, ended.end_reason) == ("completed", "user_request")
    assert await client.sessions(status=("active",)) == []
    await client.delete_session(created.id, purge=True)
    with pytest.raises(NotFound):
        await client.session(created.id)


async def test_a_worker_is_added_restarted_and_ended(client: Client, server: Server) -> None:
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
    created = [(await client.create_session(location_path=str(workspace))).id for _ in range(103)]
    assert sorted(session.id for session in await client.sessions()) == sorted(created)


async def test_repositories_are_registered_and_removed(client: Client, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace / "site"], check=True)
    created = await client.add_repository(str(workspace / "site"))
    assert (created.name, created.path) == ("site", str(workspace / "site"))
    assert await client.repositories() == [created]
    await client.delete_repository(created.id)
    assert await client.repositories() == []


async def test_a_request_repeated_with_its_key_has_one_effect(client: Client, workspace: Path) -> None:
    first = await client.create_session(location_path=str(workspace), title="once", key="my key")
    again = await client.create_session(location_path=str(workspace), title="once", key="my key")
    assert first.id == again.id
    assert len(await client.sessions()) == 1


async def test_refusals_are_exceptions_with_the_message_of_the_server(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Forbidden, match="outside"):
        await client.create_session(location_path=str(tmp_path))
    with pytest.raises(NotFound, match="no-such-session"):
        await client.session("no-such-session")


async def test_an_unknown_token_is_refused(server: Server) -> None:
    async with Client(server.url, "wrong") as client:
        with pytest.raises(Unauthorized):
            await client.sessions()
        with pytest.raises(Unauthorized):
            await anext(client.follow("any"))


async def test_health_raises_for_an_unknown_token(server: Server) -> None:
    async with Client(server.url, "wrong") as client:
        with pytest.raises(Unauthorized):
            await client.health()


async def test_health_reports_that_the_server_is_starting() -> None:
    starting = b'{"status":"starting","version":"9"}'
    head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\n\r\n" % len(starting)
    async with scripted_http(head + starting) as (fake_server, _), Client(fake_server.url, "any") as client:
        assert (await client.health()).status == "starting"


async def test_a_missing_server_is_reported_at_once(server: Server) -> None:
    await server.kill()
    async with Client(server.url, server.token) as client:
        with pytest.raises(ServerNotRunning, match="running"):
            await client.sessions()
        with pytest.raises(ServerNotRunning):
            await anext(client.follow("any"))
        with pytest.raises(ServerNotRunning):
            async with client.terminal("any", "any") as terminal:
                await anext(aiter(terminal))


async def test_the_server_is_found_by_the_files_in_its_data_directory(server: Server) -> None:
    async with Client(discovery=ServerDiscovery(server.home, {"BULLPEN_TOKEN": server.token})) as client:
        assert (await client.health()).status == "ok"


async def test_a_login_code_comes_with_its_url(client: Client, server: Server) -> None:
    code = await client.login_code()
    assert code.url.startswith(server.url)
    assert code.code in code.url
