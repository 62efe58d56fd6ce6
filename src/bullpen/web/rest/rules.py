"""`/api/rules`: list, add and remove rules that answer permission requests automatically."""

from typing import Any

from fastapi import APIRouter, Depends
from msgspec import to_builtins
from starlette.responses import Response

from ...domain.rules import Rule, read_rule
from ...store.answers import PendingAnswer
from ..context import ContextDep
from ..scopes import Scope, allow
from .answers import IdempotentDep, json_answer
from .inbox_shapes import RuleShape, RulesShape

router = APIRouter(prefix="/api/rules", tags=["rules"])
ADMIN = [Depends(allow(Scope.ADMIN))]  # a rule answers instead of the user


@router.get("", response_model=RulesShape, dependencies=[Depends(allow(Scope.VIEW))])
async def list_rules(context: ContextDep) -> Response:
    """Return the rules in the order in which they are tried."""
    rules = context.rules
    return json_answer({"rules": [_rule_json(each, rules.is_added(each)) for each in rules.all]})


@router.post("", status_code=201, response_model=RuleShape, dependencies=ADMIN)
async def add(body: dict[str, Any], context: ContextDep, idempotent: IdempotentDep) -> Response:
    """Add a rule; it also answers requests that are open now."""
    rule = read_rule(body)
    answer: PendingAnswer[None] | None = idempotent.pending_answer(201, lambda _: _rule_json(rule, True))
    await context.rules.add(rule, answer)
    return json_answer(_rule_json(rule, True), 201)


@router.delete("/{name}", status_code=204, dependencies=ADMIN)
async def remove(name: str, context: ContextDep) -> Response:
    """Remove a rule that was added."""
    await context.rules.remove(name)
    return Response(status_code=204)


def _rule_json(rule: Rule, added: bool) -> dict[str, Any]:
    """Return a rule as a JSON object; `added` if a user added it, and not the settings."""
    return {**to_builtins(rule), "added": added}
