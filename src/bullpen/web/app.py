"""The application: every router, the audit of who may call them, and the gate round it all."""

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from .. import __version__
from ..store.append import AlreadyAnswered
from . import errors, pages
from .context import Context
from .gate import Gate
from .hosts import Names
from .rest import events, health, login, messages, openapi, repositories, sessions, workers
from .rest.answers import repeat
from .scopes import audit
from .sockets import dashboard, session, terminal

ROUTERS = (
    health.router,
    login.router,
    repositories.router,
    sessions.router,
    workers.router,
    messages.router,
    events.router,
    session.router,
    terminal.router,
    dashboard.router,
    openapi.router,
    pages.router,  # last: it answers to every path
)


def every_route() -> list[BaseRoute]:
    """Each way into the server."""
    return [route for router in ROUTERS for route in router.routes]


def build(context: Context, names: Names) -> ASGIApp:
    """The application behind its gate."""
    audit(every_route())
    app = FastAPI(title="Bullpen", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.context = context
    app.add_exception_handler(AlreadyAnswered, repeat)
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return Gate(app, names, context.credentials)
