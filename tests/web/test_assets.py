"""The files of the built page: kept for ever, packed for who can unpack them, the same for all."""

import pytest

from bullpen.web.pages import BUILT
from support.server import Server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_an_asset_is_what_was_built_packed_or_not(house: Server, encoding: str) -> None:
    for built in (BUILT / "assets").glob("index-*"):
        answer = await house.http.get(f"/assets/{built.name}", headers={"Accept-Encoding": encoding})
        assert answer.content == built.read_bytes()
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))


async def test_the_page_itself_is_asked_for_anew(house: Server) -> None:
    assert (await house.http.get("/")).headers["cache-control"] == "no-cache"
    assert (await house.http.get("/assets/nothing.js")).status_code == 404
