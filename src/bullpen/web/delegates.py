"""Delegates: programs, mostly agents, that may start sessions, and see and prompt only those they started."""

from starlette.requests import HTTPConnection

from ..domain.errors import Forbidden
from .context import context_of
from .scopes import RouteScope, Scope, allow, principal_of


class allow_delegate(RouteScope):
    """Dependency: allow principals with at least this scope, and a delegate for a session it started.

    Where the path has no session, the route itself must limit its result by `starter_of`.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._others = allow(scope)

    async def __call__(self, connection: HTTPConnection) -> None:
        if starter_of(connection) is None:
            await self._others(connection)
        elif (session_id := connection.path_params.get("session_id")) is not None:
            session = await context_of(connection).sessions.get(session_id)
            if session.snapshot.started_by != starter_of(connection):
                raise Forbidden("a delegate sees only the sessions it started")


def starter_of(connection: HTTPConnection) -> str | None:
    """Return the id that sessions store for the delegate that calls; None for other callers."""
    principal = connection.scope.get("principal")
    return principal_of(connection).id if principal and principal.scope is Scope.DELEGATE else None
