"""Build the web application: all routers, their error handlers, and the ASGI layers around them."""

from functools import cache
from typing import NamedTuple

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from .. import __version__
from ..store.append import AlreadyAnswered
from . import errors, pages
from .audit import AuditLog
from .audit_middleware import AuditMiddleware
from .connections import OnRefusal
from .context import WebContext
from .gate import Gate
from .hosts import AllowedNames
from .methods import RouteMethods
from .proxies import TrustedProxies
from .rest import (
    activity,
    agents,
    asking,
    choices,
    clones,
    diff,
    directories,
    events,
    exporting,
    files,
    health,
    images,
    importing,
    inbox,
    login,
    messages,
    metrics,
    openapi,
    permissions,
    ports,
    prompts,
    questions,
    queue,
    recordings,
    repositories,
    roots,
    rules,
    sandbox,
    search,
    sessions,
    settings,
    sharing,
    timeline,
    tokens,
    usage,
    workers,
    worktrees,
)
from .rest.answers import repeat
from .scopes import require_declared_scopes
from .sockets import dashboard, relay, session, terminal

ROUTERS = (
    health.router,
    login.router,
    tokens.router,
    settings.router,
    metrics.router,
    repositories.router,
    roots.router,
    sandbox.router,
    directories.router,
    clones.router,
    worktrees.router,
    agents.router,
    sessions.router,
    workers.router,
    activity.router,
    asking.router,
    prompts.router,
    permissions.router,
    questions.router,
    queue.router,
    choices.router,
    images.router,
    diff.router,
    files.router,
    files.names_router,
    ports.router,
    messages.router,
    events.router,
    importing.router,
    inbox.router,
    rules.router,
    exporting.router,
    timeline.router,
    sharing.router,
    recordings.router,
    search.router,
    usage.router,
    session.router,
    terminal.router,
    dashboard.router,
    relay.router,
    openapi.router,
    pages.router,  # last: it matches every path
)


def every_route() -> list[BaseRoute]:
    """Return all HTTP and WebSocket routes of the server."""
    return [route for router in ROUTERS for route in router.routes]


class BuiltApplication(NamedTuple):
    """The ASGI application, with a callback for the HTTP protocol."""

    application: ASGIApp
    on_refusal: OnRefusal


def build(context: WebContext, names: AllowedNames, audit_log: AuditLog) -> BuiltApplication:
    """Build the application. Raise RuntimeError if a route does not declare which scope may call it."""
    require_declared_scopes(every_route())
    # The routes themselves: `include_router` would build each of them a second time, 0.1 s for all.
    app = FastAPI(
        title="Bullpen",
        version=__version__,
        routes=every_route(),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.context = context
    app.state.methods = RouteMethods(every_route())
    app.state.openapi = cache(lambda: openapi.describe(every_route()))
    app.add_exception_handler(AlreadyAnswered, repeat)
    errors.install(app)
    gate = Gate(app, names, context.credentials, context.sessions.throttle)
    audited = AuditMiddleware(gate, audit_log, context.traffic)
    return BuiltApplication(TrustedProxies(audited, context.config.trusted_proxies), audited.record_refusal)
