"""`/api/sessions`: create, list, read, change, end and delete sessions."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from ...domain.errors import BullpenError, Conflict, Invalid
from ...domain.snapshot import Snapshot
from ...domain.states import SessionStatus
from ...git.refs import MAIN
from ...sessions.create import NewSession
from ...sessions.create_in_worktree import RequestedWorktree, create_in_worktree
from ...sessions.repository_lookup import with_repository
from ...wire.browser import shown_session_json, worker_json
from ..context import ContextDep, WebContext
from ..delegates import allow_delegate, starter_of
from ..errors import own_errors
from ..numbers import MAX_SAFE_INTEGER
from ..repository_filter import RepositoryFilterDep
from ..scopes import Scope, allow
from .agent_shapes import RestartShape
from .answers import IdempotentDep, json_answer
from .messages import messages_of
from .repositories import repository_json
from .shapes import (
    NewSessionShape,
    SessionDetailShape,
    SessionEditShape,
    SessionShape,
    SessionsShape,
    WorkerShape,
)
from .worktrees import lost_worktree_json, worktree_json

router = APIRouter(prefix="/api/sessions", tags=["sessions"])
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]
STARTING = own_errors("too_many", "remote_fault")  # what starts an agent


@router.post(
    "",
    status_code=201,
    response_model=SessionShape,
    responses=STARTING | own_errors("not_found"),
    dependencies=[Depends(allow_delegate(Scope.OPERATE))],
)
async def create(
    body: NewSessionShape,
    request: Request,
    context: ContextDep,
    idempotent: IdempotentDep,
    find_repository: Annotated[
        bool,
        Query(alias="findRepository", description="use the repository that contains the directory, if any"),
    ] = False,
) -> Response:
    """Create a session, also with a new worktree and an agent."""
    order = NewSession(
        type=body.type,
        repo_id=body.repo_id,
        worktree_id=body.worktree_id,
        location_path=body.location_path,
        title=body.title,
        on_last_disconnect=body.on_last_disconnect,
        agent_id=body.agent_id or _implied_agent(context, body),
        continue_conversation=body.continue_conversation,
        role=body.role,
        started_by=starter_of(request),
        sandbox=body.sandbox,
    )
    if find_repository:
        order = await with_repository(context.roots, context.records, context.worktrees, order)
    session = await create_in_worktree(
        context.sessions,
        context.records,
        context.worktrees,
        order,
        _requested_worktree(body),
        idempotent.pending_answer(201, shown_session_json),
    )
    return json_answer(shown_session_json(session.snapshot), 201)


@router.get("", response_model=SessionsShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def list_sessions(
    request: Request,
    context: ContextDep,
    repo_id: RepositoryFilterDep,
    status: Annotated[str | None, Query(description="one or more, separated by commas")] = None,
    type_: Annotated[str | None, Query(alias="type")] = None,
    q: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    offset: Annotated[int, Query(ge=0, le=MAX_SAFE_INTEGER)] = 0,
) -> Response:
    """Return a page of the sessions that match the filters, newest first. `q` is a part of the title."""
    statuses = [_status(name) for name in status.split(",")] if status else None
    page = await context.records.list_sessions(
        repo_id=repo_id,
        statuses=statuses,
        type=type_,
        q=q,
        started_by=starter_of(request),
        limit=limit,
        offset=offset,
    )
    await context.inbox.read_unseen()
    sessions = [_session(context, each) for each in page.sessions]
    return json_answer({"sessions": sessions, "total": page.total, "limit": limit, "offset": offset})


@router.get(
    "/{session_id}",
    response_model=SessionDetailShape | SessionShape,
    dependencies=[Depends(allow_delegate(Scope.VIEW))],
)
async def show(session_id: str, context: ContextDep, brief: bool = False) -> Response:
    """Return a session. With `brief`, without its worktree and messages, for clients that poll."""
    snapshot = (await context.sessions.get(session_id)).snapshot
    await context.inbox.read_unseen()
    session = _session(context, snapshot)
    return json_answer(session if brief else session | await _details(context, snapshot))


@router.patch("/{session_id}", response_model=SessionShape, dependencies=OPERATE)
async def edit(session_id: str, body: SessionEditShape, context: ContextDep) -> Response:
    """Change the title of a session, or what happens when its last viewer leaves."""
    session = await context.sessions.get(session_id)
    await session.edit(body.title, body.on_last_disconnect)
    return json_answer(shown_session_json(session.snapshot, context.inbox.attention(session.snapshot)))


@router.delete("/{session_id}", response_model=SessionShape, dependencies=OPERATE)
async def cancel(session_id: str, context: ContextDep, purge: bool = False) -> Response:
    """Cancel a session. With `purge`, also delete its events and recordings."""
    session = await context.sessions.get(session_id)
    with suppress(Conflict):  # it has ended
        await session.end(SessionStatus.CANCELLED, "cancelled")
    if purge:
        await context.sessions.purge(session_id)
        await context.credentials.revoke_shares(session_id)
    return json_answer(shown_session_json(session.snapshot))


@router.post("/{session_id}/complete", response_model=SessionShape, dependencies=OPERATE)
async def complete(session_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """End a session as completed."""
    session = await context.sessions.get(session_id)
    await session.end(
        SessionStatus.COMPLETED, "user_request", idempotent.pending_answer(200, shown_session_json)
    )
    return json_answer(shown_session_json(session.snapshot))


@router.post("/{session_id}/reopen", response_model=SessionShape, dependencies=OPERATE)
async def reopen(session_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Make a session that has ended active again."""
    session = await context.sessions.get(session_id)
    context.sessions.workspace_of(session.snapshot)
    await session.reopen(idempotent.pending_answer(200, shown_session_json))
    return json_answer(shown_session_json(session.snapshot))


@router.post("/{session_id}/restart", response_model=WorkerShape, responses=STARTING, dependencies=OPERATE)
async def restart(
    session_id: str, context: ContextDep, idempotent: IdempotentDep, body: RestartShape | None = None
) -> Response:
    """Restart the primary agent, whether it runs or not."""
    session = await context.sessions.get(session_id)
    context.sessions.workspace_of(session.snapshot)
    order = body or RestartShape()

    def render(snapshot: Snapshot) -> object:
        return worker_json(snapshot.primary, session_id) if snapshot.primary else {}

    worker = await session.restart(order.continue_conversation, idempotent.pending_answer(200, render))
    return json_answer(worker_json(worker, session_id))


@router.post("/{session_id}/leave", status_code=204, dependencies=VIEW)
async def leave(session_id: str, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Report that a page is being closed; a `terminate` session without other viewers then ends soon."""
    session = await context.sessions.get(session_id)
    if answer := idempotent.empty_answer():
        await context.records.store_answer(answer)
    context.presence.schedule_early_end(session)
    return Response(status_code=204)


def _implied_agent(context: WebContext, body: NewSessionShape) -> str | None:
    """Return the default agent for a body with a repository and no type: that form names no agent."""
    if body.type is not None or not body.repo_id:
        return None
    return context.sessions.services.default_agent(body.repo_id)


def _requested_worktree(body: NewSessionShape) -> RequestedWorktree | None:
    """Return the requested worktree. A `branch` alone means its worktree, or a new one."""
    if body.worktree is not None:
        return RequestedWorktree(**body.worktree.model_dump())
    return RequestedWorktree(branch=body.branch, mode="either") if body.branch else None


async def _worktree(context: WebContext, snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the worktree of a session with its current status; a failure is part of the result."""
    if snapshot.type != "worktree" or not snapshot.repo_id or snapshot.id in context.sessions.imported_ids:
        return None
    name = snapshot.worktree_id or MAIN
    try:
        return worktree_json(await context.worktrees.get(snapshot.repo_id, name))
    except BullpenError as error:
        return lost_worktree_json(name, snapshot.location_path, str(error))


async def _details(context: WebContext, snapshot: Snapshot) -> dict[str, Any]:
    """Return the repository, the worktree and the messages of a session."""
    repo_id = snapshot.repo_id
    repository = await context.records.repository(repo_id, removed=True) if repo_id else None
    return {
        "repo": repository_json(context, repository) if repository else None,
        "worktree": await _worktree(context, snapshot),
        "messages": await messages_of(context, snapshot.id),
    }


def _session(context: WebContext, snapshot: Snapshot) -> dict[str, Any]:
    """Return a session with the programs in its terminals."""
    session = shown_session_json(snapshot, context.inbox.attention(snapshot))
    open = context.sessions.get_open(snapshot.id)  # every session with a running program is open
    programs = open.programs if open else {}
    return session | {
        "workers": [each | {"foreground": programs.get(each["id"])} for each in session["workers"]]
    }


def _status(name: str) -> SessionStatus:
    """Return the status with this name, or raise Invalid."""
    try:
        return SessionStatus(name.strip())
    except ValueError:
        raise Invalid(f"a status is one of {', '.join(SessionStatus)}, not {name}") from None
