"""The keys to the house: stored as hashes, traded once, dead for good, each with its answer."""

import asyncio

import pytest
from msgspec.structs import replace

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
def keys(database: Database) -> CredentialStore:
    return CredentialStore(database)


def code(seconds: int = 600) -> LoginCode:
    return LoginCode(hash="c0de", scope="view", expires_at=clock.now_ms() + seconds * 1000)


def device(found: LoginCode) -> Token:
    return replace(LAPTOP, scope=found.scope, secret_hash="s")


def kept(body: bytes = b"{}", key: str = "k") -> PendingAnswer[Token]:
    return PendingAnswer(key, "h", lambda _: (201, body))


async def test_tokens_are_kept_used_and_revoked(keys: CredentialStore) -> None:
    phone = replace(LAPTOP, id="t2", name="phone", hash="def", created_at=2, secret_hash="s", expires_at=9)
    await keys.add_token(LAPTOP)
    await keys.add_token(phone)
    await keys.touch_token("t1", 77)
    assert await keys.tokens() == [replace(LAPTOP, last_used_at=77), phone]
    await keys.remove_token("t1")
    assert await keys.tokens() == [phone]
    with pytest.raises(NotFound):
        await keys.remove_token("t1")


async def test_what_expired_long_ago_is_forgotten(keys: CredentialStore) -> None:
    old = replace(LAPTOP, id="t2", hash="def", created_at=2, expires_at=9)
    new = replace(LAPTOP, id="t3", hash="ghi", created_at=3, expires_at=10)
    for token in (LAPTOP, old, new):
        await keys.add_token(token)
    await keys.remove_expired(before=10)
    assert await keys.tokens() == [LAPTOP, new]


async def test_a_code_is_traded_for_one_token_with_its_scope(keys: CredentialStore) -> None:
    await keys.add_code(code())
    assert (await keys.redeem_code("c0de", device)).scope == "view"
    assert [token.scope for token in await keys.tokens()] == ["view"]
    with pytest.raises(NotFound):
        await keys.redeem_code("c0de", lambda found: replace(device(found), id="t2", hash="def"))
    assert len(await keys.tokens()) == 1


async def test_of_many_at_once_one_gets_the_code(keys: CredentialStore) -> None:
    await keys.add_code(code())
    made = (replace(LAPTOP, id=str(n), hash=str(n)) for n in range(10))
    tries = [keys.redeem_code("c0de", lambda _: next(made)) for _ in range(10)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NotFound"] * 9 + ["Token"]


async def test_an_old_code_is_worth_nothing(keys: CredentialStore) -> None:
    await keys.add_code(code(seconds=0))
    assert await keys.codes() == []
    with pytest.raises(NotFound):
        await keys.redeem_code("c0de", device)
    assert await keys.tokens() == []


async def test_a_code_stays_when_its_token_cannot_be_stored(keys: CredentialStore) -> None:
    await keys.add_token(LAPTOP)
    await keys.add_code(code())
    with pytest.raises(Exception, match=r"(?i)unique"):
        await keys.redeem_code("c0de", device)
    assert [found.hash for found in await keys.codes()] == ["c0de"]


async def test_retired_tokens_of_the_owner_are_remembered(keys: CredentialStore) -> None:
    assert await keys.retired() == frozenset()
    await keys.retire("old")
    await keys.retire("older")
    assert await keys.retired() == {"old", "older"}


async def test_an_effect_and_its_answer_are_stored_together_once(
    keys: CredentialStore, store: EventStore
) -> None:
    await keys.add_token(LAPTOP, kept(b'{"id":"t1"}'))
    stored = await store.stored_answer("k")
    assert stored is not None and (stored.status, stored.body) == (201, b'{"id":"t1"}')
    with pytest.raises(AlreadyAnswered) as again:
        await keys.add_token(replace(LAPTOP, id="t2", hash="def"), kept(b"other"))
    assert again.value.answer == stored
    assert await keys.tokens() == [LAPTOP]


async def test_an_effect_that_fails_leaves_no_answer(keys: CredentialStore, store: EventStore) -> None:
    with pytest.raises(NotFound):
        await keys.redeem_code("c0de", device, kept())
    assert await store.stored_answer("k") is None
    await keys.add_code(code())
    await keys.redeem_code("c0de", device, kept())
    assert await store.stored_answer("k") is not None
