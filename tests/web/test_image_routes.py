"""Uploaded images are recognised by content, stored under a random name and served as attachments."""

from collections.abc import AsyncIterator

from bullpen.workers.images import MAX_IMAGE_BYTES
from support.pictures import png
from support.server import Server


async def image_route_of_new_session(server: Server) -> str:
    return f"/api/sessions/{(await server.new_session())['id']}/images"


async def test_an_image_is_served_as_an_attachment_and_never_as_a_page(server: Server) -> None:
    path = await image_route_of_new_session(server)
    image = await server.call("POST", path, 201, content=png(), headers={"Content-Type": "text/html"})
    assert (image["mimeType"], image["size"]) == ("image/png", len(png()))
    answer = await server.http.get(f"{path}/{image['id']}")
    assert answer.content == png()
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_a_file_that_is_no_image_or_too_large_is_refused(server: Server) -> None:
    path = await image_route_of_new_session(server)
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    refused = await server.call("POST", path, 415, content=svg, headers={"Content-Type": "image/png"})
    assert refused["error"] == "unsupported_media_type"
    assert (await server.call("POST", path, 413, content=png(30_000, 30_000)))["error"] == "too_large"
    assert (await server.call("POST", path, 413, content=png() + bytes(MAX_IMAGE_BYTES)))[
        "error"
    ] == "too_large"


async def test_a_body_without_a_length_is_counted_while_it_arrives(server: Server) -> None:
    path = await image_route_of_new_session(server)

    async def endless() -> AsyncIterator[bytes]:
        yield png()
        for _ in range(12):
            yield bytes(1 << 20)

    assert (await server.call("POST", path, 413, content=endless()))["error"] == "too_large"


async def test_an_upload_repeated_with_its_idempotency_key_is_one_image(server: Server) -> None:
    path = await image_route_of_new_session(server)
    headers = {"Idempotency-Key": "once"}
    first = await server.call("POST", path, 201, content=png(), headers=headers)
    assert await server.call("POST", path, 201, content=png(), headers=headers) == first
    assert (await server.call("POST", path, 409, content=png(2, 2), headers=headers))["error"] == "conflict"


async def test_an_image_belongs_to_its_session_and_is_removed_with_it(server: Server) -> None:
    path, other = await image_route_of_new_session(server), await image_route_of_new_session(server)
    image = await server.call("POST", path, 201, content=png())
    await server.call("GET", f"{other}/{image['id']}", 404)
    await server.call("GET", f"{path}/..%2f..%2ftoken", 404)
    files = (server.home / "images").glob
    assert list(files(f"*/{image['id']}*"))
    await server.call("DELETE", path.removesuffix("/images") + "?purge=true", 200)
    assert not list(files(f"*/{image['id']}*"))
