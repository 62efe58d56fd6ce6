"""/api/sessions/{id}/files: what lies in a workspace, and nothing outside it."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Depends, Request
from msgspec import to_builtins
from starlette.responses import Response

from ...sandbox.files import DirectoryListing, WorkspaceFiles
from ..context import ContextDep, WebContext
from ..scopes import Scope, allow, may_read_secrets
from .answers import json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/sessions/{session_id}/files", tags=["files"])
VIEW = [Depends(allow(Scope.VIEW, guests=False))]  # a share shows a session, not a disk

# Never to be taken for a page of ours, whatever is in it.
_HARMLESS = {"Content-Security-Policy": "sandbox; default-src 'none'", "Content-Disposition": "attachment"}


class EntryShape(Shape):
    name: str
    type: Literal["file", "directory", "link", "other"]
    size: int


class ListingShape(Shape):
    path: str
    entries: list[EntryShape]
    more: int


@router.get("", response_model=ListingShape, dependencies=VIEW)
async def list_root(session_id: str, request: Request, context: ContextDep) -> Response:
    files = await _files(session_id, request, context)
    return json_answer(to_builtins(await asyncio.to_thread(files.read_any, ".")))


@router.get("/{path:path}", response_class=Response, dependencies=VIEW)
async def show(session_id: str, path: str, request: Request, context: ContextDep) -> Response:
    """A file's bytes, or a directory's entries as JSON."""
    files = await _files(session_id, request, context)
    found = await asyncio.to_thread(files.read_any, path)
    if isinstance(found, DirectoryListing):
        return json_answer(to_builtins(found))
    return Response(found, headers=_HARMLESS, media_type=_kind(found))


async def _files(session_id: str, request: Request, context: WebContext) -> WorkspaceFiles:
    session = await context.sessions.get(session_id)
    workspace = context.sessions.workspace_of(session.snapshot)
    return WorkspaceFiles(workspace, context.roots, secrets=may_read_secrets(request))


def _kind(data: bytes) -> str:
    if b"\0" in data[:8000]:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
