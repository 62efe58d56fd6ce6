"""Loaded by schemathesis: sends each request once more in another way, and spares the run itself.

Some requests are changed before they are sent:

- Every second request of an operation names things that exist, and has a body that is accepted where the
  document does not say which are. So it gets past 400, 404 and 409.
- A token of the run is not revoked: every later request would get 401. Other tokens are revoked.
- What the run was given to work with is not ended or removed: later requests would only get 404 and 409.
  A session is replaced by a new one, which is ended instead; any other id by one that does not exist.
- A request waits at most LONGEST_WAIT for the answer to a question; the document allows 30 seconds.
"""

import json
import os
from collections import Counter, defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import requests
import schemathesis
from schemathesis import checks

from support import odd_requests

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
AIMS: list[dict[str, list[str]]] = SETUP["aims"]
SPARED = {*SETUP["tokens"], *(id for aim in AIMS for ids in aim.values() for id in ids)}
ENDING = ("/complete", "/leave", "/queue/resume")
SPARE = "an-id-that-does-not-exist"
LONGEST_WAIT = 0.05  # seconds
SECONDS = 60  # until an answer must have come

SPOILS = list(odd_requests.SPOILS.items())

_session = requests.Session()
_session.trust_env = False
_aims: Counter[str] = Counter()
_turns: Counter[str] = Counter()
_sent: Counter[str] = Counter()
_answers: defaultdict[str, Counter[int]] = defaultdict(Counter)

schemathesis.serializer.alias("application/zip", "application/octet-stream")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    _name_existing(case)
    wait = (case.query or {}).get("wait")
    if isinstance(wait, int | float) and wait > LONGEST_WAIT:
        case.query["wait"] = LONGEST_WAIT
    if case.method.upper() == "DELETE" or case.path.endswith(ENDING):
        for name, value in (case.path_parameters or {}).items():
            if value in SPARED:
                case.path_parameters[name] = _new_session() if name == "session_id" else SPARE


def _name_existing(case: Any) -> None:
    turn, skipped = divmod(_aims[case.operation.label], 2)
    _aims[case.operation.label] += 1
    if skipped:
        return
    if (body := BODIES.get(case.operation.label)) is not None:
        case.body = deepcopy(body)
    round_, which = divmod(turn, len(AIMS))
    for name, values in AIMS[which].items():
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = values[round_ % len(values)]


def _new_session() -> str:
    answer = _session.post(f"{SETUP['url']}/api/sessions", headers=SETUP["owner"], json={}, timeout=SECONDS)
    session_id: str = answer.json()["id"]
    return session_id


@schemathesis.check
def repeat(context: Any, response: Any, case: Any) -> None:
    """Send the request once more: with another credential, or spoiled; for each operation in turn."""
    turn = _turns[case.operation.label] % (len(CREDENTIALS) + len(SPOILS))
    _turns[case.operation.label] += 1
    request = response.request.copy()
    if turn < len(CREDENTIALS):
        name, headers = CREDENTIALS[turn]
        for header in ("Authorization", "Cookie", "X-Bullpen-Secret"):
            request.headers.pop(header, None)
        request.headers.update(headers)
    else:
        name, spoil = SPOILS[turn - len(CREDENTIALS)]
        spoil(request, case.path)
    answer = _session.send(request, timeout=SECONDS)
    _sent[name] += 1
    _answers[case.operation.label][response.status_code] += 1
    SENT.write_text(json.dumps({"repeated": _sent, "answers": _answers}))
    unknown = answer.status_code in (401, 403)  # the gate and the scopes come before the method
    try:
        case.validate_response(answer, checks=[*SHAPE, *(() if unknown else METHOD)])
    except Exception as failure:
        failure.add_note(f"{name}: {request.method} {request.url} {request.headers} {request.body!r:.2000}")
        raise
