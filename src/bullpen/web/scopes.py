"""Who may call what: every route states it, and a start finds the one that does not."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute

from ..domain.errors import Forbidden, Unauthorized


class Scope(IntEnum):
    """Each scope may do what the ones below it may."""

    WORKER = 0  # says what itself does, asks a person, and nothing else
    DELEGATE = 1  # starts sessions, and sees and steers those it started
    VIEW = 2
    OPERATE = 3
    ADMIN = 4


class Principal(NamedTuple):
    """Somebody who got past the gate."""

    id: str
    name: str
    scope: Scope
    key: str = ""  # the fingerprint of what opened the gate
    run: tuple[str, int] | None = None  # of a worker that speaks for itself: its id and its run
    session_id: str | None = None  # of a guest: the only session it sees, and only sees


class RouteScope:
    """A route's dependency that states who may call it."""


class allow(RouteScope):
    """A route's dependency: only who has at least this scope; `guests`: also who came by a share link."""

    def __init__(self, scope: Scope, *, guests: bool = True) -> None:
        self.scope = scope
        self._guests = guests

    def __call__(self, connection: HTTPConnection) -> None:
        principal = connection.scope.get("principal")
        if principal is None:
            raise Unauthorized("this needs a token or a login")
        if principal.scope < self.scope:
            raise Forbidden(f"this needs the scope {self.scope.name.lower()}")
        if principal.session_id is not None:
            _check_guest(principal, connection, self._guests)


def _check_guest(principal: Principal, connection: HTTPConnection, welcome: bool) -> None:
    """Whoever came by a share link looks at one session and does nothing, not even leave it."""
    if not welcome or connection.path_params.get("session_id") != principal.session_id:
        raise Forbidden("this link opens one session only")
    if connection.scope["type"] == "http" and connection.scope["method"] not in ("GET", "HEAD"):
        raise Forbidden("this link is for looking only")


class allow_itself(allow):
    """A route's dependency: the worker it is about, with its own key, and who has this scope."""

    def __call__(self, connection: HTTPConnection) -> None:
        principal = connection.scope.get("principal")
        if principal is None or principal.run is None:
            super().__call__(connection)
        elif principal.run[0] != connection.path_params["worker_id"]:
            raise Forbidden("a worker speaks only for itself")


class public(RouteScope):
    """A route's dependency that says: anybody. The gate has the same list, literally."""

    def __call__(self) -> None:
        return None


def principal_of(connection: HTTPConnection) -> Principal:
    principal: Principal = connection.scope["principal"]
    return principal


def may_read_secrets(connection: HTTPConnection) -> bool:
    """Tell whether the caller is served the secret places of a home."""
    return principal_of(connection).scope is Scope.ADMIN


def require_stated(routes: Iterable[BaseRoute]) -> None:
    """Refuses to start when a route does not state who may call it."""
    silent = [str(getattr(route, "path", route)) for route in routes if not _stated(route)]
    if silent:
        raise RuntimeError(f"routes that do not state who may call them: {', '.join(silent)}")


def _stated(route: BaseRoute) -> bool:
    if not isinstance(route, (APIRoute, APIWebSocketRoute)):
        return False
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return sum(isinstance(call, RouteScope) for call in calls) == 1
