"""Mutations of a request that a generator of valid HTTP and valid Unicode does not create."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests

Request = requests.PreparedRequest
Mutation = Callable[
    [Request, str], None
]  # changes the request; the path template shows which parts are parameters

HUGE = 10**400
DEEP = 5000  # levels of nested lists


def put_body(request: Request, body: bytes) -> None:
    request.body = body
    request.headers["Content-Length"] = str(len(body))
    request.headers.setdefault("Content-Type", "application/json")


def with_strings(text: str) -> Mutation:
    """Return a mutation that replaces each string of a JSON body."""

    def mutate(request: Request, _template: str) -> None:
        value = _replaced(_json_of(request), str, text)
        put_body(request, json.dumps(value).encode("ascii", "surrogatepass"))

    return mutate


def with_numbers(number: int) -> Mutation:
    def mutate(request: Request, _template: str) -> None:
        put_body(request, json.dumps(_replaced(_json_of(request), int, number)).encode())

    return mutate


def with_body(body: bytes) -> Mutation:
    return lambda request, _template: put_body(request, body)


def with_header(name: str, value: str) -> Mutation:
    def mutate(request: Request, _template: str) -> None:
        request.headers[name] = value

    return mutate


def with_path(part: str) -> Mutation:
    """Return a mutation that replaces each path parameter by this percent-encoded text."""

    def mutate(request: Request, template: str) -> None:
        url = urlsplit(str(request.url))
        is_parameter = [each.startswith("{") for each in template.split("/")]
        parts = url.path.split("/", len(is_parameter) - 1)
        path = "/".join(part if free else each for each, free in zip(parts, is_parameter, strict=False))
        request.url = urlunsplit(url._replace(path=path))

    return mutate


def with_query(value: str) -> Mutation:
    """Return a mutation that replaces each query value by this percent-encoded text."""

    def mutate(request: Request, _template: str) -> None:
        url = urlsplit(str(request.url))
        names = [pair.partition("=")[0] for pair in url.query.split("&")]
        request.url = urlunsplit(url._replace(query="&".join(f"{name}={value}" for name in names)))

    return mutate


MUTATIONS: dict[str, Mutation] = {
    "lone surrogates": with_strings("\ud800"),
    "NUL in strings": with_strings("a\0b"),
    "long strings": with_strings("x" * 5000),
    "control characters": with_strings("\x1b]0;\x07\x7f\u202e"),
    "huge numbers": with_numbers(HUGE),
    "deep nesting": with_body(b"[" * DEEP + b"]" * DEEP),
    "bad UTF-8": with_body(b'{"\xff\xfe": "\xc3"}'),
    "half a body": with_body(b'{"title": "'),
    "no object": with_body(b"NaN"),
    "wrong content type": with_header("Content-Type", "multipart/form-data"),
    "unknown charset": with_header("Content-Type", "application/json; charset=nothing"),
    "wrong content encoding": with_header("Content-Encoding", "gzip"),
    "odd key": with_header("Idempotency-Key", "\xff"),
    "odd range": with_header("Range", "bytes=9-1,-0,x"),
    "NUL in the path": with_path("%00"),
    "long path": with_path("x" * 5000),
    "bad UTF-8 in the path": with_path("%ff%ed%a0%80"),
    "dots in the path": with_path("..%5c.."),
    "NUL in the query": with_query("%00"),
    "huge number in the query": with_query(str(HUGE)),
    "bad UTF-8 in the query": with_query("%ff%ed%a0%80"),
}


def _json_of(request: Request) -> Any:
    body = request.body
    try:
        return json.loads(body) if isinstance(body, bytes | str) else {}
    except ValueError:
        return {}


def _replaced(value: Any, kind: type, by: Any) -> Any:
    match value:
        case dict():
            return {name: _replaced(each, kind, by) for name, each in value.items()}
        case list():
            return [_replaced(each, kind, by) for each in value]
        case bool():
            return value
    return by if isinstance(value, kind) else value
