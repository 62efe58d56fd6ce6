"""`/api/repositories`: list, register, change and remove git repositories."""

from functools import partial
from itertools import count
from typing import Any

from fastapi import APIRouter, Depends, Request
from msgspec.structs import asdict, replace
from starlette.responses import Response

from ...domain.commands import MAX_TITLE_LENGTH, check_text
from ...domain.errors import NotFound
from ...domain.queue import QueueOverrides, QueueSettings
from ...domain.records import Repository
from ...domain.repositories import apply_edit
from ...domain.states import SessionStatus
from ...git.git_directories import find_git_dir
from ...git.worktrees import list_branches
from ...sessions.queue_inheritance import apply_inherited_settings
from ...wire.browser import iso_time
from ..context import ContextDep, WebContext
from ..errors import own_errors
from ..scopes import Scope, allow, principal_of
from .answers import IdempotentDep, json_answer
from .shapes import BranchesShape, NewRepositoryShape, RepositoriesShape, RepositoryEditShape, RepositoryShape

router = APIRouter(prefix="/api/repositories", tags=["repositories"])
VIEW = [Depends(allow(Scope.VIEW))]
OPERATE = [Depends(allow(Scope.OPERATE))]
PAGE_SIZE = 100


@router.get("", response_model=RepositoriesShape, dependencies=VIEW)
async def list_repositories(context: ContextDep) -> Response:
    """Return all registered repositories."""
    repositories = await context.records.repositories()
    return json_answer({"repositories": [repository_json(context, each) for each in repositories]})


@router.post(
    "",
    status_code=201,
    response_model=RepositoryShape,
    responses=own_errors("not_found", "remote_fault"),
    dependencies=OPERATE,
)
async def add(
    body: NewRepositoryShape, request: Request, context: ContextDep, idempotent: IdempotentDep
) -> Response:
    """Register a repository.

    It becomes a workspace root, so only the owner may add one outside the other roots.
    """
    is_owner = principal_of(request).scope is Scope.ADMIN
    allowed = context.roots.directory_of_owner if is_owner else context.roots.directory
    directory = allowed(body.path)
    git_dir = find_git_dir(directory)
    if not git_dir.is_relative_to(directory):
        git_dir = allowed(str(git_dir))
    answer = idempotent.pending_answer(201, partial(repository_json, context))
    added = await context.registration.register(directory, git_dir, body.name, answer)
    return json_answer(repository_json(context, added), 201)


@router.get("/{repo_id}", response_model=RepositoryShape, dependencies=VIEW)
async def show(repo_id: str, context: ContextDep) -> Response:
    """Return a registered repository."""
    return json_answer(repository_json(context, await _get(context, repo_id)))


@router.get(
    "/{repo_id}/branches",
    response_model=BranchesShape,
    responses=own_errors("remote_fault"),
    dependencies=VIEW,
)
async def branches(repo_id: str, context: ContextDep) -> Response:
    """Return the branches at which a new branch can start, the one that is checked out first."""
    _, git_dirs = await context.worktrees.repository(repo_id)
    return json_answer({"branches": await list_branches(git_dirs)})


@router.patch("/{repo_id}", response_model=RepositoryShape, dependencies=OPERATE)
async def edit(repo_id: str, body: RepositoryEditShape, context: ContextDep) -> Response:
    """Change a repository; omitted fields stay. Active sessions use changed queue settings at once.

    An `env` value of null removes that variable, an empty `agentId` the default.
    """
    async with context.worktrees.settings_lock:
        repository = await _edit(context, repo_id, body)
    if body.queue is not None:
        await _apply_queue_settings(context, repo_id)
    return json_answer(repository_json(context, repository))


@router.delete("/{repo_id}", status_code=204, dependencies=OPERATE)
async def remove(repo_id: str, context: ContextDep) -> Response:
    """Remove the registration of a repository; its files and sessions stay."""
    await context.records.remove_repository(repo_id)
    await context.roots.reload_repositories()
    return Response(status_code=204)


def repository_json(context: WebContext, repository: Repository) -> dict[str, Any]:
    """Return a repository; of its environment only the names, because values are often secrets."""
    settings = context.worktrees.settings(repository.id)
    return {
        "id": repository.id,
        "path": repository.path,
        "name": repository.name,
        "agentId": settings.agent_id,
        "env": sorted(settings.env),
        "setup": settings.setup,
        "cleanup": settings.cleanup,
        "sandbox": settings.sandbox,
        "createdAt": iso_time(repository.created_at),
        "updatedAt": iso_time(repository.updated_at),
        "queue": asdict(repository.queue),
    }


async def _edit(context: WebContext, repo_id: str, body: RepositoryEditShape) -> Repository:
    """Check and store the changed fields of a repository."""
    name = None if body.name is None else check_text("name", body.name, MAX_TITLE_LENGTH)
    overrides = _queue_overrides((await _get(context, repo_id)).queue, body)
    changed = body.model_dump(include={"agent_id", "setup", "cleanup", "sandbox"}, exclude_none=True) | {
        "env": body.env
    }
    settings = apply_edit(context.worktrees.settings(repo_id), changed)
    if settings.agent_id:
        context.agents.get(settings.agent_id)
    repository = await context.records.edit_repository(repo_id, name, overrides)
    await context.registration.store_settings(repo_id, settings)
    return repository


def _queue_overrides(before: QueueOverrides, body: RepositoryEditShape) -> QueueOverrides | None:
    """Return the changed queue settings, or None without any. A null value restores the default."""
    if body.queue is None:
        return None
    overrides = replace(before, **body.queue.model_dump(exclude_unset=True))
    overrides.over(QueueSettings())  # raises Invalid for values that are not allowed
    return overrides


async def _apply_queue_settings(context: ContextDep, repo_id: str) -> None:
    """Apply changed queue settings to the active sessions of a repository."""
    for offset in count(0, PAGE_SIZE):
        page = await context.records.list_sessions(
            repo_id=repo_id, statuses=[SessionStatus.ACTIVE], limit=PAGE_SIZE, offset=offset
        )
        if not page.sessions:
            return
        found = [await context.sessions.get(each.id) for each in page.sessions]
        await apply_inherited_settings(found, context.config, context.records)


async def _get(context: ContextDep, repo_id: str) -> Repository:
    """Return a repository, or raise NotFound."""
    repository = await context.records.repository(repo_id)
    if repository is None:
        raise NotFound(f"no repository {repo_id}")
    return repository
