"""Check every request before its route: Host, Origin, credential and length; add security headers to answers.

The gate is plain ASGI, because middleware for HTTP never sees WebSockets. Requests without a credential are
allowed by a literal list.
"""

import re
from typing import NamedTuple

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..sessions.background_throttle import BackgroundThrottle
from .audit import MAX_PATH_LENGTH
from .audit_middleware import peer_of
from .auth import COOKIE, SECRET_HEADER, Credentials
from .bodies import announced_length, limit_body, max_body_bytes, too_large_message
from .connections import authenticate
from .errors import error_response
from .hosts import AllowedNames

log = structlog.get_logger()

PUBLIC = frozenset({("GET", "/api/health"), ("HEAD", "/api/health"), ("POST", "/api/login")})

COOKIE_PATTERN = re.compile(rf"(?:^|;)[ \t]*{COOKIE}=([^;]*)")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "frame-src http://localhost:* http://127.0.0.1:*",  # previews; a policy cannot have [::1] as a source
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html bullpen-worker",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Refusal(NamedTuple):
    """An error code and message with which the gate refuses a request."""

    code: str
    message: str


class Gate:
    """ASGI layer around the application. No request reaches a route without passing it."""

    def __init__(
        self, app: ASGIApp, names: AllowedNames, credentials: Credentials, throttle: BackgroundThrottle
    ) -> None:
        self._app = app
        self._names = names
        self._credentials = credentials
        self._throttle = throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = (
            self._refuse_names(headers) or self._identify(scope, headers) or _refuse_length(scope, headers)
        )
        if scope["type"] == "http":
            receive, send = limit_body(receive, scope["path"]), _with_headers(send, scope)
        if "principal" in scope:
            self._throttle.note_request()
        if "principal" in scope and "device" not in scope:
            authenticate(scope)
            self._credentials.record_use(scope["principal"])
        if refusal is None:
            await self._app(scope, receive, send)
            return
        log.warning("refused", error=refusal.code, path=scope["path"][:MAX_PATH_LENGTH], peer=peer_of(scope))
        await _refuse(refusal, scope, receive, send)

    def _refuse_names(self, headers: Headers) -> Refusal | None:
        """Return a refusal if Host or Origin is not a name of this server."""
        if not self._names.allows_host(headers.getlist("host")):
            return Refusal("forbidden", "this server does not answer to that Host")
        origins = headers.getlist("origin")
        if origins and not self._names.allows_origin(origins):
            return Refusal("forbidden", "this server does not take requests from that Origin")
        return None

    def _identify(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Store the principal of the request in its scope, or return a refusal."""
        if bearer := headers.get("authorization"):
            principal = self._credentials.find_principal(bearer)
            if principal is None:
                return Refusal("unauthorized", "that token is not known here")
            scope["principal"] = principal
            return None
        if _is_public(scope):
            return None
        cookie = _cookie(headers.get("cookie", ""))
        if cookie is None:
            return Refusal("unauthorized", "this needs a token or a login")
        return self._identify_cookie(scope, headers, cookie)

    def _identify_cookie(self, scope: Scope, headers: Headers, cookie: str) -> Refusal | None:
        """Store the principal of a device in the scope, or return a refusal."""
        device = self._credentials.find_device(cookie)
        if device is None:
            return Refusal("unauthorized", "that login is not known here any more")
        if scope["type"] == "websocket":
            if not headers.getlist("origin"):
                return Refusal("forbidden", "a login needs an Origin")
            scope["device"] = device  # its second secret comes as the first message
        elif not device.has_secret(headers.get(SECRET_HEADER, "")):
            return Refusal("forbidden", "a cookie alone is not enough")
        scope["principal"] = device.principal
        return None


def _cookie(header: str) -> str | None:
    """Return the value of this server's cookie, or None.

    The standard library's parser takes quadratic time for some headers.
    """
    values = COOKIE_PATTERN.findall(header)
    return values[-1].strip() if values else None


def _refuse_length(scope: Scope, headers: Headers) -> Refusal | None:
    """Return a refusal if the announced body is too large for its path."""
    path = scope["path"]
    return (
        Refusal("too_large", too_large_message(path))
        if announced_length(headers) > max_body_bytes(path)
        else None
    )


def _is_public(scope: Scope) -> bool:
    """Return whether the request needs no credential."""
    if scope["type"] != "http":
        return False
    method, path = scope["method"], scope["path"]
    if (method, path) in PUBLIC:
        return True
    return method in ("GET", "HEAD") and not path.startswith(("/api", "/ws", "/metrics"))


def _with_headers(send: Send, scope: Scope) -> Send:
    """Wrap `send`, so that it adds the security headers."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if scope["path"].startswith(("/api", "/metrics")):
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a refusal, also as the answer to a WebSocket handshake."""
    response = error_response(refusal.code, refusal.message)
    if scope["type"] == "http":
        await response(scope, receive, send)
        return
    await send(
        {
            "type": "websocket.http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
    )
    await send({"type": "websocket.http.response.body", "body": response.body})
