"""Answer 405 with a complete `Allow` header; Starlette names the methods of one route of the path."""

from collections.abc import Iterable

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute


class RouteMethods:
    """Knows the methods of each path that the OpenAPI document describes."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._routes = [route for route in routes if isinstance(route, APIRoute) and route.include_in_schema]

    def allowed(self, path: str) -> list[str]:
        """Return the methods of a path; none if there is no such path.

        Of two templates that match, the one with fewer parameters counts: it is how the path is documented.
        """
        found = [route for route in self._routes if route.path_regex.match(path)]
        fewest = min((len(route.param_convertors) for route in found), default=0)
        exact = [route.methods for route in found if len(route.param_convertors) == fewest]
        return sorted({method for methods in exact for method in methods or ()})

    def refuse(self, path: str) -> HTTPException | None:
        """Return the refusal of a method that the path does not have; None if there is no such path."""
        methods = self.allowed(path)
        return HTTPException(405, headers={"Allow": ", ".join(methods)}) if methods else None


async def refuse_other_methods(request: Request) -> None:
    """Raise 405 if the path is a route of another method; a dependency of the route that takes every path."""
    methods: RouteMethods = request.app.state.methods
    if refusal := methods.refuse(request.url.path):
        raise refusal
