"""`/api/sandbox`: the sandbox that this machine offers, and the levels that apply without a choice."""

from typing import Literal

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ...domain.sandbox import DEFAULT_LEVEL, LEVELS, SandboxLevel
from ...sandbox.command import MECHANISMS
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import json_answer
from .shapes import Shape

router = APIRouter(prefix="/api/sandbox", tags=["sandbox"], dependencies=[Depends(allow(Scope.VIEW))])


class SandboxShape(Shape):
    """What runs the sandbox on this machine; `levels` are those it can enforce."""

    mechanism: Literal["bubblewrap", "landlock", "none"]
    levels: list[SandboxLevel]
    agents: SandboxLevel
    terminals: SandboxLevel
    problem: str
    advice: str
    gaps: list[str]


@router.get("", response_model=SandboxShape)
async def show(context: ContextDep) -> Response:
    """Return the sandbox of this machine, and what it does not protect."""
    found = await MECHANISMS.find()
    count = {"bubblewrap": len(LEVELS), "landlock": len(LEVELS) - 1, "none": 1}[found.name]
    answer = SandboxShape(
        mechanism=found.name,
        levels=list(LEVELS[:count]),
        agents=context.config.sandbox or DEFAULT_LEVEL,
        terminals=context.config.sandbox_terminals,
        problem=found.problem,
        advice=found.advice,
        gaps=list(found.gaps),
    )
    return json_answer(answer.model_dump(by_alias=True))
