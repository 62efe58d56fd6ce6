"""Send one JSON request to a system under test."""

import json
from http.client import HTTPConnection
from typing import Any

SILENCE = 60.0


def call(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    timeout: float = SILENCE,
) -> Any:
    """Return the JSON of the answer; raise RuntimeError for an error answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        sent = json.dumps(body) if body is not None else None
        connection.request(method, path, sent, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise RuntimeError(f"{method} {path}: {response.status} {answer[:500]!r}")
    return json.loads(answer or b"{}")
