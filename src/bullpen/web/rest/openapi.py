"""`/api/openapi.json`: the OpenAPI document, with the errors and the credentials of each route.

FastAPI describes the parameters and the normal answer of a route. The errors are added here: those of the
gate and the database, and those that follow from the method and parameters of the route. An error that only
some routes have is declared with the route: `responses=own_errors("remote_fault")`.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute

from ... import __version__
from ..auth import COOKIE, SECRET_HEADER
from ..errors import CODES
from ..scopes import Scope, allow, public
from .answers import json_answer

router = APIRouter(include_in_schema=False)

READ_METHODS = frozenset({"get", "head"})
RETRY_STATUSES = frozenset({429, 503})  # statuses whose answers may carry Retry-After
FRAMEWORK_ERROR = "422"  # the status FastAPI would use; this server answers 400
FRAMEWORK_SCHEMAS = ("HTTPValidationError", "ValidationError")

CREDENTIALS = {
    "token": {"type": "http", "scheme": "bearer"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    "secret": {"type": "apiKey", "in": "header", "name": SECRET_HEADER},
}
SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"cookie": [], "secret": []}]

Operation = dict[str, Any]


@router.get("/api/openapi.json", dependencies=[Depends(allow(Scope.VIEW))])
async def document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return json_answer(request.app.state.openapi())


def describe(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Return the OpenAPI document of the routes."""
    described = [route for route in routes if isinstance(route, APIRoute)]
    document = get_openapi(title="Bullpen", version=__version__, routes=described)
    components = document["components"]
    components["securitySchemes"] = CREDENTIALS
    components["responses"] = {str(status): _error_response(status) for status in CODES}
    for name in FRAMEWORK_SCHEMAS:
        components["schemas"].pop(name, None)
    for route in described:
        for method, operation in _operations(document, route):
            _add_errors(method, operation)
            if not _is_public(route):
                operation["security"] = SECURITY
    return document


def errors_of(method: str, operation: Operation) -> set[int]:
    """Return the statuses of the errors an operation can answer with, without those it declares itself."""
    parameters = operation.get("parameters", ())
    in_path = any(each["in"] == "path" for each in parameters)
    repeatable = any(each["name"] == "idempotency-key" for each in parameters)
    # The connection is too slow or its headers are too long; the gate refuses the credential, the Host or the
    # length; the database or another resource cannot be used now.
    errors = {408, 431, 401, 403, 413, 503}
    if parameters or "requestBody" in operation:
        errors.add(400)
    if in_path:
        errors.add(404)
    if method not in READ_METHODS:
        errors.add(507)
    if repeatable or (in_path and method not in READ_METHODS):
        errors.add(409)
    return errors


def _add_errors(method: str, operation: Operation) -> None:
    """Add the error answers to an operation of the document."""
    answers = operation["responses"]
    answers.pop(FRAMEWORK_ERROR, None)
    declared = {int(status) for status in answers if int(status) in CODES}
    for status in sorted(errors_of(method, operation) | declared):
        if "content" not in answers.get(str(status), {}):  # /api/health has a 503 with another body
            answers[str(status)] = {"$ref": f"#/components/responses/{status}"}


def _error_response(status: int) -> dict[str, Any]:
    """Return the description of an answer with this status: the body that `errors.error_body` writes."""
    codes = CODES[status]
    fields = {"error": {"enum": codes}, "message": {"type": "string"}, "details": {}}
    schema = {"type": "object", "properties": fields, "required": ["error", "message"]}
    described: dict[str, Any] = {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {"application/json": {"schema": schema}},
    }
    if status in RETRY_STATUSES:
        described["headers"] = {"Retry-After": {"schema": {"type": "string"}, "description": "seconds"}}
    return described


def _operations(document: dict[str, Any], route: APIRoute) -> Iterator[tuple[str, Operation]]:
    """Yield the operations of a route with their methods."""
    if route.include_in_schema:
        for method in route.methods or ():
            yield method.lower(), document["paths"][route.path_format][method.lower()]


def _is_public(route: APIRoute) -> bool:
    """Return whether a route needs no credential."""
    return any(isinstance(each.call, public) for each in route.dependant.dependencies)
