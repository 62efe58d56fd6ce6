"""docs/protocol.md names every route, error, event and frame of the code, and no others."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from bullpen.domain.events import FACTS, Unknown, read_fact
from bullpen.web import sockets
from bullpen.web.app import every_route
from bullpen.web.delegates import allow_delegate
from bullpen.web.errors import STATUS
from bullpen.web.rest.answers import idempotent_request
from bullpen.web.scopes import allow
from bullpen.wire import queue_notices, relay
from bullpen.wire.json import decode, encode
from docs.protocol_page import PAGE, SECTIONS, Section, examples


def without_parameter_names(path: str) -> str:
    """Return a path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def routes() -> dict[tuple[str, str], APIRoute | APIWebSocketRoute]:
    found: dict[tuple[str, str], APIRoute | APIWebSocketRoute] = {}
    for route in every_route():
        match route:
            case APIRoute():
                found |= {
                    (method, without_parameter_names(route.path)): route for method in route.methods or ()
                }
            case APIWebSocketRoute():
                found["WS", without_parameter_names(route.path)] = route
    return found


def calls(dependant: Dependant) -> Iterator[Any]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from calls(dependency)


def test_the_page_has_exactly_the_routes_of_the_code() -> None:
    assert [
        (section.method, without_parameter_names(section.path))
        for section in SECTIONS
        if SECTIONS.count(section) > 1
    ] == []
    assert {(section.method, without_parameter_names(section.path)) for section in SECTIONS} == set(routes())


def test_every_route_in_a_table_of_the_page_exists() -> None:
    cells = re.findall(r"\| `(GET|POST|PUT|PATCH|DELETE|WS) (/\S+?)`", PAGE)
    assert len(cells) >= 10
    assert {(method, without_parameter_names(path)) for method, path in cells} - set(routes()) == set()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_page_states_the_scope_and_parameters_of_a_route(section: Section) -> None:
    route = routes()[section.method, without_parameter_names(section.path)]
    used = list(calls(route.dependant))
    stated = (call for call in used if isinstance(call, allow | allow_delegate))
    scope = next((call.scope.name.lower() for call in stated), "public")
    assert section.rule[1] == scope
    assert bool(section.rule[3]) == (idempotent_request in used)
    for parameter in route.dependant.query_params:
        assert re.search(rf"`{parameter.alias}\b", section.text), (
            f"the parameter {parameter.alias} is not described"
        )


def test_every_error_is_in_the_page_under_its_status() -> None:
    listed = {code: int(status) for status, code in re.findall(r"^\| (\d+) \| `(\w+)`", PAGE, re.MULTILINE)}
    framework = {"method_not_allowed": 405, "too_large": 413, "unsupported_media_type": 415, "internal": 500}
    assert listed == STATUS | framework
    for status, code in re.findall(r"\b([45]\d\d)\s+`(\w+)`", PAGE):
        assert listed[code] == int(status)


def facts_of_a_server() -> set[str]:
    """Return the facts of a new process: other tests may have imported facts that no server writes."""
    program = "import bullpen.main; from bullpen.domain.events import FACTS; print(*FACTS)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - {Unknown.type}


def test_every_event_is_in_the_page_with_all_its_fields() -> None:
    described = set(re.findall(r"^\*\*`(\w+)`\*\*", PAGE, re.MULTILINE))
    shown = {event["type"]: event for event in examples(PAGE, "event")}
    assert described == set(shown) == facts_of_a_server()
    for name, event in shown.items():
        fact = read_fact(name, event["data"])
        assert isinstance(fact, FACTS[name]), f"the example of {name} is not one"
        assert decode(encode(fact.to_data())) == event["data"], f"the example of {name} has other fields"


def test_every_frame_is_in_the_page() -> None:
    files = [*Path(sockets.__file__).parent.glob("*.py"), Path(relay.__file__), Path(queue_notices.__file__)]
    source = "".join(path.read_text() for path in files)
    sends = set(re.findall(r'"type": ?"([\w:]+)"', source))
    takes = set(re.findall(r'case "(\w+)":', source)) | {"auth"}
    takes |= set(re.findall(r'tag="([\w:]+)"', source))
    assert {frame["type"] for frame in examples(PAGE, "received")} == sends
    assert {frame["type"] for frame in examples(PAGE, "sent")} == takes
