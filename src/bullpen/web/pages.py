"""The built UI: `/` and its files, read from the package once and served from memory.

A path from a request is only looked up in a table of the built files. It never reaches the file system.
"""

import gzip
from collections.abc import Mapping
from functools import cache, cached_property
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ..domain.errors import NotFound
from .methods import refuse_other_methods
from .scopes import public

BUILT = Path(__file__).parent / "ui"
INDEX = "index.html"
CACHE_FOREVER = "public, max-age=31536000, immutable"  # names under assets/ carry a hash of their content

router = APIRouter(include_in_schema=False, dependencies=[Depends(public())])


class BuiltFile:
    """One file of the UI by its path below the directory of the build."""

    def __init__(self, name: str) -> None:
        self.content = (BUILT / name).read_bytes()
        self.media_type = guess_type(name)[0]
        self.is_asset = name.startswith("assets/")

    @cached_property
    def packed(self) -> bytes:
        """Return the content compressed with gzip."""
        return gzip.compress(self.content, mtime=0)

    def answer(self, accepted_encodings: str) -> Response:
        """Return the answer with this file; an asset is compressed if the client accepts gzip."""
        if not self.is_asset:
            return Response(self.content, headers={"Cache-Control": "no-cache"}, media_type=self.media_type)
        headers = {"Cache-Control": CACHE_FOREVER, "Vary": "Accept-Encoding"}
        if "gzip" not in accepted_encodings:
            return Response(self.content, headers=headers, media_type=self.media_type)
        headers["Content-Encoding"] = "gzip"
        return Response(self.packed, headers=headers, media_type=self.media_type)


@cache
def built_files() -> Mapping[str, BuiltFile]:
    """Return the files of the UI by name. Raise NotFound if it is not built yet."""
    if not (BUILT / INDEX).is_file():
        raise NotFound("the web UI is not built; run `make setup`")
    names = [path.relative_to(BUILT).as_posix() for path in BUILT.rglob("*") if path.is_file()]
    return {name: BuiltFile(name) for name in names}


@router.get("/")
async def index(request: Request) -> Response:
    """Return the page of the UI."""
    return await file(INDEX, request)


@router.get("/{path:path}", dependencies=[Depends(refuse_other_methods)])
async def file(path: str, request: Request) -> Response:
    """Return a file of the UI by its name in the build. Raise NotFound for any other path."""
    found = built_files().get(path)
    if found is None:
        raise NotFound(f"there is nothing at /{path}")
    return found.answer(request.headers.get("accept-encoding", ""))
