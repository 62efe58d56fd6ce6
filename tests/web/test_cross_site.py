"""A page of another site changes nothing through a user's browser, and read requests have no effect."""

import itertools

import pytest
from fastapi.routing import APIRoute

from bullpen.web.app import every_route
from support.server import Server
from web.clients import Headers, LoggedInBrowser, anonymous_client, log_in
from web.stored_rows import stored_rows
from web.test_access_matrix import with_unknown_ids

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = b'{"title": "forged", "name": "forged", "path": "/", "code": "x", "type": "terminal"}'
# The types that a form, an image or a fetch without CORS permission can send, without the header of the page.
SIMPLE_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")


def post_routes() -> list[str]:
    routes = (route for route in every_route() if isinstance(route, APIRoute))
    return sorted(route.path for route in routes if "POST" in (route.methods or ()))


def forged_headers(browser: LoggedInBrowser, server: Server) -> list[Headers]:
    """Return headers with the user's cookie: SameSite keeps it back, but not in every browser."""
    origins: list[Headers] = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {}]
    # The last one pretends that the page could set its Origin.
    origins += [{"Origin": server.url, "Referer": "http://evil.example/"}]
    return [{**browser.cookie, **origin} for origin in origins]


async def test_a_form_on_a_page_of_another_site_has_no_effect(shared_server: Server) -> None:
    victim = await log_in(shared_server)
    before = await stored_rows(shared_server)
    async with anonymous_client(shared_server, "127.0.4.1") as client:
        for path, headers, content_type in itertools.product(
            post_routes(), forged_headers(victim, shared_server), SIMPLE_TYPES
        ):
            sent = {**headers, "Content-Type": content_type} if content_type else headers
            answer = await client.post(with_unknown_ids(path), content=BODY, headers=sent)
            refused = (401, 403) if path != "/api/login" else (400, 401, 403, 429)
            assert answer.status_code in refused, (path, headers, content_type)
    assert await stored_rows(shared_server) == before


async def test_json_without_its_content_type_has_no_effect_with_any_credential(shared_server: Server) -> None:
    browser = await log_in(shared_server)
    # This request stores the time of the device's last use.
    await shared_server.call("GET", "/api/sessions", 200, headers=browser.headers | {"Authorization": ""})
    before = await stored_rows(shared_server)
    for path, content_type in itertools.product(
        ("/api/sessions", "/api/tokens", "/api/repositories"), SIMPLE_TYPES
    ):
        sent = {
            **browser.headers,
            "Origin": shared_server.url,
            **({"Content-Type": content_type} if content_type else {}),
        }
        async with anonymous_client(shared_server) as client:
            answer = await client.post(path, content=BODY, headers=sent)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid"), (path, content_type)
    assert await stored_rows(shared_server) == before


async def test_no_response_can_be_read_by_a_page_of_another_site(shared_server: Server) -> None:
    browser = await log_in(shared_server)
    async with anonymous_client(shared_server) as client:
        for method, origin in itertools.product(
            ("GET", "OPTIONS"), (shared_server.url, "http://evil.example")
        ):
            preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = await client.request(method, "/api/sessions", headers={**browser.headers, **preflight})
            assert not [name for name in answer.headers if name.startswith("access-control")]
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_read_requests_have_no_effect(shared_server: Server) -> None:
    session = await shared_server.new_session()
    worker = await shared_server.new_terminal(session["id"])
    routes = [route for route in every_route() if isinstance(route, APIRoute)]
    paths = {route.path for route in routes}
    state = await shared_server.call("GET", f"/api/sessions/{session['id']}")
    before = await stored_rows(shared_server)
    for method, path in itertools.product(("GET", "HEAD", "OPTIONS"), sorted(paths)):
        known = path.replace("{session_id}", session["id"]).replace("{worker_id}", worker["id"])
        answer = await shared_server.http.request(
            method, f"{with_unknown_ids(known)}?purge=true&force=true&title=x", content=BODY
        )
        assert answer.status_code < 500, (method, path)
    assert await stored_rows(shared_server) == before
    assert await shared_server.call("GET", f"/api/sessions/{session['id']}") == state
