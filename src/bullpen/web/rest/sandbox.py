"""`/api/sandbox`: the sandbox of this machine, its default levels, and what users allow to sandboxed runs."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from msgspec.structs import asdict
from pydantic import Field
from starlette.responses import Response

from ...domain.errors import NotFound
from ...domain.grants import MAX_TARGET_LENGTH, SandboxGrant
from ...domain.sandbox import DEFAULT_LEVEL, LEVELS, SandboxLevel
from ...sandbox.command import MECHANISMS
from ...sandbox.mechanism import describe_mechanism
from ...wire.browser import iso_time
from ..context import ContextDep
from ..errors import own_errors
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/sandbox", tags=["sandbox"])
ADMIN = [Depends(allow(Scope.ADMIN))]


class LimitShape(Shape):
    """A limit of what the sandboxed runs of a session may use, 0 for none, and what enforces it."""

    name: Literal["memory", "processes", "disk"]
    value: int
    enforced_by: str


class SandboxShape(Shape):
    """What runs the sandbox on this machine; `levels` are those it can enforce."""

    mechanism: Literal["bubblewrap", "landlock", "none"]
    levels: list[SandboxLevel]
    agents: SandboxLevel
    terminals: SandboxLevel
    summary: str
    problem: str
    advice: str
    gaps: list[str]
    limits: list[LimitShape]


class RunSandboxShape(Shape):
    """What a run may read, write and reach; everything that is not listed is readable."""

    level: SandboxLevel
    writable: list[str]
    protected: list[str]
    readable: list[str]
    hidden: list[str]
    has_network: bool
    hosts: list[str]


class GrantShape(Shape):
    """Permission for sealed runs to reach a host, or for all sandboxed runs to read or write a path."""

    id: str
    kind: Literal["host", "read", "write"]
    target: str
    repo_id: str | None
    added_at: str


class GrantsShape(Shape):
    grants: list[GrantShape]


class NewGrantShape(Shape):
    kind: Literal["host", "read", "write"]
    target: Annotated[str, Field(min_length=1, max_length=MAX_TARGET_LENGTH)]
    repo_id: str | None = None


@router.get("", response_model=SandboxShape, dependencies=[Depends(allow(Scope.VIEW))])
async def show(context: ContextDep) -> Response:
    """Return the sandbox of this machine, what it does not protect, and the limits of sandboxed runs."""
    found = await MECHANISMS.find()
    count = {"bubblewrap": len(LEVELS), "landlock": len(LEVELS) - 1, "none": 1}[found.name]
    agents = context.config.sandbox or DEFAULT_LEVEL
    answer = SandboxShape(
        mechanism=found.name,
        levels=list(LEVELS[:count]),
        agents=agents,
        terminals=context.config.sandbox_terminals,
        summary=describe_mechanism(found, agents),
        problem=found.problem,
        advice=found.advice,
        gaps=list(found.gaps),
        limits=[LimitShape(**asdict(each)) for each in context.sessions.services.children.limits.describe()],
    )
    return json_answer(answer.model_dump(by_alias=True))


@router.get("/grants", response_model=GrantsShape, dependencies=ADMIN)
async def list_grants(context: ContextDep) -> Response:
    """Return what users have allowed to sandboxed runs."""
    return json_answer({"grants": [_grant_json(each) for each in context.grants.all]})


@router.put("/grants", response_model=GrantShape, responses=own_errors("not_found"), dependencies=ADMIN)
async def grant(body: NewGrantShape, context: ContextDep) -> Response:
    """Allow a host or a path, for the sessions of a repository or for all. A second call changes nothing."""
    if body.repo_id is not None and await context.records.repository(body.repo_id) is None:
        raise NotFound(f"no repository {body.repo_id}")
    added = await context.grants.add(body.kind, body.target, body.repo_id)
    context.inbox.refresh()
    return json_answer(_grant_json(added))


@router.delete("/grants/{grant_id}", status_code=204, responses=own_errors("not_found"), dependencies=ADMIN)
async def revoke(grant_id: str, context: ContextDep) -> Response:
    """Remove a grant."""
    await context.grants.remove(grant_id)
    context.inbox.refresh()
    return Response(status_code=204)


def _grant_json(grant: SandboxGrant) -> dict[str, Any]:
    """Return a grant as JSON."""
    return {
        "id": grant.id,
        "kind": grant.kind,
        "target": grant.target,
        "repoId": grant.repo_id,
        "addedAt": iso_time(grant.added_at),
    }
