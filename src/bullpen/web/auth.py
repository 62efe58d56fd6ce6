"""Authenticate requests: the owner's token, tokens with a scope, and browsers that logged in (devices).

Secrets are stored as hashes. A device has two: a cookie, which the browser sends by itself, even to another
port, and a second one that only pages of this server's origin can read.
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
from ..store.answers import PendingAnswer
from ..store.credentials import CredentialStore
from .attempts import LoginAttempts
from .derived_secrets import fingerprint
from .open_sockets import CloseSocket, OpenSockets
from .owner import OwnerToken
from .scopes import Principal, Scope
from .worker_keys import WorkerKeys

log = structlog.get_logger()

COOKIE = "bullpen"
SECRET_HEADER = "x-bullpen-secret"
LOGIN_CODE_MS = 600_000
DEVICE_DAYS = 90
EXPIRED_TOKENS_SHOWN_MS = 30 * 86_400_000
LAST_USE_PRECISION_MS = 60_000  # the last use of a token is stored at most once in this time
OWNER = Principal("owner", "owner", Scope.ADMIN)
USER_SCOPES = {scope.name.lower(): scope for scope in (Scope.VIEW, Scope.OPERATE, Scope.ADMIN)}
TOKEN_SCOPES = USER_SCOPES | {"delegate": Scope.DELEGATE}


class DeviceCookie(NamedTuple):
    """A device recognised by its cookie, which has not shown its second secret yet."""

    principal: Principal
    secret_hash: str

    def has_secret(self, secret: str) -> bool:
        """Return whether this is the second secret of the device."""
        return hmac.compare_digest(fingerprint(secret), self.secret_hash)


class BrowserLogin(NamedTuple):
    """A login request of a browser: its one-time code, its name, and the secrets made for it."""

    code: str
    device: str
    cookie: str
    secret: str


class Credentials:
    """All valid credentials, in memory. A change is stored in the database first."""

    def __init__(
        self, owner: OwnerToken, keys: CredentialStore, worker_keys: WorkerKeys, tasks: asyncio.TaskGroup
    ) -> None:
        self.sockets = OpenSockets()
        self._worker_keys = worker_keys
        self._owner = owner
        self._keys = keys
        self._tasks = tasks
        self._tokens: dict[str, Token] = {}  # by hash
        self._codes: dict[str, LoginCode] = {}  # by hash; the database decides whether one is unused
        self._used_at: dict[str, int] = {}  # by id
        self._attempts = LoginAttempts()

    async def load(self) -> None:
        """Read tokens and login codes from the database, when the server starts."""
        with suppress(Unavailable):  # expired tokens are refused anyway; they only make the list longer
            await self._keys.remove_expired(clock.now_ms() - EXPIRED_TOKENS_SHOWN_MS)
        self._tokens = {token.hash: token for token in await self._keys.tokens()}
        self._codes = {code.hash: code for code in await self._keys.codes()}

    # -- authenticating ---------------------------------------------------------------------------

    def find_principal(self, header: str) -> Principal | None:
        """Return the principal of an `Authorization: Bearer …` header, or None if the token is not valid."""
        kind, _, value = header.partition(" ")
        if kind.lower() != "bearer" or not value.strip():
            return None
        hashed = fingerprint(value.strip())
        if self._owner.matches(hashed):
            return OWNER._replace(key=hashed)
        if run := self._worker_keys.run_of(value.strip()):
            return Principal(f"worker {run[0]}", "worker", Scope.WORKER, hashed, run)
        token = self._find_valid(hashed)
        return principal_for(token) if token and token.secret_hash is None else None

    def find_device(self, cookie: str) -> DeviceCookie | None:
        """Return the device of a cookie, or None if the cookie is not valid."""
        token = self._find_valid(fingerprint(cookie))
        if token is None or token.secret_hash is None:
            return None
        return DeviceCookie(principal_for(token), token.secret_hash)

    def record_use(self, principal: Principal) -> None:
        """Record that a principal is active now; the database is updated at most once a minute."""
        now = clock.now_ms()
        has_row = principal.id != OWNER.id and principal.run is None
        if not has_row or now - self._used_at.get(principal.id, 0) < LAST_USE_PRECISION_MS:
            return
        self._used_at[principal.id] = now
        self._tasks.create_task(self._store_last_use(principal.id, now), name=f"touch {principal.id}")

    async def _store_last_use(self, token_id: str, now: int) -> None:
        """Store when a token was last used; a failure is only logged."""
        try:
            await self._keys.touch_token(token_id, now)
        except BullpenError as error:
            log.info("the last use of a token could not be stored", token_id=token_id, reason=str(error))

    def _find_valid(self, hashed: str) -> Token | None:
        """Return the token with this hash; None if there is none or it has expired."""
        token = self._tokens.get(hashed)
        if token is None or (token.expires_at is not None and token.expires_at <= clock.now_ms()):
            return None
        return token

    # -- logging in -------------------------------------------------------------------------------

    async def add_code(self, text: str, scope: Scope, answer: PendingAnswer[LoginCode] | None = None) -> None:
        """Store a one-time login code that is valid for ten minutes."""
        now = clock.now_ms()
        code = LoginCode(hash=fingerprint(text), scope=scope.name.lower(), expires_at=now + LOGIN_CODE_MS)
        await self._keys.add_code(code, answer)
        self._codes = {known.hash: known for known in self._codes.values() if known.expires_at > now}
        self._codes[code.hash] = code

    async def log_in(
        self, login: BrowserLogin, peer: str, answer: PendingAnswer[Token] | None = None
    ) -> Token:
        """Redeem a one-time code: register the browser as a device and return its token.

        Count a wrong code, and raise TooMany for an address with too many of them.
        """
        self._attempts.check(peer)
        code = self._codes.get(fingerprint(login.code))
        # No await before a wrong code is counted, so that concurrent requests are limited too.
        if code is None or code.expires_at <= clock.now_ms():
            raise self._wrong_code(peer)
        try:
            token = await self._keys.redeem_code(code.hash, lambda found: _device(login, found), answer)
        except NotFound:
            raise self._wrong_code(peer) from None
        self._tokens[token.hash] = token
        return token

    def _wrong_code(self, peer: str) -> Unauthorized:
        """Count a failed login from this address, and return the error to raise."""
        self._attempts.failed(peer)
        return Unauthorized("that code is wrong, used or too old; run `bullpen url` for a new one")

    # -- tokens -----------------------------------------------------------------------------------

    def tokens(self) -> list[Token]:
        """Return all tokens and devices, the oldest first, with their time of last use."""
        now = clock.now_ms()
        shown = []
        for token in self._tokens.values():
            used_at = (
                now if self.sockets.has_open(token.id) else self._used_at.get(token.id, token.last_used_at)
            )
            shown.append(replace(token, last_used_at=used_at))
        return sorted(shown, key=lambda token: token.created_at)

    async def add_token(self, token: Token, answer: PendingAnswer[Token] | None = None) -> None:
        """Store a new token and accept it from now on."""
        await self._keys.add_token(token, answer)
        self._tokens[token.hash] = token

    async def revoke(self, token_id: str) -> None:
        """Delete a token and close the sockets it opened. Raise NotFound if there is none."""
        token = next((token for token in self._tokens.values() if token.id == token_id), None)
        if token is None:
            raise NotFound(f"no token {token_id}")
        await self._keys.remove_token(token_id)
        self._tokens.pop(token.hash, None)
        self.sockets.close_all(token_id, "the token was revoked")

    async def revoke_shares(self, session_id: str) -> None:
        """Revoke the share links of a session that was purged."""
        for token in [each for each in self._tokens.values() if each.session_id == session_id]:
            await self.revoke(token.id)

    async def rotate_owner(self, text: str, answer: PendingAnswer[None] | None = None) -> None:
        """Replace the owner's token; the old one is refused at once, and its sockets are closed."""
        await self._owner.rotate(text, answer)
        self.sockets.close_all(OWNER.id, "the owner's token was rotated")

    # -- sockets ----------------------------------------------------------------------------------

    @contextmanager
    def track_socket(self, principal: Principal, route: str, close: CloseSocket) -> Iterator[None]:
        """Track an open socket while the block runs; call `close` when its token is revoked or expires.

        Raise Unauthorized if the token is not valid any more.
        """
        if not self._is_valid(principal):
            raise Unauthorized("the token was revoked")
        self.record_use(principal)
        with self.sockets.track(principal.id, route, close), self._until_expiry(principal, close):
            try:
                yield
            finally:
                self.record_use(principal)

    def _is_valid(self, principal: Principal) -> bool:
        """Return whether the token of a principal is still valid; it may have been revoked meanwhile."""
        return self._owner.matches(principal.key) or self._find_valid(principal.key) is not None

    @contextmanager
    def _until_expiry(self, principal: Principal, close: CloseSocket) -> Iterator[None]:
        """Close a socket when its token expires while the block runs."""
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
    """Return a new token record for a secret `text`; only its hash is stored."""
    return Token(
        id=new_id(),
        name=name,
        hash=fingerprint(text),
        scope=scope.name.lower(),
        created_at=clock.now_ms(),
        expires_at=expires_at,
    )


def new_share(session_id: str, title: str, text: str, expires_at: int) -> Token:
    """Return a token record that allows to view a single session."""
    token = new_token(f"share of {title}"[:80], text, Scope.VIEW, expires_at)
    return replace(token, session_id=session_id)


def parse_scope(name: str, known: Mapping[str, Scope] = USER_SCOPES) -> Scope:
    """Return the scope with this name. Raise Invalid if it is not one of `known`."""
    try:
        return known[name]
    except KeyError:
        raise Invalid(f"a scope is one of {', '.join(known)}, not {name}") from None


def _device(login: BrowserLogin, code: LoginCode) -> Token:
    """Return the token record of a browser that logged in."""
    expires_at = clock.now_ms() + DEVICE_DAYS * 86_400_000
    token = new_token(login.device[:200] or "browser", login.cookie, parse_scope(code.scope), expires_at)
    return replace(token, secret_hash=fingerprint(login.secret))


def principal_for(token: Token) -> Principal:
    """Return the principal that a token stands for."""
    scope = Scope[token.scope.upper()]
    return Principal(token.id, token.name, scope, token.hash, session_id=token.session_id)
