"""/api/sessions/{id}/workers: start, list, end, start again, and read what they said."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from ...domain.commands import AddWorker
from ...domain.ids import new_id
from ...domain.snapshot import Snapshot
from ...log.pieces import cast_lines, output_chunks
from ...sandbox.files import inside
from ...wire.browser import worker_json
from ..context import ContextDep
from ..errors import own_errors
from ..numbers import LARGEST
from ..scopes import Scope, allow
from .agent_shapes import RestartWorkerShape
from .answers import OnceDep, json_answer
from .shapes import NewWorkerShape, WorkerShape, WorkersShape

router = APIRouter(prefix="/api/sessions/{session_id}/workers", tags=["workers"])
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]
STARTING = own_errors("too_many", "remote_fault")
NO_TERMINAL = own_errors("conflict")


@router.get("", response_model=WorkersShape, dependencies=VIEW)
async def list_workers(session_id: str, context: ContextDep) -> Response:
    session = await context.sessions.get(session_id)
    workers = [worker_json(worker, session_id) for worker in session.snapshot.workers.values()]
    return json_answer({"workers": workers})


@router.post("", status_code=201, response_model=WorkerShape, responses=STARTING, dependencies=OPERATE)
async def add(session_id: str, body: NewWorkerShape, context: ContextDep, once: OnceDep) -> Response:
    """Starts a worker; what is not said of a role that ended stays as it was."""
    session = await context.sessions.get(session_id)
    before = session.snapshot.worker_in_role(body.role) if body.role else None
    of_session = context.sessions.workspace_of(session.snapshot)
    where = body.workspace or (before.workspace if before else of_session)
    file_path = body.file_path or (before.file_path if before else None)
    if file_path:
        inside(where, file_path)
    order = AddWorker(
        worker_id=new_id(),
        type=body.type,
        name=body.name,
        role=body.role,
        agent_id=body.agent_id or (before.agent_id if before else None),
        file_path=file_path,
        workspace=str(context.roots.directory(where)),
        cols=body.cols,
        rows=body.rows,
    )

    def render(snapshot: Snapshot) -> object:
        holder = snapshot.workers.get(order.worker_id) or snapshot.worker_in_role(order.role or "")
        return worker_json(holder, session_id) if holder else {}

    worker = await session.add_worker(order, once.answer(201, render))
    return json_answer(worker_json(worker, session_id), 201)


@router.get("/{worker_id}", response_model=WorkerShape, dependencies=VIEW)
async def show(session_id: str, worker_id: str, context: ContextDep) -> Response:
    session = await context.sessions.get(session_id)
    return json_answer(worker_json(session.snapshot.worker(worker_id), session_id))


@router.delete(
    "/{worker_id}", response_model=WorkerShape, responses=own_errors("remote_fault"), dependencies=OPERATE
)
async def end(session_id: str, worker_id: str, context: ContextDep) -> Response:
    """Ends the worker and waits until its process is gone."""
    session = await context.sessions.get(session_id)
    worker = await session.end_worker(worker_id, "user requested")
    return json_answer(worker_json(worker, session_id))


@router.post("/{worker_id}/restart", response_model=WorkerShape, responses=STARTING, dependencies=OPERATE)
async def restart(
    session_id: str,
    worker_id: str,
    context: ContextDep,
    once: OnceDep,
    body: RestartWorkerShape | None = None,
) -> Response:
    """The next run of a worker that ended; of an agent that lives too, when its conversation is spoken of."""
    session = await context.sessions.get(session_id)
    context.sessions.workspace_of(session.snapshot, worker_id)
    answer = once.answer(200, lambda snapshot: worker_json(snapshot.worker(worker_id), session_id))
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
    after: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    until: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    run: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The raw bytes from an offset on, as far as they are kept; `X-Bullpen-Offset` is that of the first."""
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
    """The terminal as asciicast v2, with the times the keeper noted."""
    session = await context.sessions.get(session_id)
    terminal = session.terminal(worker_id)
    title = f"{session.snapshot.title} · {terminal.worker.name}"
    lines = cast_lines(terminal.recording, title)
    headers = {"Content-Disposition": f'attachment; filename="{terminal.worker.id}.cast"'}
    return StreamingResponse(lines, headers=headers, media_type="application/x-asciicast")
