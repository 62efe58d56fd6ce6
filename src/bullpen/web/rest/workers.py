"""`/api/sessions/{id}/workers`: start, list, end and restart workers, and read their output."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from ...domain.commands import AddWorker
from ...domain.errors import Conflict
from ...domain.ids import new_id
from ...domain.local_urls import check_local_url
from ...domain.snapshot import Snapshot, Worker
from ...log.export_pieces import cast_lines, output_chunks
from ...sandbox.files import relative_path
from ...store.answers import PendingAnswer
from ...wire.browser import worker_json
from ..context import ContextDep
from ..errors import own_errors
from ..numbers import MAX_SAFE_INTEGER
from ..scopes import Scope, allow
from .agent_shapes import RestartWorkerShape
from .answers import IdempotentDep, json_answer
from .sandbox import RunSandboxShape
from .shapes import NewWorkerShape, WorkerShape, WorkersShape

router = APIRouter(prefix="/api/sessions/{session_id}/workers", tags=["workers"])
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]
STARTING = own_errors("too_many", "remote_fault")
NO_TERMINAL = own_errors("conflict")


@router.get("", response_model=WorkersShape, dependencies=VIEW)
async def list_workers(session_id: str, context: ContextDep) -> Response:
    """Return all workers of a session."""
    session = await context.sessions.get(session_id)
    workers = [worker_json(worker, session_id) for worker in session.snapshot.workers.values()]
    return json_answer({"workers": workers})


@router.post("", status_code=201, response_model=WorkerShape, responses=STARTING, dependencies=OPERATE)
async def add(
    session_id: str, body: NewWorkerShape, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Start a worker. In a role of a worker that ended, omitted fields stay as they were."""
    session = await context.sessions.get(session_id)
    previous = session.snapshot.worker_in_role(body.role) if body.role else None
    session_workspace = context.sessions.workspace_of(session.snapshot)
    workspace = body.workspace or (previous.workspace if previous else session_workspace)
    file_path = body.file_path or (previous.file_path if previous else None)
    if file_path:
        relative_path(workspace, file_path)
    url = check_local_url(body.url) if body.url else (previous.url if previous else None)
    order = AddWorker(
        worker_id=new_id(),
        type=body.type,
        name=body.name,
        role=body.role,
        agent_id=body.agent_id or (previous.agent_id if previous else None),
        file_path=file_path,
        url=url,
        command=tuple(body.command) or _own_command(previous),
        workspace=str(context.roots.directory(workspace)),
        cols=body.cols,
        rows=body.rows,
        sandbox=body.sandbox,
    )

    def render(snapshot: Snapshot) -> object:
        holder = snapshot.workers.get(order.worker_id) or snapshot.worker_in_role(order.role or "")
        return worker_json(holder, session_id) if holder else {}

    worker = await session.add_worker(order, idempotent.pending_answer(201, render))
    return json_answer(worker_json(worker, session_id), 201)


def _own_command(worker: Worker | None) -> tuple[str, ...]:
    """Return the command that a user gave a terminal; empty for a shell and for the command of an agent."""
    command = worker.command if worker else None
    return () if command is None or command.owner or command.like_agent else command.argv


@router.get("/{worker_id}", response_model=WorkerShape, dependencies=VIEW)
async def show(session_id: str, worker_id: str, context: ContextDep) -> Response:
    """Return a worker."""
    session = await context.sessions.get(session_id)
    return json_answer(worker_json(session.snapshot.worker(worker_id), session_id))


@router.get(
    "/{worker_id}/sandbox",
    response_model=RunSandboxShape,
    responses=own_errors("conflict"),
    dependencies=OPERATE,
)
async def show_sandbox(session_id: str, worker_id: str, context: ContextDep) -> Response:
    """Return what a run of a worker could read, write and reach if it began now."""
    snapshot = (await context.sessions.get(session_id)).snapshot
    worker = snapshot.worker(worker_id)
    if worker.type not in ("agent", "terminal"):
        raise Conflict(f"{worker.role} runs no program")
    access = await asyncio.to_thread(context.sessions.services.run_access, snapshot, worker)
    answer = RunSandboxShape(
        level=access.level,
        writable=list(access.writable),
        protected=list(access.protected),
        readable=list(access.readable),
        hidden=list(access.hidden),
        has_network=access.has_network,
        hosts=list(access.hosts),
    )
    return json_answer(answer.model_dump(by_alias=True))


@router.delete(
    "/{worker_id}", response_model=WorkerShape, responses=own_errors("remote_fault"), dependencies=OPERATE
)
async def end(session_id: str, worker_id: str, context: ContextDep) -> Response:
    """End a worker, and wait until its process has ended."""
    session = await context.sessions.get(session_id)
    worker = await session.end_worker(worker_id, "user requested")
    return json_answer(worker_json(worker, session_id))


@router.post("/{worker_id}/restart", response_model=WorkerShape, responses=STARTING, dependencies=OPERATE)
async def restart(
    session_id: str,
    worker_id: str,
    context: ContextDep,
    idempotent: IdempotentDep,
    body: RestartWorkerShape | None = None,
) -> Response:
    """Restart a worker that has ended; an agent also while it runs, if `continueConversation` is set."""
    session = await context.sessions.get(session_id)
    context.sessions.workspace_of(session.snapshot, worker_id)
    answer: PendingAnswer[Snapshot] | None = idempotent.pending_answer(
        200, lambda snapshot: worker_json(snapshot.worker(worker_id), session_id)
    )
    if body is None or body.continue_conversation is None:
        worker = await session.restart_worker(worker_id, answer)
    else:
        worker = await session.restart_agent(worker_id, body.continue_conversation, answer)
    return json_answer(worker_json(worker, session_id))


@router.get("/{worker_id}/output", response_class=Response, responses=NO_TERMINAL, dependencies=VIEW)
async def output(
    session_id: str,
    worker_id: str,
    context: ContextDep,
    after: Annotated[int, Query(ge=0, le=MAX_SAFE_INTEGER)] = 0,
    until: Annotated[int | None, Query(ge=0, le=MAX_SAFE_INTEGER)] = None,
    run: Annotated[int | None, Query(ge=1, le=MAX_SAFE_INTEGER)] = None,
) -> Response:
    """Return output bytes from an offset on, as far as they are stored.

    `X-Bullpen-Offset` is the offset of the first byte, `X-Bullpen-End` that of the end.
    """
    session = await context.sessions.get(session_id)
    terminal = session.terminal(worker_id)
    recording = terminal.recording
    if run not in (None, terminal.worker.run):
        recording = context.sessions.services.recording(worker_id, run)
    end = recording.end if until is None else min(until, recording.end)
    first = min(max(after, recording.start), end)
    headers = {"X-Bullpen-Offset": str(first), "X-Bullpen-End": str(end)}
    chunks = output_chunks(recording, first, end)
    return StreamingResponse(chunks, headers=headers, media_type="application/octet-stream")


@router.get("/{worker_id}/recording.cast", response_class=Response, responses=NO_TERMINAL, dependencies=VIEW)
async def recording_cast(session_id: str, worker_id: str, context: ContextDep) -> Response:
    """Return a terminal as asciicast v2, with the times at which the keeper read the output."""
    session = await context.sessions.get(session_id)
    terminal = session.terminal(worker_id)
    title = f"{session.snapshot.title} · {terminal.worker.name}"
    lines = cast_lines(terminal.recording, title)
    headers = {"Content-Disposition": f'attachment; filename="{terminal.worker.id}.cast"'}
    return StreamingResponse(lines, headers=headers, media_type="application/x-asciicast")
