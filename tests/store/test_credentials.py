"""Credentials: tokens are stored as hashes, a login code is redeemed once, and each has its answer."""

import asyncio

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from bullpen import clock
from bullpen.domain.errors import NotFound
from bullpen.domain.records import LoginCode, Token
from bullpen.store.answers import PendingAnswer
from bullpen.store.append import AlreadyAnswered
from bullpen.store.credentials import CredentialStore
from bullpen.store.database import Database
from bullpen.store.events import EventStore

LAPTOP = Token(id="t1", name="laptop", hash="abc", scope="admin", created_at=1)


@pytest.fixture
def credentials(database: Database) -> CredentialStore:
    return CredentialStore(database)


def code(seconds: int = 600) -> LoginCode:
    return LoginCode(hash="c0de", scope="view", expires_at=clock.now_ms() + seconds * 1000)


def device_of(code: LoginCode) -> Token:
    return replace(LAPTOP, scope=code.scope, secret_hash="s")


def answer(body: bytes = b"{}", key: str = "k") -> PendingAnswer[Token]:
    return PendingAnswer(key, "h", lambda _: (201, body))


async def test_tokens_are_stored_used_and_revoked(credentials: CredentialStore) -> None:
    phone = replace(LAPTOP, id="t2", name="phone", hash="def", created_at=2, secret_hash="s", expires_at=9)
    await credentials.add_token(LAPTOP)
    await credentials.add_token(phone)
    await credentials.touch_token("t1", 77)
    assert await credentials.tokens() == [replace(LAPTOP, last_used_at=77), phone]
    await credentials.remove_token("t1")
    assert await credentials.tokens() == [phone]
    with pytest.raises(NotFound):
        await credentials.remove_token("t1")


async def test_tokens_that_expired_are_removed(credentials: CredentialStore) -> None:
    old = replace(LAPTOP, id="t2", hash="def", created_at=2, expires_at=9)
    new = replace(LAPTOP, id="t3", hash="ghi", created_at=3, expires_at=10)
    for token in (LAPTOP, old, new):
        await credentials.add_token(token)
    await credentials.remove_expired(before=10)
    assert await credentials.tokens() == [LAPTOP, new]


async def test_a_login_code_is_redeemed_for_one_token_with_its_scope(credentials: CredentialStore) -> None:
    await credentials.add_code(code())
    assert (await credentials.redeem_code("c0de", device_of)).scope == "view"
    assert [token.scope for token in await credentials.tokens()] == ["view"]
    with pytest.raises(NotFound):
        await credentials.redeem_code("c0de", lambda code: replace(device_of(code), id="t2", hash="def"))
    assert len(await credentials.tokens()) == 1


async def test_one_of_many_concurrent_requests_redeems_a_login_code(credentials: CredentialStore) -> None:
    await credentials.add_code(code())
    tokens = (replace(LAPTOP, id=str(n), hash=str(n)) for n in range(10))
    attempts = [credentials.redeem_code("c0de", lambda _: next(tokens)) for _ in range(10)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NotFound"] * 9 + ["Token"]


async def test_an_expired_login_code_is_refused(credentials: CredentialStore) -> None:
    await credentials.add_code(code(seconds=0))
    assert await credentials.codes() == []
    with pytest.raises(NotFound):
        await credentials.redeem_code("c0de", device_of)
    assert await credentials.tokens() == []


async def test_a_login_code_stays_valid_when_its_token_cannot_be_stored(credentials: CredentialStore) -> None:
    await credentials.add_token(LAPTOP)
    await credentials.add_code(code())
    with pytest.raises(IntegrityError, match=r"(?i)unique"):
        await credentials.redeem_code("c0de", device_of)
    assert [found.hash for found in await credentials.codes()] == ["c0de"]


async def test_retired_tokens_of_the_owner_are_remembered(credentials: CredentialStore) -> None:
    assert await credentials.retired() == frozenset()
    await credentials.retire("old")
    await credentials.retire("older")
    assert await credentials.retired() == {"old", "older"}


async def test_a_change_and_its_answer_are_stored_together_once(
    credentials: CredentialStore, store: EventStore
) -> None:
    await credentials.add_token(LAPTOP, answer(b'{"id":"t1"}'))
    stored = await store.stored_answer("k")
    assert stored is not None and (stored.status, stored.body) == (201, b'{"id":"t1"}')
    with pytest.raises(AlreadyAnswered) as again:
        await credentials.add_token(replace(LAPTOP, id="t2", hash="def"), answer(b"other"))
    assert again.value.answer == stored
    assert await credentials.tokens() == [LAPTOP]


async def test_a_change_that_fails_stores_no_answer(credentials: CredentialStore, store: EventStore) -> None:
    with pytest.raises(NotFound):
        await credentials.redeem_code("c0de", device_of, answer())
    assert await store.stored_answer("k") is None
    await credentials.add_code(code())
    await credentials.redeem_code("c0de", device_of, answer())
    assert await store.stored_answer("k") is not None
