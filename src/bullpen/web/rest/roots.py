"""`/api/roots`: list, add and remove workspace roots, the directories in which sessions are allowed."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.responses import Response

from ...sandbox.roots import Root
from ...wire.browser import iso_time
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/roots", tags=["roots"], dependencies=[Depends(allow(Scope.ADMIN))])

MAX_PATH_LENGTH = 4096  # PATH_MAX of Linux


class RootShape(Shape):
    path: str
    source: Literal["setting", "scratch", "repository", "added"]
    added_at: str | None


class RootsShape(Shape):
    fixed: bool
    roots: list[RootShape]


class NewRootShape(Shape):
    path: Annotated[str, Field(min_length=1, max_length=MAX_PATH_LENGTH)]
    force: bool = False  # allow the home directory, and others that many programs use


@router.get("", response_model=RootsShape)
async def list_roots(context: ContextDep) -> Response:
    """Return all roots. If `fixed`, a setting defines them, and none can be added or removed."""
    roots = context.roots
    return json_answer({"fixed": roots.is_fixed, "roots": [_root_json(each) for each in roots.all]})


@router.post("", status_code=201, response_model=RootShape, responses=own_errors("not_found"))
async def add(body: NewRootShape, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Add a directory as a root."""
    root = await context.roots.add(body.path, body.force, idempotent.pending_answer(201, _root_json))
    return json_answer(_root_json(root), 201)


@router.delete("", status_code=204, responses=own_errors("not_found", "conflict"))
async def remove(path: Annotated[str, Query(max_length=MAX_PATH_LENGTH)], context: ContextDep) -> Response:
    """Remove a root that was added."""
    await context.roots.remove(path)
    return Response(status_code=204)


def _root_json(root: Root) -> dict[str, Any]:
    """Return a workspace root as a JSON object."""
    added_at = iso_time(root.added_at) if root.added_at is not None else None
    return {"path": root.path, "source": root.source, "addedAt": added_at}
