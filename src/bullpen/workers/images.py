"""Images people attach to prompts: known by their content, kept under a name of our own."""

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

LARGEST = 10 << 20  # bytes
MOST_PIXELS = 50_000_000  # a small file can stand for a picture no browser and no agent survives


class Image(Struct, frozen=True):
    """An image that is kept; `id` is its only name."""

    id: str
    mime: str
    size: int


class Images:
    """The images of every session, each session's in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, session_id: str, data: bytes, once: str | None = None) -> Image:
        """Keeps an image; refuses what is too large or no image, whatever it calls itself.

        The same data under the same `once` is the same image.
        """
        mime = check_image(data)
        image = Image(_name(data, once), mime, len(data))
        self._write(session_id, f"{image.id}.{EXTENSIONS[mime]}", data)
        return image

    def read(self, session_id: str, image_id: str) -> tuple[str, bytes]:
        """The type and the bytes of an image; NotFound when the session has none of that id."""
        path = self.path(session_id, image_id)
        return MIMES[path.suffix[1:]], path.read_bytes()

    def path(self, session_id: str, image_id: str) -> Path:
        """The file an image is in."""
        if is_safe_id(image_id):
            for extension in MIMES:
                path = self._folder(session_id) / f"{image_id}.{extension}"
                if path.exists():
                    return path
        raise NotFound(f"no image {image_id} in session {session_id}")

    def files(self, session_id: str) -> list[Path]:
        """The files of a session's images, in the order of their names."""
        try:
            found = list(self._folder(session_id).iterdir())
        except FileNotFoundError:
            return []
        return sorted(path for path in found if path.suffix[1:] in MIMES and path.name[0] != ".")

    def put_back(self, session_id: str, name: str, data: bytes) -> None:
        """Keeps an image under the name it had elsewhere; refused as in `add`."""
        check_name(name, data)
        self._write(session_id, name, data)

    def forget(self, session_id: str) -> None:
        """Removes the images of a purged session."""
        shutil.rmtree(self._folder(session_id), ignore_errors=True)

    def _write(self, session_id: str, name: str, data: bytes) -> None:
        folder = self._folder(session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(folder / name, data, durably=True)

    def _folder(self, session_id: str) -> Path:
        if not is_safe_id(session_id):
            raise NotFound(f"no session {session_id}")
        return self._directory / session_id


def check_image(data: bytes) -> str:
    """The type of an image by its first bytes, or why it is refused."""
    if len(data) > LARGEST:
        raise TooLarge(f"an image has at most {LARGEST >> 20} MiB")
    kind = _kind(data)
    try:
        width, height = SIZES[kind](data)
    except (KeyError, IndexError, struct.error):
        raise UnsupportedType("an image is a PNG, JPEG, GIF or WebP file") from None
    if width * height > MOST_PIXELS:
        raise TooLarge(f"an image has at most {MOST_PIXELS:,} pixels, not {width} × {height}")
    return kind


def check_name(name: str, data: bytes) -> None:
    """Raise UnsupportedType or TooLarge unless `name` is a name we would give to this image."""
    image_id, _, extension = name.partition(".")
    if not is_safe_id(image_id) or MIMES.get(extension) != check_image(data):
        raise UnsupportedType(f"{name} is not an image under a name of ours")


def _name(data: bytes, once: str | None) -> str:
    if once is None:
        return secrets.token_hex(16)
    return hashlib.sha256(once.encode() + hashlib.sha256(data).digest()).hexdigest()[:32]


def _kind(data: bytes) -> str:
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
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Walks the segments to the frame header, where the size stands."""
    place = 2
    while True:
        marker, length = struct.unpack_from(">HH", data, place)
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        if marker < 0xFF00 or length < 2:
            raise IndexError("not a segment")
        place += 2 + length


def _webp_size(data: bytes) -> tuple[int, int]:
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
