"""The type of an image is detected from its bytes, never from a name or a declared type."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.domain.errors import NotFound, TooLarge, UnsupportedType
from bullpen.workers.images import MAX_IMAGE_BYTES, Images, check_image
from support.pictures import gif, jpeg, png, webp

SESSION = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"


Make = Callable[[int, int], bytes]
FORMATS: list[tuple[str, Make]] = [
    ("image/png", png),
    ("image/jpeg", jpeg),
    ("image/gif", gif),
    ("image/webp", lambda w, h: webp(b"VP8X", w, h)),
    ("image/webp", lambda w, h: webp(b"VP8L", w, h)),
    ("image/webp", lambda w, h: webp(b"VP8 ", w, h)),
]


@pytest.mark.parametrize("mime, make", FORMATS)
def test_an_image_is_returned_unchanged_with_its_detected_type(tmp_path: Path, mime: str, make: Make) -> None:
    data = make(12, 7)
    images = Images(tmp_path)
    image = images.add(SESSION, data)
    assert (image.mime, image.size) == (mime, len(data))
    assert images.read(SESSION, image.id) == (mime, data)


@pytest.mark.parametrize("mime, make", FORMATS)
def test_an_image_with_too_many_pixels_is_refused_by_its_header(mime: str, make: Make) -> None:
    with pytest.raises(TooLarge):
        check_image(make(16_000, 16_000))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<!doctype html><script>alert(1)</script>",
        b"PK\x03\x04" + bytes(100),
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0\x00\x00" + bytes(100),
        b"RIFF\0\0\0\0WEBPVP8X",
        b"RIFF\0\0\0\0WEBPJUNK" + bytes(100),
    ],
)
def test_data_that_is_no_complete_image_is_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedType):
        check_image(data)


def test_an_image_with_too_many_bytes_is_refused() -> None:
    with pytest.raises(TooLarge):
        check_image(png() + bytes(MAX_IMAGE_BYTES))


@pytest.mark.parametrize("name", ["../../secret", "..", "", "x/y", "nobody", "a\0b", ".part"])
def test_an_image_id_never_leads_to_another_file(tmp_path: Path, name: str) -> None:
    images = Images(tmp_path / "images")
    images.add(SESSION, png())
    (tmp_path / "secret.png").write_bytes(png())
    for session, image in ((SESSION, name), (name, "nobody")):
        with pytest.raises(NotFound):
            images.read(session, image)


def test_images_are_readable_by_the_owner_only_and_removed_with_their_session(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    image = images.add(SESSION, png())
    (file,) = (tmp_path / "images" / SESSION).iterdir()
    assert file.name == f"{image.id}.png"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    images.remove_all(SESSION)
    with pytest.raises(NotFound):
        images.read(SESSION, image.id)
