"""`/api/directories`: directories that the owner can choose as a project, and repositories found nearby."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from msgspec import to_builtins
from starlette.responses import Response

from ...sandbox.project_directories import complete_path, find_repositories
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import json_answer
from .roots import MAX_PATH_LENGTH
from .shapes import Shape

router = APIRouter(
    prefix="/api/directories", tags=["directories"], dependencies=[Depends(allow(Scope.ADMIN))]
)


class ProjectDirectoryShape(Shape):
    path: str
    is_repository: bool
    is_allowed: bool


class DirectoryChoicesShape(Shape):
    directories: list[ProjectDirectoryShape]
    more: int


class FoundRepositoriesShape(Shape):
    repositories: list[ProjectDirectoryShape]
    clone_into: str


@router.get("", response_model=DirectoryChoicesShape, responses=own_errors("not_found"))
async def complete(
    context: ContextDep,
    path: Annotated[str, Query(max_length=MAX_PATH_LENGTH, description="the beginning of a path")] = "",
) -> Response:
    """Return the directories whose path begins with `path`, in alphabetical order."""
    return json_answer(to_builtins(await asyncio.to_thread(complete_path, context.roots, path)))


@router.get("/repositories", response_model=FoundRepositoriesShape)
async def repositories(context: ContextDep) -> Response:
    """Return unregistered git repositories near the home directory and the roots, the last used first."""
    found = await asyncio.to_thread(find_repositories, context.roots)
    clone_into = context.roots.directory_of_new_projects
    return json_answer({"repositories": to_builtins(found), "cloneInto": str(clone_into)})
