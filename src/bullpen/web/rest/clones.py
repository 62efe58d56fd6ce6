"""`/api/clones`: clone a git repository from a URL and register it; show its progress, and cancel it."""

from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from msgspec import to_builtins
from pydantic import Field
from starlette.responses import Response

from ...domain.ids import new_id
from ...git.clone import MAX_URL_LENGTH, check_url, directory_name
from ...sessions.clones import Clone, require_free
from ...store.answers import PendingAnswer
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .roots import MAX_PATH_LENGTH
from .shapes import Shape

router = APIRouter(prefix="/api/clones", tags=["repositories"], dependencies=[Depends(allow(Scope.ADMIN))])


class NewCloneShape(Shape):
    url: Annotated[str, Field(min_length=1, max_length=MAX_URL_LENGTH)]
    into: Annotated[str, Field(max_length=MAX_PATH_LENGTH)] = ""


class CloneShape(Shape):
    id: str
    url: str
    path: str
    state: Literal["running", "done", "failed", "cancelled"]
    progress: str
    error: str | None
    repo_id: str | None


@router.post("", status_code=201, response_model=CloneShape, responses=own_errors("not_found", "conflict"))
async def start(body: NewCloneShape, context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Clone a repository into a new directory inside `into`, in the background; then register it."""
    url = check_url(body.url)
    roots = context.roots
    into = roots.directory_of_owner(body.into) if body.into else roots.make_directory_of_new_projects()
    target = Path(into) / directory_name(url)
    require_free(target)
    clone = Clone(id=new_id(), url=url, path=str(target))
    answer: PendingAnswer[None] | None = idempotent.pending_answer(201, lambda _: _clone_json(clone))
    if answer:
        await context.records.store_answer(answer)
    context.clones.start(clone)
    return json_answer(_clone_json(clone), 201)


@router.get("/{clone_id}", response_model=CloneShape, responses=own_errors("not_found"))
async def show(clone_id: str, context: ContextDep) -> Response:
    """Return a clone of this server process."""
    return json_answer(_clone_json(context.clones.get(clone_id)))


@router.delete("/{clone_id}", status_code=204, responses=own_errors("not_found"))
async def cancel(clone_id: str, context: ContextDep) -> Response:
    """End a clone and remove what it has written; do nothing if it has ended."""
    await context.clones.cancel(clone_id)
    return Response(status_code=204)


def _clone_json(clone: Clone) -> dict[str, Any]:
    """Return a clone as a JSON object."""
    found: dict[str, Any] = to_builtins(clone)
    return found
