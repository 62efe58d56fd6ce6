"""What the routes of permissions and questions have in common: a session, who answers, who asks."""

from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from ...domain.snapshot import Worker
from ...sessions.session import Session
from ...wire.browser import iso_time
from ..context import ContextDep
from ..scopes import principal_of


async def _session(session_id: str, context: ContextDep) -> Session:
    return await context.sessions.get(session_id)


def _answerer(connection: HTTPConnection) -> str:
    return principal_of(connection).name


SessionDep = Annotated[Session, Depends(_session)]
AnswererDep = Annotated[str, Depends(_answerer)]


def asked_json(id: str, worker: Worker, since: int) -> dict[str, Any]:
    """Who waits for an answer, and since when."""
    return {"id": id, "workerId": worker.id, "role": worker.role, "createdAt": iso_time(since)}
