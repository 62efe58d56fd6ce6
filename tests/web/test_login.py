"""Login: codes that work once, devices with two secrets, and the limit of wrong codes."""

import asyncio
import json
from http.client import HTTPConnection

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bullpen import clock
from bullpen.domain.errors import TooMany
from bullpen.web.attempts import MAX_PEERS, LoginAttempts
from support.server import Server
from web.clients import SCOPES, LoggedInBrowser, anonymous_client, log_in, new_login_code, new_token_headers
from web.stored_rows import stored_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

GUESSING_ADDRESS = "127.0.2.1"


async def test_a_code_logs_in_once_and_a_cookie_alone_is_never_enough(shared_server: Server) -> None:
    code = await new_login_code(shared_server)
    async with anonymous_client(shared_server) as client:
        browser = LoggedInBrowser(await client.post("/api/login", json={"code": code}))
        assert (await client.post("/api/login", json={"code": code})).status_code == 401
        client.cookies.clear()
        assert (await client.get("/api/sessions", headers=browser.cookie)).status_code == 403
        assert (await client.get("/api/sessions", headers=browser.headers)).status_code == 200


async def test_of_many_browsers_with_one_code_one_logs_in(shared_server: Server) -> None:
    code = await new_login_code(shared_server)
    clients = [anonymous_client(shared_server, f"127.0.1.{n}") for n in range(1, 9)]
    answers = await asyncio.gather(*(client.post("/api/login", json={"code": code}) for client in clients))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 7
    for client in clients:
        await client.aclose()


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(shared_server: Server) -> None:
    cookie = (await log_in(shared_server)).set_cookie.lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    # A browser drops a Secure cookie over plain HTTP.
    assert "domain" not in cookie and "secure" not in cookie


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_device_has_the_scope_of_its_code(shared_server: Server, scope: str) -> None:
    browser = await log_in(shared_server, scope)
    async with anonymous_client(shared_server) as client:
        created = await client.post("/api/sessions", json={}, headers=browser.headers)
        listing = await client.get("/api/tokens", headers=browser.headers)
    assert created.status_code == (403 if scope == "view" else 201)
    assert listing.status_code == (200 if scope == "admin" else 403)


async def test_a_socket_with_a_cookie_and_a_wrong_secret_is_closed(shared_server: Server) -> None:
    browser = await log_in(shared_server)
    for first in ('{"type": "auth", "secret": "wrong"}', '{"type": "subscribe"}', "nonsense", b"\0"):
        headers = {**browser.cookie, "Origin": shared_server.url}
        address = f"ws://127.0.0.1:{shared_server.port}/ws/dashboard"
        async with connect(address, additional_headers=headers, proxy=None) as ws:
            await ws.send(first)
            with pytest.raises(ConnectionClosed):
                await ws.recv()
            assert ws.close_code == 4401


async def test_devices_and_tokens_are_listed_with_their_last_use(shared_server: Server) -> None:
    browser = await log_in(shared_server, "view", device="Ada's phone")
    token = await shared_server.call("POST", "/api/tokens", 201, json={"name": "nightly", "expiresIn": 60})
    assert token["lastUsedAt"] is None
    before = await listed_tokens(shared_server)
    assert before["nightly"] == {key: value for key, value in token.items() if key != "token"}
    assert (before["Ada's phone"]["kind"], before["Ada's phone"]["scope"]) == ("device", "view")
    assert before["Ada's phone"]["lastUsedAt"] is None
    async with anonymous_client(shared_server) as client:
        await client.get("/api/sessions", headers=browser.headers)
        await client.get("/api/sessions", headers={"Authorization": f"Bearer {token['token']}"})
    used = await listed_tokens(shared_server)
    assert used["Ada's phone"]["lastUsedAt"] >= used["Ada's phone"]["createdAt"]
    assert used["nightly"]["lastUsedAt"] >= used["nightly"]["createdAt"]


@pytest.mark.parametrize("seconds", [0, -1, 100 * 366 * 86_400 + 1, 10**17, 10**30])
async def test_an_expiry_time_that_cannot_be_represented_is_refused(
    shared_server: Server, seconds: int
) -> None:
    await shared_server.call("POST", "/api/tokens", 400, json={"name": "long", "expiresIn": seconds})
    assert "long" not in await listed_tokens(shared_server)


async def listed_tokens(server: Server) -> dict[str, dict[str, str]]:
    answer = await server.call("GET", "/api/tokens")
    return {token["name"]: token for token in answer["tokens"]}


async def test_the_last_use_of_a_token_is_stored_at_most_once_a_minute(shared_server: Server) -> None:
    headers = await new_token_headers(shared_server, "view")
    await shared_server.http.get("/api/sessions", headers=headers)
    before = await stored_rows(shared_server)
    for _ in range(50):
        await shared_server.http.get("/api/sessions", headers=headers)
    assert await stored_rows(shared_server) == before


async def test_a_thousand_wrong_codes_are_limited_and_the_owner_is_not_affected(
    shared_server: Server,
) -> None:
    browser, session = await log_in(shared_server), await shared_server.new_session()
    code = await new_login_code(shared_server)
    headers = {**browser.cookie, "Origin": shared_server.url}
    async with (
        connect(
            f"ws://127.0.0.1:{shared_server.port}/ws/dashboard", additional_headers=headers, proxy=None
        ) as ws,
        anonymous_client(shared_server, GUESSING_ADDRESS) as guessing_client,
        anonymous_client(shared_server, "127.0.2.2") as owner,
    ):
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"
        outcomes = await asyncio.to_thread(send_wrong_codes, shared_server, 1000)
        assert outcomes[:2] == [(401, 0), (401, 0)]
        assert all(status == 429 and 0 < wait <= 60 for status, wait in outcomes[2:])
        assert (await guessing_client.post("/api/login", json={"code": code})).status_code == 429
        # The owner's device, socket, token and login from another address still work.
        assert (await owner.get("/api/sessions", headers=browser.headers)).status_code == 200
        await shared_server.call("PATCH", f"/api/sessions/{session['id']}", 200, json={"title": "meanwhile"})
        async with asyncio.timeout(30):
            while (message := json.loads(await ws.recv()))["type"] != "session":
                pass
        assert message["session"]["title"] == "meanwhile"
        assert (await owner.post("/api/login", json={"code": code})).status_code == 200


def send_wrong_codes(server: Server, times: int) -> list[tuple[int, int]]:
    """Send wrong codes; return the status and the retry time in seconds of each response."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30, source_address=(GUESSING_ADDRESS, 0))
    outcomes = []
    for n in range(times):
        body = json.dumps({"code": f"guess{n}"})
        connection.request("POST", "/api/login", body, {"Content-Type": "application/json"})
        with connection.getresponse() as answer:
            answer.read()
            outcomes.append((answer.status, int(answer.headers.get("Retry-After", 0))))
    connection.close()
    return outcomes


async def test_wrong_codes_sent_at_once_are_limited_too(shared_server: Server) -> None:
    async with anonymous_client(shared_server, "127.0.3.1") as guessing_client:
        answers = await asyncio.gather(
            *(guessing_client.post("/api/login", json={"code": f"guess{n}"}) for n in range(50))
        )
    assert sorted(answer.status_code for answer in answers) == [401] * 2 + [429] * 48


class FakeClock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.now)


def count_checked_codes(
    attempts: LoginAttempts, clock: FakeClock, every: float, hours: float, peer: str = "192.0.2.7"
) -> int:
    """Return how many wrong codes are checked and not refused by the limit."""
    checked, end = 0, clock.now + hours * 3600
    while clock.now < end:
        try:
            attempts.check(peer)
        except TooMany as error:
            assert error.retry_after >= 1
        else:
            attempts.failed(peer)
            checked += 1
        clock.now += every
    return checked


async def test_the_limit_is_two_a_minute_and_twelve_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, time = LoginAttempts(), FakeClock(monkeypatch)
    assert count_checked_codes(attempts, time, every=1, hours=1 / 60) == 2
    assert count_checked_codes(attempts, time, every=1, hours=59 / 60) == 10
    assert count_checked_codes(attempts, time, every=10, hours=24) == 24 * 12


async def test_a_login_may_be_tried_again_after_the_retry_time(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, time = LoginAttempts(), FakeClock(monkeypatch)
    count_checked_codes(attempts, time, every=1, hours=3 / 3600)
    with pytest.raises(TooMany) as refused:
        attempts.check("192.0.2.7")
    time.now += refused.value.retry_after
    attempts.check("192.0.2.7")


async def test_an_ipv6_network_is_one_peer_and_an_ipv4_address_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts, time = LoginAttempts(), FakeClock(monkeypatch)
    assert sum(count_checked_codes(attempts, time, 1, 1 / 3600, f"2001:db8::{n}") for n in range(20)) == 2
    assert sum(count_checked_codes(attempts, time, 1, 1 / 3600, f"192.0.2.{n}") for n in range(20)) == 20


async def test_login_attempts_of_many_peers_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = LoginAttempts()
    for n in range(MAX_PEERS * 3):
        attempts.failed(f"192.{n // 65536}.{n // 256 % 256}.{n % 256}")
    assert len(attempts._failures) == MAX_PEERS
