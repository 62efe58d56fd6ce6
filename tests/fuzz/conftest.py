"""One real server for all fuzz targets that need one, with a synchronous client, as hypothesis requires."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from support.server import TOKEN, Server


class FuzzedServer:
    """Sends requests to a real server and checks its log for unexpected errors."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.http = httpx.Client(
            base_url=server.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=False,
            timeout=60,
            trust_env=False,
        )
        self._checked = 0

    def check_log(self) -> None:
        """Fail if the server has written a traceback since the last call."""
        with open(self.server.home.with_suffix(".out"), "rb") as output:
            output.seek(self._checked)
            text = output.read()
        self._checked += len(text)
        assert b"Traceback" not in text, text.decode(errors="replace")[-4000:]
        assert b"internal error" not in text, text.decode(errors="replace")[-4000:]

    def call(self, method: str, path: str, **options: object) -> httpx.Response:
        """Send a request and return the answer, which must not be a 5xx."""
        answer = self.http.request(method, path, **options)  # type: ignore[arg-type]
        assert answer.status_code < 500, (method, path, answer.status_code, answer.text)
        return answer

    def socket(self, path: str) -> AbstractContextManager[ClientConnection]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return connect(
            f"ws://127.0.0.1:{self.server.port}{path}", additional_headers=headers, proxy=None, max_size=None
        )


@pytest.fixture(scope="session")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedServer]:
    directory = tmp_path_factory.mktemp("fuzzed")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace")
    with asyncio.Runner() as runner:
        runner.run(server.start())
        yield FuzzedServer(server)
        runner.run(server.close())
