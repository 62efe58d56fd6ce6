"""Hooks of schemathesis: repeat each request in another way, and keep the session of the run usable.

Some requests are changed before they are sent:

- Every second request of an operation has ids that exist, and a valid body where the document does not define
  which bodies are valid. So the server does not answer with 400, 404 or 409.
- A token of the run is not revoked: every later request would get 401. Other tokens are revoked.
- The ids in `EXISTING` are not ended or removed: later requests would only get 404 and 409. A request that
  would end a session gets the id of a new session; any other id is replaced by one that does not exist.
- A request waits at most MAX_WAIT_SECONDS for the answer to a question; the document allows 30 seconds.
"""

import atexit
import json
import os
from collections import Counter, defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import requests
import schemathesis
from schemathesis import checks

from support import request_mutations

SHAPE = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
)
METHOD = (checks.unsupported_method, checks.allow_header_conformance)
SETUP = json.loads(Path(os.environ["BULLPEN_OPENAPI_SETUP"]).read_text())
SENT = Path(os.environ["BULLPEN_OPENAPI_SENT"])
CREDENTIALS: list[tuple[str, dict[str, str]]] = list(SETUP["credentials"].items())
BODIES: dict[str, Any] = SETUP["bodies"]
EXISTING: list[dict[str, list[str]]] = SETUP["existing"]
PROTECTED = {*SETUP["tokens"], *(id for group in EXISTING for ids in group.values() for id in ids)}
ENDING = ("/complete", "/leave", "/queue/resume")
UNKNOWN_ID = "an-id-that-does-not-exist"
MAX_WAIT_SECONDS = 0.05
TIMEOUT_SECONDS = 60

MUTATIONS = list(request_mutations.MUTATIONS.items())

_session = requests.Session()
_session.trust_env = False
_calls: Counter[str] = Counter()  # by operation
_repetitions: Counter[str] = Counter()  # by operation
_sent: Counter[str] = Counter()  # by name of the credential or mutation
_answers: defaultdict[str, Counter[int]] = defaultdict(Counter)

schemathesis.serializer.alias("application/zip", "application/octet-stream")


@atexit.register
def _write_counts() -> None:
    SENT.write_text(json.dumps({"repeated": _sent, "answers": _answers}))


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    _use_existing_ids(case)
    wait = (case.query or {}).get("wait")
    if isinstance(wait, int | float) and wait > MAX_WAIT_SECONDS:
        case.query["wait"] = MAX_WAIT_SECONDS
    if case.method.upper() == "DELETE" or case.path.endswith(ENDING):
        for name, value in (case.path_parameters or {}).items():
            if value in PROTECTED:
                case.path_parameters[name] = _new_session() if name == "session_id" else UNKNOWN_ID


def _use_existing_ids(case: Any) -> None:
    """Give every second request of an operation a valid body and ids that exist."""
    turn, skipped = divmod(_calls[case.operation.label], 2)
    _calls[case.operation.label] += 1
    if skipped:
        return
    if (body := BODIES.get(case.operation.label)) is not None:
        case.body = deepcopy(body)
    round_, group = divmod(turn, len(EXISTING))
    for name, values in EXISTING[group].items():
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = values[round_ % len(values)]


def _new_session() -> str:
    answer = _session.post(
        f"{SETUP['url']}/api/sessions", headers=SETUP["owner"], json={}, timeout=TIMEOUT_SECONDS
    )
    session_id: str = answer.json()["id"]
    return session_id


@schemathesis.check
def repeat(context: Any, response: Any, case: Any) -> None:
    """Repeat the request with the next credential or mutation of its operation."""
    turn = _repetitions[case.operation.label] % (len(CREDENTIALS) + len(MUTATIONS))
    _repetitions[case.operation.label] += 1
    request = response.request.copy()
    if turn < len(CREDENTIALS):
        name, headers = CREDENTIALS[turn]
        for header in ("Authorization", "Cookie", "X-Bullpen-Secret"):
            request.headers.pop(header, None)
        request.headers.update(headers)
    else:
        name, mutate = MUTATIONS[turn - len(CREDENTIALS)]
        mutate(request, case.path)
    answer = _session.send(request, timeout=TIMEOUT_SECONDS)
    _sent[name] += 1
    _answers[case.operation.label][response.status_code] += 1
    refused = answer.status_code in (401, 403)  # credential and scope are checked before the method
    try:
        case.validate_response(answer, checks=[*SHAPE, *(() if refused else METHOD)])
    except Exception as failure:
        failure.add_note(f"{name}: {request.method} {request.url} {request.headers} {request.body!r:.2000}")
        raise
