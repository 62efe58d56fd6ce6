"""`/api/repositories/{id}/worktrees`: create, list, remove and restore worktrees."""

from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...sessions.trash import TrashedWorktree
from ...sessions.worktree_plan import NewWorktree
from ...sessions.worktrees import WorktreeReport
from ...wire.browser import iso_time
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .shapes import NewWorktreeShape, RestoreShape, TrashedWorktreeShape, WorktreeShape, WorktreesShape

router = APIRouter(
    prefix="/api/repositories/{repo_id}/worktrees", tags=["worktrees"], responses=own_errors("remote_fault")
)
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]
MAX_NAMED_CHANGES = 20  # of each worktree in a list


@router.get("", response_model=WorktreesShape, dependencies=VIEW)
async def list_worktrees(repo_id: str, context: ContextDep) -> Response:
    """Return the worktrees as git lists them, those in the trash, and those being created."""
    worktrees = context.worktrees
    making = [
        {"name": name, "progress": line}
        for (repo, name), line in worktrees.progress.items()
        if repo == repo_id
    ]
    return json_answer(
        {
            "worktrees": [worktree_json(each) for each in await worktrees.list(repo_id)],
            "trash": [trashed_json(each) for each in worktrees.trash.list(repo_id)],
            "making": making,
        }
    )


@router.post("", status_code=201, response_model=WorktreeShape, dependencies=OPERATE)
async def add(
    repo_id: str, body: NewWorktreeShape, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Create a worktree."""
    order = NewWorktree(
        branch=body.branch,
        base=body.base,
        name=body.name,
        mode="existing" if body.existing else "new",
        prompt=body.prompt,
        key=idempotent.id,
    )
    made = await context.worktrees.add(repo_id, order, idempotent.pending_answer(201, worktree_json))
    return json_answer(worktree_json(made), 201)


@router.delete("/{name}", response_model=TrashedWorktreeShape, dependencies=OPERATE)
async def remove(repo_id: str, name: str, context: ContextDep, force: bool = False) -> Response:
    """Move a worktree to the trash. Without `force`, refuse if changes or commits would be lost."""
    return json_answer(trashed_json(await context.worktrees.remove(repo_id, name, force)))


@router.post("/{name}/restore", response_model=WorktreeShape, dependencies=OPERATE)
async def restore(
    repo_id: str, name: str, context: ContextDep, idempotent: IdempotentDep, body: RestoreShape | None = None
) -> Response:
    """Restore the worktree last removed under this name, or the one with this `id`."""
    trash_id = body.id if body else None
    report = await context.worktrees.restore(
        repo_id, name, trash_id, idempotent.pending_answer(200, worktree_json)
    )
    return json_answer(worktree_json(report))


def worktree_json(report: WorktreeReport) -> dict[str, Any]:
    """Return a worktree with its git status as a JSON object."""
    worktree, status = report.worktree, report.status
    return {
        "name": worktree.name,
        "path": str(worktree.path),
        "branch": worktree.branch,
        "isMain": worktree.is_main,
        "dirty": bool(status.changes) if status else None,
        "changes": [" ".join(change) for change in status.changes[:MAX_NAMED_CHANGES]] if status else [],
        "ahead": status.ahead if status else None,
        "behind": status.behind if status else None,
        "problem": report.problem,
    }


def lost_worktree_json(name: str, path: str, problem: str) -> dict[str, Any]:
    """Return a worktree that git does not list any more, or whose status cannot be read."""
    return {
        "name": name,
        "path": path,
        "branch": None,
        "isMain": False,
        "dirty": None,
        "changes": [],
        "ahead": None,
        "behind": None,
        "problem": problem,
    }


def trashed_json(trashed: TrashedWorktree) -> dict[str, Any]:
    """Return a removed worktree as a JSON object."""
    return {
        "id": trashed.id,
        "name": trashed.name,
        "path": trashed.path,
        "branch": trashed.branch,
        "removedAt": iso_time(trashed.removed_at),
        "expiresAt": iso_time(trashed.expires_at),
    }
