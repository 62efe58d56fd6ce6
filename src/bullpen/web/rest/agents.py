"""`/api/agents`: list agents and whether they are installed; add, change and remove definitions."""

from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Depends, Request
from msgspec import to_builtins
from starlette.responses import Response

from ...agents.discovery import DEMO
from ...domain.agents import AgentDefinition, read_definition
from ...domain.errors import Conflict, Invalid, NotFound
from ...store.answers import PendingAnswer
from ..context import ContextDep, WebContext
from ..delegates import allow_delegate
from ..scopes import Scope, allow, principal_of
from .agent_shapes import AgentShape, AgentsShape
from .answers import IdempotentDep, json_answer

router = APIRouter(prefix="/api/agents", tags=["agents"])
ADMIN = [Depends(allow(Scope.ADMIN))]  # a definition is a command this machine will run

HIDDEN = "…"


@router.get("", response_model=AgentsShape, dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def list_agents(request: Request, context: ContextDep) -> Response:
    """Return all agents. Only the scope `admin` gets values of environment variables."""
    added, default = await context.records.agents(), context.agents.default()
    shown = [_agent_json(context, each, default, each.id in added) for each in context.agents.all()]
    if principal_of(request).scope < Scope.ADMIN:
        shown = [each | {"env": dict.fromkeys(each["env"], HIDDEN)} for each in shown]
    return json_answer({"agents": shown})


@router.post("", status_code=201, response_model=AgentShape, dependencies=ADMIN)
async def add(body: dict[str, Any], context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Add the definition of an agent. An existing agent is changed with PUT."""
    definition = read_definition(body, "the definition")
    if any(each.id == definition.id for each in context.agents.all()):
        raise Conflict(f"an agent {definition.id} exists already; change it with PUT")
    stored = _agent_json(context, definition, context.agents.default())
    answer: PendingAnswer[None] | None = idempotent.pending_answer(201, lambda _: stored)
    await _store_definition(context, definition, answer)
    return json_answer(stored, 201)


@router.put("/{agent_id}", response_model=AgentShape, dependencies=ADMIN)
async def define(agent_id: str, body: dict[str, Any], context: ContextDep) -> Response:
    """Add or replace the definition of the agent with this id."""
    if body.get("id", agent_id) != agent_id:
        raise Invalid("the id in the body is not the id in the address")
    definition = read_definition({**body, "id": agent_id}, "the definition")
    await _store_definition(context, definition)
    return json_answer(_agent_json(context, definition, context.agents.default()))


@router.delete("/{agent_id}", status_code=204, dependencies=ADMIN)
async def remove(agent_id: str, context: ContextDep) -> Response:
    """Remove a definition that was added; a built-in definition with this id is used again."""
    if agent_id not in await context.records.agents():
        context.agents.get(agent_id)  # raises NotFound if there is none
        raise Conflict(f"the agent {agent_id} was not added here, so it cannot be removed here")
    await context.records.remove_agent(agent_id)
    with suppress(NotFound):  # it was skipped at the start because it is not valid any more
        context.agents.remove(agent_id)
    return Response(status_code=204)


async def _store_definition(
    context: WebContext, definition: AgentDefinition, answer: PendingAnswer[None] | None = None
) -> None:
    """Store a definition, and then use it, so that it is still there after a restart."""
    stored = to_builtins(definition)
    await context.records.put_agent(definition.id, stored, answer)
    context.agents.add(definition.id, stored)


def _agent_json(
    context: WebContext, definition: AgentDefinition, default: str, added: bool = True
) -> dict[str, Any]:
    """Return the definition of an agent with its status on this machine."""
    # The demo is part of Bullpen: it can be started even if its program is not found.
    installed = definition.id == DEMO or context.agents.program(definition) is not None
    return {
        "id": definition.id,
        "name": definition.name,
        "description": definition.description,
        "kind": definition.kind,
        "command": definition.command,
        "env": definition.env,
        "passEnv": definition.pass_env,
        "offer": to_builtins(definition.offer),
        "state": definition.state,
        "sandbox": definition.sandbox,
        "added": added,
        "installed": installed,
        "missing": None if installed else definition.command[0],
        "installHint": definition.install,
        "loggedIn": context.agents.logged_in(definition),
        "loginCommand": definition.login_command,
        "default": definition.id == default,
    }
