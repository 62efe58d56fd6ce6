"""/api/recordings: recordings from elsewhere, and ours written anew."""

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
from ...store.answers import KeptAnswer
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import OnceDep, json_answer
from .shapes import ImportedShape, RebuildShape, RebuiltShape

log = structlog.get_logger()

router = APIRouter(prefix="/api/recordings", tags=["recordings"])
OPERATE = [Depends(allow(Scope.OPERATE))]
FILE = {"schema": {"type": "string", "format": "binary"}}
ROOM = ".import-"  # in the home: what is taken in is moved from there, not copied


@router.put(
    "/{session_id}",
    status_code=201,
    response_model=ImportedShape,
    dependencies=OPERATE,
    openapi_extra={"requestBody": {"required": True, "content": {"application/zip": FILE}}},
)
async def put(session_id: str, request: Request, context: ContextDep) -> Response:
    """Takes in the zip another house exported; nothing is started."""
    await context.sessions.workers_resumed.wait()
    with tempfile.TemporaryDirectory(dir=context.config.home, prefix=ROOM) as room:
        file = Path(room) / "zip"
        await _receive(request, file)
        unpacked = Path(room) / "unpacked"
        unpacked.mkdir(mode=0o700)
        taken = await import_recording(context.sessions, session_id, file, unpacked)
    return json_answer(ImportResult(taken=[taken], left=[]), 201)


@router.post("/rebuild", response_model=RebuiltShape, responses=own_errors("not_found"), dependencies=OPERATE)
async def rebuild(body: RebuildShape, context: ContextDep, once: OnceDep) -> Response:
    """Writes the files of one session, or of all, anew from the log."""
    ids = [body.session_id] if body.session_id else list(await context.records.heads())
    told = {"sessions": len(ids), "events": await context.recorder.rebuild(ids)}
    answer: KeptAnswer[None] | None = once.kept(200, lambda _: told)
    if answer is not None:
        await context.records.answer_only(answer)
    return json_answer(told)


def sweep_imports(home: Path) -> None:
    """Removes what a server that was killed during an import left; only before there is another import."""
    for room in home.glob(f"{ROOM}*"):
        try:
            shutil.rmtree(room)
        except OSError as error:
            log.warning("the rest of an import cannot be removed", path=str(room), reason=str(error))


async def _receive(request: Request, file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        async for piece in request.stream():
            await asyncio.to_thread(out.write, piece)
