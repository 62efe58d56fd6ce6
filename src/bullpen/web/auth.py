"""Who may come in: the owner's token, tokens with a scope, devices that logged in with a code.

Secrets are kept as hashes. A device has two: a cookie, which the browser sends by itself, even to
another port, and a second one that only our own origin can read.
"""

import asyncio
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

import structlog
from msgspec.structs import replace

from .. import clock
from ..domain.errors import BullpenError, Invalid, NotFound, Unauthorized, Unavailable
from ..domain.ids import new_id
from ..domain.records import LoginCode, Token
from ..store.answers import KeptAnswer
from ..store.keys import CredentialStore
from .attempts import LoginAttempts
from .derived_secrets import fingerprint
from .open_sockets import Close, OpenSockets
from .owner import OwnerToken
from .scopes import Principal, Scope
from .worker_keys import WorkerKeys

log = structlog.get_logger()

COOKIE = "bullpen"
SECRET_HEADER = "x-bullpen-secret"
CODE_MS = 600_000
DEVICE_DAYS = 90
SHOWN_EXPIRED_MS = 30 * 86_400_000
FRESH_MS = 60_000  # how exactly it is known when a token was last used
OWNER = Principal("owner", "owner", Scope.ADMIN)
PEOPLE = {scope.name.lower(): scope for scope in (Scope.VIEW, Scope.OPERATE, Scope.ADMIN)}
PROGRAMS = PEOPLE | {"delegate": Scope.DELEGATE}


class DeviceCookie(NamedTuple):
    """A browser that logged in, known by its cookie and not yet by its second secret."""

    principal: Principal
    secret_hash: str

    def has_secret(self, secret: str) -> bool:
        return hmac.compare_digest(fingerprint(secret), self.secret_hash)


class BrowserLogin(NamedTuple):
    """What a browser shows to become a device, and the secrets it gets when that works."""

    code: str
    device: str
    cookie: str
    secret: str


class Credentials:
    """Everyone who has a key, in memory; changes go to the database first."""

    def __init__(
        self, owner: OwnerToken, keys: CredentialStore, worker_keys: WorkerKeys, tasks: asyncio.TaskGroup
    ) -> None:
        self.sockets = OpenSockets()
        self._worker_keys = worker_keys
        self._owner = owner
        self._keys = keys
        self._tasks = tasks
        self._tokens: dict[str, Token] = {}  # by hash
        self._codes: dict[str, LoginCode] = {}  # by hash, also used ones: the database decides
        self._used_at: dict[str, int] = {}  # by id
        self._attempts = LoginAttempts()

    async def load(self) -> None:
        with suppress(Unavailable):  # they open nothing; they only make the list long
            await self._keys.remove_expired(clock.now_ms() - SHOWN_EXPIRED_MS)
        self._tokens = {token.hash: token for token in await self._keys.tokens()}
        self._codes = {code.hash: code for code in await self._keys.codes()}

    # -- recognising ------------------------------------------------------------------------------

    def by_authorization(self, header: str) -> Principal | None:
        """The principal of an `Authorization: Bearer …` header."""
        kind, _, value = header.partition(" ")
        if kind.lower() != "bearer" or not value.strip():
            return None
        hashed = fingerprint(value.strip())
        if self._owner.matches(hashed):
            return OWNER._replace(key=hashed)
        if run := self._worker_keys.run_of(value.strip()):
            return Principal(f"worker {run[0]}", "worker", Scope.WORKER, hashed, run)
        token = self._valid(hashed)
        return principal_for(token) if token and token.secret_hash is None else None

    def by_cookie(self, cookie: str) -> DeviceCookie | None:
        token = self._valid(fingerprint(cookie))
        if token is None or token.secret_hash is None:
            return None
        return DeviceCookie(principal_for(token), token.secret_hash)

    def used(self, principal: Principal) -> None:
        """Somebody is here. The database is told at most once a minute."""
        now = clock.now_ms()
        has_row = principal.id != OWNER.id and principal.run is None
        if not has_row or now - self._used_at.get(principal.id, 0) < FRESH_MS:
            return
        self._used_at[principal.id] = now
        self._tasks.create_task(self._touch(principal.id, now), name=f"touch {principal.id}")

    async def _touch(self, token_id: str, now: int) -> None:
        try:
            await self._keys.touch_token(token_id, now)
        except BullpenError as error:
            log.info("not noted when a token was used", token_id=token_id, reason=str(error))

    def _valid(self, hashed: str) -> Token | None:
        token = self._tokens.get(hashed)
        if token is None or (token.expires_at is not None and token.expires_at <= clock.now_ms()):
            return None
        return token

    # -- logging in -------------------------------------------------------------------------------

    async def add_code(self, text: str, scope: Scope, answer: KeptAnswer[LoginCode] | None = None) -> None:
        """A code for one login within ten minutes."""
        now = clock.now_ms()
        code = LoginCode(hash=fingerprint(text), scope=scope.name.lower(), expires_at=now + CODE_MS)
        await self._keys.add_code(code, answer)
        self._codes = {known.hash: known for known in self._codes.values() if known.expires_at > now}
        self._codes[code.hash] = code

    async def log_in(self, login: BrowserLogin, peer: str, answer: KeptAnswer[Token] | None = None) -> Token:
        """Makes a device of a browser that has a code."""
        self._attempts.check(peer)
        code = self._codes.get(fingerprint(login.code))
        # No await before a wrong code is counted: a thousand at once are limited too.
        if code is None or code.expires_at <= clock.now_ms():
            raise self._wrong_code(peer)
        try:
            token = await self._keys.redeem_code(code.hash, lambda found: _device(login, found), answer)
        except NotFound:
            raise self._wrong_code(peer) from None
        self._tokens[token.hash] = token
        return token

    def _wrong_code(self, peer: str) -> Unauthorized:
        self._attempts.failed(peer)
        return Unauthorized("that code is wrong, used or too old; run `bullpen url` for a new one")

    # -- tokens -----------------------------------------------------------------------------------

    def tokens(self) -> list[Token]:
        """Every token and device, the oldest first."""
        now = clock.now_ms()
        shown = []
        for token in self._tokens.values():
            used_at = now if self.sockets.has(token.id) else self._used_at.get(token.id, token.last_used_at)
            shown.append(replace(token, last_used_at=used_at))
        return sorted(shown, key=lambda token: token.created_at)

    async def add_token(self, token: Token, answer: KeptAnswer[Token] | None = None) -> None:
        await self._keys.add_token(token, answer)
        self._tokens[token.hash] = token

    async def revoke(self, token_id: str) -> None:
        """The token is dead at once, and so is every socket it opened."""
        token = next((token for token in self._tokens.values() if token.id == token_id), None)
        if token is None:
            raise NotFound(f"no token {token_id}")
        await self._keys.remove_token(token_id)
        self._tokens.pop(token.hash, None)
        self.sockets.close_of(token_id, "the token was revoked")

    async def revoke_shares(self, session_id: str) -> None:
        """What opened a session that is gone opens nothing."""
        for token in [each for each in self._tokens.values() if each.session_id == session_id]:
            await self.revoke(token.id)

    async def rotate_owner(self, text: str, answer: KeptAnswer[None] | None = None) -> None:
        """The owner has another token; the old one and its sockets are dead at once."""
        await self._owner.rotate(text, answer)
        self.sockets.close_of(OWNER.id, "the owner's token was rotated")

    # -- sockets ----------------------------------------------------------------------------------

    @contextmanager
    def socket_of(self, principal: Principal, route: str, close: Close) -> Iterator[None]:
        """Remembers an open socket while the block runs; it is closed when its token dies or expires."""
        if not self._alive(principal):
            raise Unauthorized("the token was revoked")
        self.used(principal)
        with self.sockets.keep(principal.id, route, close), self._until_expiry(principal, close):
            try:
                yield
            finally:
                self.used(principal)

    def _alive(self, principal: Principal) -> bool:
        """Whether the key that opened the gate still would: it may have died since."""
        return self._owner.matches(principal.key) or self._valid(principal.key) is not None

    @contextmanager
    def _until_expiry(self, principal: Principal, close: Close) -> Iterator[None]:
        token = self._tokens.get(principal.key)
        if token is None or token.expires_at is None:
            yield
            return
        seconds = (token.expires_at - clock.now_ms()) / 1000
        timer = asyncio.get_running_loop().call_later(seconds, close, "the token has expired")
        try:
            yield
        finally:
            timer.cancel()


def new_token(name: str, text: str, scope: Scope, expires_at: int | None) -> Token:
    return Token(
        id=new_id(),
        name=name,
        hash=fingerprint(text),
        scope=scope.name.lower(),
        created_at=clock.now_ms(),
        expires_at=expires_at,
    )


def new_share(session_id: str, title: str, text: str, expires_at: int) -> Token:
    """A token that shows one session to whoever has it."""
    token = new_token(f"share of {title}"[:80], text, Scope.VIEW, expires_at)
    return replace(token, session_id=session_id)


def scope_named(name: str, known: Mapping[str, Scope] = PEOPLE) -> Scope:
    try:
        return known[name]
    except KeyError:
        raise Invalid(f"a scope is one of {', '.join(known)}, not {name}") from None


def _device(login: BrowserLogin, code: LoginCode) -> Token:
    expires_at = clock.now_ms() + DEVICE_DAYS * 86_400_000
    token = new_token(login.device[:200] or "browser", login.cookie, scope_named(code.scope), expires_at)
    return replace(token, secret_hash=fingerprint(login.secret))


def principal_for(token: Token) -> Principal:
    """Whoever shows this token."""
    scope = Scope[token.scope.upper()]
    return Principal(token.id, token.name, scope, token.hash, session_id=token.session_id)
