"""Turn exceptions into HTTP answers, each with an error code and the status of this code."""

from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.websockets import WebSocket

from ..domain.errors import BullpenError
from ..domain.failures import explain
from ..wire.json import encode

log = structlog.get_logger()

TRY_AGAIN_LATER = 1013  # close code of a WebSocket

STATUS = {
    "invalid": 400,
    "empty_message": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "conflict": 409,
    "queue_full": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "too_many": 429,
    "headers_too_large": 431,
    "remote_fault": 502,
    "unavailable": 503,
    "storage_full": 507,
}

CODES = {
    status: [code for code, its_status in STATUS.items() if its_status == status]
    for status in sorted(set(STATUS.values()))
}


def own_errors(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route for errors that `rest/openapi.py` does not derive."""
    return {STATUS[code]: {} for code in codes}


def error_body(code: str, message: str, details: object = None) -> bytes:
    """Return the JSON body of an error answer."""
    more = {} if details is None else {"details": details}
    return encode({"error": code, "message": message, **more})


def error_response(
    code: str, message: str, headers: dict[str, str] | None = None, details: object = None
) -> Response:
    """Return an error answer with the status of its code."""
    body = error_body(code, message, details)
    return Response(body, STATUS.get(code, 500), headers, media_type="application/json")


def install(app: FastAPI) -> None:
    """Register handlers, so that every error is answered in the documented JSON format."""
    app.add_exception_handler(BullpenError, _answer_project_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_request)
    app.add_exception_handler(HTTPException, _answer_framework_error)
    app.add_exception_handler(ClientDisconnect, _answer_disconnected)
    for machine_failure in (OSError, MemoryError, RuntimeError, ExceptionGroup):
        app.add_exception_handler(machine_failure, _answer_machine_failure)
    app.add_exception_handler(Exception, _answer_unexpected)


async def _answer_project_error(_: Request, error: Exception) -> Response:
    """Answer an error of the project by its code."""
    assert isinstance(error, BullpenError)
    headers = None if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.code not in STATUS:
        log.error("internal error", exc_info=error)
        return error_response("internal", "internal error")
    return error_response(error.code, str(error), headers, error.details)


async def _answer_invalid_request(_: Request, error: Exception) -> Response:
    """Answer 400 to a request whose parameters or body do not fit the route."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return error_response("invalid", f"{place or 'the body'}: {first['msg']}")


async def _answer_framework_error(request: Request, error: Exception) -> Response:
    """Answer an error that Starlette or FastAPI raised, such as 404 or 405."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        error = request.app.state.methods.refuse(request.url.path) or error
    codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}
    code = codes.get(error.status_code, "invalid")
    message = error.detail or HTTPStatus(error.status_code).phrase
    return Response(
        error_body(code, message), error.status_code, error.headers, media_type="application/json"
    )


async def _answer_disconnected(_: Request, _error: Exception) -> Response:
    """Return an answer that is never read: the client has closed the connection during its request."""
    return error_response("invalid", "the request was not finished")


async def _answer_machine_failure(request: Request, error: Exception) -> Response:
    """Answer 503 if a resource of the machine was missing; raise any other error again."""
    explained = explain(error)
    if explained is None:
        raise error
    log.warning("a request failed", path=request.url.path, reason=str(explained))
    if isinstance(request, WebSocket):  # which has not been accepted yet
        await request.close(TRY_AGAIN_LATER, str(explained))
    return await _answer_project_error(request, explained)


async def _answer_unexpected(_: Request, error: Exception) -> Response:
    """Log an unexpected error with its traceback, and answer 500 without details."""
    log.error("internal error", exc_info=error)
    return error_response("internal", "internal error")
