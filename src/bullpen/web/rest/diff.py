"""`/api/sessions/{id}/diff`: the changes in a workspace, and comments on them for an agent."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from msgspec import to_builtins
from pydantic import Field
from starlette.responses import Response

from ...domain.ids import new_id
from ...domain.prompts import Prompt
from ...git.refs import check_revision
from ...sandbox.files import WorkspaceFiles
from ...sessions.session import Session
from ...wire.json import encode
from ...workers.changes import read_changes
from ...workers.comments import DiffComment, format_comments
from ..context import ContextDep, WebContext
from ..errors import own_errors
from ..scopes import Scope, allow, may_read_secrets, principal_of
from .agent_shapes import Id, PromptedShape
from .answers import IdempotentDep, json_answer
from .prompts import prompted_json
from .shapes import Shape

router = APIRouter(
    prefix="/api/sessions/{session_id}/diff", tags=["diff"], responses=own_errors("conflict", "remote_fault")
)
VIEW = [Depends(allow(Scope.VIEW, guests=False))]  # a diff since the first commit shows every file


class HunkShape(Shape):
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class FileDiffShape(Shape):
    path: str
    old_path: str | None
    status: str
    additions: int | None
    deletions: int | None
    binary: bool
    staged: bool
    unstaged: bool
    hunks: list[HunkShape]
    patch: str
    note: str | None


class DiffShape(Shape):
    base: str
    branch: str | None
    files: list[FileDiffShape]
    additions: int
    deletions: int
    note: str | None


class CommentShape(Shape):
    path: Annotated[str, Field(min_length=1, max_length=4096)]
    line: Annotated[int, Field(ge=1)]
    end_line: Annotated[int, Field(ge=1)] | None = None
    side: Literal["old", "new"] = "new"
    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class CommentsShape(Shape):
    comments: Annotated[list[CommentShape], Field(min_length=1, max_length=500)]
    text: str = ""  # precedes the comments in the message
    prompt_id: Id | None = None
    worker_id: str | None = None
    role: str | None = None
    busy: Literal["queue", "reject", "interrupt"] = "queue"


@router.get("", response_model=DiffShape, dependencies=VIEW)
async def show(
    session_id: str,
    request: Request,
    context: ContextDep,
    base: str | None = None,
    worker_id: Annotated[str | None, Query(alias="workerId")] = None,
    patches: bool = True,
) -> Response:
    """Return the changes of a workspace since `base`.

    By default, that is the commit where its branch left the main line.
    """
    session = await context.sessions.get(session_id)
    if base is not None:
        check_revision(base)
    changes: dict[str, Any] = to_builtins(
        await read_changes(_workspace(context, request, session, worker_id), base)
    )
    if not patches:
        for file in changes["files"]:
            file["patch"], file["hunks"] = "", []
    return json_answer(changes)


@router.post(
    "/comments",
    status_code=202,
    response_model=PromptedShape,
    responses=own_errors("too_many"),
    dependencies=[Depends(allow(Scope.OPERATE))],
)
async def comment(
    session_id: str, body: CommentsShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Send comments on lines of the changes to an agent, as one message."""
    session = await context.sessions.get(session_id)
    comments = [DiffComment(**each.model_dump()) for each in body.comments]

    async def compose() -> str:
        changes = await read_changes(_workspace(context, request, session, body.worker_id))
        return format_comments(comments, changes.files, body.text)

    order = Prompt(
        text=encode([body.text, comments]).decode(),
        prompt_id=body.prompt_id or idempotent.id or new_id(),
        worker_id=body.worker_id,
        role=body.role,
        busy=body.busy,
        sender=principal_of(request).name,
    )
    return json_answer(prompted_json(await session.prompt(order, compose)), 202)


def _workspace(
    context: WebContext, request: Request, session: Session, worker_id: str | None
) -> WorkspaceFiles:
    """Return the workspace of the session or of one of its workers."""
    workspace = context.sessions.workspace_of(session.snapshot, worker_id)
    return WorkspaceFiles(workspace, context.roots, secrets=may_read_secrets(request))
