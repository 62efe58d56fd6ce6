"""Who may come in: the owner's token, tokens with a scope, devices that logged in with a code.

Secrets are kept as hashes. A device has two: a cookie, which the browser sends by itself, even to
another port, and a second one that only our own origin can read.
"""

import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .. import clock
from ..domain.errors import Invalid, NotFound, TooMany, Unauthorized
from ..domain.ids import new_id
from ..domain.records import Token
from ..store.records import Records
from .scopes import Principal, Scope

COOKIE = "bullpen"
SECRET_HEADER = "x-bullpen-secret"
CODE_SECONDS = 600
DEVICE_DAYS = 90
OWNER = Principal("owner", "owner", Scope.ADMIN)


class Device(NamedTuple):
    """A browser that logged in, known by its cookie and not yet by its second secret."""

    principal: Principal
    secret_hash: str

    def has_secret(self, secret: str) -> bool:
        return hmac.compare_digest(_hash(secret), self.secret_hash)


class Login(Struct, frozen=True):
    """What a device gets, once."""

    cookie: str
    secret: str
    principal: Principal


class Attempts:
    """How often a code may be tried wrongly: twice a minute, twelve times an hour."""

    LIMITS = ((60.0, 2), (3600.0, 12))

    def __init__(self) -> None:
        self._failures: deque[float] = deque()

    def check(self) -> None:
        now = clock.monotonic()
        while self._failures and now - self._failures[0] > self.LIMITS[-1][0]:
            self._failures.popleft()
        for seconds, most in self.LIMITS:
            if sum(now - at < seconds for at in self._failures) >= most:
                raise TooMany("too many wrong codes; wait a minute and run `bullpen url` for a new one")

    def failed(self) -> None:
        self._failures.append(clock.monotonic())


class Credentials:
    """Everyone who has a key, in memory; changes go to the database first."""

    def __init__(self, owner_token: str, records: Records) -> None:
        self._owner_hash = _hash(owner_token)
        self._records = records
        self._tokens: dict[str, Token] = {}  # by hash
        self._codes: dict[str, float] = {}
        self._attempts = Attempts()
        self._sockets: dict[str, set[Callable[[], None]]] = {}

    async def load(self) -> None:
        self._tokens = {token.hash: token for token in await self._records.tokens()}

    # -- recognising ------------------------------------------------------------------------------

    def by_authorization(self, header: str) -> Principal | None:
        """The principal of an `Authorization: Bearer …` header."""
        kind, _, value = header.partition(" ")
        if kind.lower() != "bearer" or not value:
            return None
        hashed = _hash(value.strip())
        if hmac.compare_digest(hashed, self._owner_hash):
            return OWNER
        token = self._valid(hashed)
        return _principal(token) if token and token.secret_hash is None else None

    def by_cookie(self, cookie: str) -> Device | None:
        token = self._valid(_hash(cookie))
        if token is None or token.secret_hash is None:
            return None
        return Device(_principal(token), token.secret_hash)

    def _valid(self, hashed: str) -> Token | None:
        token = self._tokens.get(hashed)
        if token is None or (token.expires_at is not None and token.expires_at <= clock.now_ms()):
            return None
        return token

    # -- logging in -------------------------------------------------------------------------------

    def new_code(self) -> str:
        """A code for one login within ten minutes."""
        now = clock.monotonic()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(16)
        self._codes[code] = now + CODE_SECONDS
        return code

    async def log_in(self, code: str, device: str) -> Login:
        self._attempts.check()
        if self._codes.pop(code, 0.0) <= clock.monotonic():
            self._attempts.failed()
            raise Unauthorized("that code is wrong, used or too old; run `bullpen url` for a new one")
        cookie, secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        expires = clock.now_ms() + DEVICE_DAYS * 86_400_000
        token = _token(device[:80] or "browser", cookie, Scope.ADMIN, expires)
        token = replace(token, secret_hash=_hash(secret))
        await self._add(token)
        return Login(cookie, secret, _principal(token))

    # -- tokens -----------------------------------------------------------------------------------

    def tokens(self) -> list[Token]:
        return sorted(self._tokens.values(), key=lambda token: token.created_at)

    async def add_token(self, name: str, scope: Scope, expires_at: int | None) -> tuple[Token, str]:
        """A new token and its text, which is shown once."""
        text = secrets.token_urlsafe(32)
        token = _token(name, text, scope, expires_at)
        await self._add(token)
        return token, text

    async def revoke(self, token_id: str) -> None:
        """The token is dead at once, and so is every socket it opened."""
        token = next((token for token in self._tokens.values() if token.id == token_id), None)
        if token is None:
            raise NotFound(f"no token {token_id}")
        await self._records.remove_token(token_id)
        self._tokens.pop(token.hash, None)
        for close in tuple(self._sockets.get(token_id, ())):
            close()

    @contextmanager
    def socket_of(self, principal: Principal, close: Callable[[], None]) -> Iterator[None]:
        """Remembers an open socket while the block runs, so that a revoked token can close it."""
        sockets = self._sockets.setdefault(principal.id, set())
        sockets.add(close)
        try:
            yield
        finally:
            sockets.discard(close)
            if not sockets:
                self._sockets.pop(principal.id, None)

    async def _add(self, token: Token) -> None:
        await self._records.add_token(token)
        self._tokens[token.hash] = token


def scope_named(name: str) -> Scope:
    try:
        return Scope[name.upper()]
    except KeyError:
        raise Invalid(f"a scope is one of view, operate, admin, not {name}") from None


def _token(name: str, text: str, scope: Scope, expires_at: int | None) -> Token:
    return Token(
        id=new_id(),
        name=name,
        hash=_hash(text),
        scope=scope.name.lower(),
        created_at=clock.now_ms(),
        expires_at=expires_at,
    )


def _principal(token: Token) -> Principal:
    return Principal(token.id, token.name, Scope[token.scope.upper()])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
