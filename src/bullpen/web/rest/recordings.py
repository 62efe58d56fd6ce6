"""`/api/recordings`: import recordings of other servers, and write recordings again from the log."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import structlog
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ...sessions.importing import ImportResult
from ...sessions.importing_recording import import_recording
from ...store.answers import PendingAnswer
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .shapes import ImportedShape, RebuildResultShape, RebuildShape

log = structlog.get_logger()

router = APIRouter(prefix="/api/recordings", tags=["recordings"])
OPERATE = [Depends(allow(Scope.OPERATE))]
FILE = {"schema": {"type": "string", "format": "binary"}}
DIRECTORY_PREFIX = ".import-"  # in the data directory, so that imported files can be moved and not copied


@router.put(
    "/{session_id}",
    status_code=201,
    response_model=ImportedShape,
    dependencies=OPERATE,
    openapi_extra={"requestBody": {"required": True, "content": {"application/zip": FILE}}},
)
async def put(session_id: str, request: Request, context: ContextDep) -> Response:
    """Import the zip file of a session that another server exported. Nothing is started."""
    await context.sessions.workers_resumed.wait()
    with tempfile.TemporaryDirectory(dir=context.config.home, prefix=DIRECTORY_PREFIX) as directory:
        file = Path(directory) / "zip"
        await _receive(request, file)
        unpacked = Path(directory) / "unpacked"
        unpacked.mkdir(mode=0o700)
        imported = await import_recording(context.sessions, session_id, file, unpacked)
    return json_answer(ImportResult(taken=[imported], left=[]), 201)


@router.post(
    "/rebuild", response_model=RebuildResultShape, responses=own_errors("not_found"), dependencies=OPERATE
)
async def rebuild(body: RebuildShape, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Write the recordings of one session, or of all, again from the log."""
    ids = [body.session_id] if body.session_id else list(await context.records.last_seqs())
    result = {"sessions": len(ids), "events": await context.recorder.rebuild(ids)}
    answer: PendingAnswer[None] | None = idempotent.pending_answer(200, lambda _: result)
    if answer is not None:
        await context.records.store_answer(answer)
    return json_answer(result)


def sweep_imports(home: Path) -> None:
    """Delete what a server left that was killed during an import. Call it before any import."""
    for directory in home.glob(f"{DIRECTORY_PREFIX}*"):
        try:
            shutil.rmtree(directory)
        except OSError as error:
            log.warning("leftovers of an import could not be deleted", path=str(directory), reason=str(error))


async def _receive(request: Request, file: Path) -> None:
    """Write the body of a request to a new file."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        async for piece in request.stream():
            await asyncio.to_thread(out.write, piece)
