"""Stored credentials: tokens, login codes, and retired tokens of the owner."""

from collections.abc import Callable

import msgspec
from sqlalchemy import Connection, delete, select, update

from .. import clock
from ..domain.errors import NotFound
from ..domain.records import LoginCode, Token
from .answers import PendingAnswer, with_answer
from .database import Database
from .statements import insert_rows, upsert_rows
from .tables import codes, settings, tokens

RETIRED_OWNER_TOKENS = "owner.retired"


class CredentialStore:
    """Stores credentials as hashes only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        query = select(tokens).order_by(tokens.c.created_at)
        return await self._database.read(lambda c: [Token(**row._mapping) for row in c.execute(query)])

    async def add_token(self, token: Token, answer: PendingAnswer[Token] | None = None) -> Token:
        """Store a token."""
        return await self._database.write(with_answer(lambda c: _add_token(c, token), answer))

    async def touch_token(self, token_id: str, used_at: int) -> None:
        """Set when a token was last used."""
        query = update(tokens).where(tokens.c.id == token_id).values(last_used_at=used_at)
        await self._database.write(lambda c: c.execute(query).rowcount)

    async def remove_token(self, token_id: str) -> None:
        """Delete a token, or raise NotFound.

        Also tried on a full disk: a revoked token must stop working soon.
        """
        query = delete(tokens).where(tokens.c.id == token_id)
        if not await self._database.write(lambda c: c.execute(query).rowcount, patient=True):
            raise NotFound(f"no token {token_id}")

    async def remove_expired(self, before: int) -> None:
        """Delete the tokens that expired before a time."""
        await self._database.write(
            lambda c: c.execute(delete(tokens).where(tokens.c.expires_at < before)).rowcount
        )

    async def codes(self) -> list[LoginCode]:
        """Return the login codes that are neither used nor expired."""
        query = select(codes).where(codes.c.expires_at > clock.now_ms())
        return await self._database.read(lambda c: [LoginCode(**row._mapping) for row in c.execute(query)])

    async def add_code(self, code: LoginCode, answer: PendingAnswer[LoginCode] | None = None) -> LoginCode:
        """Store a login code, and delete expired ones."""
        return await self._database.write(with_answer(lambda c: _add_code(c, code), answer))

    async def redeem_code(
        self, code_hash: str, make: Callable[[LoginCode], Token], answer: PendingAnswer[Token] | None = None
    ) -> Token:
        """Exchange a login code for a token in one transaction, or raise NotFound."""

        def redeem(connection: Connection) -> Token:
            code = _take_code(connection, code_hash)
            if code is None:
                raise NotFound("no such code")
            return _add_token(connection, make(code))

        return await self._database.write(with_answer(redeem, answer))

    async def retired(self) -> frozenset[str]:
        """Return the hashes of the owner's former tokens."""
        return await self._database.read(lambda c: frozenset(_retired(c)))

    async def retire(self, token_hash: str, answer: PendingAnswer[None] | None = None) -> None:
        """Add a token of the owner to the retired ones, which are never accepted again."""

        def write(connection: Connection) -> None:
            value = msgspec.json.encode([*_retired(connection), token_hash]).decode()
            upsert_rows(connection, settings, [{"key": RETIRED_OWNER_TOKENS, "value": value}])

        await self._database.write(with_answer(write, answer))


def _add_token(connection: Connection, token: Token) -> Token:
    """Insert a token and return it."""
    insert_rows(connection, tokens, [msgspec.structs.asdict(token)])
    return token


def _add_code(connection: Connection, code: LoginCode) -> LoginCode:
    """Store a login code, and delete expired ones."""
    connection.execute(delete(codes).where(codes.c.expires_at <= clock.now_ms()))
    insert_rows(connection, codes, [msgspec.structs.asdict(code)])
    return code


def _take_code(connection: Connection, code_hash: str) -> LoginCode | None:
    """Delete a login code and return it, or None if it is not valid."""
    query = select(codes).where(codes.c.hash == code_hash, codes.c.expires_at > clock.now_ms())
    row = connection.execute(query).one_or_none()
    connection.execute(delete(codes).where(codes.c.hash == code_hash))
    return LoginCode(**row._mapping) if row else None


def _retired(connection: Connection) -> list[str]:
    """Return the hashes of the owner's retired tokens."""
    text = connection.execute(select(settings.c.value).where(settings.c.key == RETIRED_OWNER_TOKENS)).scalar()
    return msgspec.json.decode(text, type=list[str]) if text else []
