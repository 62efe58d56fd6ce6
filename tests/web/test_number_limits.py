"""Integers of any size in a request are refused, clamped, or small enough for the database."""

from typing import Any

from bullpen.web.numbers import MAX_SAFE_INTEGER
from support.server import Server


def integer_schemas(parameter: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas by which a query parameter may be an integer."""
    schema = parameter["schema"]
    return [each for each in (schema, *schema.get("anyOf", ())) if each.get("type") == "integer"]


async def test_a_number_that_the_database_cannot_store_is_refused_or_clamped(server: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    known = {"{session_id}": session["id"], "{worker_id}": worker["id"]}
    requests = 0
    for path, routes in (await server.call("GET", "/api/openapi.json"))["paths"].items():
        for parameter in routes.get("get", {}).get("parameters", ()):
            for schema in integer_schemas(parameter):
                url, name = path, parameter["name"]
                for part, value in known.items():
                    url = url.replace(part, value)
                largest = schema.get("maximum", MAX_SAFE_INTEGER)
                for number in (largest, largest + 1, 1 << 63, 10**30):
                    others = {"q": "word", "seq": 1} if name != "seq" else {}
                    answer = await server.http.get(url, params=others | {name: number})
                    assert answer.status_code < 500, f"{path}?{name}={number}: {answer.text}"
                    clamped = "clamped" in parameter.get("description", "")
                    assert answer.status_code == 400 or number <= largest or clamped, (path, name)
                    requests += 1
    assert requests >= 40


async def test_the_seq_of_a_seen_request_is_limited_too(server: Server) -> None:
    session = await server.new_session()
    await server.call("POST", f"/api/sessions/{session['id']}/seen", 400, json={"seq": 1 << 63})
    await server.call("POST", f"/api/sessions/{session['id']}/seen", 204, json={"seq": MAX_SAFE_INTEGER})
