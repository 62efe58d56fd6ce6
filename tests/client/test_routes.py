"""The client has a method for every REST route of the server."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from bullpen.agents.definitions import builtin
from bullpen.client import Client, QuestionClient
from bullpen.domain.errors import NotFound
from bullpen.web.app import every_route
from bullpen.web.rest.openapi import describe

WITHOUT_METHOD = {("POST", "/api/login"): "logs in a browser, which keeps a cookie; a program has a token"}
SOCKETS = {"follow", "dashboard", "terminal"}
BY_NAME: dict[str, Any] = {"definition": builtin()["demo"], "data": b"data", "changes": {}, "ticket": "1.x"}
BY_TYPE: dict[Any, Any] = {int: 1, float: 1.0, bool: True, list[str]: ["x"], list[Any]: []}

Route = tuple[str, str]


@asynccontextmanager
async def recording_server(requests: set[Route]) -> AsyncIterator[str]:
    """Yield the URL of a server that notes the method and the path of each request, and answers 404."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                break
            method, target, _ = head.split(" ", 2)
            if length := re.search(r"content-length: (\d+)", head, re.IGNORECASE):
                await reader.readexactly(int(length[1]))
            requests.add((method, target.partition("?")[0]))
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with asyncio.timeout(60), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def call_every_method(client: Client | QuestionClient) -> None:
    """Call each method with its required arguments; the values only have the right types."""
    for name, method in inspect.getmembers(client, inspect.ismethod):
        if name.startswith("_") or name in SOCKETS | {"close", "from_environment"}:
            continue
        try:
            await finish(method(**required_arguments(method)))
        except NotFound:
            continue
        raise AssertionError(f"{name} was not answered by the server")


def required_arguments(method: Callable[..., Any]) -> dict[str, Any]:
    needed = [each for each in inspect.signature(method).parameters.values() if each.default is each.empty]
    return {each.name: BY_NAME.get(each.name, BY_TYPE.get(each.annotation, "x")) for each in needed}


async def finish(called: Any) -> None:
    """Wait for the end of a call, whether it returns a value or yields values."""
    if inspect.isasyncgen(called):
        async for _ in called:
            pass
    else:
        await called


def documented_routes() -> set[Route]:
    paths = describe(every_route())["paths"]
    return {(method.upper(), path) for path, item in paths.items() for method in item}


def matches(route: Route, request: Route) -> bool:
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(route[1]))
    return route[0] == request[0] and re.fullmatch(pattern, request[1]) is not None


async def test_every_route_of_the_openapi_document_has_a_method() -> None:
    requests: set[Route] = set()
    async with recording_server(requests) as url:
        async with Client(url, "token") as client:
            await call_every_method(client)
            for path in ("a", ""):  # a route of its own for the workspace itself
                with suppress(NotFound):
                    await client.directory("session", path)
        asker = QuestionClient(url, "/api/workers/worker", "token")
        await call_every_method(asker)
        await asker.close()
    routes = documented_routes()
    missing = {route for route in routes if not any(matches(route, request) for request in requests)}
    assert missing == set(WITHOUT_METHOD)
    unknown = {request for request in requests if not any(matches(route, request) for route in routes)}
    assert unknown == set()
