"""Only one server uses a database: a second server, a takeover, a race, and a standby promoted too early."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from socket import gethostname
from typing import Any, Protocol

import httpx
import psutil
import pytest

from support.databases import Cluster
from support.server import Server
from support.switchable_proxy import SwitchableProxy, switchable_proxy
from support.terminal_viewer import TerminalViewer, TerminalWriter


class NewServer(Protocol):
    def __call__(self, name: str, url: str) -> Server: ...


@pytest.fixture(params=["postgresql", "sqlite"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.new_database()


@pytest.fixture
async def new_server(tmp_path: Path, workspace: Path) -> AsyncIterator[NewServer]:
    """Return a function that creates servers, each with its own data directory."""
    async with AsyncExitStack() as stack:

        def make(name: str, url: str) -> Server:
            server = Server(tmp_path / name, workspace, {"BULLPEN_DATABASE_URL": url})
            stack.push_async_callback(server.close)
            return server

        yield make


async def events(server: Server, session_id: str) -> list[dict[str, Any]]:
    page = await server.call("GET", f"/api/sessions/{session_id}/events?limit=10000")
    found: list[dict[str, Any]] = page["events"]
    return found


async def check_terminal_works(server: Server, session_id: str, worker_id: str) -> None:
    """Check that the program in a terminal still runs typed commands."""
    viewer = TerminalViewer(server, session_id, worker_id)
    async with viewer.watching():
        await TerminalWriter(server, session_id, worker_id, "writer").type("echo $((6*7))\n")
        await viewer.until_seen(b"42\r\n")


async def test_a_second_server_is_refused_and_does_not_touch_the_terminals_of_the_first(
    new_server: NewServer, shared_url: str
) -> None:
    first, second = new_server("first", shared_url), new_server("second", shared_url)
    await first.start()
    session = await first.new_session()
    terminal = await first.new_terminal(session["id"])
    before = await events(first, session["id"])
    await second.start(wait=False)
    assert await second.ended() == 1
    assert f"data directory is {gethostname()}:{first.home}" in second.output()
    assert "--take-over" in second.output()
    assert await events(first, session["id"]) == before
    await check_terminal_works(first, session["id"], terminal["id"])


async def test_a_server_that_is_taken_over_stops_with_a_message_and_leaves_its_terminals_running(
    new_server: NewServer, shared_url: str
) -> None:
    first, second = new_server("first", shared_url), new_server("second", shared_url)
    await first.start()
    session = await first.new_session()
    terminal = await first.new_terminal(session["id"])
    await second.start("--take-over")
    with suppress(httpx.TransportError):  # the server may have ended already, because of its heartbeat
        late = await first.http.patch(f"/api/sessions/{session['id']}", json={"title": "written too late"})
        assert (late.status_code, late.json()["error"]) == (503, "unavailable"), late.text
    assert await first.ended() == 1
    assert f"another server (data directory {gethostname()}:{second.home}) has taken over" in first.output()
    assert psutil.pid_exists(terminal["pid"])
    after = await events(second, session["id"])
    assert [event["seq"] for event in after] == list(range(1, len(after) + 1))
    assert "written too late" not in str(await second.call("GET", f"/api/sessions/{session['id']}"))
    await second.new_terminal(session["id"])
    await first.start(wait=False)
    assert await first.ended() == 1  # the second server still runs
    assert "another server uses this database" in first.output()


async def test_of_two_servers_that_start_together_one_runs_and_one_is_refused(
    new_server: NewServer, shared_url: str
) -> None:
    servers = [new_server("first", shared_url), new_server("second", shared_url)]
    await asyncio.gather(*(server.start(wait=False) for server in servers))
    ready = await asyncio.gather(*(server.ready() for server in servers), return_exceptions=True)
    refused = [each for each in ready if isinstance(each, AssertionError)]
    assert len(refused) == 1 and "another server uses this database" in str(refused[0])
    (running,) = (server for server, error in zip(servers, ready, strict=True) if error is None)
    session = await running.new_session()
    await running.new_terminal(session["id"])


async def test_a_server_with_the_same_data_directory_starts_at_once_after_a_kill(
    new_server: NewServer, shared_url: str
) -> None:
    server = new_server("first", shared_url)
    await server.start()
    session = await server.new_session()
    terminal = await server.new_terminal(session["id"])
    await server.restart()
    await server.worker_in(session["id"], terminal["id"], "active")


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster, SwitchableProxy, str]]:
    """Return a primary, an asynchronous standby, a switch between their sockets, and its URL."""
    primary = Cluster()
    primary.start()
    url = primary.new_database()
    standby = Cluster(primary)
    standby.start()
    try:
        with tempfile.TemporaryDirectory() as name, switchable_proxy(Path(name), primary.home) as route:
            yield primary, standby, route, url.replace(str(primary.home), name)
    finally:
        standby.remove()
        primary.remove()


async def test_a_standby_that_lacks_commits_stops_the_server_and_leaves_no_gap_in_the_events(
    clusters: tuple[Cluster, Cluster, SwitchableProxy, str], new_server: NewServer
) -> None:
    primary, standby, route, url = clusters
    server = new_server("home", url)
    await server.start()
    session = await server.new_session()
    terminal = await server.new_terminal(session["id"])
    await _rename(server, session["id"], "replicated")
    await _until_replicated(primary, standby)
    standby.detach()
    for n in range(4):
        await _rename(server, session["id"], f"missing {n}")
    primary.stop()
    standby.promote()
    route.switch_to(standby.home)
    assert await server.ended() == 1
    assert "the database has gone back in time" in server.output()
    assert psutil.pid_exists(terminal["pid"])
    await server.start(wait=False)
    assert await server.ended() == 1  # a restart by a service manager is refused too
    assert server.output().count("start it with --take-over") >= 2
    await server.start("--take-over")
    after = await events(server, session["id"])
    assert [event["seq"] for event in after] == list(range(1, len(after) + 1))
    assert "missing" not in str(after)
    await server.worker_in(session["id"], terminal["id"], "active")


async def test_the_server_continues_with_a_standby_that_has_every_commit(
    clusters: tuple[Cluster, Cluster, SwitchableProxy, str], new_server: NewServer
) -> None:
    primary, standby, route, url = clusters
    server = new_server("home", url)
    await server.start()
    session = await server.new_session()
    await _rename(server, session["id"], "replicated")
    await _until_replicated(primary, standby)
    primary.stop()
    standby.promote()
    route.switch_to(standby.home)
    await server.ready()
    await _rename(server, session["id"], "after the failover")
    after = await events(server, session["id"])
    assert [event["seq"] for event in after] == list(range(1, len(after) + 1))


async def _rename(server: Server, session_id: str, title: str) -> None:
    await server.call("PATCH", f"/api/sessions/{session_id}", 200, json={"title": title})


async def _until_replicated(primary: Cluster, standby: Cluster) -> None:
    ((position,),) = primary.execute("SELECT pg_current_wal_lsn()::text")
    behind = f"SELECT 1 WHERE pg_last_wal_replay_lsn() < '{position}'::pg_lsn"
    async with asyncio.timeout(60):
        while standby.execute(behind):
            await asyncio.sleep(0.01)
