"""S-23: after all kinds of work no secret is found in any log, dump, recording, database or environment."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.server import TOKEN, Server
from web.clients import (
    anonymous_client,
    bearer_headers,
    log_in,
    new_login_code,
    new_token,
    printed_login_line,
)

PUBLIC_FIELDS = (
    "/api/tokens",
    "/api/settings",
    "/metrics",
    "/api/openapi.json",
    "/api/sessions",
    "/api/health",
)


class Search:
    """Looks for secrets in everything a server leaves behind."""

    def __init__(self, server: Server, secrets: list[str]) -> None:
        self._server = server
        self._needles = {secret: (secret.encode(), secret.encode("utf-16-le")) for secret in secrets}

    def found(self) -> list[str]:
        places = [*self._files(), *self._processes(), ("what it printed", self._printed())]
        return [
            f"{secret[:6]}… in {name}"
            for name, data in places
            for secret, needles in self._needles.items()
            if any(needle in data for needle in needles)
        ]

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in self._server.home.rglob("*"):
            if path.is_file() and path.name != "token":
                yield str(path.relative_to(self._server.home)), path.read_bytes()

    def _processes(self) -> Iterator[tuple[str, bytes]]:
        """Everything on this machine that has to do with the home, but the server's own environment."""
        for process in psutil.process_iter():
            try:
                words, environment = process.cmdline(), process.environ()
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
            if process.pid == self._server.pid:
                environment = {}
            elif not any(
                str(self._server.home) in each for each in (*words, environment.get("BULLPEN_CHILD", ""))
            ):
                continue
            yield f"process {process.pid}", "\0".join([*words, *environment.values()]).encode()

    def _printed(self) -> bytes:
        """All but the lines that are there to be used, one for each start."""
        lines = self._server.output().splitlines()
        return "\n".join(line for line in lines if not line.startswith("Bullpen ")).encode()


async def work(server: Server) -> list[str]:
    """Uses, misuses and replaces every kind of secret; returns them."""
    printed = (await printed_login_line(server)).partition("#code=")[2]
    code, used_code = await new_login_code(server), await new_login_code(server)
    keyed = await server.http.post("/api/tokens", json={"name": "keyed"}, headers={"Idempotency-Key": "k"})
    token = (await new_token(server))["token"]
    browser = await log_in(server)
    secrets = [TOKEN, printed, code, used_code, keyed.json()["token"], token, *browser.secrets]
    async with anonymous_client(server) as client:
        login = await client.post("/api/login", json={"code": used_code}, headers={"Idempotency-Key": "k"})
        secrets += [login.json()["secret"], login.cookies["bullpen"]]
        client.cookies.clear()
        for secret in secrets:
            # In the wrong place, as people do.
            await client.get(f"/api/sessions?token={secret}", headers=bearer_headers(secret))
            await client.get(
                f"/{secret}", headers={"Cookie": f"bullpen={secret}", "X-Bullpen-Secret": secret}
            )
            await client.delete(f"/api/tokens/{secret}", headers=bearer_headers(secret + "x"))
            await client.post("/api/login", json={"code": secret + "x"})
            await client.post("/api/sessions", content=f'{{"type": "{secret}', headers=browser.headers)
        rotated = await client.post(
            "/api/tokens/rotate", headers={**bearer_headers(token), "Idempotency-Key": "k"}
        )
        secrets.append(rotated.json()["token"])
        server.http.headers.update(bearer_headers(secrets[-1]))
        server.token = secrets[-1]
    return secrets


async def test_no_secret_is_found_in_anything_the_server_leaves_behind(
    tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace, {"BULLPEN_LOG_LEVEL": "debug"})
    await server.start()
    try:
        secrets = await work(server)
        await look_around(server)
        search = Search(server, secrets)
        for path in PUBLIC_FIELDS:
            text = (await server.http.get(path)).text
            assert not [secret for secret in secrets if secret in text], path
        assert search.found() == []
        await server.restart()
        await server.stop()
        assert search.found() == []
    finally:
        await server.close()


async def look_around(server: Server) -> None:
    """What a program in a terminal sees of us."""
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}?after=0") as ws:
        await ws.send(json.dumps({"type": "input", "data": "env; cat /proc/$PPID/cmdline; echo do''ne\r"}))
        said = b""
        async with asyncio.timeout(60):
            while b"done" not in said:
                frame = await ws.recv()
                said += frame[8:] if isinstance(frame, bytes) else b""


@pytest.mark.asyncio(loop_scope="session")
async def test_the_secret_search_finds_a_planted_secret(house: Server) -> None:
    await house.new_session(title="hunter2 in the database")
    planted = house.home / "logs" / "planted.log"
    planted.write_text("the token is hunter2")
    found = Search(house, ["hunter2"]).found()
    planted.unlink()
    assert "hunter… in logs/planted.log" in found
    assert any(place.startswith("hunter… in bullpen.db") for place in found)
