"""Check and store the images that users attach to prompts."""

import hashlib
import secrets
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ..domain.errors import NotFound, TooLarge, UnsupportedType
from ..domain.ids import is_safe_id
from ..home import write_private

MAX_IMAGE_BYTES = 10 << 20
MAX_PIXELS = 50_000_000  # a small file can decompress to an image that crashes browsers and agents


class Image(Struct, frozen=True):
    """A stored image."""

    id: str
    mime: str
    size: int


class Images:
    """The images of all sessions, each session's in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, session_id: str, data: bytes, idempotency_key: str | None = None) -> Image:
        """Store an image, or raise TooLarge or UnsupportedType.

        Its type is detected from the data. The same data with the same idempotency key is one image.
        """
        mime = check_image(data)
        image = Image(_image_id(data, idempotency_key), mime, len(data))
        self._write(session_id, f"{image.id}.{EXTENSIONS[mime]}", data)
        return image

    def read(self, session_id: str, image_id: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of an image, or raise NotFound."""
        path = self.path(session_id, image_id)
        return MIMES[path.suffix[1:]], path.read_bytes()

    def path(self, session_id: str, image_id: str) -> Path:
        """Return the file of an image, or raise NotFound."""
        if is_safe_id(image_id):
            for extension in MIMES:
                path = self._folder(session_id) / f"{image_id}.{extension}"
                if path.exists():
                    return path
        raise NotFound(f"no image {image_id} in session {session_id}")

    def files(self, session_id: str) -> list[Path]:
        """Return the files of a session's images, sorted by name."""
        try:
            found = list(self._folder(session_id).iterdir())
        except FileNotFoundError:
            return []
        return sorted(path for path in found if path.suffix[1:] in MIMES and path.name[0] != ".")

    def restore(self, session_id: str, name: str, data: bytes) -> None:
        """Store an image of an imported session under the file name it had there.

        Raise UnsupportedType or TooLarge if the name or the data is not that of an image.
        """
        check_name(name, data)
        self._write(session_id, name, data)

    def remove_all(self, session_id: str) -> None:
        """Remove the images of a purged session."""
        shutil.rmtree(self._folder(session_id), ignore_errors=True)

    def _write(self, session_id: str, name: str, data: bytes) -> None:
        """Write a file in the session's directory durably."""
        folder = self._folder(session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(folder / name, data, durably=True)

    def _folder(self, session_id: str) -> Path:
        """Return the directory of a session's images; raise NotFound for an id that is not safe as a name."""
        if not is_safe_id(session_id):
            raise NotFound(f"no session {session_id}")
        return self._directory / session_id


def check_image(data: bytes) -> str:
    """Return the media type of an image, or raise TooLarge or UnsupportedType."""
    if len(data) > MAX_IMAGE_BYTES:
        raise TooLarge(f"an image has at most {MAX_IMAGE_BYTES >> 20} MiB")
    kind = _kind(data)
    try:
        width, height = SIZES[kind](data)
    except (KeyError, IndexError, struct.error):
        raise UnsupportedType("an image is a PNG, JPEG, GIF or WebP file") from None
    if width * height > MAX_PIXELS:
        raise TooLarge(f"an image has at most {MAX_PIXELS:,} pixels, not {width} × {height}")
    return kind


def check_name(name: str, data: bytes) -> None:
    """Raise UnsupportedType or TooLarge unless `name` is a valid file name of this image."""
    image_id, _, extension = name.partition(".")
    if not is_safe_id(image_id) or MIMES.get(extension) != check_image(data):
        raise UnsupportedType(f"{name} is not an image under a name that Bullpen gives")


def _image_id(data: bytes, idempotency_key: str | None) -> str:
    """Return a random id, or one derived from the idempotency key and the data."""
    if idempotency_key is None:
        return secrets.token_hex(16)
    return hashlib.sha256(idempotency_key.encode() + hashlib.sha256(data).digest()).hexdigest()[:32]


def _kind(data: bytes) -> str:
    """Return the media type by the first bytes, or an empty text."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _png_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the header of a PNG file."""
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the header of a GIF file."""
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the frame header, found by walking the segments; raise IndexError."""
    position = 2
    while True:
        marker, length = struct.unpack_from(">HH", data, position)
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker < 0xFF00 or length < 2:
            raise IndexError("not a segment")
        position += 2 + length


def _webp_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the first chunk, whose format has three variants; raise IndexError."""
    if len(data) < 30:
        raise IndexError("no picture")
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            raise IndexError("no picture")


EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
MIMES = {extension: mime for mime, extension in EXTENSIONS.items()}
SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
