"""`/api/sessions/{id}/files`: read the files and directories of a workspace."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from msgspec import to_builtins
from starlette.responses import Response

from ...sandbox.files import DirectoryListing, WorkspaceFiles
from ...workers.file_names import read_file_names
from ..context import ContextDep, WebContext
from ..errors import own_errors
from ..scopes import Scope, allow, may_read_secrets
from .answers import json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/sessions/{session_id}/files", tags=["files"])
names_router = APIRouter(prefix="/api/sessions/{session_id}/file-names", tags=["files"])
VIEW = [Depends(allow(Scope.VIEW, guests=False))]  # a share link gives no access to files

# So that browsers never treat a file as a page of this origin.
_SANDBOX_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Content-Disposition": "attachment",
}


class EntryShape(Shape):
    name: str
    type: Literal["file", "directory", "link", "other"]
    size: int


class FileNamesShape(Shape):
    files: list[str]
    more: bool


class ListingShape(Shape):
    path: str
    entries: list[EntryShape]
    more: int


@router.get("", response_model=ListingShape, dependencies=VIEW)
async def list_root(session_id: str, request: Request, context: ContextDep) -> Response:
    """List the workspace directory."""
    files = await _files(session_id, request, context)
    return json_answer(to_builtins(await asyncio.to_thread(files.read_any, ".")))


@router.get("/{path:path}", response_class=Response, dependencies=VIEW)
async def show(session_id: str, path: str, request: Request, context: ContextDep) -> Response:
    """Return the content of a file, or the entries of a directory as JSON."""
    files = await _files(session_id, request, context)
    found = await asyncio.to_thread(files.read_any, path)
    if isinstance(found, DirectoryListing):
        return json_answer(to_builtins(found))
    return Response(found, headers=_SANDBOX_HEADERS, media_type=_media_type(found))


@names_router.get("", response_model=FileNamesShape, responses=own_errors("remote_fault"), dependencies=VIEW)
async def names(
    session_id: str,
    request: Request,
    context: ContextDep,
    worker_id: Annotated[str | None, Query(alias="workerId")] = None,
) -> Response:
    """Return the names of the files in the workspace of the session or of one worker, for completion."""
    files = await _files(session_id, request, context, worker_id)
    return json_answer(to_builtins(await read_file_names(files)))


async def _files(
    session_id: str, request: Request, context: WebContext, worker_id: str | None = None
) -> WorkspaceFiles:
    """Return access to the workspace, with files of credentials for the scope `admin` only."""
    session = await context.sessions.get(session_id)
    workspace = context.sessions.workspace_of(session.snapshot, worker_id)
    return WorkspaceFiles(workspace, context.roots, secrets=may_read_secrets(request))


def _media_type(data: bytes) -> str:
    """Return the media type of a file's content: binary if its first bytes contain a NUL, else text."""
    if b"\0" in data[:8000]:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
