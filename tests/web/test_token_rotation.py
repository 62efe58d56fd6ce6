"""Revoked, expired and rotated tokens are refused at once, also after a restart."""

import asyncio
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bullpen.home import write_private
from bullpen.store.credentials import CredentialStore
from bullpen.store.database import Database
from bullpen.web.derived_secrets import DerivedSecrets, fingerprint
from bullpen.web.owner import OwnerToken
from support.server import TOKEN, Server
from web.clients import Headers, bearer_headers, new_token, new_token_headers

MAX_SECONDS = 2.0  # until a token is refused and its sockets are closed


async def closed(ws: ClientConnection, within: float) -> int | None:
    with pytest.raises(ConnectionClosed):
        async with asyncio.timeout(within):
            while True:
                await ws.recv()
    return ws.close_code


async def status(server: Server, headers: Headers) -> int:
    return (await server.http.get("/api/sessions", headers=headers)).status_code


@pytest.mark.own_server
async def test_a_rotated_token_is_refused_at_once_and_after_a_restart_and_its_sockets_are_closed(
    server: Server,
) -> None:
    admin = await new_token_headers(server)
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    paths = [
        "/ws/dashboard",
        f"/ws/session/{session['id']}",
        f"/ws/session/{session['id']}/worker/{worker['id']}",
    ]
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(server.socket(paths[n % 3])) for n in range(5)]
        other = await stack.enter_async_context(server.socket("/ws/dashboard", headers=admin))
        for ws in (*sockets, other):
            await ws.send('{"type": "subscribe"}')
            await ws.recv()
        answer = await server.call("POST", "/api/tokens/rotate", 200, headers=admin)
        async with asyncio.timeout(MAX_SECONDS):
            assert await status(server, bearer_headers(TOKEN)) == 401
            codes = await asyncio.gather(*(closed(ws, within=MAX_SECONDS) for ws in sockets))
        assert codes == [4401] * 5
        await (await other.ping())  # the socket of another token stays open
    token_file = server.home / "token"
    assert token_file.read_text() == answer["token"] + "\n"
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    server.http.headers.update(bearer_headers(answer["token"]))
    await server.restart()  # BULLPEN_TOKEN still contains the old token
    assert await status(server, bearer_headers(TOKEN)) == 401
    with pytest.raises(InvalidStatus):
        async with server.socket("/ws/dashboard"):
            pass
    assert await status(server, bearer_headers(answer["token"])) == 200
    assert await status(server, admin) == 200


@pytest.mark.asyncio(loop_scope="session")
async def test_the_sockets_of_an_expired_token_are_closed(shared_server: Server) -> None:
    headers = await new_token_headers(shared_server, "view", expiresIn=1)
    async with shared_server.socket("/ws/dashboard", headers=headers) as ws:
        await ws.recv()
        assert await closed(ws, within=10) == 4401


@pytest.mark.asyncio(loop_scope="session")
async def test_a_revoked_token_is_refused_and_its_sockets_are_closed(shared_server: Server) -> None:
    token = await new_token(shared_server, "view")
    async with shared_server.socket("/ws/dashboard", headers=bearer_headers(token["token"])) as ws:
        await ws.recv()
        await shared_server.call("DELETE", f"/api/tokens/{token['id']}", 204)
        assert await closed(ws, within=MAX_SECONDS) == 4401
    assert await status(shared_server, bearer_headers(token["token"])) == 401


class HomeWithDatabase:
    """A data directory and its database, in which a test stores a step of a rotation."""

    def __init__(self, home: Path, keys: CredentialStore) -> None:
        self.path = home
        self.keys = keys

    async def owner(self, configured: str | None = None) -> OwnerToken:
        return await OwnerToken.load(self.path, configured, self.keys, DerivedSecrets("server secret"))

    @property
    def token(self) -> str:
        return (self.path / "token").read_text().strip()


@pytest.fixture
async def home(tmp_path: Path):  # type: ignore[no-untyped-def]
    async with Database.open(f"sqlite:///{tmp_path}/bullpen.db") as database:
        yield HomeWithDatabase(tmp_path, CredentialStore(database))


async def test_a_token_is_created_kept_and_replaced_by_a_configured_one(home: HomeWithDatabase) -> None:
    await home.owner()
    made = home.token
    assert (await home.owner()).matches(fingerprint(made))
    assert (await home.owner(configured="mine")).matches(fingerprint("mine"))
    assert home.token == "mine"


async def test_a_rotation_interrupted_before_it_was_stored_has_no_effect(home: HomeWithDatabase) -> None:
    await home.owner(configured="old")
    write_private(home.path / "token.next", "new\n")
    assert (await home.owner()).matches(fingerprint("old"))
    assert not (home.path / "token.next").exists()


@pytest.mark.parametrize("configured", ["old", None])
async def test_a_rotation_interrupted_after_it_was_stored_is_finished(
    home: HomeWithDatabase, configured: str | None
) -> None:
    await home.owner(configured="old")
    write_private(home.path / "token.next", "new\n")
    await home.keys.retire(fingerprint("old"))
    owner = await home.owner(configured)
    assert owner.matches(fingerprint("new")) and not owner.matches(fingerprint("old"))
    assert home.token == "new"


async def test_a_retired_token_in_the_file_is_replaced(home: HomeWithDatabase) -> None:
    await home.owner(configured="old")
    await home.keys.retire(fingerprint("old"))
    owner = await home.owner()
    assert not owner.matches(fingerprint("old"))
    assert owner.matches(fingerprint(home.token))


@pytest.mark.parametrize("planted", ["", " \n", "link"])
async def test_an_empty_file_or_a_link_is_no_token(home: HomeWithDatabase, planted: str) -> None:
    victim = home.path / "victim"
    victim.write_text("a known text")
    if planted == "link":
        (home.path / "token").symlink_to(victim)
    else:
        (home.path / "token").write_text(planted)
    owner = await home.owner()
    assert owner.matches(fingerprint(home.token)) and len(home.token) > 40
    assert victim.read_text() == "a known text"
