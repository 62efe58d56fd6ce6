"""The OpenAPI document describes the errors of each route, their body, and the credentials it accepts."""

import re
from typing import Any

import pytest

from bullpen.web.app import every_route
from bullpen.web.errors import STATUS, error_body
from bullpen.web.rest.openapi import describe
from bullpen.wire.json import decode
from docs.protocol_page import REST, Section
from docs.test_protocol import without_parameter_names

DOCUMENT = describe(every_route())
OPERATIONS = {
    (method.upper(), path): operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
PUBLIC = {("GET", "/api/health"), ("POST", "/api/login")}
NOT_DESCRIBED = {"/api/openapi.json", "/metrics", "/", "/{}"}  # these are not part of the JSON interface


def errors(operation: dict[str, Any]) -> set[int]:
    return {int(status) for status in operation["responses"] if int(status) >= 400}


@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_each_operation_describes_what_the_gate_its_parameters_and_the_database_refuse(
    name: tuple[str, str],
) -> None:
    operation = OPERATIONS[name]
    expected = {401, 403, 408, 413, 431, 503}
    if operation.get("parameters") or "requestBody" in operation:
        expected.add(400)
    if "{" in name[1]:
        expected.add(404)
    if name[0] != "GET":
        expected.add(507)
    assert expected <= errors(operation)
    assert 422 not in errors(operation)
    assert bool(operation.get("security")) == (name not in PUBLIC)


@pytest.mark.parametrize("section", REST, ids=lambda section: section.name)
def test_each_error_that_the_protocol_names_for_a_route_is_described(section: Section) -> None:
    path = without_parameter_names(section.path)
    if path in NOT_DESCRIBED:
        return
    (operation,) = [
        operation
        for (method, its_path), operation in OPERATIONS.items()
        if (method, without_parameter_names(its_path)) == (section.method, path)
    ]
    named = {int(status) for status, _ in re.findall(r"\b([45]\d\d)\s+`(\w+)`", section.text)}
    assert named <= errors(operation)


def test_each_error_has_the_body_that_is_sent() -> None:
    for code, status in STATUS.items():
        described = DOCUMENT["components"]["responses"][str(status)]
        schema = described["content"]["application/json"]["schema"]
        body = decode(error_body(code, "a sentence", details={"more": 1}))
        assert body.keys() == schema["properties"].keys()
        assert body["error"] in schema["properties"]["error"]["enum"]
        assert schema["required"] == ["error", "message"]
