"""Logging in: codes that work once, devices with two secrets, and how often one may be wrong (S-05, S-21)."""

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
from web.people import SCOPES, Browser, bearer, log_in, new_code, stranger
from web.stored import stored

pytestmark = pytest.mark.asyncio(loop_scope="session")

THIEF = "127.0.2.1"


async def test_a_code_logs_in_once_and_a_cookie_alone_is_never_enough(house: Server) -> None:
    code = await new_code(house)
    async with stranger(house) as client:
        browser = Browser(await client.post("/api/login", json={"code": code}))
        assert (await client.post("/api/login", json={"code": code})).status_code == 401
        client.cookies.clear()
        assert (await client.get("/api/sessions", headers=browser.cookie)).status_code == 403
        assert (await client.get("/api/sessions", headers=browser.headers)).status_code == 200


async def test_of_many_browsers_with_one_code_one_gets_in(house: Server) -> None:
    code = await new_code(house)
    clients = [stranger(house, f"127.0.1.{n}") for n in range(1, 9)]
    answers = await asyncio.gather(*(client.post("/api/login", json={"code": code}) for client in clients))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 7
    for client in clients:
        await client.aclose()


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(house: Server) -> None:
    said = (await log_in(house)).set_cookie.lower()
    assert "httponly" in said and "samesite=strict" in said and "path=/" in said
    assert "domain" not in said and "secure" not in said  # over plain http a Secure cookie is thrown away


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_device_has_the_scope_of_its_code(house: Server, scope: str) -> None:
    browser = await log_in(house, scope)
    async with stranger(house) as client:
        made = await client.post("/api/sessions", json={}, headers=browser.headers)
        managed = await client.get("/api/tokens", headers=browser.headers)
    assert made.status_code == (403 if scope == "view" else 201)
    assert managed.status_code == (200 if scope == "admin" else 403)


async def test_a_socket_with_a_cookie_and_a_wrong_secret_is_closed(house: Server) -> None:
    browser = await log_in(house)
    for first in ('{"type": "auth", "secret": "wrong"}', '{"type": "subscribe"}', "nonsense", b"\0"):
        headers = {**browser.cookie, "Origin": house.url}
        address = f"ws://127.0.0.1:{house.port}/ws/dashboard"
        async with connect(address, additional_headers=headers, proxy=None) as ws:
            await ws.send(first)
            with pytest.raises(ConnectionClosed):
                await ws.recv()
            assert ws.close_code == 4401


async def test_devices_and_tokens_are_listed_with_when_they_were_last_used(house: Server) -> None:
    browser = await log_in(house, "view", device="Ada's phone")
    token = await house.call("POST", "/api/tokens", 201, json={"name": "nightly", "expiresIn": 60})
    assert token["lastUsedAt"] is None
    before = await listed(house)
    assert before["nightly"] == {key: value for key, value in token.items() if key != "token"}
    assert (before["Ada's phone"]["kind"], before["Ada's phone"]["scope"]) == ("device", "view")
    assert before["Ada's phone"]["lastUsedAt"] is None
    async with stranger(house) as client:
        await client.get("/api/sessions", headers=browser.headers)
        await client.get("/api/sessions", headers={"Authorization": f"Bearer {token['token']}"})
    used = await listed(house)
    assert used["Ada's phone"]["lastUsedAt"] >= used["Ada's phone"]["createdAt"]
    assert used["nightly"]["lastUsedAt"] >= used["nightly"]["createdAt"]


@pytest.mark.parametrize("seconds", [0, -1, 100 * 366 * 86_400 + 1, 10**17, 10**30])
async def test_a_token_cannot_end_at_a_time_no_calendar_has(house: Server, seconds: int) -> None:
    await house.call("POST", "/api/tokens", 400, json={"name": "long", "expiresIn": seconds})
    assert "long" not in await listed(house)


async def listed(server: Server) -> dict[str, dict[str, str]]:
    answer = await server.call("GET", "/api/tokens")
    return {token["name"]: token for token in answer["tokens"]}


async def test_when_a_token_was_used_is_stored_at_most_once_a_minute(house: Server) -> None:
    headers = await bearer(house, "view")
    await house.http.get("/api/sessions", headers=headers)
    before = await stored(house)
    for _ in range(50):
        await house.http.get("/api/sessions", headers=headers)
    assert await stored(house) == before


async def test_a_thousand_wrong_codes_are_limited_and_the_owner_goes_on(house: Server) -> None:
    browser, session = await log_in(house), await house.new_session()
    code = await new_code(house)
    headers = {**browser.cookie, "Origin": house.url}
    async with (
        connect(f"ws://127.0.0.1:{house.port}/ws/dashboard", additional_headers=headers, proxy=None) as ws,
        stranger(house, THIEF) as thief,
        stranger(house, "127.0.2.2") as owner,
    ):
        await ws.send(json.dumps({"type": "auth", "secret": browser.secret}))
        assert json.loads(await ws.recv())["type"] == "sessions"
        outcomes = await asyncio.to_thread(guess, house, 1000)
        assert outcomes[:2] == [(401, 0), (401, 0)]
        assert all(status == 429 and 0 < wait <= 60 for status, wait in outcomes[2:])
        assert (await thief.post("/api/login", json={"code": code})).status_code == 429
        # The owner's devices, sockets, tokens and logins from elsewhere do not notice.
        assert (await owner.get("/api/sessions", headers=browser.headers)).status_code == 200
        await house.call("PATCH", f"/api/sessions/{session['id']}", 200, json={"title": "meanwhile"})
        async with asyncio.timeout(30):
            while (told := json.loads(await ws.recv()))["type"] != "session":
                pass
        assert told["session"]["title"] == "meanwhile"
        assert (await owner.post("/api/login", json={"code": code})).status_code == 200


def guess(server: Server, times: int) -> list[tuple[int, int]]:
    """What became of each wrong code: its status, and in how many seconds to come again."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30, source_address=(THIEF, 0))
    outcomes = []
    for n in range(times):
        body = json.dumps({"code": f"guess{n}"})
        connection.request("POST", "/api/login", body, {"Content-Type": "application/json"})
        with connection.getresponse() as answer:
            answer.read()
            outcomes.append((answer.status, int(answer.headers.get("Retry-After", 0))))
    connection.close()
    return outcomes


async def test_wrong_codes_that_come_all_at_once_are_limited_too(house: Server) -> None:
    async with stranger(house, "127.0.3.1") as thief:
        answers = await asyncio.gather(
            *(thief.post("/api/login", json={"code": f"guess{n}"}) for n in range(50))
        )
    assert sorted(answer.status_code for answer in answers) == [401] * 2 + [429] * 48


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.now)


def tries(attempts: LoginAttempts, clock: Clock, every: float, hours: float, peer: str = "192.0.2.7") -> int:
    """How many wrong codes get through."""
    through, end = 0, clock.now + hours * 3600
    while clock.now < end:
        try:
            attempts.check(peer)
        except TooMany as error:
            assert error.retry_after >= 1
        else:
            attempts.failed(peer)
            through += 1
        clock.now += every
    return through


async def test_the_limit_is_two_a_minute_and_twelve_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, time = LoginAttempts(), Clock(monkeypatch)
    assert tries(attempts, time, every=1, hours=1 / 60) == 2
    assert tries(attempts, time, every=1, hours=59 / 60) == 10
    assert tries(attempts, time, every=10, hours=24) == 24 * 12


async def test_who_waits_as_long_as_told_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, time = LoginAttempts(), Clock(monkeypatch)
    tries(attempts, time, every=1, hours=3 / 3600)
    with pytest.raises(TooMany) as refused:
        attempts.check("192.0.2.7")
    time.now += refused.value.retry_after
    attempts.check("192.0.2.7")


async def test_one_network_of_ipv6_is_one_place_and_an_ipv4_address_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts, time = LoginAttempts(), Clock(monkeypatch)
    assert sum(tries(attempts, time, 1, 1 / 3600, f"2001:db8::{n}") for n in range(20)) == 2
    assert sum(tries(attempts, time, 1, 1 / 3600, f"192.0.2.{n}") for n in range(20)) == 20


async def test_any_number_of_places_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = LoginAttempts()
    for n in range(MAX_PEERS * 3):
        attempts.failed(f"192.{n // 65536}.{n // 256 % 256}.{n % 256}")
    assert len(attempts._failures) == MAX_PEERS
