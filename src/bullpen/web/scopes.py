"""Scopes: what a principal may do. Every route declares the scope that it requires."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from ..domain.errors import Forbidden, Unauthorized


class Scope(IntEnum):
    """What a principal may do. VIEW, OPERATE and ADMIN each include the ones before."""

    WORKER = 0  # reports its own activity, asks the user questions, nothing else
    DELEGATE = 1  # starts sessions, and sees and prompts those it started
    VIEW = 2
    OPERATE = 3
    ADMIN = 4


class Principal(NamedTuple):
    """The authenticated caller of a request: a token, a device, a worker, or the owner."""

    id: str
    name: str
    scope: Scope
    key: str = ""  # the hash of its credential
    run: tuple[str, int] | None = None  # of a worker with its own key: its id and its run
    session_id: str | None = None  # of a share link: the only session it may view


class RouteScope:
    """A FastAPI dependency with which a route declares who may call it.

    Dependencies are coroutines: FastAPI calls other functions in a thread, which costs 0.3 ms per request.
    """


class allow(RouteScope):
    """Dependency: allow principals with at least this scope; share links only if `guests` is true."""

    def __init__(self, scope: Scope, *, guests: bool = True) -> None:
        self.scope = scope
        self._guests = guests

    async def __call__(self, connection: HTTPConnection) -> None:
        principal = connection.scope.get("principal")
        if principal is None:
            raise Unauthorized("this needs a token or a login")
        if principal.scope < self.scope:
            raise Forbidden(f"this needs the scope {self.scope.name.lower()}")
        if principal.session_id is not None:
            _check_guest(principal, connection, self._guests)


def _check_guest(principal: Principal, connection: HTTPConnection, guests_allowed: bool) -> None:
    """Raise Forbidden if a guest does anything but read the session of its share link."""
    if not guests_allowed or connection.path_params.get("session_id") != principal.session_id:
        raise Forbidden("this link opens one session only")
    if connection.scope["type"] == "http" and connection.scope["method"] not in ("GET", "HEAD"):
        raise Forbidden("this link is for looking only")


class allow_itself(allow):
    """Dependency: allow the worker in the path with its own key, and principals with this scope."""

    async def __call__(self, connection: HTTPConnection) -> None:
        principal = connection.scope.get("principal")
        if principal is None or principal.run is None:
            await super().__call__(connection)
        elif principal.run[0] != connection.path_params["worker_id"]:
            raise Forbidden("a worker may only report on itself")


class public(RouteScope):
    """Dependency: allow requests without a credential. The gate has a literal list of the same routes."""

    async def __call__(self) -> None:
        return None


def principal_of(connection: HTTPConnection) -> Principal:
    """Return the principal that the gate has stored in the scope of the request."""
    principal: Principal = connection.scope["principal"]
    return principal


def may_read_secrets(connection: HTTPConnection) -> bool:
    """Return whether the caller may read files with credentials in home directories."""
    return principal_of(connection).scope is Scope.ADMIN


def require_declared_scopes(routes: Iterable[BaseRoute]) -> None:
    """Raise RuntimeError if a route does not declare who may call it."""
    undeclared = [str(getattr(route, "path", route)) for route in routes if not _declares_scope(route)]
    if undeclared:
        raise RuntimeError(f"routes that do not declare who may call them: {', '.join(undeclared)}")


def _declares_scope(route: BaseRoute) -> bool:
    """Return whether exactly one dependency of the route declares a scope."""
    if not isinstance(route, (APIRoute, APIWebSocketRoute)):
        return False
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return sum(isinstance(call, RouteScope) for call in calls) == 1
