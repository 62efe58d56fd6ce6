"""Provide the client methods for images, which prompts and queued messages can refer to by their id."""

from typing import NamedTuple
from urllib.parse import quote

from .rest import RestClient, RestRequest
from .shapes import ServerShape


class Image(ServerShape, frozen=True, kw_only=True):
    """An image that the server has stored."""

    id: str
    mime_type: str
    size: int


class ImageFile(NamedTuple):
    """The content of an image."""

    mime_type: str
    data: bytes


class ImageCalls:
    """The methods of `Client` about the images of a session."""

    _rest: RestClient

    async def add_image(self, session_id: str, data: bytes, *, key: str | None = None) -> Image:
        """Store an image (PNG, JPEG, GIF or WebP) for the prompts of a session."""
        request = RestRequest("POST", _images(session_id), raw=data, key=key, is_long=True)
        return await self._rest.call(Image, request)

    async def image(self, session_id: str, image_id: str) -> ImageFile:
        """Return an image."""
        path = f"{_images(session_id)}/{quote(image_id, safe='')}"
        reply = await self._rest.read(RestRequest("GET", path))
        return ImageFile(reply.headers.get("content-type", ""), reply.body)


def _images(session_id: str) -> str:
    """Return the URL path of the images of a session."""
    return f"/api/sessions/{quote(session_id, safe='')}/images"
