"""The keys to the house: tokens, login codes, and which of the owner's tokens are dead."""

from collections.abc import Callable

import msgspec
from sqlalchemy import Connection, delete, select, update

from .. import clock
from ..domain.errors import NotFound
from ..domain.records import LoginCode, Token
from .answers import KeptAnswer, answered
from .database import Database
from .statements import add, put
from .tables import codes, settings, tokens

RETIRED = "owner.retired"


class CredentialStore:
    """All of them as hashes: what is stored here opens nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tokens(self) -> list[Token]:
        query = select(tokens).order_by(tokens.c.created_at)
        return await self._database.read(lambda c: [Token(**row._mapping) for row in c.execute(query)])

    async def add_token(self, token: Token, answer: KeptAnswer[Token] | None = None) -> Token:
        return await self._database.write(answered(lambda c: _add_token(c, token), answer))

    async def touch_token(self, token_id: str, used_at: int) -> None:
        query = update(tokens).where(tokens.c.id == token_id).values(last_used_at=used_at)
        await self._database.write(lambda c: c.execute(query).rowcount)

    async def remove_token(self, token_id: str) -> None:
        """Also on a full disk, as far as that goes: what shall open nothing any more, shall not for long."""
        query = delete(tokens).where(tokens.c.id == token_id)
        if not await self._database.write(lambda c: c.execute(query).rowcount, patient=True):
            raise NotFound(f"no token {token_id}")

    async def remove_expired(self, before: int) -> None:
        """Forgets tokens that expired before a time."""
        await self._database.write(
            lambda c: c.execute(delete(tokens).where(tokens.c.expires_at < before)).rowcount
        )

    async def codes(self) -> list[LoginCode]:
        """The codes that nobody has used and that are not too old."""
        query = select(codes).where(codes.c.expires_at > clock.now_ms())
        return await self._database.read(lambda c: [LoginCode(**row._mapping) for row in c.execute(query)])

    async def add_code(self, code: LoginCode, answer: KeptAnswer[LoginCode] | None = None) -> LoginCode:
        return await self._database.write(answered(lambda c: _add_code(c, code), answer))

    async def redeem_code(
        self, code_hash: str, make: Callable[[LoginCode], Token], answer: KeptAnswer[Token] | None = None
    ) -> Token:
        """Trades a code for a token: the code is gone when, and only when, the token is there."""

        def redeem(connection: Connection) -> Token:
            code = _take_code(connection, code_hash)
            if code is None:
                raise NotFound("no such code")
            return _add_token(connection, make(code))

        return await self._database.write(answered(redeem, answer))

    async def retired(self) -> frozenset[str]:
        """The hashes of the tokens the owner once had."""
        return await self._database.read(lambda c: frozenset(_retired(c)))

    async def retire(self, token_hash: str, answer: KeptAnswer[None] | None = None) -> None:
        """One of the owner's tokens is dead, whoever brings it back."""

        def write(connection: Connection) -> None:
            value = msgspec.json.encode([*_retired(connection), token_hash]).decode()
            put(connection, settings, [{"key": RETIRED, "value": value}])

        await self._database.write(answered(write, answer))


def _add_token(connection: Connection, token: Token) -> Token:
    add(connection, tokens, [msgspec.structs.asdict(token)])
    return token


def _add_code(connection: Connection, code: LoginCode) -> LoginCode:
    connection.execute(delete(codes).where(codes.c.expires_at <= clock.now_ms()))
    add(connection, codes, [msgspec.structs.asdict(code)])
    return code


def _take_code(connection: Connection, code_hash: str) -> LoginCode | None:
    query = select(codes).where(codes.c.hash == code_hash, codes.c.expires_at > clock.now_ms())
    row = connection.execute(query).one_or_none()
    connection.execute(delete(codes).where(codes.c.hash == code_hash))
    return LoginCode(**row._mapping) if row else None


def _retired(connection: Connection) -> list[str]:
    text = connection.execute(select(settings.c.value).where(settings.c.key == RETIRED)).scalar()
    return msgspec.json.decode(text, type=list[str]) if text else []
