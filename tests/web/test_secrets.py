"""After use of each kind of secret, none is found in a log, recording, database, process or response."""

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

READ_ROUTES = (
    "/api/tokens",
    "/api/settings",
    "/metrics",
    "/api/openapi.json",
    "/api/sessions",
    "/api/health",
)


class SecretSearch:
    """Searches for secrets in the files, processes and output of a server."""

    def __init__(self, server: Server, secrets: list[str]) -> None:
        self._server = server
        self._needles = {secret: (secret.encode(), secret.encode("utf-16-le")) for secret in secrets}

    def found(self) -> list[str]:
        sources = [*self._files(), *self._processes(), ("its output", self._printed())]
        return [
            f"{secret[:6]}… in {name}"
            for name, data in sources
            for secret, needles in self._needles.items()
            if any(needle in data for needle in needles)
        ]

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in self._server.home.rglob("*"):
            if path.is_file() and path.name != "token":
                yield str(path.relative_to(self._server.home)), path.read_bytes()

    def _processes(self) -> Iterator[tuple[str, bytes]]:
        """Yield arguments and environment of each process of the home, without the server's environment."""
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
        """Return the output without the line with the login code that each start prints."""
        lines = self._server.output().splitlines()
        return "\n".join(line for line in lines if not line.startswith("Bullpen ")).encode()


async def use_all_secrets(server: Server) -> list[str]:
    """Use, misuse and replace each kind of secret, and return them all."""
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
            # Users sometimes send a secret in a wrong place.
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
        secrets = await use_all_secrets(server)
        await print_environment_in_terminal(server)
        search = SecretSearch(server, secrets)
        for path in READ_ROUTES:
            text = (await server.http.get(path)).text
            assert not [secret for secret in secrets if secret in text], path
        assert search.found() == []
        await server.restart()
        await server.stop()
        assert search.found() == []
    finally:
        await server.close()


async def print_environment_in_terminal(server: Server) -> None:
    """Print the environment and the parent's arguments in a terminal, so that they are recorded."""
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    async with server.socket(
        f"/ws/session/{session['id']}/worker/{worker['id']}?format=binary&after=0"
    ) as ws:
        await ws.send(json.dumps({"type": "input", "data": "env; cat /proc/$PPID/cmdline; echo do''ne\r"}))
        output = b""
        async with asyncio.timeout(60):
            while b"done" not in output:
                frame = await ws.recv()
                output += frame[8:] if isinstance(frame, bytes) else b""


@pytest.mark.asyncio(loop_scope="session")
async def test_the_secret_search_finds_a_planted_secret(shared_server: Server) -> None:
    await shared_server.new_session(title="hunter2 in the database")
    planted = shared_server.home / "logs" / "planted.log"
    planted.write_text("the token is hunter2")
    found = SecretSearch(shared_server, ["hunter2"]).found()
    planted.unlink()
    assert "hunter… in logs/planted.log" in found
    assert any(name.startswith("hunter… in bullpen.db") for name in found)
