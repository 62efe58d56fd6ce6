"""The files of the built page: cached for a year, and compressed for clients that accept it."""

import pytest

from bullpen.web.pages import BUILT
from support.server import Server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_an_asset_equals_the_built_file_compressed_or_not(shared_server: Server, encoding: str) -> None:
    files = list((BUILT / "assets").glob("index-*"))
    assert {path.suffix for path in files} == {".js", ".css"}
    for built in files:
        answer = await shared_server.http.get(f"/assets/{built.name}", headers={"Accept-Encoding": encoding})
        assert answer.content == built.read_bytes()
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))


async def test_the_page_itself_is_not_cached(shared_server: Server) -> None:
    assert (await shared_server.http.get("/")).headers["cache-control"] == "no-cache"
    assert (await shared_server.http.get("/assets/nothing.js")).status_code == 404
