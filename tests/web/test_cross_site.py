"""S-20: what a foreign page can make a browser send has no effect, and reading never has one."""

import itertools

import pytest
from fastapi.routing import APIRoute

from bullpen.web.app import every_route
from support.server import Server
from web.people import Browser, Headers, log_in, stranger
from web.stored import stored
from web.test_matrix import filled

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = b'{"title": "forged", "name": "forged", "path": "/", "code": "x", "type": "terminal"}'
# What a form, an image or a fetch without permission can send: no header of our own, only these types.
SIMPLE_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")


def posts() -> list[str]:
    routes = (route for route in every_route() if isinstance(route, APIRoute))
    return sorted(route.path for route in routes if "POST" in (route.methods or ()))


def forged(browser: Browser, server: Server) -> list[Headers]:
    """The victim's cookie goes along by itself; SameSite forbids it, but not to every browser."""
    origins: list[Headers] = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {}]
    origins += [{"Origin": server.url, "Referer": "http://evil.example/"}]  # even if it could lie
    return [{**browser.cookie, **origin} for origin in origins]


async def test_a_form_on_a_foreign_page_has_no_effect(house: Server) -> None:
    victim = await log_in(house)
    before = await stored(house)
    async with stranger(house, "127.0.4.1") as browser:
        for path, headers, kind in itertools.product(posts(), forged(victim, house), SIMPLE_TYPES):
            sent = {**headers, "Content-Type": kind} if kind else headers
            answer = await browser.post(filled(path), content=BODY, headers=sent)
            refused = (401, 403) if path != "/api/login" else (400, 401, 403, 429)
            assert answer.status_code in refused, (path, headers, kind)
    assert await stored(house) == before


async def test_json_that_does_not_say_so_has_no_effect_with_any_credential(house: Server) -> None:
    me = await log_in(house)
    await house.call("GET", "/api/sessions", 200, headers=me.headers | {"Authorization": ""})  # notes its use
    before = await stored(house)
    for path, kind in itertools.product(("/api/sessions", "/api/tokens", "/api/repositories"), SIMPLE_TYPES):
        sent = {**me.headers, "Origin": house.url, **({"Content-Type": kind} if kind else {})}
        async with stranger(house) as browser:
            answer = await browser.post(path, content=BODY, headers=sent)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid"), (path, kind)
    assert await stored(house) == before


async def test_no_answer_lets_a_foreign_page_read_it(house: Server) -> None:
    me = await log_in(house)
    async with stranger(house) as browser:
        for method, origin in itertools.product(("GET", "OPTIONS"), (house.url, "http://evil.example")):
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = await browser.request(method, "/api/sessions", headers={**me.headers, **asked})
            assert not [name for name in answer.headers if name.startswith("access-control")]
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_reading_has_no_effect(house: Server) -> None:
    session = await house.new_session()
    worker = await house.new_terminal(session["id"])
    routes = [route for route in every_route() if isinstance(route, APIRoute)]
    paths = {route.path for route in routes}
    state = await house.call("GET", f"/api/sessions/{session['id']}")
    before = await stored(house)
    for method, path in itertools.product(("GET", "HEAD", "OPTIONS"), sorted(paths)):
        real = path.replace("{session_id}", session["id"]).replace("{worker_id}", worker["id"])
        answer = await house.http.request(
            method, f"{filled(real)}?purge=true&force=true&title=x", content=BODY
        )
        assert answer.status_code < 500, (method, path)
    assert await stored(house) == before
    assert await house.call("GET", f"/api/sessions/{session['id']}") == state
