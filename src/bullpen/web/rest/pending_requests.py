"""Dependencies and JSON that the routes of permissions and questions share."""

from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from ...domain.snapshot import Worker
from ...sessions.session import Session
from ...wire.browser import iso_time
from ..context import ContextDep
from ..scopes import principal_of


async def _session(session_id: str, context: ContextDep) -> Session:
    """Return the session in the path."""
    return await context.sessions.get(session_id)


async def _answerer(connection: HTTPConnection) -> str:
    """Return the name of the caller, to record who answered."""
    return principal_of(connection).name


SessionDep = Annotated[Session, Depends(_session)]
AnswererDep = Annotated[str, Depends(_answerer)]


def asked_json(id: str, worker: Worker, since: int) -> dict[str, Any]:
    """Return the fields that permission requests and questions have in common."""
    return {"id": id, "workerId": worker.id, "role": worker.role, "createdAt": iso_time(since)}
