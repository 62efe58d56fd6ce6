"""/api/sessions/{id}/files: what lies in a workspace, and nothing outside it."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Depends
from msgspec import to_builtins
from starlette.responses import Response

from ...sandbox.files import Listing, list_directory, read_any
from ..context import ContextDep
from ..scopes import Scope, allow
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
async def list_root(session_id: str, context: ContextDep) -> Response:
    session = await context.sessions.get(session_id)
    root = session.snapshot.location_path
    return json_answer(to_builtins(await asyncio.to_thread(list_directory, root, ".")))


@router.get("/{path:path}", response_class=Response, dependencies=VIEW)
async def show(session_id: str, path: str, context: ContextDep) -> Response:
    """A file's bytes, or a directory's entries as JSON."""
    session = await context.sessions.get(session_id)
    found = await asyncio.to_thread(read_any, session.snapshot.location_path, path)
    if isinstance(found, Listing):
        return json_answer(to_builtins(found))
    return Response(found, headers=_HARMLESS, media_type=_kind(found))


def _kind(data: bytes) -> str:
    if b"\0" in data[:8000]:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
