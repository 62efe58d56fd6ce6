"""The built UI: `/` and its files, read from the package."""

import gzip
from functools import cache
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter, Depends, Request
from starlette.responses import FileResponse, Response

from ..domain.errors import NotFound
from .scopes import public

BUILT = Path(__file__).parent / "ui"
FOR_EVER = "public, max-age=31536000, immutable"  # names under assets/ carry a hash of their content

router = APIRouter(include_in_schema=False, dependencies=[Depends(public())])


@router.get("/")
async def index() -> Response:
    if not (BUILT / "index.html").is_file():
        raise NotFound("the web UI is not built; run `make setup`")
    return FileResponse(BUILT / "index.html", headers={"Cache-Control": "no-cache"})


@router.get("/{path:path}")
async def file(path: str, request: Request) -> Response:
    """A file of the UI, by a name that is in the build; anything else is not there."""
    built = BUILT.resolve()
    found = (built / path).resolve()
    if "\0" in path or not found.is_relative_to(built) or not found.is_file():
        raise NotFound(f"there is nothing at /{path}")
    if not path.startswith("assets/"):
        return FileResponse(found, headers={"Cache-Control": "no-cache"})
    packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"} | (
        {"Content-Encoding": "gzip"} if packed else {}
    )
    return Response(asset(found, packed), headers=headers, media_type=guess_type(path)[0])


@cache
def asset(path: Path, packed: bool) -> bytes:
    """Kept, as a page asks for a dozen at once: reading one in a thread costs more than sending it."""
    content = path.read_bytes()
    return gzip.compress(content, mtime=0) if packed else content
