"""Sizes as users write them."""

import pytest

from bullpen.setting_values import parse_size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("0", 0),
        (4096, 4096),
        ("512K", 512 << 10),
        ("256m", 256 << 20),
        ("1.5 GiB", 3 << 29),
        ("12GB", 12 << 30),
        ("1T", 1 << 40),
    ],
)
def test_a_size_may_end_with_a_unit(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "many", "-1", "12X", True, None, "1e9", "G"])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a size such as 512M or 16G"):
        parse_size(written)
